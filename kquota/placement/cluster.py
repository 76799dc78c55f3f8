"""What the planner looks at: brokers with racks and disks, partitions with their replicas and one size each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kquota.pace.disk_space import together
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.port import Snapshot
from kquota.sizes.replica import LogDir
from kquota.terms import BrokerId, TopicPartition

INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
"""The topics that Kafka makes for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A broker's volumes together, in bytes. `used` counts everything on them, where volumes are told."""

    total: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker that lives, or that still stands in some partition's replicas. `disk` None: nobody told."""

    rack: str | None = None
    alive: bool = True
    disk: Disk | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLayout:
    """One reading. A partition has one size, its leader's log: what each new replica must copy.

    A partition without an entry in `sizes` has a size that nobody told. Both mappings are ordered by name.
    """

    brokers: Mapping[BrokerId, Broker]
    partitions: Mapping[TopicPartition, PartitionReplicas]
    sizes: Mapping[TopicPartition, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "brokers", dict(sorted(self.brokers.items())))
        # To compare names as values costs a second of 100,000 partitions; as pairs it costs nothing to speak of.
        ordered = sorted(self.partitions.items(), key=lambda item: (item[0].topic, item[0].partition))
        object.__setattr__(self, "partitions", dict(ordered))

    @property
    def alive(self) -> tuple[BrokerId, ...]:
        """The live brokers, sorted."""
        return tuple(broker for broker, found in self.brokers.items() if found.alive)

    def racks(self) -> dict[BrokerId, str]:
        """The rack of each broker whose rack counts: none when all live brokers stand in one.

        Live brokers without a rack stand together, beside the others: two of them may well share a switch. Where a
        dead broker stood, the cluster does not tell.
        """
        found = {broker: self.brokers[broker].rack or "" for broker in self.alive}
        return found if len(set(found.values())) > 1 else {}


def cluster(snapshot: Snapshot, log_dirs: Iterable[LogDir], disk: int | None = None) -> ClusterLayout:
    """The cluster of one reading. `disk`: the bytes of every broker's volumes, in place of what the brokers tell.

    A partition's size is its leader's log, else the largest of its replicas' logs: followers may lag behind.
    """
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
            sizes[name] = max(logs[name].values()) if size is None else size
            for broker in now.replicas:
                held[broker] += sizes[name]
    return ClusterLayout(
        brokers={
            broker: Broker(
                rack=snapshot.racks.get(broker),
                alive=broker in snapshot.racks,
                disk=_volumes(dirs.get(broker, ())) if disk is None else Disk(total=disk, used=held[broker]),
            )
            for broker in {*snapshot.racks, *(b for now in snapshot.partitions.values() for b in now.replicas)}
        },
        partitions=snapshot.partitions,
        sizes=sizes,
    )


def _volumes(dirs: Iterable[LogDir]) -> Disk | None:
    """All volumes of one broker as one; None when one of them is not told (Kafka before 3.3, a failed log dir)."""
    both = together((log_dir.volume_total, log_dir.volume_usable) for log_dir in dirs)
    return None if both is None else Disk(total=both[0], used=both[0] - both[1])
