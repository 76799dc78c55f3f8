"""A cluster in memory that copies in virtual time: brokers with throttles, producers, and moves that end by themselves.

Gaps: every broker has one log dir, offsets are bytes, leaders never change, and only destinations and leaders limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from kquota.reassign.moves import PartitionReplicas
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.terms import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    BrokerId,
    ReplicaId,
    TopicPartition,
)
from kquota.watch.reading import DirSpace, ReplicaLog, ReplicaLogs
from tests.reassign.fake import MemoryCluster

_STEP = 0.5


@dataclass(kw_only=True)
class CopyingCluster(MemoryCluster):
    """`sizes` are bytes of replicas, `producers` are bytes per second to partitions, `pipe` limits a copy.

    The configs of topics in `unreadable` cannot be read.

    With `lumps`, a throttled broker takes a quota window of 11 s at once, like a broker with a wide pipe.
    """

    sizes: dict[ReplicaId, int] = field(default_factory=dict)
    producers: dict[TopicPartition, int] = field(default_factory=dict)
    pipe: int = 1_000_000_000
    lumps: bool = False
    usable: dict[BrokerId, int] = field(default_factory=dict)
    errors: dict[BrokerId, str] = field(default_factory=dict)
    futures: dict[ReplicaId, int] = field(default_factory=dict)
    mute: dict[BrokerId, str] = field(default_factory=dict)
    stuck: set[ReplicaId] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)
    clock: float = 0.0
    asked: int = 0

    def partition(self, name: TopicPartition, replicas: tuple[int, ...], size: int, writes: int = 0) -> None:
        """A partition whose replicas are all in sync."""
        there = tuple(map(BrokerId, replicas))
        self.partitions[name] = PartitionReplicas(replicas=there, leader=there[0], isr=there)
        self.sizes |= {(name, broker): size for broker in there}
        self.producers[name] = writes

    def read(self, replicas: Collection[ReplicaId], ends: Collection[ReplicaId]) -> ReplicaLogs:
        """The logs, as `LogReader` has them."""
        self.asked += 1
        brokers = {broker for _, broker in replicas}
        silent = {b: self.mute.get(b, "no answer") for b in brokers if b in self.mute or b not in self.alive}
        wanted = set(ends)
        return ReplicaLogs(
            logs={
                (name, broker): ReplicaLog(size, size if (name, broker) in wanted else None, "/data")
                for (name, broker) in replicas
                if (size := self.sizes.get((name, broker))) is not None and broker not in silent
            },
            futures={
                replica: ReplicaLog(size, None, "/other")
                for replica, size in self.futures.items()
                if replica in set(replicas) and replica[1] not in silent
            },
            dirs={
                (broker, "/data"): DirSpace(self.usable.get(broker), self.errors.get(broker))
                for broker in brokers - silent.keys()
            },
            silent=silent,
        )

    def _reachable(self, setting: Setting) -> bool:
        return setting.name not in self.unreadable and super()._reachable(setting)

    def pass_seconds(self, seconds: float) -> None:
        """Producers write and copies proceed."""
        until = self.clock + seconds
        while self.clock < until - 1e-9:
            step = min(_STEP, until - self.clock)
            self._step(self.clock, step)
            self.clock += step

    def _step(self, at: float, step: float) -> None:
        for name, rate in self.producers.items():
            now = self.partitions[name]
            if now.leader is not None:
                for broker in now.isr:
                    self.sizes[name, broker] += round(rate * step)
        budgets = self._budgets(at, step)
        for name, now in sorted(self.partitions.items()):
            for broker in now.adding:
                if now.leader is not None and broker in self.alive and now.leader in self.alive:
                    self._copy(name, now.leader, broker, budgets, step)
            if now.adding and set(now.adding) <= set(now.isr) | self._caught_up(name, now):
                self.finish(name)

    def finish(self, name: TopicPartition) -> None:
        """Every copy has caught up."""
        now = self.partitions[name]
        if now.leader is not None:
            self.sizes |= {(name, broker): self.sizes[name, now.leader] for broker in now.adding}
        super().finish(name)

    def _caught_up(self, name: TopicPartition, now: PartitionReplicas) -> set[BrokerId]:
        leader = now.leader
        if leader is None:
            return set()
        return {b for b in now.adding if self.sizes.get((name, b), -1) >= self.sizes[name, leader]}

    def _copy(
        self,
        name: TopicPartition,
        leader: BrokerId,
        broker: BrokerId,
        budgets: dict[tuple[BrokerId, str], float],
        step: float,
    ) -> None:
        if (name, broker) in self.stuck:
            return
        self.sizes.setdefault((name, broker), 0)
        missing = self.sizes[name, leader] - self.sizes[name, broker]
        limits = [(leader, LEADER_RATE, LEADER_REPLICAS), (broker, FOLLOWER_RATE, FOLLOWER_REPLICAS)]
        limited = [(b, key) for b, key, kind in limits if self._listed(name, b, kind) and (b, key) in budgets]
        most = min([self.pipe * step, *(budgets[one] for one in limited)])
        came = max(0, min(missing, round(most)))
        self.sizes[name, broker] += came
        for one in limited:
            budgets[one] -= came

    def _budgets(self, at: float, step: float) -> dict[tuple[BrokerId, str], float]:
        """The bytes that each throttled side may still send or receive in this step."""
        followed: defaultdict[BrokerId, float] = defaultdict(float)
        for name, rate in self.producers.items():
            now = self.partitions[name]
            if now.leader is not None and self._listed(name, now.leader, LEADER_REPLICAS):
                followed[now.leader] += rate * (len(now.isr) - 1)
        found: dict[tuple[BrokerId, str], float] = {}
        for broker in self.alive:
            for key in (LEADER_RATE, FOLLOWER_RATE):
                value = self.configs.get(Setting.of_broker(broker, key))
                if value is not None:
                    most = int(value) - (followed[broker] if key == LEADER_RATE else 0.0)
                    begins = int(at // 11) != int((at - _STEP) // 11) or at == 0
                    found[broker, key] = max(0.0, (most * 11 if begins else 0.0) if self.lumps else most * step)
        return found

    def _listed(self, name: TopicPartition, broker: BrokerId, key: str) -> bool:
        return f"{name.partition}:{broker}" in entries(self.configs.get(Setting.of_topic(name.topic, key)))

    def throttle(self, rate: int, brokers: Collection[int]) -> None:
        """Throttles every running move, as `--execute` does."""
        for broker in map(BrokerId, brokers):
            for key in (LEADER_RATE, FOLLOWER_RATE):
                self.configs[Setting.of_broker(broker, key)] = str(rate)
        for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS):
            lists: defaultdict[str, list[str]] = defaultdict(list)
            for name, now in self.partitions.items():
                those = now.before if key == LEADER_REPLICAS else now.adding
                lists[name.topic] += [f"{name.partition}:{broker}" for broker in those if now.moving]
            for topic, listed in lists.items():
                self.configs[Setting.of_topic(topic, key)] = ",".join(sorted(listed))

    def restore(self) -> None:
        """Removes every throttle."""
        self.configs.clear()

    def lose(self, broker: int) -> None:
        """A broker dies: partitions elect another replica in sync, or have no leader."""
        dead = BrokerId(broker)
        self.alive.discard(dead)
        for name, now in self.partitions.items():
            isr = tuple(b for b in now.isr if b != dead)
            leader = now.leader if now.leader != dead else next(iter(isr), None)
            self.partitions[name] = replace(now, isr=isr, leader=leader)
