"""Moves between the log dirs of a broker (KIP-113): the wanted log dirs, and their state in Kafka's words."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from kquota.errors import Invalid, Parameter, Refused
from kquota.measure import ByteRate
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.progress import Progress
from kquota.terms import BrokerId, ReplicaId, TopicPartition

WantedLogDirs: TypeAlias = Mapping[ReplicaId, str]
"""The log dir for each replica. Replicas that may be in any log dir are not listed."""

ZOOKEEPER: Final = "bootstrap-server needs to be provided when replica reassignments are present."
"""The error of Kafka 2.8 for log dirs over ZooKeeper, which does not store the log dirs of brokers."""
NONE_ACTIVE: Final = "None of the specified partition moves are active."
"""The line of `--cancel` if no replica is moving. Kafka's tools omit the newline at its end, but kquota writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLogDirs:
    """The log dirs of one replica on its broker. All fields are None if the broker does not
    report the replica, for example because its log dir is offline.
    """

    current: str | None = None
    """The log dir that holds the replica, or None."""
    future: str | None = None
    """The log dir to which the broker is copying the replica, or None without a copy."""
    lag: int | None = None
    """The number of offsets that the copy is behind, or None without a copy. After a restart, a broker may report 0
    long before the copy ends (4.3.1), so no decision depends on this value.
    """


NOWHERE: Final = ReplicaLogDirs()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirReading:
    """The log dirs and the requested replicas that brokers reported."""

    dirs: Mapping[BrokerId, Mapping[str, str | None]] = field(default_factory=dict)
    """For each log dir, the reason why it accepts no replica. None means that it accepts replicas."""
    places: Mapping[ReplicaId, ReplicaLogDirs] = field(default_factory=dict)
    silent: Mapping[BrokerId, str] = field(default_factory=dict)
    """The brokers that did not answer the last request, with the reasons."""

    def place(self, replica: ReplicaId) -> ReplicaLogDirs:
        """Return the place of the replica, or an empty place if the broker did not report the replica."""
        return self.places.get(replica, NOWHERE)

    def after(self, newer: LogDirReading, asked: Collection[ReplicaId]) -> LogDirReading:
        """Return this reading, updated with a newer reading of the replicas in `asked`."""
        return LogDirReading(
            dirs={**self.dirs, **newer.dirs},
            places={**{r: place for r, place in self.places.items() if r not in asked}, **newer.places},
            silent={**{b: why for b, why in self.silent.items() if b not in newer.dirs}, **newer.silent},
        )


class LogDirState(enum.Enum):
    """The state of one wanted log dir: Kafka's five states. SILENT means that its broker did not answer."""

    COMPLETED = "completed"
    ACTIVE = "active"
    CANCELLED = "cancelled"
    MISSING = "missing"
    SILENT = "silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirStatus:
    """One replica that the plan puts into the log dir `target`, with its current place and state."""

    partition: TopicPartition
    broker: BrokerId
    state: LogDirState
    progress: Progress
    place: ReplicaLogDirs
    target: str


def of(plan: Plan) -> dict[ReplicaId, str]:
    """Return the log dirs that the plan names, sorted by partition and broker.

    Trailing slashes are removed, because brokers report log dirs without them.
    """
    return {replica: path.rstrip("/") or "/" for replica, path in sorted(plan.log_dirs.items())}


def replicas(plan: Plan) -> tuple[ReplicaId, ...]:
    """Return every replica of the plan, in the order of the plan."""
    return tuple((partition, broker) for partition, target in plan.targets.items() for broker in target)


def with_dirs(plan: Plan, reading: LogDirReading) -> Plan:
    """Return the plan with the current log dir of each of its replicas. An unknown log dir becomes "any"."""
    places = {replica: reading.place(replica).current for replica in replicas(plan)}
    return replace(plan, log_dirs={replica: path for replica, path in places.items() if path is not None})


def unsettled(wanted: WantedLogDirs, reading: LogDirReading) -> dict[ReplicaId, str]:
    """Return the wanted replicas that are not known to be at rest in their wanted log dir, with this log dir."""
    return {
        replica: path
        for replica, path in wanted.items()
        if reading.place(replica).future is not None or reading.place(replica).current != path
    }


def unasked(wanted: WantedLogDirs, reading: LogDirReading) -> dict[ReplicaId, str]:
    """Return the wanted replicas that need another request to reach their wanted log dir, with this log dir."""
    return {
        replica: path
        for replica, path in wanted.items()
        if (reading.place(replica).future or reading.place(replica).current) != path
    }


def back(wanted: WantedLogDirs, reading: LogDirReading) -> dict[ReplicaId, str]:
    """Return the wanted replicas that are being copied, with their current log dir. A request for this log dir ends the
    copy.
    """
    active = {replica: reading.place(replica) for replica in wanted}
    return {
        replica: place.current
        for replica, place in active.items()
        if place.future is not None and place.current is not None
    }


def check(wanted: WantedLogDirs, reading: LogDirReading) -> None:
    """Raise Refused if a replica must move to a log dir that its broker does not have, or that accepts no replica.

    A log dir is not checked if its broker did not answer. Call this before any write.
    """
    for (partition, broker), path in unasked(wanted, reading).items():
        if broker not in reading.dirs:
            continue
        here = reading.dirs[broker]
        # Only replicas that must move are checked, because a log dir that accepts no new replica keeps its replicas.
        if path not in here:
            use = 'one of them or "any"' if here else '"any"'
            raise Refused(
                f"{partition}: broker {broker} has no log dir {path} (it has: {', '.join(sorted(here)) or 'none'}). "
                f"Use {use}. Nothing was written"
            )
        if (why := here[path]) is not None:
            raise Refused(
                f"{partition}: log dir {path} of broker {broker} accepts no replica ({why}). "
                'Use another log dir or "any". Nothing was written'
            )


def statuses(
    wanted: WantedLogDirs,
    reading: LogDirReading,
    partitions: Mapping[TopicPartition, PartitionReplicas],
    running: Collection[TopicPartition],
) -> tuple[LogDirStatus, ...]:
    """Return one status for each wanted log dir, in Kafka's order: broker, topic, partition. `partitions` and `running`
    are from the same snapshot.

    While a partition is moving, its replica may not exist yet, so every state except COMPLETED counts as in progress.
    Otherwise, only ACTIVE does, and SILENT if the partition has a replica on the broker.
    """
    found = []
    for partition, broker in sorted(wanted, key=_in_order):
        place, target = reading.place((partition, broker)), wanted[partition, broker]
        state = LogDirState.SILENT if broker in reading.silent else _state(place, target)
        now = partitions.get(partition)
        moving = partition in running or (now is not None and now.moving)
        held = now is not None and broker in now.replicas
        found.append(
            LogDirStatus(
                partition=partition,
                broker=broker,
                state=state,
                progress=_progress(state, moving=moving, held=held),
                place=place,
                target=target,
            )
        )
    return tuple(found)


def _state(place: ReplicaLogDirs, target: str) -> LogDirState:
    if place.current is None:
        return LogDirState.MISSING
    if place.future is not None:
        return LogDirState.ACTIVE
    return LogDirState.COMPLETED if place.current == target else LogDirState.CANCELLED


def _progress(state: LogDirState, *, moving: bool, held: bool) -> Progress:
    match state:
        case LogDirState.COMPLETED:
            return Progress.DONE
        case LogDirState.ACTIVE:
            return Progress.IN_PROGRESS
        case LogDirState.SILENT:
            return Progress.IN_PROGRESS if moving or held else Progress.ELSEWHERE
        case LogDirState.CANCELLED | LogDirState.MISSING:
            return Progress.IN_PROGRESS if moving else Progress.ELSEWHERE


def must_have_brokers(plan: Plan) -> None:
    """Raise Invalid, in the words of Kafka 2.8, for a plan with log dirs. Call this if kquota uses only ZooKeeper.

    Without a connection to the brokers, kquota cannot check, move or verify log dirs. A replica could therefore end in
    a log dir that the plan does not name for it.
    """
    if plan.log_dirs:
        (partition, broker), path = next(iter(sorted(plan.log_dirs.items())))
        raise Invalid(
            f"{ZOOKEEPER} The plan names log dir {path} on broker {broker} for {partition}. Give ",
            Parameter("bootstrap_server"),
            ', or write "any" for every log dir',
        )


def throttle_set(rate: ByteRate) -> str:
    """Return Kafka's line about the throttle of moves between log dirs, in bytes per second."""
    return f"The replica-alter-dir throttle limit was set to {rate} B/s"


def started_lines(moves: WantedLogDirs) -> str:
    """Return the last lines of `--execute`, which `--cancel` also prints. Kafka ends each line with a space."""
    return "\n".join(
        f"Successfully started moving log directory to {moves[partition, broker]} for replica {partition} "
        f"with broker {broker} "
        for partition, broker in sorted(moves, key=_in_order)
    )


def timed_out(waiting: Collection[ReplicaId], what: str = "started") -> str:
    """Return the line for moves that timed out. `what` is "started", as in Kafka, or "cancelled"."""
    plural = "" if len(waiting) == 1 else "s"
    names = ",".join(map(_name, sorted(waiting, key=_in_order)))
    return f"Timed out before log directory move{plural} could be {what} for: {names}"


def failed(errors: Mapping[ReplicaId, object]) -> str:
    """Return Kafka's line for each replica that its broker refused to move, joined into one line."""
    sentences = (
        f"Failed to alter dir for {_name(replica)}: {errors[replica]}" for replica in sorted(errors, key=_in_order)
    )
    return "; ".join(sentences)


def status_lines(found: Iterable[LogDirStatus]) -> str:
    """Return the lines of `--verify` for log dirs.

    Without log dirs, the text is empty and prints as Kafka's empty line.
    """
    return "\n".join(map(_status_line, found))


def _status_line(status: LogDirStatus) -> str:
    replica = f"Partition {status.partition} on broker {status.broker}"
    match status.state:
        case LogDirState.COMPLETED:
            return f"Reassignment of replica {_name((status.partition, status.broker))} completed successfully."
        case LogDirState.ACTIVE if status.place.future == status.target:
            return f"Reassignment of replica {_name((status.partition, status.broker))} is still in progress."
        case LogDirState.ACTIVE:
            return f"{replica} is being moved to log dir {status.place.future} instead of {status.target}."
        case LogDirState.CANCELLED:
            return f"{replica} is not being moved from log dir {status.place.current} to {status.target}."
        case LogDirState.MISSING:
            return (
                f"Partition {status.partition} is not found in any live log dir on broker {status.broker}. "
                "There is likely an offline log directory on the broker."
            )
        case LogDirState.SILENT:
            return f"Partition {status.partition} cannot be found in any live log directory on broker {status.broker}."


def _name(replica: ReplicaId) -> str:
    return f"{replica[0]}-{replica[1]}"


def _in_order(replica: ReplicaId) -> tuple[BrokerId, TopicPartition]:
    """Return the key by which Kafka's tool sorts replicas."""
    return replica[1], replica[0]
