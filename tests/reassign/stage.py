"""A cluster in memory, a plan for it, and its throttle: for tests of the order of writes in a move."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kquota.measure import ByteRate
from kquota.reassign.execution import Execution, carry_out
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.port import MovePorts
from kquota.reassign.preparation import MoveRequest, Prepared, prepare
from kquota.reassign.verification import Verification, unless_it_writes, verify
from kquota.settings.resource import Setting
from kquota.stores.record.runs import RecordedRuns
from kquota.terms import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, BrokerId, TopicPartition
from tests.reassign.fake import MemoryCluster, Ticks
from tests.reassign.records import alone

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
LEADERS, FOLLOWERS = (Setting.of_topic("t", key) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS))


def b(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


def rate_of(broker: int, key: str = LEADER_RATE) -> Setting:
    return Setting.of_broker(BrokerId(broker), key)


PLAN = Plan(targets={T0: b(1, 3)})
THROTTLE = {
    LEADERS: "0:1,0:2",
    FOLLOWERS: "0:3",
    **{rate_of(broker, key): "1000" for broker in (1, 2, 3) for key in (LEADER_RATE, FOLLOWER_RATE)},
}


@dataclass
class World:
    folder: Path
    cluster: MemoryCluster = field(
        default_factory=lambda: MemoryCluster(
            alive=set(b(1, 2, 3, 4)),
            partitions={
                name: PartitionReplicas(replicas=b(1, 2), leader=BrokerId(1), isr=b(1, 2)) for name in (T0, T1, U0)
            },
        )
    )
    clock: Ticks = field(default_factory=Ticks)

    @property
    def runs(self) -> RecordedRuns:
        return alone(self.folder)

    @property
    def ports(self) -> MovePorts:
        return MovePorts(cluster=self.cluster, runs=self.runs, clock=self.clock)

    def prepare(self, plan: Plan = PLAN, rate: int | None = 1000, additional: bool = False) -> Prepared:
        asked = MoveRequest(throttle=None if rate is None else ByteRate(rate), additional=additional)
        return prepare(self.ports, plan, asked)

    def execute(self, plan: Plan = PLAN, rate: int | None = 1000, additional: bool = False) -> Execution:
        return carry_out(self.prepare(plan, rate, additional))

    def verify(self, plan: Plan = PLAN) -> Verification:
        """Verify. Also check a property: `unless_it_writes` finds the same, and writes nothing."""
        idle = unless_it_writes(self.ports, plan)
        before = dict(self.cluster.configs), self.runs.every()
        found = verify(self.ports, plan)
        if idle is not None:
            assert (found, self.cluster.configs, self.runs.every()) == (idle, *before)
        return found

    def open_runs(self) -> int:
        return len(self.runs.unfinished())
