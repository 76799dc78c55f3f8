"""`kquota move plan`: which replicas to move so that a goal is reached, and the fewest bytes are copied."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kquota.cli import world
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, say
from kquota.cli.listed import broker_ids
from kquota.cli.options import Output, OutputFormat
from kquota.errors import Invalid
from kquota.measure import byte_size, percentage
from kquota.terms import BrokerId

if TYPE_CHECKING:
    from kquota.placement.cluster import Cluster
    from kquota.placement.goal import Goal
    from kquota.sizes.replica import LogDir

EPILOG: Final = """The plan on stdout is what `kquota reassign-partitions --reassignment-json-file` takes. Nothing is
written to the cluster.

Internal topics are drained with all others; for other goals name them: --topics '__*'.

Examples:
  kquota move plan --bootstrap-server localhost:9092 --drain 3 > plan.json
  kquota move plan --bootstrap-server localhost:9092 --topics 'orders*' --replication-factor 3 --repair-racks \
> plan.json"""


HEADINGS: Final = {
    "--drain": "Goals (one or more)",
    "--tolerance": "Bounds",
    "--disk": "What brokers do not tell",
    "--explain": "Output",
}
"""The first option of each part of the help, and its heading."""


@connected(zookeeper=False)
def plan(
    connection: Connection,
    drain: Annotated[
        str | None, typer.Option("--drain", metavar="ID,…", help="Leave no replica on these brokers, alive or dead.")
    ] = None,
    add: Annotated[
        str | None, typer.Option("--add", metavar="ID,…", help="Bring these brokers their fair share of the bytes.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", metavar="N", min=1, help="Give each partition N replicas.")
    ] = None,
    repair_racks: Annotated[
        bool, typer.Option("--repair-racks", help="Put each partition on as many racks as there are.")
    ] = False,
    balance: Annotated[
        bool, typer.Option("--balance", help="Bring every broker's bytes within --tolerance of the mean.")
    ] = False,
    tolerance: Annotated[
        str,
        typer.Option(
            "--tolerance", metavar="PERCENT", help="How far from the mean of bytes --add and --balance leave a broker."
        ),
    ] = "10%",
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topics", metavar="GLOB,…", help="Only these topics, repeatable.  [default: all but internal ones]"
        ),
    ] = None,
    brokers: Annotated[
        str | None,
        typer.Option(
            "--brokers", metavar="ID,…", help="Replicas come to these brokers only.  [default: all live ones]"
        ),
    ] = None,
    disk_limit: Annotated[
        str, typer.Option("--disk-limit", metavar="PERCENT", help="How full the plan may make a broker's disks.")
    ] = "85%",
    disk: Annotated[
        str | None,
        typer.Option(
            "--disk",
            metavar="SIZE",
            help="How large every broker's disk is, where brokers do not tell (before Kafka 3.3): 2TB.",
        ),
    ] = None,
    history: Annotated[
        list[str] | None,
        typer.Option(
            "--history",
            metavar="PATH",
            help="Sizes from the newest snapshot of a file or folder, in place of the live ones.",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show every move on stderr, not just the first 20.")
    ] = False,
    output: OutputFormat = Output.text,
) -> int:
    """Plan the fewest bytes to move: drain or add brokers, set replication factors, repair racks, balance."""
    if not (drain or add or replication_factor or repair_racks or balance):
        raise Invalid("plan for what? Give --drain, --add, --replication-factor, --repair-racks or --balance")
    leaving, coming = _ids(drain, "--drain"), _ids(add, "--add")
    allowed = None if brokers is None else _ids(brokers, "--brokers")
    near, full = percentage(tolerance, "--tolerance"), percentage(disk_limit, "--disk-limit")
    volume = None if disk is None else byte_size(disk, "--disk")
    cluster, source = _read(world.where(connection), history, volume)

    from kquota.placement.goal import Goal

    chosen, drained = _topics(cluster, topics)
    goal = Goal(
        brokers=frozenset(cluster.alive) if allowed is None else allowed,
        topics=chosen,
        drained_topics=drained,
        drain=leaving,
        add=coming,
        replication_factor=replication_factor,
        repair_racks=repair_racks,
        balance=balance,
        tolerance=near,
        disk_limit=full,
    )
    return _answer(cluster, goal, source, output, explain=explain)


def _answer(cluster: Cluster, goal: Goal, source: str, output: Output, *, explain: bool) -> int:
    from kquota.cli.move.plan import document, printed
    from kquota.placement import planner

    found = planner.plan(cluster, goal)
    printed.tell(cluster, goal, found, source, explain=explain)
    if output is Output.json:
        print(document.document(cluster, goal, found, source))
    elif found.changes:
        print(found.plan.text())
    return DONE


def _read(at: world.Where, history: list[str] | None, disk: int | None) -> tuple[Cluster, str]:
    """The cluster as it is, with sizes from itself or from the newest snapshot; and where the sizes come from."""
    from kquota.placement.cluster import cluster
    from kquota.sizes.replica import hidden

    with world.log_dirs(at) as logs:
        if history:
            sizes, source = _newest(history, logs.cluster_id)
        else:
            sizes, source = logs.describe(logs.brokers(), None), "the live cluster"
            for warning in hidden(sizes):
                say(f"warning: {warning}")
    # After the sizes: a partition that is new in between has no size yet, and one that went away is not planned for.
    with world.moves(at, None) as (moves, _):
        return cluster(moves.snapshot(None), sizes, disk), source


def _newest(history: list[str], cluster_id: str) -> tuple[list[LogDir], str]:
    from kquota.sizes import snapshot
    from kquota.stores import history as snapshots

    try:
        path, taken = snapshots.newest(map(Path, history))
    except Invalid as error:
        raise Invalid(f"--history {error}") from error
    if taken.cluster != cluster_id:
        raise Invalid(f"--history: {path} is of cluster {taken.cluster}, this is {cluster_id}; name its own snapshots")
    return snapshot.log_dirs(snapshots.lines(path), str(path)), f"{path}, {taken.stamp}"


def _topics(cluster: Cluster, patterns: Iterable[str] | None) -> tuple[frozenset[str], frozenset[str]]:
    """The topics of all goals, and those of a drain; a `*` in front matches no internal topic, as a shell's no dotfile.

    Raises Invalid for a pattern that matches none.
    """
    from kquota.placement.cluster import INTERNAL

    every = frozenset(name.topic for name in cluster.partitions)
    if patterns is None:
        return every - INTERNAL, every
    found: set[str] = set()
    for pattern in (part.strip() for text in patterns for part in text.split(",")):
        matching = {
            topic
            for topic in every
            if fnmatchcase(topic, pattern) and (topic not in INTERNAL or pattern.startswith("_"))
        }
        if not matching:
            raise Invalid(f"--topics {pattern!r}: no topic of this cluster has such a name")
        found |= matching
    return frozenset(found), frozenset(found)


def _ids(text: str | None, option: str) -> frozenset[BrokerId]:
    return frozenset(() if text is None else broker_ids([text], option))
