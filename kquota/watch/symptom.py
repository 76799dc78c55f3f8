"""The symptoms of watched moves, with the values from which `cli` writes the text for operators.

`run` is the id of the move's run, or None if no run is recorded here. `left` are the missing bytes, or None if they are
unknown. `first` is one of the partitions.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from kquota.terms import BrokerId, TopicPartition


class ThrottleSide(enum.Enum):
    """The side of a throttle: the leader that sends, or the follower that receives."""

    LEADER = "leader"
    FOLLOWER = "follower"


@dataclass(frozen=True, slots=True, kw_only=True)
class StarvedCopies:
    """Copies that are limited by the rate of a broker and do not catch up with the writes. All rates are in bytes per
    second.
    """

    broker: BrokerId
    side: ThrottleSide
    rate: int
    """The throttle rate of the broker on this side."""
    used: float
    """The part of `rate` that is in use."""
    followers: float
    """The part of `used` that in-sync followers use."""
    written: float
    """The rate at which producers write to the copies."""


class Undo(enum.Enum):
    """The part of a run that can be undone while a destination is down."""

    WHOLE = "whole"
    RUNNING = "running"
    """Only the moves that are still running, because undoing an ended move would copy a replica to a dead broker."""
    NONE = "none"
    """Nothing, because Kafka cannot cancel a running move over ZooKeeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationDown:
    """A destination that is dead or fenced (`why` is None), or that does not answer (`why` is the reason)."""

    broker: BrokerId
    copies: int
    why: str | None
    undo: Undo = Undo.WHOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLeader:
    """Unfinished partitions without a leader. `replicas` are the replicas of the first partition before its move."""

    partitions: tuple[TopicPartition, ...]
    replicas: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSubmitted:
    """Partitions of a run that are not submitted, because they belong to a later wave or kquota was interrupted."""

    run: str | None
    partitions: int
    first: TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class NotBegun:
    """Moves submitted over ZooKeeper that the controller has not begun yet. `seconds` is the time since the first of
    them was seen as not begun.
    """

    partitions: int
    first: TopicPartition
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStarted:
    """Copies that the controller has accepted, but that have had no log on their destination for `seconds`."""

    broker: BrokerId
    copies: int
    first: TopicPartition
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LastPartition:
    """The only unfinished partition of a move."""

    run: str | None
    partition: TopicPartition
    destination: BrokerId
    """The destination of the partition's first copy that is not done."""
    left: int | None
    """The missing bytes of this copy, or None if they are unknown."""
    seconds: float
    """The time since a reading first showed only this partition as unfinished."""
    seconds_left: float | None
    """The expected time until the move ends, or None if it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleLeft:
    """A move that has ended, but whose throttle is still set. `run` is the id of its open run, which can restore the
    throttle.

    If `run` is None, the move has no open run, and partitions of the move are still in throttled replica lists.
    """

    run: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOpen:
    """A move that has ended, but whose run is still open, although it has no setting to restore."""

    run: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleLogDir:
    """A copy to `log_dir` from another log dir of the same broker. The copy has not grown for `seconds`.

    `rate` is the log dir throttle of the broker in bytes per second, or None if none is known.
    """

    partition: TopicPartition
    broker: BrokerId
    log_dir: str
    seconds: float
    rate: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtReplica:
    """A replica that is not moving, but is throttled while it is out of sync.

    `more` is the number of further replicas in this state.
    """

    partition: TopicPartition
    broker: BrokerId
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FullDisk:
    """A full or failed log dir of a destination: it has less space than its copies still need, or it has an error."""

    broker: BrokerId
    log_dir: str
    usable: int | None
    """The usable bytes of the log dir's volume, or None if the log dir has an error."""
    left: int | None
    """The missing bytes of the copies in the log dir, or None if no unfinished copy is known to be there."""
    error: str | None
    """The error of the log dir, or None if only the space is too small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingArrives:
    """A move that has received no bytes for `seconds`. No other symptom explains this."""

    run: str | None
    seconds: float
    left: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPaused:
    """A run that an operator has paused. Its copies fetch once in each quota window."""

    run: str | None
    left: int | None


Symptom: TypeAlias = (
    StarvedCopies
    | DestinationDown
    | NoLeader
    | NotSubmitted
    | NotBegun
    | NotStarted
    | LastPartition
    | ThrottleLeft
    | RunOpen
    | IdleLogDir
    | CaughtReplica
    | FullDisk
    | NothingArrives
    | RunPaused
)
