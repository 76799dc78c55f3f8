"""A run: one execution of a plan, or one throttle without a move, with all data to continue it, undo it and restore
its throttle.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from kquota.measure import ByteRate
from kquota.reassign.course import EMPTY, Course, RateChange
from kquota.reassign.plan import Plan
from kquota.reassign.wave import UNLIMITED, MoveLimits
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_RATE, REPLICATION_RATES, TopicPartition

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
    """A process that writes runs. `since` is its start time, in UTC."""

    user: str
    host: str
    pid: int
    since: datetime

    def __str__(self) -> str:
        return f"{self.person}, pid {self.pid}"

    @property
    def person(self) -> str:
        """The user and the host, for example `alice@host1`."""
        return f"{self.user}@{self.host}"

    def same_person(self, other: Owner) -> bool:
        """Return whether both are the same user on the same host."""
        return (self.user, self.host) == (other.user, other.host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """One write of a run. Each write increments the version, on any host. If `by` or `at` is None, it is unknown.

    `record` identifies the shared record to which the write was sent, or is None for a write to a journal only.
    """

    version: int
    by: Owner | None = None
    at: datetime | None = None
    record: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The last value of other clients (`prior`, None if unset), and the list entries or rates of the run (`ours`).

    `ours` is empty once everything is restored.
    """

    setting: Setting
    prior: str | None
    ours: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run. Rates are bytes per second, or None without a throttle."""

    id: str
    begun: datetime
    plan: Plan
    rollback: Plan
    rate: ByteRate | None
    """The value of every replication rate that is not in `broker_rates`. During a pause, the value before the pause."""
    taken: Mapping[Setting, Taken]
    """The throttle settings that the run has set or is about to set."""
    purpose: Purpose = Purpose.MOVE
    log_dir_rate: ByteRate | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """The topic ids, as Kafka prints them, which distinguish a topic from a later one of the same name."""
    handed_over: frozenset[TopicPartition] = frozenset()
    """The partitions that need no further submission: they were submitted, refused, cancelled or deleted, or need no
    move.
    """
    aborting: bool = False
    """True if the run moves to `rollback`."""
    finished: datetime | None = None
    """None while the run is open."""
    owner: Owner | None = None
    """The process that began the run, or None if it is unknown."""
    reason: str | None = None
    crowded: bool = False
    """True if unrecorded moves were running when the run began. A prior rate may then belong to one of them."""
    paused: bool = False
    """True while the brokers of the run have `PAUSED_RATE` as follower rate."""
    broker_rates: Mapping[Setting, ByteRate] = field(default_factory=dict)
    """The rates that differ from `rate`. During a pause, the rates before the pause."""
    limits: MoveLimits = UNLIMITED
    course: Course = EMPTY
    stamp: Stamp | None = field(default=None, compare=False)
    """The last recorded write."""

    @property
    def goal(self) -> Plan:
        """The plan that the run moves to: `rollback` while it is aborting, otherwise `plan`."""
        return self.rollback if self.aborting else self.plan

    @property
    def copy_rate(self) -> ByteRate | None:
        """The follower rate of the brokers whose follower rate is not in `broker_rates`, in bytes per second. None
        means no throttle.
        """
        return PAUSED_RATE if self.paused else self.rate

    def rate_on(self, setting: Setting) -> ByteRate | None:
        """Return the bytes per second that the run sets for `setting` of one broker, or None without a throttle."""
        if self.paused and setting.key == FOLLOWER_RATE:
            return PAUSED_RATE
        return self.broker_rates.get(setting, self.rate)

    @property
    def held(self) -> dict[Setting, Taken]:
        """The values that the run has taken and not yet restored, by setting."""
        return {setting: taken for setting, taken in self.taken.items() if taken.ours}

    @property
    def rates_held(self) -> tuple[Setting, ...]:
        """The replication rates that the run has taken and still holds."""
        return tuple(setting for setting in self.held if setting.key in REPLICATION_RATES)

    @property
    def waiting(self) -> tuple[TopicPartition, ...]:
        """The partitions of the goal that the run still has to check and submit: those that are not in `handed_over`,
        in the order of the goal.
        """
        return tuple(name for name in self.goal.targets if name not in self.handed_over)


def at_rate(run: Run, rate: ByteRate, only: Collection[Setting] = ()) -> Run:
    """Return the run with this rate, in bytes per second, on all brokers and not paused. With `only`, change just these
    rates, and keep a pause.
    """
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
    """Return the open runs except `run`, in the same order. Without a run, return all of them."""
    return tuple(other for other in unfinished if run is None or other.id != run.id)


def with_id(runs: Iterable[Run], run_id: str | None) -> Run | None:
    """Return the run with this id, or None if there is none."""
    return next((run for run in runs if run.id == run_id), None)


def recreated(run: Run, topic_ids: Mapping[str, str]) -> tuple[str, ...]:
    """Return the topics of the run that were deleted and created again since the run began, as far as both ids are
    known.
    """
    return tuple(t for t, known in run.topic_ids.items() if t in topic_ids and topic_ids[t] != known)


def still_waiting(run: Run, topic_ids: Mapping[str, str]) -> tuple[TopicPartition, ...]:
    """Return `run.waiting` without the partitions of recreated topics, because kquota never submits these partitions.

    `topic_ids` are the current ids of topics.
    """
    again = recreated(run, topic_ids)
    return tuple(name for name in run.waiting if name.topic not in again)


def covers(plan: Plan, runs: Collection[Run]) -> Run | None:
    """Return the open run that moves partitions and has the targets of `plan` as its plan or goal, or None.

    Log dirs are not compared.
    """
    moves = (run for run in runs if run.finished is None and run.purpose is Purpose.MOVE)
    return next((run for run in moves if plan.targets in (run.plan.targets, run.goal.targets)), None)
