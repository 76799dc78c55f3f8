"""The planner's view of a cluster: brokers with racks and disks, and partitions with replicas and one size each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kquota.pace.disk_space import Figures, together
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.port import Snapshot
from kquota.sizes.replica import Cordon, LogDir, cordons
from kquota.terms import BrokerId, TopicPartition

INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
"""Topics that Kafka creates for itself. kquota treats `__remote_log_metadata` (KIP-405) like any other topic."""

_Pending: TypeAlias = tuple[Figures | None, int]
"""The volume of a running copy, and the bytes that the copy still has to write. The volume is None if the broker has
not chosen a log dir yet.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """All volumes of a broker together, or the volume of one log dir, in bytes.

    `used` includes files that are not replicas, unless the broker does not report the size of its volumes. `pending`
    has the bytes that running moves still have to copy there.
    """

    total: int
    used: int
    pending: int = 0

    def share(self, grown: int) -> float | None:
        """Return the used fraction after `grown` more bytes, or None if the total is 0."""
        return max(0, self.used + grown) / self.total if self.total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker that is alive, or that has a replica of a partition."""

    rack: str | None = None
    """None if the broker has no rack, or if its rack is unknown, as for a dead broker."""
    alive: bool = True
    disk: Disk | None = None
    """None if its size is unknown."""
    cordon: Cordon | None = None
    """None if no log dir of the broker is cordoned."""
    open_disk: Disk | None = None
    """The volumes of the log dirs that are not cordoned, on which new replicas must fit. None if `cordon` is None, if
    all log dirs are cordoned, or if the size of a volume is unknown.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLayout:
    """One reading of a cluster. The size of a partition is the number of bytes that a new replica must copy.

    A partition without an entry in `sizes` has an unknown size. `brokers` are sorted by id, `partitions` by topic and
    number.
    """

    brokers: Mapping[BrokerId, Broker]
    partitions: Mapping[TopicPartition, PartitionReplicas]
    sizes: Mapping[TopicPartition, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "brokers", dict(sorted(self.brokers.items())))
        # Sort by pairs, because comparing 100,000 TopicPartition objects takes a second.
        ordered = sorted(self.partitions.items(), key=lambda item: (item[0].topic, item[0].partition))
        object.__setattr__(self, "partitions", dict(ordered))

    @property
    def alive(self) -> tuple[BrokerId, ...]:
        """The live brokers, sorted."""
        return tuple(broker for broker, found in self.brokers.items() if found.alive)

    @property
    def accepting(self) -> tuple[BrokerId, ...]:
        """The live brokers, sorted, without those whose `cordon` is `whole`."""
        return tuple(broker for broker in self.alive if not ((of := self.brokers[broker].cordon) and of.whole))

    @property
    def cordons(self) -> tuple[Cordon, ...]:
        """The cordoned log dirs of each broker that has any, sorted by broker."""
        return tuple(found.cordon for found in self.brokers.values() if found.cordon is not None)

    def racks(self) -> dict[BrokerId, str]:
        """Return the rack of each live broker. The result is empty if all live brokers are in one rack.

        Live brokers without a rack count as one additional rack, because two of them may share a switch. Dead brokers
        are left out, because their racks are unknown.
        """
        found = {broker: self.brokers[broker].rack or "" for broker in self.alive}
        return found if len(set(found.values())) > 1 else {}


def cluster(
    snapshot: Snapshot, log_dirs: Iterable[LogDir], disk: int | None = None, *, live: Iterable[LogDir] = ()
) -> ClusterLayout:
    """Return the cluster: partitions and racks from `snapshot`, and sizes and disks from `log_dirs`.

    `disk` is the size of all volumes of a broker, in bytes. It applies to each broker that does not report this size.
    On such a broker, only replicas count as used, at their full size even if a running move still copies them.

    The size of a partition is the size of its leader's log, because followers may lag. If the leader's log is unknown,
    the largest log of the replicas counts. If no replica's log is known, the largest log on other brokers counts,
    because the partition may have moved since a stored snapshot. If `log_dirs` come from the stored snapshot of a
    history, the cordons come from the `live` log dirs, because stored snapshots do not contain cordons.
    """
    log_dirs = list(log_dirs)
    cordoned = {found.broker: found for found in cordons(live or log_dirs)}
    logs: dict[TopicPartition, dict[BrokerId, int]] = defaultdict(dict)
    dirs: dict[BrokerId, list[LogDir]] = defaultdict(list)
    for log_dir in log_dirs:
        dirs[log_dir.broker].append(log_dir)
        for replica in log_dir.replicas:
            if not replica.future:
                logs[replica.partition][log_dir.broker] = replica.size
    sizes: dict[TopicPartition, int] = {}
    held: dict[BrokerId, int] = defaultdict(int)
    for name, now in snapshot.partitions.items():
        if name in logs:
            size = logs[name].get(now.leader) if now.leader is not None else None
            own = [logs[name][broker] for broker in now.replicas if broker in logs[name]]
            sizes[name] = max(own or logs[name].values()) if size is None else size
            for broker in now.replicas:
                held[broker] += sizes[name]
    pending: dict[BrokerId, list[_Pending]] = defaultdict(list)
    for broker, copy in _between_brokers(snapshot, log_dirs, sizes):
        pending[broker].append(copy)
    for broker, copy, size in _between_log_dirs(log_dirs, logs):
        pending[broker].append(copy)
        held[broker] += size
    return ClusterLayout(
        brokers={
            broker: Broker(
                rack=snapshot.racks.get(broker),
                alive=broker in snapshot.racks,
                disk=(
                    _volumes(dirs[broker], pending[broker])
                    or (None if disk is None else Disk(total=disk, used=held[broker]))
                ),
                cordon=(cordon := cordoned.get(broker)),
                open_disk=None if cordon is None else _volumes(_open(dirs[broker], cordon), pending[broker]),
            )
            for broker in {*snapshot.racks, *(b for now in snapshot.partitions.values() for b in now.replicas)}
        },
        partitions=snapshot.partitions,
        sizes=sizes,
    )


def _between_brokers(
    snapshot: Snapshot, log_dirs: Iterable[LogDir], sizes: Mapping[TopicPartition, int]
) -> Iterator[tuple[BrokerId, _Pending]]:
    moving = {name: now.adding for name, now in snapshot.partitions.items() if now.adding and name in sizes}
    started: dict[tuple[TopicPartition, BrokerId], tuple[Figures, int]] = {}
    for log_dir in log_dirs if moving else ():
        for replica in log_dir.replicas:
            if not replica.future and log_dir.broker in moving.get(replica.partition, ()):
                started[replica.partition, log_dir.broker] = log_dir.volume, replica.size
    for name, brokers in moving.items():
        for broker in brokers:
            volume, copied = started.get((name, broker), (None, 0))
            yield broker, (volume, max(0, sizes[name] - copied))


def _between_log_dirs(
    log_dirs: Iterable[LogDir], logs: Mapping[TopicPartition, Mapping[BrokerId, int]]
) -> Iterator[tuple[BrokerId, _Pending, int]]:
    """Yield for each running copy to another log dir: the broker, the volume with the pending bytes, the full size."""
    for log_dir in log_dirs:
        for replica in log_dir.replicas:
            if replica.future:
                size = max(replica.size, logs.get(replica.partition, {}).get(log_dir.broker, 0))
                yield log_dir.broker, (log_dir.volume, size - replica.size), size


def _open(dirs: Iterable[LogDir], cordon: Cordon) -> list[LogDir]:
    return [log_dir for log_dir in dirs if log_dir.path not in cordon.log_dirs]


def _volumes(dirs: Iterable[LogDir], pending: Iterable[_Pending]) -> Disk | None:
    """Return the volumes of these log dirs as one disk. Return None without log dirs, or if the size of a volume is
    unknown, as before Kafka 3.3 and for a failed log dir.
    """
    figures = {log_dir.volume for log_dir in dirs}
    both = together(figures)
    if both is None:
        return None
    left = sum(size for volume, size in pending if volume is None or volume in figures)
    return Disk(total=both[0], used=both[0] - both[1], pending=left)
