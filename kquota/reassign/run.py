"""A run: one execution of a plan, or one throttle without a move, with all data to continue it, undo it and restore
its throttle.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from kquota.measure import ByteRate
from kquota.reassign.course import EMPTY, Course, RateChange
from kquota.reassign.plan import Plan
from kquota.reassign.throttle import Taken, changed_by_another, passed_on, repeated, restored_value, take
from kquota.reassign.wave import UNLIMITED, MoveLimits
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries, replica
from kquota.terms import EVERY_REPLICA, FOLLOWER_RATE, REPLICATION_RATES, BrokerId, TopicPartition

PAUSED_RATE: Final = ByteRate(1)
"""The follower rate of each broker of a run while the run is paused, in bytes per second.

Brokers still fetch once in each quota window.
"""


class Purpose(enum.Enum):
    """The purpose of a run: a move, or a throttle without a move (then its plan is empty)."""

    MOVE = "move"
    THROTTLE = "throttle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process that writes runs: its user, host, process id, and start time (UTC)."""

    user: str
    host: str
    pid: int
    since: datetime

    def __str__(self) -> str:
        return f"{self.user}@{self.host}, pid {self.pid}"

    def same_person(self, other: Owner) -> bool:
        """Return whether both are the same user on the same host."""
        return (self.user, self.host) == (other.user, other.host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """One write of a run. Each write increments the version, on any host.

    `record` identifies the shared record to which the write was sent, or is None for a write to a journal only. `by`
    and `at` are None for a write of kquota 0.1.
    """

    version: int
    by: Owner | None = None
    at: datetime | None = None
    record: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run. `rate` and `log_dir_rate` are bytes per second, or None without a throttle. `finished` is None while the
    run is open.

    `handed_over` has the partitions that need no further submission, because they were submitted, refused, cancelled or
    deleted, or need no move. A run that is `aborting` moves to `rollback`. `topic_ids`, as Kafka prints them,
    distinguish a topic from a later one of the same name. `owner` began the run, for `reason`. If `crowded`, unrecorded
    moves were running when the run set its throttle, so a prior rate may belong to one of them. `broker_rates` are the
    rates that differ from `rate`. While the run is `paused`, its brokers have `PAUSED_RATE` as follower rate, and
    `rate` and `broker_rates` are the rates before the pause. `limits` restrict the moves that run at the same time.
    `course` is for the report of the run. `stamp` is the last recorded write, and is ignored in comparisons.
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
    paused: bool = False
    broker_rates: Mapping[Setting, ByteRate] = field(default_factory=dict)
    limits: MoveLimits = UNLIMITED
    course: Course = EMPTY
    stamp: Stamp | None = field(default=None, compare=False)

    @property
    def goal(self) -> Plan:
        """The plan that the run moves to: `rollback` while it is aborting, otherwise `plan`."""
        return self.rollback if self.aborting else self.plan

    @property
    def copy_rate(self) -> ByteRate | None:
        """The throttle of the destinations that have no rate in `broker_rates`, in bytes per second: `rate`, or
        `PAUSED_RATE` while the run is paused.
        """
        return PAUSED_RATE if self.paused else self.rate

    def rate_on(self, setting: Setting) -> ByteRate | None:
        """Return the value that the run sets for `setting`, a rate of one broker, in bytes per second. None without a
        throttle.
        """
        if self.paused and setting.key == FOLLOWER_RATE:
            return PAUSED_RATE
        return self.broker_rates.get(setting, self.rate)

    @property
    def rates_held(self) -> tuple[Setting, ...]:
        """The replication rates that the run has taken and still holds."""
        return tuple(s for s, taken in self.taken.items() if s.key in REPLICATION_RATES and taken.ours)

    @property
    def waiting(self) -> tuple[TopicPartition, ...]:
        """The partitions that are not submitted yet: they belong to a later wave, or kquota was interrupted."""
        return tuple(name for name in self.goal.targets if name not in self.handed_over)


def at_rate(run: Run, rate: ByteRate, only: Collection[Setting] = ()) -> Run:
    """Return the run with this rate on all brokers, which ends a pause. With `only`, change just these settings."""
    if not only:
        return replace(run, rate=rate, broker_rates={}, paused=False)
    return replace(run, broker_rates=dict(sorted({**run.broker_rates, **dict.fromkeys(only, rate)}.items())))


def with_rate_changes(run: Run, before: Run, at: datetime, by: str, reason: str | None) -> Run:
    """Return the run with one RateChange in its course for each pair of an old and a new rate that differ.

    `before` is the run before the change, and `by` is the user who made the change.
    """
    changed: dict[tuple[ByteRate | None, ByteRate | None], list[Setting]] = {}
    if run.broker_rates or before.broker_rates:
        for setting in run.rates_held:
            changed.setdefault((before.rate_on(setting), run.rate_on(setting)), []).append(setting)
    else:
        changed[before.copy_rate, run.copy_rate] = []
    course = run.course
    for (old, new), settings in changed.items():
        change = RateChange(at=at, before=old, rate=new, settings=tuple(settings), by=by, reason=reason)
        course = course.changed(change)
    return replace(run, course=course)


def others_than(run: Run | None, unfinished: Sequence[Run]) -> tuple[Run, ...]:
    """Return the unfinished runs except `run`, in the same order. Without a run, return all of them."""
    return tuple(other for other in unfinished if run is None or other.id != run.id)


def held(runs: Sequence[Run], setting: Setting) -> tuple[Taken, ...]:
    """Return what each of `runs` still has to restore for one setting, in the order of `runs`."""
    return tuple(run.taken[setting] for run in runs if setting in run.taken and run.taken[setting].ours)


def taking(
    run: Run,
    wanted: Mapping[Setting, tuple[str, ...]],
    now: Mapping[Setting, str | None],
    others: Sequence[Run],
) -> Run:
    """Return the run to record before `wanted` replaces `now`. `others` are the other open runs, oldest first."""
    fresh = {
        setting: take(setting, now[setting], values, run.taken.get(setting), held(others, setting))
        for setting, values in wanted.items()
    }
    return replace(run, taken=dict(sorted({**run.taken, **fresh}.items())))


def restore_changes(run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[Change, ...]:
    """Return the changes that end the throttle of the run. Settings that could not be read are left out."""
    changes = (
        Change(setting=setting, before=now[setting], after=restored_value(taken, now[setting], held(others, setting)))
        for setting, taken in run.taken.items()
        if setting in now
    )
    return tuple(change for change in changes if change.before != change.after)


def repeat_changes(run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[Change, ...]:
    """Return the changes that write current values again, because a read cannot prove that the run's values are unset.

    The kquota that wrote the values of the run may have died before they became visible. A broker that is slow to
    replay the KRaft log still shows the earlier values (20 s on a busy machine).
    """
    changes = (
        repeated(taken, now[setting], held(others, setting)) for setting, taken in run.taken.items() if setting in now
    )
    return tuple(change for change in changes if change is not None)


def part_of(run: Run, ended: Collection[TopicPartition]) -> Run:
    """Return the run with only its list entries of partitions that have `ended`. These can be removed early.

    Rates, and an entry for a whole topic, are needed until the last partition has ended.
    """
    taken = {}
    for setting, mine in run.taken.items():
        if setting.is_list:
            ours = tuple(e for e in mine.ours if (named := replica(setting, e)) is not None and named[0] in ended)
            if ours:
                taken[setting] = replace(mine, ours=ours)
    return replace(run, taken=taken)


def without_values(run: Run, released: Mapping[Setting, Taken]) -> Run:
    """Return the run without the values in `released`, which kquota has already restored."""
    taken = dict(run.taken)
    for setting, freed in released.items():
        ours = tuple(value for value in taken[setting].ours if value not in freed.ours)
        taken[setting] = replace(taken[setting], ours=ours)
    return replace(run, taken=taken)


def held_on(run: Run, brokers: Collection[BrokerId]) -> dict[Setting, Taken]:
    """Return the settings on these brokers that the run still has to restore."""
    names = {str(broker) for broker in brokers}
    return {s: taken for s, taken in run.taken.items() if s.kind == "broker" and s.name in names and taken.ours}


def without_topics(run: Run, topics: Collection[str]) -> Run:
    """Return the run without settings of `topics`, which were deleted.

    A new topic of the same name does not belong to the run.
    """
    taken = {s: mine for s, mine in run.taken.items() if s.kind != "topic" or s.name not in topics}
    return replace(run, taken=taken)


def recreated(run: Run, topic_ids: Mapping[str, str]) -> tuple[str, ...]:
    """Return the topics of the run that were deleted and created again since the run began, as far as both ids are
    known.
    """
    return tuple(t for t, known in run.topic_ids.items() if t in topic_ids and topic_ids[t] != known)


def on_new_topics(run: Run, topic_ids: Mapping[str, str], back: Plan) -> Run:
    """Return the run that continues after topics were recreated. `back` has the rollback replicas of these topics."""
    recreated_topics = recreated(run, topic_ids)
    if not recreated_topics:
        return run
    anew = {name: replicas for name, replicas in back.targets.items() if name.topic in recreated_topics}
    return replace(
        without_topics(run, recreated_topics),
        rollback=replace(run.rollback, targets={**run.rollback.targets, **anew}),
        topic_ids={**run.topic_ids, **{topic: topic_ids[topic] for topic in recreated_topics}},
        handed_over=run.handed_over - anew.keys(),
    )


def changed_by_others(run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[Setting, ...]:
    """Return the rates of the run for which `changed_by_another` is true. kquota leaves these rates unchanged."""
    return tuple(
        setting
        for setting, taken in run.taken.items()
        if setting in now and changed_by_another(taken, now[setting], held(others, setting))
    )


def replacing(run: Run, changes: Sequence[Change], others: Sequence[Run]) -> tuple[Run, ...]:
    """Return the other open runs as they are after `changes` of `run`.

    If another client overwrote a setting of these runs, and `changes` replace the value of that client, this value
    becomes the prior value of the setting, because the last of the runs must restore it. For lists, this applies only
    to `*`.
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
    """Return the open run `other`, which takes over the rates that it shares with the ended `run`."""
    shared = {
        setting: passed_on(run.taken[setting], now[setting], taken)
        for setting, taken in other.taken.items()
        if setting in run.taken and setting in now and taken.ours
    }
    return replace(other, taken={**other.taken, **shared})


def covers(plan: Plan, runs: Collection[Run]) -> Run | None:
    """Return the open run that moves partitions and has the targets of `plan` as its plan or goal, or None.

    Log dirs are not compared.
    """
    moves = (run for run in runs if run.finished is None and run.purpose is Purpose.MOVE)
    return next((run for run in moves if plan.targets in (run.plan.targets, run.goal.targets)), None)
