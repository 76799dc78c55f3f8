"""A cluster in memory that copies in virtual time: brokers with throttles, producers, and moves that end by themselves.

Gaps: every broker has one log dir, offsets are bytes, only leaders and replicas in sync delete
old segments, leaders never change, and only destinations and leaders limit.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

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
from kquota.watch.reading import DirSpace, FutureLog, LogNumbers, ReplicaLogs, WantedLogs
from tests.reassign.fake import MemoryCluster

_STEP = 0.5
_ROUNDS = 4
"""The number of rounds in which copies share the bytes that other copies did not need."""
_Going: TypeAlias = tuple[TopicPartition, BrokerId | None, BrokerId]
"""A running copy: its partition, its leader and its destination."""
# A move has the same throttles in thousands of steps.
_entries = functools.cache(entries)
_of_broker = functools.cache(Setting.of_broker)
_of_topic = functools.cache(Setting.of_topic)


@dataclass(kw_only=True)
class CopyingCluster(MemoryCluster):
    """`sizes` are bytes of replicas, `producers` are bytes per second to partitions, `pipe` limits a copy.

    The configs of topics in `unreadable` cannot be read. `first` are the first offsets of replicas, by default 0.

    With `lumps`, a throttled broker takes a quota window of 11 s at once, like a broker with a wide pipe. With `fair`,
    the links of a broker share its throttle, and the copies of a link share its part, as fetchers do. Otherwise the
    first copy gets all of it. `slow` are the bytes per second that a destination writes to its disk for each copy.
    """

    sizes: dict[ReplicaId, int] = field(default_factory=dict)
    producers: dict[TopicPartition, int] = field(default_factory=dict)
    pipe: int = 1_000_000_000
    lumps: bool = False
    fair: bool = False
    slow: dict[BrokerId, int] = field(default_factory=dict)
    usable: dict[BrokerId, int] = field(default_factory=dict)
    errors: dict[BrokerId, str] = field(default_factory=dict)
    futures: dict[ReplicaId, int] = field(default_factory=dict)
    unanswered: dict[BrokerId, str] = field(default_factory=dict)
    stuck: set[ReplicaId] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)
    first: dict[ReplicaId, int] = field(default_factory=dict)
    clock: float = 0.0
    asked: int = 0
    asked_starts: int = 0

    def partition(self, name: TopicPartition, replicas: tuple[int, ...], size: int, writes: int = 0) -> None:
        """Add a partition whose replicas are all in sync."""
        there = tuple(map(BrokerId, replicas))
        self.partitions[name] = PartitionReplicas(replicas=there, leader=there[0], isr=there)
        self.sizes |= {(name, broker): size for broker in there}
        self.producers[name] = writes

    def read(self, wanted: Sequence[WantedLogs], brokers: Collection[BrokerId]) -> ReplicaLogs:
        """Return the logs, as `LogReader` does."""
        self.asked += 1
        asked = {broker for one in wanted for broker in one.sizes if broker in brokers}
        silent = {b: self.unanswered.get(b, "no answer") for b in asked if b in self.unanswered or b not in self.alive}
        logs: defaultdict[tuple[BrokerId, str], dict[str, dict[int, int]]] = defaultdict(dict)
        ends: defaultdict[BrokerId, dict[str, dict[int, int]]] = defaultdict(dict)
        futures: dict[ReplicaId, FutureLog] = {}
        for broker in sorted(asked - silent.keys()):
            for one in wanted:
                found = {n: self.sizes.get((TopicPartition(one.topic, n), broker)) for n in one.sizes.get(broker, ())}
                known = {number: size for number, size in found.items() if size is not None}
                logs[broker, "/data"][one.topic] = known
                ends[broker][one.topic] = {
                    n: self._end(TopicPartition(one.topic, n), broker) for n in one.ends.get(broker, ()) if n in known
                }
                replicas = [(TopicPartition(one.topic, n), broker) for n in found]
                futures |= {r: FutureLog(self.futures[r], "/other") for r in replicas if r in self.futures}
        return ReplicaLogs(
            by_dir=logs,
            ends=ends,
            futures=futures,
            dirs={
                (broker, "/data"): DirSpace(self.usable.get(broker), self.errors.get(broker))
                for broker in asked - silent.keys()
            },
            silent=silent,
        )

    def starts(self, wanted: Mapping[BrokerId, Collection[TopicPartition]]) -> LogNumbers:
        """Return the first offsets, as `LogReader` does."""
        self.asked_starts += 1
        found: dict[BrokerId, dict[str, dict[int, int]]] = {}
        for broker, names in wanted.items():
            for name in names:
                if broker in self.alive and broker not in self.unanswered and (name, broker) in self.sizes:
                    number = self.first.get((name, broker), 0)
                    found.setdefault(broker, {}).setdefault(name.topic, {})[name.partition] = number
        return found

    def delete_segments(self, name: TopicPartition, size: int) -> None:
        """Delete this number of bytes at the start of the log, except from running copies."""
        now = self.partitions[name]
        for broker in now.replicas:
            if broker not in now.adding:
                self.sizes[name, broker] -= size
                self.first[name, broker] = self.first.get((name, broker), 0) + size

    def _end(self, name: TopicPartition, broker: BrokerId) -> int:
        return self.first.get((name, broker), 0) + self.sizes.get((name, broker), 0)

    def _reachable(self, setting: Setting) -> bool:
        return setting.name not in self.unreadable and super()._reachable(setting)

    def pass_seconds(self, seconds: float) -> None:
        """Let this time pass: producers write, and copies proceed."""
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
        going = [
            (name, now.leader, broker)
            for name, now in sorted(self.partitions.items())
            for broker in now.adding
            if now.leader in self.alive and broker in self.alive and (name, broker) not in self.stuck
        ]
        self._copy(going, budgets, step)
        for name, now in sorted(self.partitions.items()):
            if now.adding and set(now.adding) <= set(now.isr) | self._caught_up(name, now):
                self.finish(name)

    def finish(self, name: TopicPartition) -> None:
        """Complete every copy of the partition."""
        now = self.partitions[name]
        if now.leader is not None:
            self.sizes |= {(name, broker): self.sizes[name, now.leader] for broker in now.adding}
            self.first |= {(name, broker): self.first.get((name, now.leader), 0) for broker in now.adding}
        super().finish(name)

    def _caught_up(self, name: TopicPartition, now: PartitionReplicas) -> set[BrokerId]:
        leader = now.leader
        if leader is None:
            return set()
        return {b for b in now.adding if (name, b) in self.sizes and self._end(name, b) >= self._end(name, leader)}

    def _copy(
        self,
        going: Sequence[_Going],
        budgets: dict[tuple[BrokerId, str], float],
        step: float,
    ) -> None:
        pipes = {copy: self.slow.get(copy[2], self.pipe) * step for copy in going}
        limits = {copy: [one for one in self._limits(*copy) if one in budgets] for copy in going}
        for _ in range(_ROUNDS if self.fair else 1):
            shares = self._shares(limits, budgets) if self.fair else {}
            for copy in going:
                name, leader, broker = copy
                if leader is not None and (name, broker) not in self.sizes:
                    self.first[name, broker] = self.first.get((name, leader), 0)
                most = shares.get(copy) if self.fair else [budgets[one] for one in limits[copy]]
                came = 0 if most is None else min(self._missing(*copy), round(min([pipes[copy], *most])))
                self.sizes[name, broker] = self.sizes.get((name, broker), 0) + came
                pipes[copy] -= came
                for one in limits[copy]:
                    budgets[one] -= came

    def _shares(
        self, limits: Mapping[_Going, Sequence[tuple[BrokerId, str]]], budgets: Mapping[tuple[BrokerId, str], float]
    ) -> dict[_Going, list[float]]:
        """Return the bytes that each throttle of an unfinished copy permits in one round."""
        hungry = [copy for copy in limits if self._missing(*copy)]
        copies = Counter((leader, broker) for _, leader, broker in hungry)
        links = {(leader, broker): limits[name, leader, broker] for name, leader, broker in hungry}
        sharing = Counter(one for those in links.values() for one in those)
        return {
            copy: [budgets[one] / sharing[one] / copies[copy[1], copy[2]] for one in limits[copy]] for copy in hungry
        }

    def _missing(self, name: TopicPartition, leader: BrokerId | None, broker: BrokerId) -> int:
        return 0 if leader is None else max(0, self._end(name, leader) - self._end(name, broker))

    def _limits(
        self, name: TopicPartition, leader: BrokerId | None, broker: BrokerId
    ) -> Iterator[tuple[BrokerId, str]]:
        """Yield the throttles of a copy, as pairs of a broker and a side."""
        for one, key, kind in ((leader, LEADER_RATE, LEADER_REPLICAS), (broker, FOLLOWER_RATE, FOLLOWER_REPLICAS)):
            if one is not None and self._listed(name, one, kind):
                yield one, key

    def _budgets(self, at: float, step: float) -> dict[tuple[BrokerId, str], float]:
        """Return the bytes that each throttled side may still send or receive in this step."""
        followed: defaultdict[BrokerId, float] = defaultdict(float)
        for name, rate in self.producers.items():
            now = self.partitions[name]
            if now.leader is not None and self._listed(name, now.leader, LEADER_REPLICAS):
                followed[now.leader] += rate * (len(now.isr) - 1)
        found: dict[tuple[BrokerId, str], float] = {}
        for broker in self.alive:
            for key in (LEADER_RATE, FOLLOWER_RATE):
                value = self.configs.get(_of_broker(broker, key))
                if value is not None:
                    most = int(value) - (followed[broker] if key == LEADER_RATE else 0.0)
                    begins = int(at // 11) != int((at - _STEP) // 11) or at == 0
                    found[broker, key] = max(0.0, (most * 11 if begins else 0.0) if self.lumps else most * step)
        return found

    def _listed(self, name: TopicPartition, broker: BrokerId, key: str) -> bool:
        return f"{name.partition}:{broker}" in _entries(self.configs.get(_of_topic(name.topic, key)))

    def throttle(self, rate: int, brokers: Collection[int]) -> None:
        """Throttle every running move, as `--execute` does."""
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
        """Remove every throttle."""
        self.configs.clear()

    def lose(self, broker: int) -> None:
        """Let a broker die. Its partitions elect another replica in sync, or have no leader."""
        dead = BrokerId(broker)
        self.alive.discard(dead)
        for name, now in self.partitions.items():
            isr = tuple(b for b in now.isr if b != dead)
            leader = now.leader if now.leader != dead else next(iter(isr), None)
            self.partitions[name] = replace(now, isr=isr, leader=leader)
