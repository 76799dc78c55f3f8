"""The throughput of throttled replicas, with the metric names of KIP-73, from two readings of their logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kquota.measure import total, whole_number
from kquota.reassign.running_copies import offsets_behind
from kquota.sizes.replica import LogDir, Replica
from kquota.terms import (
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    THROTTLE_LISTS,
    BrokerId,
    ReplicaId,
    TopicPartition,
)
from kquota.throttle.cluster_throttles import ClusterThrottles


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowReading:
    """The logs that the brokers reported at one time."""

    at: float
    """The time of the reading, in seconds of a monotonic clock."""
    logs: Mapping[ReplicaId, Replica]
    """The log of each replica whose log end offset a broker reported."""

    def end(self, replica: ReplicaId) -> int | None:
        """Return the log end offset of a replica, or None if it is unknown."""
        return log.end_offset if (log := self.logs.get(replica)) is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFlow:
    """The throughput of throttled replicas between two readings. Rates are in bytes per second, and lags are in
    offsets. None means unknown, never 0.
    """

    seconds: float
    leader: Mapping[BrokerId, float | None]
    """LeaderReplicationThrottledRate of each broker: the rate at which it sends data of partitions that it leads. Only
    partitions whose leader is a listed replica count.
    """
    follower: Mapping[BrokerId, float | None]
    """FollowerReplicationThrottledRate of each broker: the rate at which it fetches listed replicas."""
    lag: Mapping[BrokerId, int | None]
    """SumReplicaLag of each broker: the total lag of its own follower replicas, in partitions with a listed replica."""
    bytes_in: Mapping[TopicPartition, float | None]
    """PartitionBytesInRate of each partition with a listed replica: its write rate. Unknown without a leader."""
    lags: Mapping[TopicPartition, int | None]
    """The total lag of the followers of each partition with a listed replica."""
    keep_up: Mapping[BrokerId, float | None]
    """The follower traffic from each broker: the write rate of each partition that the broker leads as a listed
    replica, once for each in-sync follower. The broker counts this traffic against its leader rate, but does not delay
    it (KAFKA-4313).
    """
    behind: Mapping[BrokerId, float | None]
    """The same sum for out-of-sync followers instead of in-sync followers: the rate that they need for new data alone.
    The leader delays their fetches.
    """


def reading(at: float, log_dirs: Iterable[LogDir]) -> FlowReading:
    """Return one reading of the logs that the brokers reported. Future replicas are left out."""
    logs = {
        (replica.partition, log_dir.broker): replica
        for log_dir in log_dirs
        for replica in log_dir.replicas
        if not replica.future and replica.end_offset is not None
    }
    return FlowReading(at=at, logs=logs)


def measured(throttles: ClusterThrottles, first: FlowReading, second: FlowReading) -> MeasuredFlow:
    """Return the throughput of the listed replicas between two readings.

    The throughput of a log is its growth in size, or an estimate from its new offsets if the sizes do not show the
    growth.
    """
    seconds = second.at - first.at
    partitions = throttles.snapshot.partitions
    lists = {key: set(throttles.listed(key)) for key in THROTTLE_LISTS}
    throttled = sorted({name for replicas in lists.values() for name, _ in replicas})
    rates = _rates(throttles, throttled, first, second)
    lags = _lags(throttles, throttled, second)
    sums: dict[str, defaultdict[BrokerId, list[float | None]]] = {
        what: defaultdict(list) for what in ("leader", "follower", "keep_up", "behind")
    }
    for name in throttled:
        now = partitions[name]
        for broker in now.replicas:
            if broker == now.leader:
                continue
            rate = rates.get((name, broker))
            if (name, broker) in lists[FOLLOWER_REPLICAS]:
                sums["follower"][broker].append(rate)
            if now.leader is not None and (name, now.leader) in lists[LEADER_REPLICAS]:
                sums["leader"][now.leader].append(rate)
                in_sync = broker in now.isr
                written = rates.get((name, now.leader))
                sums["keep_up" if in_sync else "behind"][now.leader].append(written)
    behind_by: defaultdict[BrokerId, list[int | None]] = defaultdict(list)
    for (_, broker), lag in lags.items():
        behind_by[broker].append(lag)
    every = sorted({*throttles.brokers, *behind_by})
    return MeasuredFlow(
        seconds=seconds,
        **{what: {broker: total([0.0, *of.get(broker, ())]) for broker in every} for what, of in sums.items()},
        lag={broker: total(behind_by.get(broker, ())) for broker in every},
        bytes_in={
            name: None if (leader := partitions[name].leader) is None else rates.get((name, leader))
            for name in throttled
        },
        lags={name: total(lags[name, b] for b in partitions[name].replicas if (name, b) in lags) for name in throttled},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Starved:
    """A leader throttle that leaves little or nothing for catching up: KIP-73's condition IN < T is not met, or in-sync
    followers use over half of the rate.
    """

    broker: BrokerId
    rate: int
    """The leader rate, in bytes per second."""
    keep_up: float
    """The follower traffic of in-sync followers, in bytes per second."""
    behind: float
    """The rate that out-of-sync followers need for new data alone, in bytes per second."""

    @property
    def hopeless(self) -> bool:
        """True if the throttle leaves nothing for catching up: IN >= T (KIP-73).

        If there are out-of-sync followers, they can never catch up at this rate.
        """
        return self.keep_up + self.behind >= self.rate


def starved(throttles: ClusterThrottles, flow: MeasuredFlow) -> tuple[Starved, ...]:
    """Return the brokers whose in-sync followers use over half of the leader rate, and those whose out-of-sync
    followers can never catch up.

    A broker is left out if its leader rate is not set, is not in force or is not a number. It is also left out if one
    of its measured values is unknown.
    """
    leaders = []
    for broker in throttles.brokers:
        limit = throttles.rate(broker, LEADER_RATE)
        keep_up, behind = flow.keep_up.get(broker), flow.behind.get(broker)
        rate = None if limit is None else whole_number(limit.value)
        if rate is None or keep_up is None or behind is None:
            continue
        leader = Starved(broker=broker, rate=rate, keep_up=keep_up, behind=behind)
        if keep_up * 2 > rate or (behind and leader.hopeless):
            leaders.append(leader)
    return tuple(leaders)


def _rates(
    throttles: ClusterThrottles, names: Collection[TopicPartition], first: FlowReading, second: FlowReading
) -> dict[ReplicaId, float | None]:
    """Return the growth of each replica's log in bytes per second, or None if it is unknown. Replicas that are missing
    from one of the readings are left out.
    """
    rates: dict[ReplicaId, float | None] = {}
    for name in names:
        now = throttles.snapshot.partitions[name]
        leader = None if now.leader is None else second.logs.get((name, now.leader))
        for broker in now.replicas:
            before, after = first.logs.get((name, broker)), second.logs.get((name, broker))
            if before is not None and after is not None:
                came = _bytes(before, after, leader, leads=broker == now.leader)
                rates[name, broker] = None if came is None else came / (second.at - first.at)
    return rates


def _bytes(before: Replica, after: Replica, leader: Replica | None, *, leads: bool) -> float | None:
    """Return the bytes that were added to the log of one replica between two readings. None if the bytes must be
    estimated, but the mean bytes per offset in the leader's log are unknown.
    """
    assert before.end_offset is not None and after.end_offset is not None
    from_offset = before.end_offset
    if not leads:
        # A new replica of a tiered topic skips the offsets that are only in remote storage (KIP-405).
        from_offset = max(from_offset, after.local_start_offset or 0)
    offsets = after.end_offset - from_offset
    if offsets <= 0:  # a follower that truncates its log shows no new bytes
        return 0.0
    more = after.size - before.size
    if more > 0 and before.local_start_offset is not None and before.local_start_offset == after.local_start_offset:
        return float(more)
    if leader is None or leader.end_offset is None or leader.local_start_offset is None:
        return None
    held = leader.end_offset - leader.local_start_offset
    return offsets * leader.size / held if held > 0 and leader.size > 0 else None


def _lags(
    throttles: ClusterThrottles, names: Collection[TopicPartition], second: FlowReading
) -> dict[ReplicaId, int | None]:
    lags: dict[ReplicaId, int | None] = {}
    for name in names:
        now = throttles.snapshot.partitions[name]
        end = None if now.leader is None else second.end((name, now.leader))
        for broker in now.replicas:
            if broker != now.leader:
                lags[name, broker] = offsets_behind(second.end((name, broker)), end)
    return lags
