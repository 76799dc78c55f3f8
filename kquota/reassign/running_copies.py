"""The copies of running moves: the bytes that each new replica has, and the bytes that it still needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kquota.measure import total
from kquota.reassign.moves import PartitionReplicas
from kquota.sizes.replica import LogDir, Replica
from kquota.terms import BrokerId, ReplicaId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCopy:
    """The bytes that a new replica has `copied`, and the bytes that are `left` to copy. None means unknown, never 0."""

    copied: int | None
    left: int | None


def running_copies(
    running: Mapping[TopicPartition, PartitionReplicas], log_dirs: Iterable[LogDir]
) -> dict[ReplicaId, RunningCopy]:
    """Return the copy for each replica that a running move adds. A new replica that is already the leader is left out.

    `log_dirs` must include the offsets and the leaders. A new replica that its broker does not report has copied 0
    bytes, or an unknown number if the broker did not report all its log dirs.
    """
    found = list(log_dirs)
    unread = {log_dir.broker for log_dir in found if log_dir.error is not None}
    answered = {log_dir.broker for log_dir in found} - unread
    held = {
        (replica.partition, log_dir.broker): replica
        for log_dir in found
        for replica in log_dir.replicas
        if not replica.future and replica.partition in running
    }
    leaders = {partition: replica for (partition, _), replica in held.items() if replica.leader}
    copies = {}
    for partition, now in running.items():
        for broker in now.adding:
            own, leader = held.get((partition, broker)), leaders.get(partition)
            if own is None or own is not leader:
                copies[partition, broker] = _copy(own, leader, known=own is not None or broker in answered)
    return copies


def _copy(own: Replica | None, leader: Replica | None, *, known: bool) -> RunningCopy:
    """`known` is false if `own` was not found, and its broker did not report all its log dirs."""
    if not known:
        return RunningCopy(copied=None, left=None)
    copied = 0 if own is None else own.size
    if leader is None:
        return RunningCopy(copied=copied, left=None)
    end, start = leader.end_offset, leader.local_start_offset
    lag = end if own is None else offsets_behind(own.end_offset, end)
    offsets = None if end is None or start is None else end - start
    return RunningCopy(copied=copied, left=missing_bytes(copied, leader.size, lag, offsets))


def offsets_behind(end: int | None, leader_end: int | None) -> int | None:
    """Return how many offsets a log is behind the log of its leader, or None if either log end offset is unknown."""
    if end is None or leader_end is None:
        return None
    return leader_end - end if leader_end > end else 0


def missing_bytes(copied: int | None, size: int, lag: int | None, offsets: int | None) -> int | None:
    """Estimate the bytes that a copy still needs. None if they are unknown. `size` and `offsets` are the bytes and the
    offsets of the leader's log, and `lag` is the number of offsets that the copy lacks.

    A follower copies batches unchanged, so the missing bytes are the difference in log size. If retention or compaction
    left the leader's log no larger than the copy, each missing offset counts with the mean size.

    A copy deletes a segment that retention deleted on the leader only at its own next retention check. Until then, the
    difference is too low by the size of this segment. Only the first offsets of both logs would show this, and a
    reading has that of the leader alone, and only for the copies in `kquota.watch.copies.outgrown`.
    """
    if lag == 0 or not size:
        return 0
    if copied is None:
        return None
    if size > copied:
        return size - copied
    return None if lag is None or not offsets else size * min(lag, offsets) // offsets


def before_the_move(log_dirs: Iterable[LogDir], copies: Mapping[ReplicaId, RunningCopy]) -> list[LogDir]:
    """Return the log dirs as if the replicas that are still being copied did not exist yet."""
    return [
        replace(
            log_dir,
            replicas=tuple(one for one in log_dir.replicas if (one.partition, log_dir.broker) not in copies),
        )
        for log_dir in log_dirs
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveUnderWay:
    """The running moves of a cluster, compared with the plan of an estimate. Partitions are sorted."""

    partitions: tuple[TopicPartition, ...]
    """The partitions of the plan that are moving to the replicas of the plan, in any order of replicas."""
    elsewhere: tuple[TopicPartition, ...]
    """The partitions of the plan that are moving to other replicas."""
    others: int
    """The number of moving partitions that are not in the plan."""
    copies: Mapping[ReplicaId, RunningCopy]
    """The copies of `partitions`."""

    @property
    def copied(self) -> int | None:
        """The bytes that are already copied, or None if they are unknown for one of the copies."""
        return total(copy.copied for copy in self.copies.values())

    @property
    def left(self) -> int | None:
        """The bytes that are still to copy, or None if they are unknown for one of the copies."""
        return total(copy.left for copy in self.copies.values())

    @property
    def unknown_copies(self) -> int:
        """The number of copies whose remaining bytes are unknown."""
        return sum(copy.left is None for copy in self.copies.values())


def under_way(
    running: Mapping[TopicPartition, PartitionReplicas],
    copies: Mapping[ReplicaId, RunningCopy],
    targets: Mapping[TopicPartition, tuple[BrokerId, ...]],
) -> MoveUnderWay:
    """Compare the running moves with a plan. `targets` has the replicas of the plan, only for partitions in
    `running`.
    """
    same = {name for name, target in targets.items() if set(running[name].target) == set(target)}
    return MoveUnderWay(
        partitions=tuple(sorted(same)),
        elsewhere=tuple(sorted(targets.keys() - same)),
        others=len(running.keys() - targets.keys()),
        copies={replica: copy for replica, copy in copies.items() if replica[0] in same},
    )
