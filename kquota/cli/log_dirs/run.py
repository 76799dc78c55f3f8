"""`kquota log-dirs`: print the log dirs that brokers report, write them as a snapshot, or compact snapshots."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kquota.cli import local_files, world
from kquota.cli.engine_options import engine
from kquota.cli.formats import document
from kquota.cli.list_options import broker_ids, names
from kquota.cli.log_dirs import compaction
from kquota.cli.log_dirs.command import LogDirsOptions
from kquota.cli.output import Answer, Lines, Part, key
from kquota.errors import Invalid, Refused
from kquota.measure import counted
from kquota.sizes.port import LogDirs
from kquota.sizes.replica import LogDir, hidden
from kquota.terms import BrokerId


def _log_dirs(found: Iterable[LogDir]) -> list[dict[str, object]]:
    """Return log dirs in the form of kafka-log-dirs, each with its replicas and its error (None without an error)."""
    return [
        {
            "partitions": [
                {
                    "partition": str(replica.partition),
                    "size": replica.size,
                    "offsetLag": replica.offset_lag,
                    "isFuture": replica.future,
                }
                for replica in sorted(log_dir.replicas, key=lambda each: (each.partition, each.future))
            ],
            "error": log_dir.error,
            "logDir": log_dir.path,
        }
        for log_dir in sorted(found, key=lambda each: each.path)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLogDirs(Part):
    """One broker with its log dirs. `log_dirs` is empty if the answer contains no log dir of the broker."""

    broker: BrokerId
    log_dirs: list[LogDir] = key("logDirs", _log_dirs)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirsShown(Answer):
    """The JSON of kafka-log-dirs, field by field as in Kafka 4.3.1. Brokers, log dirs and partitions are sorted."""

    VERSION = None
    SEPARATORS = (",", ":")

    brokers: tuple[BrokerLogDirs, ...]
    version: int = 1

    def text(self) -> Iterator[str]:
        """Yield Kafka's two lines and the document."""
        yield "Querying brokers for log directories information"
        yield f"Received log directory information from brokers {','.join(str(one.broker) for one in self.brokers)}"
        text = document(self).rstrip("\n")
        # Join single characters only if necessary, because joining needs nine times the memory of the text.
        yield text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def run(options: LogDirsOptions) -> Answer:
    """Run the action.

    Raises Invalid unless exactly one action is given, and for an option that the action does not accept. Raises Refused
    for an unknown broker.
    """
    if [options.describe, options.snapshot is not None, options.compact is not None].count(True) != 1:
        raise Invalid("give exactly one of --describe, --snapshot DIR and --compact DIR")
    if options.compact is not None:
        if options.topic_list is not None or options.broker_list is not None:
            raise Invalid("--compact takes whole snapshots. Leave out --topic-list and --broker-list")
        return compaction.compacted(options.compact, engine(None, None, options.conf, {}))
    if options.conf:
        raise Invalid("--conf needs --compact, because only --compact uses Spark")
    topics = None if options.topic_list is None else names([options.topic_list], "--topic-list")
    wanted = None if options.broker_list is None else broker_ids([options.broker_list], "--broker-list")
    with world.log_dirs(world.where(options.connection)) as cluster:
        brokers = _existing(cluster, wanted)
        time = datetime.now(UTC)
        described = cluster.describe(brokers, topics)
        if options.snapshot is not None:
            return _snapshot(cluster, brokers, described, options.snapshot, time)
    return sizes(brokers, described)


def sizes(brokers: Collection[BrokerId], log_dirs: Iterable[LogDir]) -> LogDirsShown:
    """Return the answer to --describe."""
    of_broker: dict[BrokerId, list[LogDir]] = {broker: [] for broker in sorted(brokers)}
    for found in log_dirs:
        of_broker[found.broker].append(found)
    return LogDirsShown(brokers=tuple(BrokerLogDirs(broker=b, log_dirs=found) for b, found in of_broker.items()))


def _snapshot(
    cluster: LogDirs, brokers: Sequence[BrokerId], described: list[LogDir], directory: Path, time: datetime
) -> Lines:
    detailed = cluster.detailed(described)
    for warning in hidden(detailed):
        world.warn(f"{warning}. The snapshot does not contain these replicas")
    path = local_files.snapshot(directory, cluster.cluster_id, time, detailed)
    count = sum(len(log_dir.replicas) for log_dir in detailed)
    return Lines(lines=(str(path),), notes=(f"{counted(count, 'replica')} of {counted(len(brokers), 'broker')}",))


def _existing(cluster: LogDirs, wanted: Sequence[BrokerId] | None) -> list[BrokerId]:
    live = sorted(cluster.brokers())
    if wanted is None:
        return live
    if unknown := sorted(set(wanted) - set(live)):
        raise Refused(
            "The given brokers do not exist from --broker-list: "
            f"{','.join(map(str, unknown))}. Current existent brokers: {','.join(map(str, live))}"
        )
    return sorted(wanted)
