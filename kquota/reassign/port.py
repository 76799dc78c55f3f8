"""What a move needs from the outside: a cluster, a record of runs, a clock. `stores` implements the first two."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from kquota.errors import KquotaError
from kquota.reassign.log_dirs import LogDirReading
from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.run import Owner, Run
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.terms import BrokerId, ReplicaId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One reading: the brokers alive, the partitions of the topics asked for, every running move of the cluster.

    `racks` are the live brokers with their racks. A topic that does not exist has no partitions and no id here; one of
    a cluster that gives no ids (Kafka before 2.8) has no id. Partitions and running moves are ordered.
    """

    racks: Mapping[BrokerId, str | None]
    partitions: Mapping[TopicPartition, PartitionReplicas]
    running: Mapping[TopicPartition, PartitionReplicas]
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def alive(self) -> frozenset[BrokerId]:
        """The live brokers."""
        return frozenset(self.racks)


class MoveCluster(Protocol):
    """A cluster as a move sees it. Every method may raise Unreachable, after a bounded time."""

    @property
    def largest_submission(self) -> int | None:
        """How many bytes of moves may be submitted at once, and only once the ones before have ended; None for any."""

    @property
    def stale_seconds(self) -> float:
        """For how many seconds after a move has ended `snapshot` may show old and new replicas together; 0.0 for never.

        The controller knows at once that a move has ended. A broker learns it with its next fetch of the metadata
        (KRaft: 0.3 s measured, 0.5 s at most).
        """

    def snapshot(self, topics: Collection[str] | None) -> Snapshot:
        """The partitions of `topics`, or of every topic (None).

        Running moves are read before the partitions, or a move that ends in between looks as if it had failed.
        """

    def values(self, settings: Collection[Setting]) -> Mapping[Setting, str | None]:
        """The dynamic value of each setting, None when unset, whatever static or default value stands behind it.

        A setting of a topic that does not exist is unset. One that cannot be read (its broker is dead) is absent from
        the answer: unknown is not unset. A read may still show what was before the last write (KRaft: 0.3 s).
        """

    def change(self, changes: Sequence[Change]) -> Mapping[Setting, KquotaError]:
        """Write each `after` where `before` still stands; the settings not written, or not known to be, and why.

        Conflict: somebody else wrote it meanwhile, so read again and decide again. Everything else of the topic or
        broker stays as it is. A change of a list names entries that come and entries that go: where the broker can,
        these alone are sent (incremental APPEND and SUBTRACT, from 3.4), so that others' entries survive a race.
        `after` None deletes the key. Does not wait for the effect. A topic that does not exist is no error when a
        value is taken away.
        """

    def minimum_in_sync(self, topics: Collection[str]) -> Mapping[str, int]:
        """min.insync.replicas of each topic that exists, wherever it is set; 1 where that is not told."""

    def submit(self, targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
        """Start the moves, any of which may be under way already; the cluster's words for each that it refused.

        None in the place of a target cancels the move under way (KIP-455). Raises Unknown when the answer was lost,
        Conflict when nothing was submitted because another move holds the cluster (ZooKeeper takes one at a time),
        Refused for a cancellation through ZooKeeper, which has none (KIP-236).
        """


class Runs(Protocol):
    """The record of runs on one cluster. What it says must survive a power cut from the moment a method returns."""

    @property
    def me(self) -> Owner:
        """The process that writes."""

    @property
    def shared(self) -> bool:
        """Whether every host of a team sees the same runs. If not, another host may have set what no run here holds."""

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The ids of runs on record that cannot be read: what they have set is unknown."""

    @property
    def late_seconds(self) -> float:
        """For how long a write of the kquota that was taken over may still arrive at a broker; 0.0 without one."""

    @property
    def settled(self) -> bool:
        """Whether this host has nothing to add to the record of the team, and its own journals nothing to learn."""

    def unfinished(self) -> tuple[Run, ...]:
        """Oldest first. Raises Refused when a record cannot be understood."""

    def every(self) -> tuple[Run, ...]:
        """The same with those that have ended, as far as they are kept."""

    def begin(self, run: Run) -> None:
        """Write a new record. Raises Busy when there is one of this id."""

    def update(self, run: Run) -> None:
        """Put the run in place of the record of its id, wholly or not at all. Raises Busy after a takeover."""

    def place(self, run: Run) -> str:
        """Where a person finds the record, the rollback plan in it."""


class Clock(Protocol):
    """The only way that a move waits."""

    def now(self) -> datetime:
        """The time of day, in UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def sleep(self, seconds: float) -> None:
        """Let the cluster get on with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredLogDirs:
    """What brokers answered to the wish for other log dirs; a replica in neither is on its way, or there.

    `absent` are replicas that their broker does not have. It remembers the wish until it stops, and makes the replica
    there when it comes.
    """

    absent: frozenset[ReplicaId] = frozenset()
    errors: Mapping[ReplicaId, KquotaError] = field(default_factory=dict)


class ReplicaDirs(Protocol):
    """The log dirs of replicas (KIP-113). Brokers are asked together, under one deadline; none holds up the others."""

    def read(self, replicas: Collection[ReplicaId]) -> LogDirReading:
        """Where each of `replicas` is, and every log dir of their brokers.

        Raises Refused when a broker says that this user may not know.
        """

    def alter(self, moves: Mapping[ReplicaId, str]) -> AlteredLogDirs:
        """Ask each replica's broker to move it into this log dir, at the broker's own pace.

        Naming the dir that a replica is in ends the copy that is under way. Errors: Refused for what the broker
        refuses, Unknown when its answer was lost, Unreachable when it was not asked.
        """
