"""`move run` on real brokers: waves, limits, kill -9 in the middle, and the restored throttle."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_REPLICAS, LEADER_RATE, BrokerId, TopicPartition
from tests.cli.run import Ran, kquota, started
from tests.cli.test_reassign_partitions import LASTING, SLOW, Desk
from tests.stores.moves_stage import OtherHand, until

pytestmark = pytest.mark.kafka

COUNT = 6
SIZE = 3_000_000
WAVES, KILLS, SMALL = 10, 5, 500_000


@pytest.fixture
def way() -> str:
    """The connection of each test that does not name others."""
    return "4.3.1 Admin API"


@pytest.fixture
def desk(hand: OtherHand, connection: tuple[str, str], tmp_path: Path) -> Desk:
    return Desk(hand, connection, tmp_path)


def words(desk: Desk, plan: str, *more: str) -> Sequence[str]:
    return ("move", "run", plan, *desk.connection, "--state-dir", str(desk.folder / "state"), *more)


def running(desk: Desk, topic: str) -> list[TopicPartition]:
    """The moves of the topic that the cluster reports."""
    ran = kquota("reassign-partitions", *desk.connection, "--list", "--output", "json")
    moves = json.loads(ran.out)["reassignments"]
    return [TopicPartition(topic, move["partition"]) for move in moves if move["topic"] == topic]


def status(desk: Desk) -> Ran:
    return kquota("move", "status", *desk.connection, "--state-dir", str(desk.folder / "state"))


def test_a_move_in_waves_survives_kill_9_and_restores_each_value(desk: Desk) -> None:
    topic = desk.hand.topic(dict.fromkeys(range(COUNT), (1, 2)), size=SIZE)
    prior = {Setting.of_broker(BrokerId(1), LEADER_RATE): "123456789"}
    for setting, value in prior.items():
        desk.hand.write(setting, value)
    plan = desk.plan({(topic, n): (3, 1) for n in range(COUNT)})
    options = ("--throttle", "1MB/s", "--max-per-broker", "2", "--force", "--elect-leaders")
    before = subprocess.Popen([sys.executable, "-m", "kquota", *words(desk, plan, *options)], stderr=subprocess.PIPE)
    until(lambda: len(running(desk, topic)) == 2, "the first wave is under way")
    before.send_signal(signal.SIGKILL)
    before.communicate()
    assert "partitions done" in status(desk).out
    ran = kquota(*words(desk, plan, *options))
    assert ran.code == 0, ran.err
    assert f"{COUNT} of {COUNT} partitions have the replicas of the plan" in ran.out
    assert {n: desk.hand.replicas(TopicPartition(topic, n)) for n in range(COUNT)} == {n: [3, 1] for n in range(COUNT)}
    until(lambda: desk.standing(topic) == prior, "every value is restored")
    assert status(desk).code == 0
    assert f"Preferred leaders elected: {COUNT}" in ran.out
    run = ran.out.partition("\nRun ")[2].split()[0]
    report = json.loads(kquota("move", "report", run, *words(desk, plan)[3:], "--output", "json").out)
    assert (report["outcome"], report["partitions"], report["bytes_copied"] > SIZE) == ("done", COUNT, True)
    assert report["readings"][-1]["bytes_left"] == 0
    assert [one["broker"] for one in report["brokers"]] == [3]


@pytest.mark.parametrize("way", ["4.3.1 Admin API", "3.9.1 Admin API"])
def test_ten_waves_survive_five_kills_and_the_restart_of_a_broker(desk: Desk) -> None:
    """Each kill meets another wave. The destination restarts while no kquota runs."""
    topic = desk.hand.topic(dict.fromkeys(range(WAVES), (1, 2)), size=SMALL)
    prior = {
        Setting.of_broker(BrokerId(1), LEADER_RATE): "123456789",
        Setting.of_topic(topic, FOLLOWER_REPLICAS): "0:2",
    }
    for setting, value in prior.items():
        desk.hand.write(setting, value)
    plan = desk.plan({(topic, n): (1, 3) for n in range(WAVES)})
    options = ("--throttle", "100kB/s", "--batch", "1", "--force")

    def waves() -> int:
        return sum(3 in desk.hand.replicas(TopicPartition(topic, n)) for n in range(WAVES))

    def begun(wave: int) -> None:
        until(lambda: waves() >= wave, f"wave {wave} is under way", 120)

    for kill in range(1, KILLS + 1):
        process = started(*words(desk, plan, *options))
        begun(kill)
        process.kill()
        process.communicate()
        if kill == 3:
            desk.hand.restart_broker(3)
    assert waves() < WAVES
    ran = kquota(*words(desk, plan, *options))
    assert ran.code == 0, ran.err
    assert [desk.hand.replicas(TopicPartition(topic, n)) for n in range(WAVES)] == [[1, 3]] * WAVES
    until(lambda: desk.standing(topic) == prior, "every value is restored")
    assert (status(desk).code, "no run is open" in status(desk).err) == (0, True)


def test_the_throttle_changes_while_waves_wait(desk: Desk) -> None:
    topic = desk.hand.topic(dict.fromkeys(range(COUNT), (1, 2)), size=SIZE)
    plan = desk.plan({(topic, n): (3, 1) for n in range(COUNT)})
    run = started(*words(desk, plan, "--throttle", "1MB/s", "--batch", "1", "--force"))
    until(lambda: bool(running(desk, topic)), "the first wave is under way")
    adjusted = kquota("move", "adjust", "50MB/s", *words(desk, plan)[3:])
    assert adjusted.code == 0, adjusted
    _, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    assert {n: desk.hand.replicas(TopicPartition(topic, n)) for n in range(COUNT)} == {n: [3, 1] for n in range(COUNT)}
    until(lambda: desk.standing(topic) == {}, "every value is restored")


def test_the_limit_holds_on_the_cluster(desk: Desk) -> None:
    topic = desk.hand.topic(dict.fromkeys(range(COUNT), (1, 2)), size=SIZE)
    plan = desk.plan({(topic, n): (1, 3) for n in range(COUNT)})
    options = ("--unthrottled", "--batch", "2", "--force")
    ran = subprocess.Popen(
        [sys.executable, "-m", "kquota", *words(desk, plan, *options)], stdout=subprocess.PIPE, text=True
    )
    most = 0
    while ran.poll() is None:
        most = max(most, len(running(desk, topic)))
    out, _ = ran.communicate()
    assert (ran.returncode, most <= 2) == (0, True)
    assert f"{COUNT} of {COUNT} partitions have the replicas of the plan" in out


def test_trouble_outside_the_plan_undoes_the_move(desk: Desk) -> None:
    """Broker 2 is stopped during the move, so a partition of another topic loses an in-sync replica."""
    other = desk.hand.topic({0: (1, 2)})
    topic = desk.hand.topic({0: (1,), 1: (1,)}, size=LASTING)
    prior = {Setting.of_broker(BrokerId(1), LEADER_RATE): "123456789"}
    for setting, value in prior.items():
        desk.hand.write(setting, value)
    plan = desk.plan({(topic, 0): (3,), (topic, 1): (3,)})
    process = started(*words(desk, plan, "--throttle", SLOW, "--force", "--batch", "1", "--abort-on-trouble"))
    until(lambda: bool(running(desk, topic)), "the first wave is under way")
    desk.hand.servers.kill_broker(2)
    try:
        out, err = process.communicate(timeout=120)
    finally:
        desk.hand.start_broker(2)
    assert process.returncode == 1, err
    assert f"({other}-0): undoing the move (--abort-on-trouble)" in err
    assert "error: the move was undone: 1 partition outside the plan" in err
    assert "2 of 2 partitions have the replicas from before the move" in out
    assert [desk.hand.replicas(TopicPartition(topic, n)) for n in (0, 1)] == [[1], [1]]
    until(lambda: desk.standing(topic) == prior, "every value is restored")
    assert (status(desk).code, "no run is open" in status(desk).err) == (0, True)


def test_trouble_outside_the_plan_refuses_the_move(desk: Desk) -> None:
    """A broker is down, so partitions of other topics have a replica out of sync."""
    other = desk.hand.topic({0: (1, 2)})
    topic = desk.hand.topic({0: (1,)})
    plan = desk.plan({(topic, 0): (3,)})
    desk.hand.servers.kill_broker(2)
    try:

        def refused(*options: str) -> bool:
            ran = kquota(*words(desk, plan, "--throttle", "50MB/s", *options))
            return ran.code == 1 and "outside the plan" in ran.err and f"{other}-0" in ran.err

        until(lambda: refused("--dry-run"), "the out-of-sync replica is visible")
        assert refused()
    finally:
        desk.hand.start_broker(2)
    assert desk.standing(topic) == {}
    assert desk.hand.replicas(TopicPartition(topic, 0)) == [1]
