"""Log dirs in memory: a state machine behind the port, with direct access to seed, age and break it.

Gaps: copies end only through `fast`, at once. Every new replica goes to the first log dir unless another one was
requested.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kquota.errors import KquotaError, Refused, Unknown, Unreachable
from kquota.reassign.log_dirs import LogDirReading, ReplicaLogDirs
from kquota.reassign.moves import Replicas
from kquota.reassign.port import ReplicaDirs
from kquota.terms import BrokerId, ReplicaId, TopicPartition


@dataclass(kw_only=True)
class MemoryDirs:
    """`writes` counts the requests that reached a broker.

    `lost` brokers execute requests but send no answer, and `deaf` brokers do not execute them.
    """

    log_dirs: dict[BrokerId, dict[str, str | None]]
    places: dict[ReplicaId, ReplicaLogDirs] = field(default_factory=dict)
    wishes: dict[ReplicaId, str] = field(default_factory=dict)
    dead: set[BrokerId] = field(default_factory=set)
    lost: set[BrokerId] = field(default_factory=set)
    deaf: set[BrokerId] = field(default_factory=set)
    slowed: set[BrokerId] = field(default_factory=set)
    late: dict[ReplicaId, int] = field(default_factory=dict)
    writes: int = 0

    def read(self, replicas: Collection[ReplicaId]) -> LogDirReading:
        asked = {broker for _, broker in replicas}
        self._come(replicas)
        return LogDirReading(
            dirs={broker: dict(self.log_dirs[broker]) for broker in asked if self._answers(broker)},
            places={r: self.places[r] for r in replicas if r in self.places and self._answers(r[1])},
            silent={broker: "it is dead" for broker in sorted(asked) if not self._answers(broker)},
        )

    def alter(self, moves: Mapping[ReplicaId, str]) -> Mapping[ReplicaId, KquotaError]:
        errors: dict[ReplicaId, KquotaError] = {}
        for replica, path in moves.items():
            broker = replica[1]
            if not self._answers(broker):
                errors[replica] = Unreachable(f"broker {broker} is dead")
                continue
            if broker in self.deaf:
                errors[replica] = Unknown(f"broker {broker} said nothing")
                continue
            self.writes += 1
            if self.log_dirs[broker].get(path, "no such dir") is not None:
                errors[replica] = Refused(f"broker {broker} answered LogDirNotFound (57) for log dir {path}")
            elif replica not in self.places:
                self.wishes[replica] = path
            else:
                self._copy(replica, path)
            if broker in self.lost:
                errors[replica] = Unknown(f"broker {broker} said nothing")
        return errors

    def _copy(self, replica: ReplicaId, path: str) -> None:
        now = self.places[replica]
        if path == now.current:
            self.places[replica] = ReplicaLogDirs(current=path)
        elif replica[1] in self.slowed:
            self.places[replica] = replace(now, future=path, lag=201)
        else:
            self.places[replica] = ReplicaLogDirs(current=path)

    def _answers(self, broker: BrokerId) -> bool:
        return broker in self.log_dirs and broker not in self.dead

    def _come(self, replicas: Collection[ReplicaId]) -> None:
        """Create the replicas that are `late`, once this number of reads has passed."""
        for replica in replicas:
            if replica in self.late:
                self.late[replica] -= 1
                if self.late[replica] <= 0:
                    del self.late[replica]
                    self.create(replica)

    # The methods below give tests direct access.

    @property
    def dirs(self) -> ReplicaDirs:
        return self

    @property
    def brokers(self) -> tuple[BrokerId, BrokerId, BrokerId]:
        one, two, three = self.log_dirs
        return one, two, three

    def paths(self, broker: BrokerId) -> tuple[str, str]:
        first, second = self.log_dirs[broker]
        return first, second

    def create(self, replica: ReplicaId) -> None:
        """Create the replica on its broker."""
        self.places[replica] = ReplicaLogDirs(current=self.wishes.pop(replica, self.paths(replica[1])[0]))

    def topic(self, replicas: Mapping[int, Replicas]) -> str:
        name = f"t{len({replica.topic for replica, _ in self.places})}"
        for number, brokers in replicas.items():
            for broker in brokers:
                self.create((TopicPartition(name, number), broker))
        return name

    def slow(self, broker: BrokerId) -> None:
        self.slowed.add(broker)

    def fast(self, broker: BrokerId) -> None:
        self.slowed.discard(broker)
        for replica, place in self.places.items():
            if replica[1] == broker and place.future is not None:
                self.places[replica] = ReplicaLogDirs(current=place.future)

    def reassign(self, name: TopicPartition, target: Replicas) -> None:
        for broker in target:
            if (name, broker) not in self.places:
                self.create((name, broker))
        for replica in [r for r in self.places if r[0] == name and r[1] not in target]:
            del self.places[replica]
