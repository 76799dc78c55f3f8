"""A run: one throttled execution of a plan, and what is needed to continue it, undo it and restore its throttle."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kquota.measure import ByteRate
from kquota.reassign.plan import Plan
from kquota.reassign.throttle import Taken, maybe_unseen, passed_on, restored_value, take
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries, replica
from kquota.terms import EVERY_REPLICA, BrokerId, TopicPartition


class Purpose(enum.Enum):
    """What a run is for: a move, or only a throttle that somebody set (its plan is then empty)."""

    MOVE = "move"
    THROTTLE = "throttle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process that writes runs: its user and host, its number there, and since when it runs (UTC)."""

    user: str
    host: str
    pid: int
    since: datetime

    def __str__(self) -> str:
        return f"{self.user}@{self.host}, pid {self.pid}"

    def same_person(self, other: Owner) -> bool:
        """Whether it is the same user on the same host."""
        return (self.user, self.host) == (other.user, other.host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """One write of a run. The version grows by one with every write, whichever host makes it.

    `record` identifies the shared record that the write went to, None for the journal of one host only. `by` and `at`
    are None for a journal that kquota 0.1 wrote.
    """

    version: int
    by: Owner | None = None
    at: datetime | None = None
    record: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """`rollback` is the plan back; `rate` bytes per second, None without a throttle; `finished` None while open.

    `handed_over` are the partitions that the cluster has taken or refused to move, and those that were there already.
    A run that is `aborting` is on its way to `rollback`. `topic_ids`, as Kafka prints them, tell a topic from a later
    one of its name. `owner` began the run, for `reason`. `crowded`: moves that were not on record ran when it took its
    throttle, so a prior rate may be one of theirs. `stamp` is the last write on record, and does not make runs differ.
    """

    id: str
    begun: datetime
    plan: Plan
    rollback: Plan
    rate: ByteRate | None
    taken: Mapping[Setting, Taken]
    purpose: Purpose = Purpose.MOVE
    log_dir_rate: ByteRate | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    handed_over: frozenset[TopicPartition] = frozenset()
    aborting: bool = False
    finished: datetime | None = None
    owner: Owner | None = None
    reason: str | None = None
    crowded: bool = False
    stamp: Stamp | None = field(default=None, compare=False)

    @property
    def goal(self) -> Plan:
        """Where it is on its way to."""
        return self.rollback if self.aborting else self.plan

    @property
    def waiting(self) -> tuple[TopicPartition, ...]:
        """The partitions that the cluster has not been asked to move: a wave still to come, or a kquota that died."""
        return tuple(name for name in self.goal.targets if name not in self.handed_over)


def others_than(run: Run | None, unfinished: Sequence[Run]) -> tuple[Run, ...]:
    """The unfinished runs besides this one, in their order; all of them where there is none."""
    return tuple(other for other in unfinished if run is None or other.id != run.id)


def held(runs: Sequence[Run], setting: Setting) -> tuple[Taken, ...]:
    """What the runs hold of one setting, in their order."""
    return tuple(run.taken[setting] for run in runs if setting in run.taken)


def taking(
    run: Run,
    wanted: Mapping[Setting, tuple[str, ...]],
    now: Mapping[Setting, str | None],
    others: Sequence[Run],
) -> Run:
    """The run as it must be on record before `wanted` is written over `now`; `others` are open, oldest first."""
    fresh = {
        setting: take(setting, now[setting], values, run.taken.get(setting), held(others, setting))
        for setting, values in wanted.items()
    }
    return replace(run, taken=dict(sorted({**run.taken, **fresh}.items())))


def restore_changes(run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[Change, ...]:
    """The changes that end the run's throttle; a setting that is not in `now` (nobody could read it) is left out."""
    changes = (
        Change(setting=setting, before=now[setting], after=restored_value(taken, now[setting], held(others, setting)))
        for setting, taken in run.taken.items()
        if setting in now
    )
    return tuple(change for change in changes if change.before != change.after)


def repeat_changes(run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[Change, ...]:
    """The values to write once more, because a read of them does not prove that the run's own are not there.

    The kquota that wrote them may have died before it saw them, and a broker that replays KRaft's log slowly still
    shows what was before (20 s on a busy machine).
    """
    return tuple(
        Change(setting=setting, before=now[setting], after=now[setting])
        for setting, taken in run.taken.items()
        if setting in now
        and maybe_unseen(taken, now[setting], held(others, setting))
        and restored_value(taken, now[setting], held(others, setting)) == now[setting]
    )


def part_of(run: Run, ended: Collection[TopicPartition]) -> Run:
    """The run with nothing taken but its list entries of the partitions that have `ended`: what may go back early.

    An entry for the whole topic serves until its last partition has ended, and so do rates.
    """
    taken = {}
    for setting, mine in run.taken.items():
        if setting.is_list:
            ours = tuple(e for e in mine.ours if (named := replica(setting, e)) is not None and named[0] in ended)
            if ours:
                taken[setting] = replace(mine, ours=ours)
    return replace(run, taken=taken)


def without_values(run: Run, released: Mapping[Setting, Taken]) -> Run:
    """The run without the values in `released`, which it has restored."""
    taken = dict(run.taken)
    for setting, gone in released.items():
        ours = tuple(value for value in taken[setting].ours if value not in gone.ours)
        taken[setting] = replace(taken[setting], ours=ours)
    return replace(run, taken=taken)


def held_on(run: Run, brokers: Collection[BrokerId]) -> dict[Setting, Taken]:
    """What the run still has to restore on these brokers."""
    names = {str(broker) for broker in brokers}
    return {s: taken for s, taken in run.taken.items() if s.kind == "broker" and s.name in names and taken.ours}


def without_topics(run: Run, topics: Collection[str]) -> Run:
    """The run without anything on `topics`: they were deleted, and what is called so now is not its business."""
    taken = {s: mine for s, mine in run.taken.items() if s.kind != "topic" or s.name not in topics}
    return replace(run, taken=taken)


def recreated(run: Run, topic_ids: Mapping[str, str]) -> tuple[str, ...]:
    """The run's topics that were deleted and made again under the same name since it began."""
    return tuple(t for t, known in run.topic_ids.items() if t in topic_ids and topic_ids[t] != known)


def changed_by_others(run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[Setting, ...]:
    """The rates that the run set and that somebody else changed since: they stay as they are."""
    return tuple(
        setting
        for setting, taken in run.taken.items()
        if not setting.is_list
        and taken.ours
        and setting in now
        and now[setting] not in (*taken.ours, taken.prior)
        and not any(other.ours for other in held(others, setting))
    )


def replacing(run: Run, changes: Sequence[Change], others: Sequence[Run]) -> tuple[Run, ...]:
    """The other open runs once `changes` of `run` replace what somebody has set in the place of theirs.

    Whichever of them ends last must restore that, and not what it once found itself. Of lists this concerns `*`.
    """
    open_runs, found = (run, *others), []
    for other in others:
        taken = dict(other.taken)
        for change in changes:
            mine = other.taken.get(change.setting)
            if mine is not None and mine.ours and _replaces(change, held(open_runs, change.setting), mine):
                taken[change.setting] = replace(mine, prior=run.taken[change.setting].prior)
        found.append(replace(other, taken=taken))
    return tuple(found)


def _replaces(change: Change, every: Sequence[Taken], mine: Taken) -> bool:
    if not change.setting.is_list:
        return not any(change.before in taken.ours for taken in every)
    return EVERY_REPLICA in mine.ours and EVERY_REPLICA not in entries(change.before)


def passing_on(run: Run, now: Mapping[Setting, str | None], other: Run) -> Run:
    """`other`, still open, with the rates of `run` that it now has to restore in its place."""
    shared = {
        setting: passed_on(run.taken[setting], now[setting], taken)
        for setting, taken in other.taken.items()
        if setting in run.taken and setting in now and taken.ours
    }
    return replace(other, taken={**other.taken, **shared})


def covers(plan: Plan, runs: Collection[Run]) -> Run | None:
    """The open run of exactly this plan, or one that is aborting to it, if there is one."""
    moves = (run for run in runs if run.finished is None and run.purpose is Purpose.MOVE)
    return next((run for run in moves if plan.targets in (run.plan.targets, run.goal.targets)), None)
