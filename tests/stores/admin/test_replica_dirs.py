"""The contract of ReplicaDirs on real brokers, and a move between log dirs seen by Kafka's own tool."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kquota.cli.clock import SystemClock
from kquota.reassign import log_dir_actions as actions
from kquota.reassign import log_dirs, words
from kquota.reassign.log_dirs import ReplicaLogDirs
from kquota.reassign.moves import Replicas
from kquota.reassign.plan import Plan
from kquota.reassign.progress import statuses
from kquota.sandbox.cluster import Sandbox, kafka_tool
from kquota.settings.resource import Setting
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.moves import WireMoves
from kquota.stores.admin.replica_dirs import WireReplicaDirs
from kquota.terms import LEADER_RATE, LOG_DIR_RATE, BrokerId, TopicPartition
from tests.cli.run import run
from tests.reassign.dirs_contract import ReplicaDirsContract, Stage
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
SIZE = 20_000_000
"""A broker copies a megabyte before it looks at its throttle, and again whenever its window (11 s) is empty: so a slow
machine can start Kafka's tool several times in that time.
"""


class RealStage:
    """A sandbox's brokers, with two log dirs each, and librdkafka."""

    def __init__(self, servers: Sandbox, wire: Wire, hand: OtherHand) -> None:
        self.dirs = WireReplicaDirs(wire)
        self.brokers = (BrokerId(1), BrokerId(2), BrokerId(3))
        self.servers = servers
        self.hand = hand
        self.moves = WireMoves(wire)

    def paths(self, broker: BrokerId) -> tuple[str, str]:
        first, second = self.servers.broker(broker).log_dirs
        return str(first), str(second)

    def topic(self, replicas: Mapping[int, Replicas]) -> str:
        name = self.hand.topic(replicas, SIZE)
        wanted = {(TopicPartition(name, number), broker) for number, those in replicas.items() for broker in those}
        until(lambda: self.dirs.read(wanted).places.keys() == wanted, f"{name} has all its logs")
        return name

    def slow(self, broker: BrokerId) -> None:
        self.hand.write(Setting.of_broker(broker, LOG_DIR_RATE), "1000")
        # A broker shows a rate a moment before it obeys it, and takes in changes one by one: it obeys the one before.
        for value in (str(10**15), None):
            self.hand.write(Setting.of_broker(broker, LEADER_RATE), value)

    def fast(self, broker: BrokerId) -> None:
        self.hand.write(Setting.of_broker(broker, LOG_DIR_RATE), None)

    def reassign(self, name: TopicPartition, target: Replicas) -> None:
        assert self.moves.submit({name: target}) == {}

    def close(self) -> None:
        for broker in self.brokers:
            if self.hand.value(Setting.of_broker(broker, LOG_DIR_RATE)) is not None:
                self.fast(broker)


@pytest.fixture
def real_stage(cluster: Sandbox, hand: OtherHand) -> Iterator[RealStage]:
    with Wire(cluster.bootstrap, {}) as wire:
        found = RealStage(cluster, wire, hand)
        yield found
        found.close()


class TestAdminApi(ReplicaDirsContract):
    @pytest.fixture
    def stage(self, real_stage: RealStage) -> Stage:
        return real_stage


def _plan_file(path: Path, plan: Plan) -> str:
    name, target = next(iter(plan.targets.items()))
    entry = {
        "topic": name.topic,
        "partition": name.partition,
        "replicas": list(target),
        "log_dirs": [plan.log_dirs.get((name, broker), "any") for broker in target],
    }
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    return str(path)


@pytest.mark.parametrize("cluster", ["kafka_431"], indirect=True)
def test_kafkas_tool_sees_and_cancels_the_moves_of_kquota(real_stage: RealStage, tmp_path: Path) -> None:
    """Replicas of one partition: one moves between dirs of its broker, and one to a chosen dir of another broker."""
    one, two, three = real_stage.brokers
    name = TopicPartition(real_stage.topic({0: (one, two)}), 0)
    here = real_stage.dirs.read([(name, one)]).place((name, one)).current
    assert here is not None
    there = next(path for path in real_stage.paths(one) if path != here)
    far = real_stage.paths(three)[1]
    plan = Plan(targets={name: (one, three)}, log_dirs={(name, one): there, (name, three): far})
    wanted = log_dirs.of(plan)
    file = _plan_file(tmp_path / "plan.json", plan)

    def kafka(*action: str) -> str:
        at = ("--bootstrap-server", real_stage.servers.bootstrap, "--reassignment-json-file", file)
        ran = run(kafka_tool(real_stage.servers, TOOL, *at, *action))
        assert (ran.code, ran.err) == (0, "")
        return ran.out

    def ours() -> str:
        found = real_stage.moves.snapshot([name.topic])
        status = statuses(plan, found.partitions, found.running)
        dirs = log_dirs.statuses(wanted, real_stage.dirs.read(wanted), found.partitions, found.running)
        return f"{words.status_lines(status)}\n{log_dirs.status_lines(dirs)}\n"

    def place() -> ReplicaLogDirs:
        return real_stage.dirs.read([(name, one)]).place((name, one))

    real_stage.slow(one)
    reading = actions.check(real_stage.dirs, wanted)
    actions.announce(real_stage.dirs, wanted, reading)
    real_stage.reassign(name, (one, three))
    assert actions.start(real_stage.dirs, SystemClock(), wanted, before=reading) == actions.Started(begun=wanted)
    until(lambda: name not in real_stage.moves.snapshot([name.topic]).running, f"{name} is on broker {three}")
    assert f"Reassignment of replica {name}-1 is still in progress." in ours()
    assert f"Reassignment of replica {name}-3 completed successfully." in ours()
    assert kafka("--verify") == ours()

    assert kafka("--cancel", "--preserve-throttles") == (
        f"None of the specified partition reassignments are active.\n{log_dirs.started_lines({(name, one): here})}\n"
    )
    assert place() == ReplicaLogDirs(current=here)
    assert kafka("--verify", "--preserve-throttles") == ours()

    back = log_dirs.with_dirs(plan, real_stage.dirs.read(log_dirs.replicas(plan)))
    told = kafka("--execute")
    assert json.loads(told.splitlines()[2]) == json.loads(Path(_plan_file(tmp_path / "back.json", back)).read_text())
    assert told.endswith(f"{log_dirs.started_lines(wanted)}\n")
    assert place().future == there
    assert actions.cancel(real_stage.dirs, SystemClock(), wanted).begun == {(name, one): here}
    assert place() == ReplicaLogDirs(current=here)
    assert actions.cancel(real_stage.dirs, SystemClock(), wanted) == actions.Started()

    assert actions.start(real_stage.dirs, SystemClock(), wanted).begun == {(name, one): there}
    real_stage.fast(one)
    until(lambda: place() == ReplicaLogDirs(current=there), "the copy exists")
    assert kafka("--verify", "--preserve-throttles") == ours()
    assert ours().count("completed successfully.") == 2
