"""A move that copies in virtual time, and a watch of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kquota.reassign.moves import Replicas
from kquota.reassign.plan import Plan
from kquota.reassign.port import MovePorts
from kquota.stores.record.runs import RecordedRuns
from kquota.terms import BrokerId, TopicPartition
from kquota.watch.observation import MoveWatch, Observed, WatchPorts
from tests.reassign.fake import Ticks
from tests.reassign.records import alone
from tests.watch.fake import CopyingCluster

MB = 1_000_000


def name(number: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, number)


def brokers(*ids: int) -> Replicas:
    return tuple(map(BrokerId, ids))


@dataclass
class Watched:
    """Brokers 1 to 4. `move` submits, `look` advances the time and returns one reading."""

    folder: Path
    cluster: CopyingCluster = field(default_factory=lambda: CopyingCluster(alive=set(brokers(1, 2, 3, 4))))
    on_zookeeper: bool = False

    def __post_init__(self) -> None:
        self.clock = Ticks(self.cluster.pass_seconds)

    @property
    def runs(self) -> RecordedRuns:
        return alone(self.folder)

    @property
    def ports(self) -> MovePorts:
        return MovePorts(cluster=self.cluster, runs=self.runs, clock=self.clock)

    def topic(self, partitions: int = 1, size: int = 100 * MB, writes: int = 0, topic: str = "orders") -> None:
        for number in range(partitions):
            self.cluster.partition(name(number, topic), (1, 2), size, writes)

    def move(self, targets: Mapping[TopicPartition, Replicas], throttle: int | None = None) -> Plan:
        assert self.cluster.submit(targets) == {}
        if throttle is not None:
            self.cluster.throttle(throttle, (1, 2, 3, 4))
        return Plan(targets=targets)

    def drain(self, partitions: int = 1, throttle: int | None = None, to: Collection[int] = (1, 3)) -> Plan:
        """Move partitions from broker 2 to the brokers in `to`."""
        return self.move({name(number): brokers(*to) for number in range(partitions)}, throttle)

    def watch(self, plan: Plan | None = None, run: str | None = None) -> MoveWatch:
        logs = None if self.on_zookeeper else self.cluster
        ports = WatchPorts(cluster=self.cluster, runs=self.runs, logs=logs, clock=self.clock)
        return MoveWatch(ports, plan=plan, run=run)

    def look(self, watch: MoveWatch, seconds: float, interval: float = 1.0) -> Observed:
        """Return the last of the readings in these seconds."""
        found = watch.look()
        while seconds > 0:
            self.clock.sleep(interval)
            seconds -= interval
            found = watch.look()
        return found
