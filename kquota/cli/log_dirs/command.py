"""`kquota log-dirs`: kafka-log-dirs, and snapshots of it for a history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli import world
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, say
from kquota.cli.engine_options import Conf, Debug, engine
from kquota.cli.listed import broker_ids, names
from kquota.cli.log_dirs import compaction
from kquota.cli.options import Output, OutputFormat
from kquota.errors import Invalid
from kquota.sizes.port import LogDirs
from kquota.sizes.replica import hidden
from kquota.terms import BrokerId

EPILOG: Final = """A snapshot has a name of its own, with cluster and time: from cron, a folder of them becomes a
history. --compact prints which of them are rolled and can be deleted: all but the newest.

Examples:
  kquota log-dirs --bootstrap-server localhost:9092 --describe --topic-list orders,payments
  kquota log-dirs --bootstrap-server localhost:9092 --snapshot history/"""


HEADINGS: Final = {
    "--describe": "Action (exactly one)",
    "--topic-list": "Which replicas",
    "--conf": "Spark, for --compact",
    "--output": "Output",
}
"""The first option of each part of the help, and its heading."""


@connected(zookeeper=False)
def log_dirs(
    connection: Connection,
    describe: Annotated[bool, typer.Option("--describe", help="Print every replica's size in bytes, as JSON.")] = False,
    snapshot: Annotated[
        Path | None, typer.Option("--snapshot", metavar="DIR", help="Write all sizes into a new file in DIR.")
    ] = None,
    compact: Annotated[
        Path | None,
        typer.Option("--compact", metavar="DIR", help="Roll the snapshots in DIR into Parquet, with Spark."),
    ] = None,
    topic_list: Annotated[
        str | None, typer.Option("--topic-list", metavar="T,…", help="Only these topics.  [default: all]")
    ] = None,
    broker_list: Annotated[
        str | None, typer.Option("--broker-list", metavar="ID,…", help="Only these brokers.  [default: all]")
    ] = None,
    conf: Conf = None,
    debug: Debug = False,  # noqa: ARG001 - its callback has done it
    output: OutputFormat = Output.text,
) -> int:
    """Show how big every replica is, and keep it for later, as kafka-log-dirs does and does not."""
    if [describe, snapshot is not None, compact is not None].count(True) != 1:
        raise Invalid("give --describe, --snapshot DIR or --compact DIR")
    if compact is not None:
        if topic_list is not None or broker_list is not None:
            raise Invalid("--compact rolls all of a snapshot: --topic-list and --broker-list choose what is described")
        return compaction.compact(compact, engine(None, None, conf, {}))
    if conf:
        raise Invalid("--conf is for Spark, and so for --compact")
    topics = None if topic_list is None else list(names([topic_list], "--topic-list"))
    wanted = None if broker_list is None else broker_ids([broker_list], "--broker-list")
    at = world.where(connection)
    with world.log_dirs(at) as found:
        brokers = _existing(found, wanted)
        if snapshot is not None:
            return _snapshot(found, brokers, topics, snapshot)
        return _describe(found, brokers, topics, output)


def _describe(found: LogDirs, brokers: list[BrokerId], topics: list[str] | None, output: Output) -> int:
    from kquota.sizes.printed import printed

    document = printed(brokers, found.describe(brokers, topics))
    if output is Output.text:
        print("Querying brokers for log directories information")
        print(f"Received log directory information from brokers {','.join(map(str, brokers))}")
    print(document)
    return DONE


def _snapshot(found: LogDirs, brokers: list[BrokerId], topics: list[str] | None, directory: Path) -> int:
    from kquota.sizes.snapshot import lines
    from kquota.stores import snapshots

    time = datetime.now(UTC)
    described = found.detailed(found.describe(brokers, topics))
    for warning in hidden(described):
        say(f"warning: {warning}; the snapshot lacks it")
    path = snapshots.write(directory, found.cluster_id, time, lines(found.cluster_id, time, described))
    say(f"{sum(len(log_dir.replicas) for log_dir in described)} replicas of {len(brokers)} brokers")
    print(path)
    return DONE


def _existing(found: LogDirs, wanted: Sequence[BrokerId] | None) -> list[BrokerId]:
    live = sorted(found.brokers())
    if wanted is None:
        return live
    if unknown := sorted(set(wanted) - set(live)):
        raise Invalid(
            "The given brokers do not exist from --broker-list: "
            f"{','.join(map(str, unknown))}. Current existent brokers: {','.join(map(str, live))}"
        )
    return sorted(wanted)
