"""Moves between a broker's log dirs (KIP-113): where a replica shall be, and what became of it in Kafka's words."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kquota.errors import Invalid, Parameter, Refused
from kquota.measure import ByteRate
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.progress import Progress
from kquota.terms import BrokerId, ReplicaId, TopicPartition

Wanted: TypeAlias = Mapping[ReplicaId, str]
"""The log dir that each replica shall be in; those that may be in any are not named."""

ZOOKEEPER: Final = "bootstrap-server needs to be provided when replica reassignments are present."
"""Kafka 2.8's sentence: log dirs are the brokers' own business, ZooKeeper knows nothing of them."""
NONE_ACTIVE: Final = "None of the specified partition moves are active."
"""What --cancel prints when no replica is on its way. Kafka's tools forget the end of this line; kquota writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a broker has a replica, and where it is copying it to; None for neither.

    `lag` is how many offsets the copy is behind, None without one; after its broker's restart it may be told as 0 long
    before the copy ends (4.3.1), so it decides nothing. A replica in a dir that is offline has no place.
    """

    current: str | None = None
    future: str | None = None
    lag: int | None = None


NOWHERE: Final = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirReading:
    """What brokers told of the replicas asked for, and of their log dirs: None, or why one takes no replica.

    A broker that did not answer is in `silent`, with the reason, and in nothing else.
    """

    dirs: Mapping[BrokerId, Mapping[str, str | None]] = field(default_factory=dict)
    places: Mapping[ReplicaId, Place] = field(default_factory=dict)
    silent: Mapping[BrokerId, str] = field(default_factory=dict)

    def place(self, replica: ReplicaId) -> Place:
        """Where it is; nowhere when its broker has none of it, or is silent."""
        return self.places.get(replica, NOWHERE)

    def after(self, newer: LogDirReading, asked: Collection[ReplicaId]) -> LogDirReading:
        """This reading with what a newer one tells of the replicas it `asked` for."""
        return LogDirReading(
            dirs={**self.dirs, **newer.dirs},
            places={**{r: place for r, place in self.places.items() if r not in asked}, **newer.places},
            silent={**{b: why for b, why in self.silent.items() if b not in newer.dirs}, **newer.silent},
        )


class LogDirState(enum.Enum):
    """What has become of one wanted log dir: Kafka's five states. SILENT: its broker did not answer."""

    COMPLETED = "completed"
    ACTIVE = "active"
    CANCELLED = "cancelled"
    MISSING = "missing"
    SILENT = "silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirStatus:
    """One replica that shall be in the log dir `target`."""

    partition: TopicPartition
    broker: BrokerId
    state: LogDirState
    progress: Progress
    place: Place
    target: str


def of(plan: Plan, partitions: Collection[TopicPartition] | None = None) -> dict[ReplicaId, str]:
    """The log dirs that the plan names, for `partitions` or all of it (None), as a broker writes them."""
    return {
        replica: path.rstrip("/") or "/"
        for replica, path in sorted(plan.log_dirs.items())
        if partitions is None or replica[0] in partitions
    }


def replicas(plan: Plan) -> tuple[ReplicaId, ...]:
    """Every replica of the plan: what to read for the way back."""
    return tuple((partition, broker) for partition, target in plan.targets.items() for broker in target)


def current(reading: LogDirReading, those: Iterable[ReplicaId]) -> dict[ReplicaId, str]:
    """The log dir that each is in, as far as is known: the `log_dirs` of a rollback plan, as Kafka prints them."""
    return {replica: path for replica in those if (path := reading.place(replica).current) is not None}


def with_dirs(plan: Plan, reading: LogDirReading) -> Plan:
    """The plan with the log dir of every replica that is known, for the way back."""
    return Plan(targets=plan.targets, log_dirs=current(reading, replicas(plan)))


def unsettled(wanted: Wanted, reading: LogDirReading) -> dict[ReplicaId, str]:
    """Those not in their log dir for good: on their way, elsewhere, not there yet, or not known."""
    return {
        replica: path
        for replica, path in wanted.items()
        if reading.place(replica).future is not None or reading.place(replica).current != path
    }


def unasked(wanted: Wanted, reading: LogDirReading) -> dict[ReplicaId, str]:
    """Those that neither are in their log dir nor on their way into it: asking for the others again changes nothing."""
    return {
        replica: path
        for replica, path in wanted.items()
        if (reading.place(replica).future or reading.place(replica).current) != path
    }


def back(wanted: Wanted, reading: LogDirReading) -> dict[ReplicaId, str]:
    """Of the wanted, those on their way anywhere, and the log dir they still are in: asking for it ends the copy."""
    active = {replica: reading.place(replica) for replica in wanted}
    return {
        replica: place.current
        for replica, place in active.items()
        if place.future is not None and place.current is not None
    }


def check(wanted: Wanted, reading: LogDirReading) -> None:
    """Raises Refused for a log dir that its broker does not have or that takes no replica: nothing was written yet."""
    for (partition, broker), path in unasked(wanted, reading).items():
        if broker not in reading.dirs:
            continue
        here = reading.dirs[broker]
        # The dir it is in may be closed to others and still be its own.
        if path not in here:
            raise Refused(
                f"{partition}: broker {broker} has no log dir {path} (it has: {', '.join(sorted(here)) or 'none'}). "
                'Use one of them or "any"; nothing was written'
            )
        if (why := here[path]) is not None:
            raise Refused(
                f"{partition}: log dir {path} of broker {broker} accepts no replica ({why}). "
                'Use another one or "any"; nothing was written'
            )


def brokers(those: Iterable[ReplicaId]) -> tuple[BrokerId, ...]:
    """Their brokers, sorted: whose LOG_DIR_RATE a throttle is. Kafka's tool takes every broker with a named dir."""
    return tuple(sorted({broker for _, broker in those}))


def statuses(
    wanted: Wanted,
    reading: LogDirReading,
    partitions: Mapping[TopicPartition, PartitionReplicas],
    running: Collection[TopicPartition],
) -> tuple[LogDirStatus, ...]:
    """One status for each wanted log dir, in Kafka's order: broker, topic, partition.

    `partitions` and `running` as in `progress.statuses`, of the same moment: a replica whose partition still moves may
    not be there yet, and one that its partition does not have any more never comes.
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


def _state(place: Place, target: str) -> LogDirState:
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
    """Raises Invalid for a plan that names a log dir, where only a ZooKeeper is asked: as Kafka 2.8 did, to the word.

    Nothing could be checked, moved or verified there, and a replica would land in a dir that the plan forbids.
    """
    if plan.log_dirs:
        (partition, broker), path = next(iter(sorted(plan.log_dirs.items())))
        raise Invalid(
            f"{ZOOKEEPER} {partition} names log dir {path} on broker {broker}. Give ",
            Parameter("bootstrap_server"),
            ', or write "any" for every log dir',
        )


def throttle_set(rate: ByteRate) -> str:
    """The rate in bytes per second."""
    return f"The replica-alter-dir throttle limit was set to {rate} B/s"


def started_lines(moves: Wanted) -> str:
    """What --execute prints last, and --cancel for the way back; the blank at the end of each line is Kafka's."""
    return "\n".join(
        f"Successfully started moving log directory to {moves[partition, broker]} for replica {partition} "
        f"with broker {broker} "
        for partition, broker in sorted(moves, key=_in_order)
    )


def timed_out(waiting: Collection[ReplicaId], what: str = "started") -> str:
    """The replicas whose brokers did not begin in time; Kafka's line where they were to be started."""
    plural = "" if len(waiting) == 1 else "s"
    names = ",".join(map(_name, sorted(waiting, key=_in_order)))
    return f"Timed out before log directory move{plural} could be {what} for: {names}"


def failed(errors: Mapping[ReplicaId, object]) -> str:
    """The replicas that their brokers refused to move, and why; a line of Kafka's for the first, joined into one."""
    told = (f"Failed to alter dir for {_name(replica)}: {errors[replica]}" for replica in sorted(errors, key=_in_order))
    return "; ".join(told)


def status_lines(found: Iterable[LogDirStatus]) -> str:
    """What --verify prints for log dirs; an empty text for none, which Kafka prints as an empty line."""
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
    """As Kafka's tool sorts replicas."""
    return replica[1], replica[0]
