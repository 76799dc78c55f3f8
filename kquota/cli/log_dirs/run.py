"""`kquota log-dirs`: print the log dirs that brokers report, write them as a snapshot, or compact snapshots."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kquota.cli import local_files, world
from kquota.cli.contract import say
from kquota.cli.engine_options import engine, spark_reader
from kquota.cli.formats import document
from kquota.cli.list_options import broker_ids, names
from kquota.cli.log_dirs.command import LogDirsOptions
from kquota.cli.output import Answer, JsonObject, Lines, each, key
from kquota.errors import Invalid, NextStep, Refused
from kquota.measure import counted
from kquota.sizes.history import Listing
from kquota.sizes.port import LogDirs
from kquota.sizes.replica import LogDir, hidden
from kquota.spark import files
from kquota.spark.engine import Engine
from kquota.terms import BrokerId

if TYPE_CHECKING:
    from kquota.cli.local_files import HistoryBatch


def _broker(found: tuple[BrokerId, list[LogDir]]) -> JsonObject:
    broker, log_dirs = found
    shown = [
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
        for log_dir in sorted(log_dirs, key=lambda each: each.path)
    ]
    return {"broker": broker, "logDirs": shown}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirsShown(Answer):
    """The JSON of kafka-log-dirs, field by field as in Kafka 4.3.1. Brokers, log dirs and partitions are sorted."""

    VERSION = None
    SEPARATORS = (",", ":")

    brokers: Sequence[tuple[BrokerId, list[LogDir]]] = key(form=each(_broker))
    """Each broker with its log dirs. The list is empty if the broker reported no log dir."""
    version: int = 1

    def text(self) -> Iterator[str]:
        yield "Querying brokers for log directories information"
        yield f"Received log directory information from brokers {','.join(str(broker) for broker, _ in self.brokers)}"
        text = document(self).rstrip("\n")
        # Join single characters only if necessary, because joining needs nine times the memory of the text.
        yield text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def run(options: LogDirsOptions) -> Answer:
    """Return the sizes, or write a snapshot and return its path, or compact snapshots and return the paths of those
    that can be deleted.

    Raises Invalid unless exactly one action is given, for an option that the action does not accept, and for an
    unusable folder. Raises Refused for an unknown broker, if a broker answers with an error, and for a snapshot
    that exists or cannot be written. Raises Unreachable if a broker does not answer. For `--compact`, also raises the
    errors of `compacted`.
    """
    actions = {
        "--describe": options.describe,
        "--snapshot": options.snapshot is not None,
        "--compact": options.compact is not None,
    }
    given = [action for action, wanted in actions.items() if wanted]
    if len(given) != 1:
        raise Invalid(
            f"give exactly one of --describe, --snapshot DIR and --compact DIR (given: {' and '.join(given) or 'none'})"
        )
    if options.compact is not None:
        if options.topic_list is not None or options.broker_list is not None:
            raise Invalid("--compact cannot select topics or brokers. Leave out --topic-list and --broker-list")
        return compacted(options.compact, engine(options.spark, {}))
    if options.spark.conf:
        raise Invalid("--conf needs --compact, because only --compact uses Spark. Leave out --conf")
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
    """Return the answer to `--describe`: each of `brokers`, in ascending order, with its log dirs."""
    of_broker: dict[BrokerId, list[LogDir]] = {broker: [] for broker in sorted(brokers)}
    for found in log_dirs:
        of_broker[found.broker].append(found)
    return LogDirsShown(brokers=tuple(of_broker.items()))


def _snapshot(
    cluster: LogDirs, brokers: Sequence[BrokerId], described: list[LogDir], directory: Path, time: datetime
) -> Lines:
    detailed = cluster.detailed(described)
    for warning in hidden(detailed):
        world.warn(f"{warning}. Repair the log dir, and then take another snapshot")
    path = local_files.snapshot(directory, cluster.cluster_id, time, detailed)
    count = sum(len(log_dir.replicas) for log_dir in detailed)
    note = f"the snapshot has {counted(count, 'replica')} of {counted(len(brokers), 'broker')}"
    return Lines(lines=(str(path),), notes=(note,))


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


def compacted(directory: Path, engine: Engine) -> Lines:
    """Compact the new snapshots in `directory` with Spark, and return the paths of all snapshots that can be deleted.

    A snapshot that is older than the compacted ones is left out with a warning. Raises Invalid for a folder that does
    not exist or contains no snapshot, for a damaged snapshot, and for two new snapshots with the same key. Raises
    Refused if Spark is missing or fails, or if the folder cannot be written. Raises Incomplete if a power failure could
    still remove the compacted snapshots, and Busy if another kquota is compacting the folder.
    """
    if not directory.is_dir():
        raise Invalid(f"--compact {directory}: not an existing folder. Give the folder of the snapshots")
    found = local_files.listing([directory])
    if not found.clusters() and not found.late:
        raise Invalid(f"--compact {directory}: the folder contains no snapshot. ", NextStep.TAKE_SNAPSHOT)
    if found.waiting:
        with local_files.rolling(directory) as batch:
            # List the snapshots again, because another process may have compacted some before this one got the lock.
            found = local_files.listing([directory])
            _roll(found, batch, engine)
            found = local_files.listing([directory])
    else:
        say("nothing to compact: no snapshot is newer than the compacted ones")
    for path in found.late:
        world.warn(
            f"{path} is older than the compacted snapshots of its cluster, so kquota leaves it out. Delete it. If you "
            f"still have all snapshots, you can instead delete {directory / 'rolled'} and run the same command again"
        )
    free = local_files.spent_snapshots(directory, found.held)
    note = (
        f"snapshot files that you can delete after this compaction: {len(free):,} (all except the newest of each "
        "cluster)"
    )
    return Lines(lines=tuple(map(str, free)), notes=(note,) if free else ())


def _roll(found: Listing, batch: HistoryBatch, engine: Engine) -> None:
    if not found.waiting:
        return
    with local_files.workspace() as scratch:
        laid = files.laid_out(found.waiting, scratch / "history", ".jsonl")
        try:
            with spark_reader(scratch, laid, engine) as reader:
                from kquota.spark.compact import tables

                rows = tables(reader, laid, found, batch.unfinished)
        except Refused:
            # Look for the damaged file here, because Spark does not report which file is damaged.
            local_files.check_snapshots(found.waiting)
            raise
    taken = set(found.waiting.values())
    place = batch.commit({table: batch.unfinished / table for table in ("replicas", "brokers")}, taken)
    clusters = ", ".join(sorted({each.cluster for each in taken}))
    say(f"wrote {counted(rows, 'row')} from {counted(len(taken), 'snapshot')} of {clusters} to {place}")
