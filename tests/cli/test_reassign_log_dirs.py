"""Moves between log dirs: started, seen by Kafka's own tool, ended, cancelled, with all rates restored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota.sandbox.cluster import Sandbox
from kquota.settings.resource import Setting
from kquota.terms import LOG_DIR_RATE, BrokerId
from tests.cli.test_reassign_partitions import LASTING, Desk, rates
from tests.cli.test_reassign_peers import peer
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

SLOW = "1000"


@pytest.fixture(params=["kafka_431", "kafka_282"], ids=["4.3.1", "2.8.2"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    servers: Sandbox = request.getfixturevalue(request.param)
    hand = OtherHand(servers)
    yield Desk(hand, ("--bootstrap-server", servers.bootstrap), tmp_path)
    hand.close()


def other_dir(desk: Desk, topic: str, broker: int) -> tuple[str, str]:
    """The log dir where a broker has partition 0, and the other one."""
    first, second = (str(path) for path in desk.hand.servers.broker(broker).log_dirs)
    return (first, second) if (Path(first) / f"{topic}-0").is_dir() else (second, first)


def log_dir_rate(desk: Desk, broker: int) -> str | None:
    return desk.hand.value(Setting.of_broker(BrokerId(broker), LOG_DIR_RATE))


def test_one_replica_changes_its_log_dir_and_another_its_broker(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=2 * LASTING)
    here, there = other_dir(desk, topic, 1)
    chosen = str(desk.hand.servers.broker(3).log_dirs[1])
    entry = {"topic": topic, "partition": 0, "replicas": [1, 3], "log_dirs": [there, chosen]}
    plan = desk.saved({"version": 1, "partitions": [entry]})
    desk.hand.write(Setting.of_broker(BrokerId(1), LOG_DIR_RATE), "123456789")

    started = desk.run("--execute", plan, "--throttle", "50MB/s", "--replica-alter-log-dirs-throttle", SLOW)
    assert started.code == 0, started.err
    assert f'"replicas":[1,2],"log_dirs":["{here}",' in started.out
    assert "The replica-alter-dir throttle limit was set to 1000 B/s\n" in started.out
    assert f"Successfully started moving log directory to {there} for replica {topic}-0 with broker 1 \n" in started.out
    assert log_dir_rate(desk, 1) == SLOW
    desk.moved(topic, (1, 3))

    moving = desk.run("--verify", plan)
    assert moving.code == 8
    assert f"Reassignment of replica {topic}-0-1 is still in progress.\n" in moving.out
    assert (
        f"Reassignment of replica {topic}-0-1 is still in progress."
        in peer(desk, "--reassignment-json-file", plan, "--verify", "--preserve-throttles").out
    )
    assert log_dir_rate(desk, 1) == SLOW, "Kafka's tool would have removed its rate"
    assert desk.run("--execute", plan, "--replica-alter-log-dirs-throttle", "50MB/s").code == 0
    until(lambda: (Path(there) / f"{topic}-0").is_dir(), "the replica is in its new log dir", 240)
    until(lambda: desk.run("--verify", plan).code == 0, "the move has ended")
    assert (Path(chosen) / f"{topic}-0").is_dir()
    until(lambda: log_dir_rate(desk, 1) == "123456789", "the rate has its previous value")
    desk.hand.write(Setting.of_broker(BrokerId(1), LOG_DIR_RATE), None)
    assert log_dir_rate(desk, 3) is None
    assert desk.standing(topic) == {}


def test_a_copy_between_log_dirs_is_cancelled(desk: Desk) -> None:
    topic = desk.hand.topic({0: (2,)}, size=LASTING)
    here, there = other_dir(desk, topic, 2)
    entry = {"topic": topic, "partition": 0, "replicas": [2], "log_dirs": [there]}
    plan = desk.saved({"version": 1, "partitions": [entry]})
    assert desk.run("--execute", plan, "--replica-alter-log-dirs-throttle", SLOW).code == 0
    assert desk.run("--verify", plan).code == 8
    stopped = desk.run("--cancel", plan)
    assert stopped.code == 0, stopped.err
    assert stopped.out.startswith("None of the specified partition reassignments are active.\n")
    assert f"Successfully started moving log directory to {here} for replica {topic}-0 with broker 2 \n" in stopped.out
    until(lambda: log_dir_rate(desk, 2) is None, "the rate is restored")
    assert desk.run("--verify", plan).code == 1
    assert json.loads(desk.run("--verify", plan, "--output", "json").out)["log_dirs"][0]["log_dir"] == here
    assert not set(rates(SLOW).items()) & set(desk.standing(topic).items())
