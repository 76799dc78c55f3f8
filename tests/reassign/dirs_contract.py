"""The contract of ReplicaDirs, which defines the port. A subclass provides a `stage`, in memory or real."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kquota.errors import Refused, Unreachable
from kquota.reassign.log_dirs import NOWHERE, ReplicaLogDirs
from kquota.reassign.moves import Replicas
from kquota.reassign.port import ReplicaDirs
from kquota.terms import BrokerId, TopicPartition
from tests.waiting import until

_DEAD = BrokerId(99)


class Stage(Protocol):
    """Brokers with two log dirs each, and another client of them that does not use kquota's code."""

    @property
    def dirs(self) -> ReplicaDirs: ...

    @property
    def brokers(self) -> tuple[BrokerId, BrokerId, BrokerId]: ...

    def paths(self, broker: BrokerId) -> tuple[str, str]:
        """Return the broker's log dirs."""

    def topic(self, replicas: Mapping[int, Replicas]) -> str:
        """Create a topic with enough data in every partition to observe a slow copy, and return its name."""

    def slow(self, broker: BrokerId) -> None:
        """Let the broker copy almost nothing between its log dirs from now on."""

    def fast(self, broker: BrokerId) -> None:
        """Let the broker copy at full speed, so that slow copies end soon."""

    def reassign(self, name: TopicPartition, target: Replicas) -> None:
        """Move the partition to other brokers."""


class ReplicaDirsContract:
    """Subclass it with a `stage` fixture."""

    def test_a_replica_moves_to_another_log_dir_and_may_be_cancelled(self, stage: Stage) -> None:
        one, two, _ = stage.brokers
        replica, other = [(TopicPartition(stage.topic({0: (one, two)}), 0), broker) for broker in (one, two)]

        def place() -> ReplicaLogDirs:
            return stage.dirs.read([replica]).place(replica)

        found = stage.dirs.read([replica, other])
        assert found.dirs == {broker: dict.fromkeys(stage.paths(broker)) for broker in (one, two)}
        assert found.silent == {}
        assert found.places.keys() == {replica, other}
        here = found.place(replica).current
        assert here in stage.paths(one)
        assert found.place(replica) == ReplicaLogDirs(current=here)
        there = next(path for path in stage.paths(one) if path != here)

        stage.slow(one)
        for _ in range(2):
            assert stage.dirs.alter({replica: there}) == {}
            assert (place().current, place().future) == (here, there)
        assert place().lag
        assert stage.dirs.alter({replica: here}) == {}
        assert place() == ReplicaLogDirs(current=here)

        assert stage.dirs.alter({replica: there}) == {}
        assert place().future == there
        stage.fast(one)
        until(lambda: place() == ReplicaLogDirs(current=there))
        assert stage.dirs.alter({replica: there}) == {}
        assert place() == ReplicaLogDirs(current=there)

    def test_a_broker_creates_a_replica_in_the_requested_log_dir(self, stage: Stage) -> None:
        one, two, three = stage.brokers
        topic = stage.topic(dict.fromkeys(range(3), (one, two)))
        path = stage.paths(three)[1]
        wanted = {(TopicPartition(topic, number), three): path for number in range(3)}
        assert all(stage.dirs.read(wanted.keys()).place(replica) == NOWHERE for replica in wanted)
        assert stage.dirs.alter(wanted) == {}
        for name, _ in wanted:
            stage.reassign(name, (one, three))
        until(lambda: stage.dirs.read(wanted.keys()).places.keys() == wanted.keys())
        assert {r: stage.dirs.read([r]).place(r).current for r in wanted} == wanted

    def test_an_impossible_request_does_not_delay_the_others(self, stage: Stage) -> None:
        one, two, _ = stage.brokers
        topic = stage.topic({0: (one,), 1: (two,), 2: (two,)})
        nowhere, good, bad = (
            (TopicPartition(topic, 99), one),
            (TopicPartition(topic, 0), one),
            (TopicPartition(topic, 1), two),
        )
        worse, dead = (TopicPartition(topic, 2), two), (TopicPartition(topic, 0), _DEAD)
        found = stage.dirs.read([nowhere, good, dead])
        assert (set(found.dirs), set(found.places), set(found.silent)) == ({one}, {good}, {_DEAD})
        assert "is dead" in found.silent[_DEAD]
        here = found.place(good).current
        there = next(path for path in stage.paths(one) if path != here)
        errors = stage.dirs.alter({nowhere: there, good: there, bad: "/no/such", worse: there, dead: there})
        assert errors.keys() == {bad, worse, dead}
        assert isinstance(errors[bad], Refused)
        assert "/no/such" in str(errors[bad])
        assert isinstance(errors[worse], Refused)
        assert isinstance(errors[dead], Unreachable)
        until(lambda: stage.dirs.read([good]).place(good) == ReplicaLogDirs(current=there))
