"""`kquota move plan`: read the cluster and its sizes, make a plan, and explain the plan on stderr."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Final

from kquota.cli import local_files, move_stores, rates, world
from kquota.cli.contract import say
from kquota.cli.list_options import broker_ids
from kquota.cli.move.log_dir_time import OPTION, log_dir_settings, paced
from kquota.cli.move.plan.answer import MovePlan, plan_document
from kquota.cli.move.plan.command import PlanOptions
from kquota.cli.move.plan.explanation import explain, plan_file
from kquota.cli.move.plan.log_dirs import explain_log_dirs, log_dirs_document
from kquota.cli.options import option_name
from kquota.errors import Invalid, Refused
from kquota.list_text import joined
from kquota.measure import byte_size, percentage
from kquota.pace.log_dir_copy import LogDirWork
from kquota.placement import planner
from kquota.placement.cluster import INTERNAL, ClusterLayout, cluster
from kquota.placement.goal import Goal
from kquota.placement.log_dir_balance import LogDirGoal, balanced
from kquota.reassign.port import MoveCluster
from kquota.sizes import snapshot
from kquota.sizes.replica import LogDir, cordons, hidden, topics
from kquota.terms import BrokerId

_GOALS: Final = ("drain", "add", "replication_factor", "repair_racks", "balance")
_OF_BROKERS: Final = (*_GOALS, "brokers", "disk", "history")
"""The options for moves between brokers. None of them can be combined with `--balance-log-dirs`."""


def run(options: PlanOptions) -> MovePlan:
    """Return the plan, and explain it on stderr.

    Raises Invalid for an invalid value, for options that cannot be combined, and for a command without a goal. Raises
    Refused for a pattern that matches no topic, for a topic that this user cannot describe, and for an unknown or
    unusable broker. Also raises Refused if a goal needs more brokers or more disk space. Raises Unreachable if a broker
    does not answer.
    """
    if options.balance_log_dirs is not None:
        return _within_broker(options, BrokerId(options.balance_log_dirs))
    if options.replica_alter_log_dirs_throttle is not None:
        raise Invalid(f"{OPTION} needs --balance-log-dirs. Give both, or neither")
    if not (options.drain or options.add or options.replication_factor or options.repair_racks or options.balance):
        raise Invalid(
            "no goal is given. Give --drain, --add, --replication-factor, --repair-racks, --balance or "
            "--balance-log-dirs"
        )
    drain, add = _ids(options.drain, "--drain"), _ids(options.add, "--add")
    brokers = None if options.brokers is None else _ids(options.brokers, "--brokers")
    tolerance = percentage(options.tolerance, "--tolerance")
    disk_limit = percentage(options.disk_limit, "--disk-limit")
    disk = None if options.disk is None else byte_size(options.disk, "--disk")
    at = world.where(options.connection)
    layout, source = _read(at, options.history, options.topics, disk)
    drain -= _already_empty(at, drain - frozenset(layout.brokers))
    chosen, drained = _topics(frozenset(name.topic for name in layout.partitions), options.topics)
    goal = Goal(
        brokers=frozenset(layout.accepting) if brokers is None else brokers,
        topics=chosen,
        drained_topics=drained,
        drain=drain,
        add=add,
        replication_factor=options.replication_factor,
        repair_racks=options.repair_racks,
        balance=options.balance,
        tolerance=tolerance,
        disk_limit=disk_limit,
    )
    planned = planner.plan(layout, goal)
    explain(layout, goal, planned, source, file=plan_file(options.output), everything=options.explain)
    return MovePlan(plan=planned.plan, values=partial(plan_document, layout, goal, planned, source))


def _within_broker(options: PlanOptions, broker: BrokerId) -> MovePlan:
    if others := [option_name(name) for name in _OF_BROKERS if getattr(options, name)]:
        goals = any(getattr(options, name) for name in _GOALS)
        step = "Make two plans, one after the other" if goals else f"Leave out {' and '.join(others)}"
        raise Invalid(f"--balance-log-dirs cannot be combined with {', '.join(others)}. {step}")
    tolerance = percentage(options.tolerance, "--tolerance")
    disk_limit = percentage(options.disk_limit, "--disk-limit")
    throttle = rates.any_throttle(options.replica_alter_log_dirs_throttle, OPTION)
    at = world.where(options.connection)
    with world.log_dirs(at) as logs:
        if broker not in (alive := logs.brokers()):
            raise Refused(f"--balance-log-dirs {broker}: no live broker has this id. Give one of: {joined(alive)}")
        dirs = logs.describe([broker], None)
    held = topics(dirs)
    goal = LogDirGoal(
        broker=broker,
        topics=_topics(held, options.topics, f"on broker {broker}")[0],
        tolerance=tolerance,
        disk_limit=disk_limit,
    )
    # Read partitions after log dirs, because only the topics in the log dirs are needed. A partition that is created or
    # deleted in between does not move.
    with move_stores.moves(at, None) as (moves, _):
        found = balanced(goal, dirs, moves.snapshot(held).partitions)
    work = LogDirWork(broker=broker, copies=len(found.moves), bytes=found.bytes)
    pace = paced(work, throttle, log_dir_settings(options.connection, [work]) if found.moves else {})
    explain_log_dirs(found, pace, cordons(dirs), file=plan_file(options.output), everything=options.explain)
    return MovePlan(plan=found.plan, values=partial(log_dirs_document, goal, found, pace, cordons(dirs)))


def _read(
    at: world.Where, history: list[str] | None, patterns: list[str] | None, disk: int | None
) -> tuple[ClusterLayout, str]:
    with world.log_dirs(at) as logs:
        live = logs.describe(logs.brokers(), () if history else None)
        if history:
            sizes, source = _newest(history, logs.cluster_id)
        else:
            sizes, source = live, "the live cluster"
            for warning in hidden(sizes):
                say(f"warning: {warning}")
    # Read partitions after sizes, because a partition that was deleted in between must not be planned.
    with move_stores.moves(at, None) as (moves, _):
        everything = moves.snapshot(None)
        missing = topics(sizes) - {name.topic for name in everything.partitions}
        if patterns is not None:
            missing = frozenset().union(*(_matching(missing, pattern) for pattern in _split(patterns)))
        if missing:
            _must_be_deleted(moves, missing)
        return cluster(everything, sizes, disk, live=live), source


def _must_be_deleted(moves: MoveCluster, topics: Collection[str]) -> None:
    """Raise Refused if Kafka hides one of these topics from this user, because a plan without it would be
    incomplete.
    """
    try:
        moves.snapshot(topics)
    except Refused as error:
        raise Refused(error, ". To plan without this topic, choose other topics with --topics") from error


def _already_empty(at: world.Where, absent: frozenset[BrokerId]) -> frozenset[BrokerId]:
    dead = absent & world.dead_brokers(at) if absent else frozenset()
    for broker in sorted(dead):
        say(f"broker {broker} is dead and has no replicas: nothing is left to drain from it")
    return dead


def _newest(history: list[str], cluster_id: str) -> tuple[list[LogDir], str]:
    try:
        path, taken, lines = local_files.newest_snapshot(map(Path, history))
    except Invalid as error:
        raise Invalid("--history ", *error.args) from error
    if taken.cluster != cluster_id:
        raise Invalid(
            f"--history {path}: the snapshot is from another cluster ({taken.cluster}). Give a snapshot of cluster "
            f"{cluster_id}"
        )
    return snapshot.log_dirs(lines, str(path)), f"{path}, {taken.stamp}"


def _topics(
    every: frozenset[str], patterns: Iterable[str] | None, where: str = "of this cluster"
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the topics of all goals except a drain, and the topics of a drain. Without `patterns`, only a drain has
    internal topics. Only a pattern that starts with `_` matches internal topics, just as `*` in a shell does not match
    dotfiles. Raises Refused for a pattern that matches no topic.
    """
    if patterns is None:
        return every - INTERNAL, every
    found: set[str] = set()
    for pattern in _split(patterns):
        matching = _matching(every, pattern)
        if not matching:
            raise Refused(
                f"--topics {pattern!r}: no topic {where} matches. Check the pattern. Internal topics match only if it "
                "starts with _"
            )
        found |= matching
    return frozenset(found), frozenset(found)


def _split(patterns: Iterable[str]) -> Iterator[str]:
    return (part.strip() for text in patterns for part in text.split(","))


def _matching(topics: Iterable[str], pattern: str) -> set[str]:
    return {
        topic for topic in topics if fnmatchcase(topic, pattern) and (topic not in INTERNAL or pattern.startswith("_"))
    }


def _ids(text: str | None, option: str) -> frozenset[BrokerId]:
    return frozenset(() if text is None else broker_ids([text], option))
