"""`kquota move plan`: read the cluster and its sizes, make a plan, and explain the plan on stderr."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from kquota.cli import world
from kquota.cli.contract import say
from kquota.cli.list_options import broker_ids
from kquota.cli.move.plan.answer import MovePlan, move_plan
from kquota.cli.move.plan.command import PlanOptions
from kquota.cli.move.plan.explanation import explain
from kquota.errors import Invalid
from kquota.measure import byte_size, percentage
from kquota.placement import planner
from kquota.placement.cluster import INTERNAL, ClusterLayout, cluster
from kquota.placement.goal import Goal
from kquota.sizes import snapshot
from kquota.sizes.replica import LogDir, hidden
from kquota.terms import BrokerId


def run(options: PlanOptions) -> MovePlan:
    """Plan and explain. Raises Invalid without a goal."""
    if not (options.drain or options.add or options.replication_factor or options.repair_racks or options.balance):
        raise Invalid("no goal is given. Give --drain, --add, --replication-factor, --repair-racks or --balance")
    leaving, coming = _ids(options.drain, "--drain"), _ids(options.add, "--add")
    allowed = None if options.brokers is None else _ids(options.brokers, "--brokers")
    near = percentage(options.tolerance, "--tolerance")
    full = percentage(options.disk_limit, "--disk-limit")
    volume = None if options.disk is None else byte_size(options.disk, "--disk")
    found, source = _read(world.where(options.connection), options.history, volume)
    chosen, drained = _topics(found, options.topics)
    goal = Goal(
        brokers=frozenset(found.alive) if allowed is None else allowed,
        topics=chosen,
        drained_topics=drained,
        drain=leaving,
        add=coming,
        replication_factor=options.replication_factor,
        repair_racks=options.repair_racks,
        balance=options.balance,
        tolerance=near,
        disk_limit=full,
    )
    planned = planner.plan(found, goal)
    explain(found, goal, planned, source, everything=options.explain)
    return move_plan(found, goal, planned, source)


def _read(at: world.Where, history: list[str] | None, disk: int | None) -> tuple[ClusterLayout, str]:
    """The current cluster with sizes from itself or from the newest snapshot, and the source of the sizes."""
    with world.log_dirs(at) as logs:
        if history:
            sizes, source = _newest(history, logs.cluster_id)
        else:
            sizes, source = logs.describe(logs.brokers(), None), "the live cluster"
            for warning in hidden(sizes):
                say(f"warning: {warning}")
    # Read partitions after sizes: a partition created in between has no size yet, and a deleted one is not planned.
    with world.moves(at, None) as (moves, _):
        return cluster(moves.snapshot(None), sizes, disk), source


def _newest(history: list[str], cluster_id: str) -> tuple[list[LogDir], str]:
    try:
        path, taken, lines = world.newest_snapshot(map(Path, history))
    except Invalid as error:
        raise Invalid("--history ", *error.args) from error
    if taken.cluster != cluster_id:
        raise Invalid(f"--history {path}: snapshot of another cluster ({taken.cluster}). Give one of {cluster_id}")
    return snapshot.log_dirs(lines, str(path)), f"{path}, {taken.stamp}"


def _topics(cluster: ClusterLayout, patterns: Iterable[str] | None) -> tuple[frozenset[str], frozenset[str]]:
    """The topics of all goals, and the topics of a drain.

    A pattern that starts with `*` does not match internal topics, like `*` in a shell does not match dotfiles. Raises
    Invalid for a pattern that matches no topic.
    """
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
            raise Invalid(f"--topics {pattern!r}: no topic of this cluster matches")
        found |= matching
    return frozenset(found), frozenset(found)


def _ids(text: str | None, option: str) -> frozenset[BrokerId]:
    return frozenset(() if text is None else broker_ids([text], option))
