"""The ports of a move: a cluster, its record of runs, its log dirs, and a clock."""

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
    """One reading of a cluster. A topic that does not exist has no partitions and no id here. Partitions and running
    moves are sorted by name.
    """

    racks: Mapping[BrokerId, str | None]
    """The rack of each live broker, or None if the broker has no rack or its rack is unknown."""
    partitions: Mapping[TopicPartition, PartitionReplicas]
    running: Mapping[TopicPartition, PartitionReplicas]
    """All running moves of the cluster, not only of the requested topics. Their leaders and in-sync replicas may be
    unknown.
    """
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """The id of each requested topic, and over ZooKeeper of every topic. Empty before Kafka 2.8, which introduced topic
    ids.
    """
    not_begun: frozenset[TopicPartition] = frozenset()
    """Running moves that were submitted over ZooKeeper, but that the controller has not begun. Always empty over
    brokers, because there the controller itself accepts a move and begins it.
    """

    @property
    def alive(self) -> frozenset[BrokerId]:
        """The live brokers."""
        return frozenset(self.racks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwritten:
    """The result of writing settings of dead brokers."""

    by: str
    """The name of the controller that received the settings, for messages."""
    errors: Mapping[Setting, KquotaError] = field(default_factory=dict)
    """The error of each setting whose write failed or is uncertain."""


class MoveCluster(Protocol):
    """The reads and writes of a move on one cluster.

    Every method may raise Unreachable if the cluster does not answer within a bounded time, and Refused if the cluster
    refuses the request. A write raises Busy if another process has taken over the lock.
    """

    @property
    def largest_submission(self) -> int | None:
        """The maximum number of bytes in one submission, or None without a limit. With a limit, each submission must
        wait until all moves of the previous one have ended.
        """

    @property
    def stale_seconds(self) -> float:
        """For this many seconds after the end of a move, or longer on a busy machine, `snapshot` may show old and new
        replicas together. The value is 0.0 if `snapshot` never does this.

        The controller sees the end of a move at once. A broker sees it with its next fetch of the metadata (KRaft: 0.3
        s measured).
        """

    def snapshot(self, topics: Collection[str] | None) -> Snapshot:
        """Return the partitions of `topics`, or of every topic (None), and all running moves.

        Running moves are read before the partitions, because otherwise a move that ends in between looks like a
        failure. A move that begins in between shows only in the replicas.
        """

    def values(self, settings: Collection[Setting]) -> Mapping[Setting, str | None]:
        """Return the dynamic value of each setting, or None if it is unset. Static and default values do not count.

        A setting of a topic that does not exist is unset. A setting of a dead broker is unknown, not unset, so it is
        absent from the answer, except over ZooKeeper. A setting that cannot be read for another reason is also absent.
        A read may still show the value before the last write (KRaft: usually for 0.3 s).
        """

    def change(self, changes: Sequence[Change]) -> Mapping[Setting, KquotaError]:
        """Write each `after` if a read just before the write still finds `before`. Return the error of each setting
        whose write failed or is uncertain.

        A Conflict means that another client has written the setting, so the caller must read and decide again. Over
        ZooKeeper, all changes of a failed transaction have the same error. Other configs of the topic or broker do not
        change. Since Kafka 3.4, most changes of lists send only the added or the removed entries (incremental APPEND or
        SUBTRACT), so that concurrent changes of other entries are kept. If `after` is None, the key is deleted, which
        is not an error for a topic that does not exist. When the method returns, reads may not show the change yet.
        """

    def overwrite(self, values: Mapping[Setting, str | None]) -> Overwritten:
        """Write settings of dead brokers without a read, because only a live broker reports them. None deletes the key.

        On KRaft, the controllers accept the settings, and a broker reads its settings when it starts. Returns the error
        of each setting whose write failed or is uncertain. A setting of a live broker is not written, and also has an
        error. Raises Unreachable if no controller answers or the cluster runs on ZooKeeper, and Refused if the
        controllers do not accept this client.
        """

    def must_permit(self, settings: Collection[Setting], *, moves: bool) -> None:
        """Raise Refused, with all missing permissions in one message, if the authorizer of the brokers does not permit
        this user to write these settings or, with `moves`, to submit and cancel moves.

        Raises nothing over ZooKeeper, because Kafka's authorizer does not apply there.
        """

    def minimum_in_sync(self, topics: Collection[str]) -> Mapping[str, int]:
        """Return `min.insync.replicas` of each topic. A topic whose value the cluster does not report has 1 or is left
        out. Raises Refused if this user may not read the value.
        """

    def submit(self, targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
        """Submit moves, also of partitions that are moving. Return the cluster's error for each move that it refused.

        The target None cancels a running move (KIP-455). Raises Unknown if the answer was lost or reports a timeout,
        and Conflict if nothing was submitted because another move is running (ZooKeeper accepts one submission at a
        time). Raises Refused for a cancellation over ZooKeeper, because Kafka accepts cancellations only through the
        Admin API.
        """


class Runs(Protocol):
    """The record of runs on one cluster. A write must survive a power failure once its method has returned.

    Each read and write of a shared record may raise Unreachable if the record does not answer, and Busy if another
    process has taken over the lock.
    """

    @property
    def me(self) -> Owner:
        """The process that writes."""

    @property
    def shared(self) -> bool:
        """True if all hosts of a team see the same runs. If it is False, the values on the cluster may belong to a run
        of another host.
        """

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The ids of recorded runs that cannot be read. Their settings are unknown."""

    @property
    def alone(self) -> KquotaError | None:
        """The reason why other hosts do not see these runs, or None if they do."""

    @property
    def hidden(self) -> bool:
        """True if runs of other hosts may be on record that this host cannot see."""

    @property
    def unseen(self) -> KquotaError | None:
        """The reason why this host may not see every run of other hosts, or None if it sees all of them."""

    @property
    def late_seconds(self) -> float:
        """The seconds in which a late write of a kquota that lost the lock may still arrive, or 0.0 if none can."""

    @property
    def settled(self) -> bool:
        """True if the shared record and the journals of this host agree, so that neither needs an update."""

    def unfinished(self) -> tuple[Run, ...]:
        """Return the open runs, oldest first. Raises Refused if a journal cannot be read."""

    def every(self) -> tuple[Run, ...]:
        """Return the open runs, and the ended runs that are still recorded, oldest first. Raises Refused like
        `unfinished`.
        """

    def begin(self, run: Run) -> None:
        """Write a new record. Raises Busy if there already is a record with this id, and Refused if the new record
        cannot be written.
        """

    def update(self, run: Run) -> None:
        """Replace the record of this run atomically. Raises Busy if another process has taken over the lock, and
        Refused if the record cannot be written.
        """

    def place(self, run: Run) -> str:
        """Return the place of the record, for messages. The record includes the rollback plan."""


class Clock(Protocol):
    """The clock of a move, for its times and its waits."""

    def now(self) -> datetime:
        """Return the current time, in UTC."""

    def monotonic(self) -> float:
        """Return seconds of a clock that never goes backwards."""

    def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""


class ReplicaDirs(Protocol):
    """The log dirs of replicas (KIP-113). All brokers are asked at once, so no broker delays the others."""

    def read(self, replicas: Collection[ReplicaId]) -> LogDirReading:
        """Return the place of each of `replicas`, and all log dirs of their brokers.

        A broker that does not answer is in `silent` of the result. Raises Refused if a broker denies this user the
        answer.
        """

    def alter(self, moves: Mapping[ReplicaId, str]) -> Mapping[ReplicaId, KquotaError]:
        """Ask the broker of each replica to move the replica into the given log dir, under the broker's throttle.

        A request for the current log dir of a replica ends its copy. If the broker does not have the replica yet, it
        remembers the request until it restarts, and creates the replica in this log dir.

        A replica without an error is in the log dir, moves to it, or will be created there. The errors are Refused if
        the broker refuses, Unreachable if it is dead, and Unknown if its answer is missing or does not show whether the
        replica moves. Raises Busy if another process has taken over the lock.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePorts:
    """The ports of a move on one cluster, through one connection."""

    cluster: MoveCluster
    runs: Runs
    clock: Clock
    dirs: ReplicaDirs | None = None
    """None over ZooKeeper, which does not store log dirs. The log dirs that a plan names are then ignored."""
