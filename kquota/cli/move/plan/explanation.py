"""The explanation of `move plan` on stderr: the cost of the plan, unreached goals, and why each replica moves."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

from kquota.cli.amounts import UNKNOWN
from kquota.cli.contract import say, to_stderr
from kquota.cli.formats import printable
from kquota.cli.move.cordons import cordon_notes
from kquota.cli.options import Output
from kquota.cli.suggestion import suggested
from kquota.cli.table import fitted, terminal_width
from kquota.list_text import few, joined, listed, named_brokers
from kquota.measure import counted, human_bytes
from kquota.placement.balance import BalanceBand
from kquota.placement.cluster import INTERNAL, ClusterLayout
from kquota.placement.draft import MoveReason
from kquota.placement.goal import Goal
from kquota.placement.lower_bound import LowerBound
from kquota.placement.planned import BrokerChange, PartitionChange, Planned
from kquota.terms import BrokerId, TopicPartition

FIRST: Final = 20
"""Without `--explain`, kquota shows at most this many moves and this many reasons why a partition does not reach the
goal, and for each reason this many other partitions.
"""
UNSAVED: Final = "plan.json"
"""The file name in suggested commands if `plan_file` returns None."""
_STDOUT: Final = 1
_BROKERS: Final = 8
_NAMED: Final = 5


def explain(
    cluster: ClusterLayout, goal: Goal, found: Planned, source: str, *, file: str | None, everything: bool
) -> None:
    """Print the explanation on stderr: the answer first, then the tables. `source` is the source of the sizes.

    Unless `everything` is true, kquota shows only the first `FIRST` moves, only some of the partitions that do not
    reach the goal (`FIRST`), and the brokers with changes. `file` is the file that receives the plan from stdout, or
    None if `plan_file` found none.
    """
    most = sys.maxsize if everything else FIRST
    for line in (*_answer(goal, found), *_unknown(cluster, goal, found), *_remarks(cluster, goal, found, most)):
        say(line)
    say(f"sizes: {source}; the size of a partition is the size of its leader's log")
    if found.changes:
        show(_moves_table(found.changes[:most]), len(found.changes) - most, "move")
        touched = {
            broker: share
            for broker, share in found.brokers.items()
            if everything or share.before != share.after or share.incoming > 0
        }
        show(_brokers_table(touched))
        untouched = len(found.brokers) - len(touched)
        to_stderr(f"(not shown: {counted(untouched, 'broker')} without changes)\n" if untouched else "")
        plan = shlex.quote(file or UNSAVED)
        estimate = suggested(f"move estimate --reassignment-json-file {plan} --throttle RATE")
        say(f"next: {saving(file)}estimate the move: {estimate}")


def show(lines: Sequence[str], more: int = 0, what: str = "") -> None:
    """Print a table on stderr and, if `more` is above 0, the number of rows that the table leaves out. `what` is the
    noun for a row.
    """
    rest = [f"... and {counted(more, f'more {what}')}. To show all, give --explain"] if more > 0 else []
    to_stderr("\n".join(["", *map(printable, lines), *rest]))


def _unknown(cluster: ClusterLayout, goal: Goal, found: Planned) -> Iterator[str]:
    unread = [broker for broker in goal.destinations if cluster.brokers[broker].disk is None]
    if unread:
        yield (
            f"warning: {named_brokers(unread, _BROKERS)}: disk space is not checked, because the disk size is unknown. "
            "Give --disk SIZE (brokers report it from Kafka 3.3, and snapshots have it only for brokers with replicas)"
        )
    if unsized := [change.partition for change in found.changes if change.partition not in cluster.sizes]:
        count = counted(len(unsized), "partition")
        yield f"warning: the plan counts {count} as 0 bytes, because the size is unknown: {few(unsized, _NAMED)}"


def _moves_table(changes: Iterable[PartitionChange]) -> list[str]:
    rows = [
        (
            str(change.partition),
            joined(change.before),
            joined(change.after),
            human_bytes(change.bytes),
            then("none" if change.leader_before is None else change.leader_before, change.leader_after),
            "; ".join(_reasons(change)),
        )
        for change in changes
    ]
    heads = ("partition", "replicas", "will be", "copied", "leader", "why")
    return fitted(rows, heads, left=[0, 1, 2, 4, 5], width=terminal_width(sys.stderr), optional=["replicas"])


def _reasons(change: PartitionChange) -> Iterator[str]:
    in_order = sorted(change.copies, key=attrgetter("why", "destination"))
    for why, copies in groupby(in_order, attrgetter("why")):
        moves = ", ".join(
            f"new on {copy.destination}" if copy.source is None else f"{copy.source} -> {copy.destination}"
            for copy in copies
        )
        yield f"{why.replace('-', ' ')}: {moves}"
    if change.drops:
        yield f"replication factor: not on {joined(change.drops)}"


def _brokers_table(brokers: dict[BrokerId, BrokerChange]) -> list[str]:
    rows = [
        (
            str(broker) if share.alive else f"{broker} (dead)",
            share.rack or "",
            then(share.before.replicas, share.after.replicas),
            then(share.before.leaders, share.after.leaders),
            then(human_bytes(share.before.bytes), human_bytes(share.after.bytes)),
            human_bytes(share.incoming) if share.incoming else "",
            then(percent(share.disk_before), percent(share.disk_after)),
            percent(share.disk_worst),
        )
        for broker, share in brokers.items()
    ]
    heads = ("broker", "rack", "replicas", "leaders", "bytes", "to copy in", "disk", "disk at worst")
    return fitted(rows, heads, left=[1], width=terminal_width(sys.stderr), optional=["rack", "leaders"])


def _remarks(cluster: ClusterLayout, goal: Goal, found: Planned, most: int) -> Iterator[str]:
    reasons: dict[str, list[TopicPartition]] = {}
    for left in found.left:
        reasons.setdefault(left.why, []).append(left.partition)
    for why, (first, *others) in [*reasons.items()][:most]:
        same = f". The same applies to {counted(len(others), 'more partition')}: {few(others, most)}" if others else ""
        hidden = ". To show all, give --explain" if len(others) > most else ""
        yield f"warning: {first} {why}{same}{hidden}"
    if (more := len(reasons) - most) > 0:
        yield f"warning: ... and {counted(more, 'more reason')}. To show all, give --explain"
    yield from _outside(goal, found)
    yield from _still_holding(cluster, goal, found)
    yield from cordon_notes(cluster.cordons)
    inside = {name.topic for name in cluster.partitions} & INTERNAL - goal.topics
    if inside and (goal.add or goal.balance or goal.repair_racks or goal.replication_factor):
        drained = bool(goal.drain and inside & goal.drained_topics)
        left_out = "goals other than --drain leave internal topics out" if drained else "internal topics are left out"
        yield (
            f"{left_out}: {', '.join(sorted(inside))}. To move them {'for these goals ' if drained else ''}as well, "
            "name them in --topics together with the other topics"
        )
    leveled = any(
        copy.why in (MoveReason.BALANCE, MoveReason.ADD) for change in found.changes for copy in change.copies
    )
    led = sum(change.leader_before != change.leader_after for change in found.changes)
    if leveled and led:
        yield (
            f"{counted(led, 'leader')} will move, because no follower could move instead, or because the broker of "
            "the leader is drained"
        )


def _still_holding(cluster: ClusterLayout, goal: Goal, found: Planned) -> Iterator[str]:
    for broker in sorted(goal.drain):
        staying = found.brokers[broker].after.replicas
        unnamed = sum(
            broker in now.replicas and name.topic not in goal.drained_topics for name, now in cluster.partitions.items()
        )
        if staying:
            where = [f"{unnamed:,} of topics that are not in --topics"] if unnamed else []
            where += [f"{staying - unnamed:,} of the partitions above"] if staying > unnamed else []
            yield f"warning: broker {broker} keeps {counted(staying, 'replica')}: {', '.join(where)}"


def _outside(goal: Goal, found: Planned) -> Iterator[str]:
    """Yield a line with the band, or a warning about brokers that stay outside it. Yield nothing without a band.

    Without `--balance`, only added brokers count, and they may hold more than the band.
    """
    band = found.band
    if band is None:
        return
    looked_at = goal.destinations if goal.balance else sorted(goal.add)
    load = {broker: found.brokers[broker].after.bytes for broker in looked_at}
    below = [broker for broker in looked_at if load[broker] < band.low]
    above = [broker for broker in looked_at if load[broker] > band.high and goal.balance]
    wanted = f"{human_bytes(band.low)} to {human_bytes(band.high)}, around a mean of {human_bytes(band.mean)}"
    if below or above:
        sides = " and ".join(
            f"{named_brokers(side, _BROKERS)} {'stays' if len(side) == 1 else 'stay'} {where}"
            for side, where in ((above, "above"), (below, "below"))
            if side
        )
        yield (
            f"warning: {sides} the band ({wanted}): no single move helps, because of partition sizes, "
            f"racks, disks or --topics{''.join(_racks_outside(goal, found, band, {*below, *above}))}"
        )
    else:
        if not goal.balance and any(load[broker] > band.high for broker in looked_at):
            wanted = f"at least {human_bytes(band.low)}"
        yield f"band: every {'' if goal.balance else 'added '}broker will hold {wanted}"


def _racks_outside(goal: Goal, found: Planned, band: BalanceBand, outside: Collection[BrokerId]) -> Iterator[str]:
    """Yield a sentence for each rack of the brokers in `outside` whose mean is outside the band.

    A move within such a rack cannot bring all its brokers into the band, and a move into or out of it often puts two
    replicas of a partition in one rack.
    """
    for rack in sorted({rack for broker in outside if (rack := found.brokers[broker].rack) is not None}):
        members = [broker for broker in goal.destinations if found.brokers[broker].rack == rack]
        held = sum(found.brokers[broker].after.bytes for broker in members)
        if band.off(held // len(members)):
            mean = f" on {named_brokers(members, _BROKERS)}, a mean of {human_bytes(held // len(members))}"
            yield f". Rack {rack} holds {human_bytes(held)}{mean if len(members) > 1 else ''}"


def _answer(goal: Goal, found: Planned) -> Iterator[str]:
    if not found.changes:
        if found.left or any(line.startswith("warning: ") for line in _outside(goal, found)):
            yield "no plan: kquota found no replica to move for this goal"
        else:
            yield "nothing to do: no replica has to move for this goal, so there is no plan"
        return
    copies = sum(len(change.copies) for change in found.changes)
    drops = sum(len(change.drops) for change in found.changes)
    yield (
        f"plan: {counted(len(found.changes), 'partition')}, {counted(copies, 'replica')} to copy "
        f"({human_bytes(found.bytes)}, {found.bytes} bytes){f', {drops:,} to remove' if drops else ''}"
    )
    ratio = found.least.ratio(found.bytes)
    if ratio is not None:
        least = f"{human_bytes(found.least.bytes)} ({_terms(found.least, goal)})"
        yield f"a plan that reaches the goal must copy at least {least}. {share_of_least(ratio)}"


def share_of_least(ratio: float) -> str:
    """Return a sentence on the bytes of a plan. `ratio` is these bytes divided by the lower bound."""
    missed = ", because it does not reach the band" if ratio < 1 else ""
    return f"This plan copies {ratio:.1%} of this minimum{missed}"


def _terms(least: LowerBound, goal: Goal) -> str:
    if least.bytes == least.forced:
        wanted = {
            "the drain": goal.drain,
            "the replication factor": goal.replication_factor,
            "racks": goal.repair_racks,
        }
        return f"new replicas for {listed((name for name, given in wanted.items() if given), 'or')}"
    if least.bytes == least.lack:
        return "bytes that brokers lack to reach the band"
    forced = f", and {human_bytes(least.forced)} of new replicas" if least.forced else ""
    return f"bytes that brokers hold above the band{forced}"


def then(before: object, after: object) -> str:
    """Return a value before and after the plan as text. A value that does not change appears only once."""
    return f"{before}" if before == after else f"{before} -> {after}"


def percent(share: float | None) -> str:
    """Return a share as a percentage, or `unknown`."""
    return UNKNOWN if share is None else f"{share:.0%}"


def plan_file(output: Output) -> str | None:
    """Return the path of the file that receives the plan from stdout. For a file below the current folder, the path is
    relative to this folder.

    Return None if stdout is not a regular file, or if the system does not show its path. Also return None if `output`
    is a format that contains more than the plan.
    """
    if not output.for_people:
        return None
    try:
        if not stat.S_ISREG(os.fstat(_STDOUT).st_mode):
            return None
        path = Path(f"/proc/self/fd/{_STDOUT}").readlink()
        if not path.samefile(f"/proc/self/fd/{_STDOUT}"):
            return None
        return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    except OSError:
        return None


def saving(file: str | None) -> str:
    """Return the words that tell the operator to save the plan, or empty text if `file` already has the plan."""
    return f"save the plan in {UNSAVED}, then " if file is None else ""
