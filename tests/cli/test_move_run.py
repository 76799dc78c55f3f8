"""`move run` on real brokers: waves, limits, kill -9 in the middle, and the restored throttle."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest

from kquota.sandbox import traffic
from kquota.settings.resource import Setting
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.moves import WireMoves
from kquota.terms import FOLLOWER_REPLICAS, LEADER_RATE, BrokerId, TopicPartition
from tests.cli.run import Ran, kquota, python, started
from tests.cli.test_reassign_partitions import FAST, LASTING, SLOW, Desk
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

COUNT = 6
SIZE = 3_000_000
WAVES, KILLS, SMALL, WRITES = 10, 5, 500_000, 20_000


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


def move(desk: Desk, *action: str) -> Ran:
    return kquota("move", *action, *desk.connection, "--state-dir", str(desk.folder / "state"))


def status(desk: Desk) -> Ran:
    return move(desk, "status")


def test_a_move_in_waves_survives_kill_9_and_restores_each_value(desk: Desk) -> None:
    topic = desk.hand.topic(dict.fromkeys(range(COUNT), (1, 2)), size=SIZE)
    prior = {Setting.of_broker(BrokerId(1), LEADER_RATE): "123456789"}
    for setting, value in prior.items():
        desk.hand.write(setting, value)
    plan = desk.plan({(topic, n): (3, 1) for n in range(COUNT)})
    options = ("--max-per-broker", "2", "--force", "--elect-leaders")
    # Under the first throttle, no wave ends before the test sees it.
    slow, faster = (words(desk, plan, "--throttle", rate, *options) for rate in (SLOW, "1MB/s"))
    before = subprocess.Popen([sys.executable, "-m", "kquota", *slow], stderr=subprocess.PIPE)
    until(lambda: len(running(desk, topic)) == 2, "the first wave is under way")
    before.send_signal(signal.SIGKILL)
    before.communicate()
    assert "partitions done" in status(desk).out
    ran = kquota(*faster)
    assert ran.code == 0, ran.err
    assert f"{COUNT} of {COUNT} partitions have the replicas of the plan" in ran.out
    assert {n: desk.hand.replicas(TopicPartition(topic, n)) for n in range(COUNT)} == {n: [3, 1] for n in range(COUNT)}
    until(lambda: desk.standing(topic) == prior, "every value is restored")
    assert status(desk).code == 0
    assert f"Preferred leaders elected: {COUNT}" in ran.out
    run = ran.out.partition("\nRun ")[2].partition(":")[0]
    report = json.loads(kquota("move", "report", run, *words(desk, plan)[3:], "--output", "json").out)
    assert (report["outcome"], report["partitions"], report["bytes_copied"] > SIZE) == ("done", COUNT, True)
    assert report["readings"][-1]["bytes_left"] == 0
    assert [one["broker"] for one in report["brokers"]] == [3]


@pytest.mark.parametrize("way", ["4.3.1 Admin API", "3.9.1 Admin API"])
def test_ten_waves_survive_five_kills_and_the_restart_of_a_broker(desk: Desk) -> None:
    """Each kill meets another wave. The destination restarts while no kquota runs. Producers write all the time."""
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

    with traffic.steady(desk.hand.servers.bootstrap, topic, WAVES, WRITES):
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
    run = started(*words(desk, plan, "--throttle", SLOW, "--batch", "1", "--force"))
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


class Heard:
    """The lines that a running kquota has written to stderr so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self._stream = process.stderr
        threading.Thread(target=self._listen, daemon=True).start()

    def count(self, text: str) -> int:
        return sum(text in line for line in self.lines)

    def _listen(self) -> None:
        assert self._stream is not None
        for line in self._stream:
            self.lines.append(line)


def test_waves_wait_while_a_partition_outside_the_plan_is_unhealthy(desk: Desk) -> None:
    """Broker 2, which the plan does not use, is stopped for several readings of `move run`."""
    other = desk.hand.topic({0: (1, 2)})
    topic = desk.hand.topic(dict.fromkeys(range(3), (1,)), size=LASTING)
    plan = desk.plan({(topic, n): (3,) for n in range(3)})

    def places() -> list[list[int]]:
        return [desk.hand.replicas(TopicPartition(topic, n)) for n in range(3)]

    process = started(*words(desk, plan, "--throttle", SLOW, "--force", "--batch", "1"))
    heard = Heard(process)
    until(lambda: len(running(desk, topic)) == 1, "the first wave is under way")
    desk.hand.servers.broker(2).process.kill()
    try:
        until(lambda: heard.count("no further wave starts: ") == 1, "kquota has seen the out-of-sync replica")
        assert heard.count(f"({other}-0)") == 1
        assert move(desk, "adjust", FAST).code == 0
        until(lambda: places() == [[3], [1], [1]], "the first wave has ended")
        before = heard.count(": 1 of 3 partitions done")
        until(lambda: heard.count(": 1 of 3 partitions done") >= before + 2, "kquota has read the cluster again")
        assert (places(), running(desk, topic)) == ([[3], [1], [1]], [])
        assert heard.count("the next wave may start") == 0
    finally:
        desk.hand.start_broker(2)
    assert process.wait(120) == 0, heard.lines
    assert heard.count("the next wave may start: the cluster is as healthy as before") == 1
    assert places() == [[3]] * 3
    until(lambda: desk.standing(topic) == {}, "every value is restored")
    assert (status(desk).code, "no run is open" in status(desk).err) == (0, True)


def test_bytes_in_flight_stay_below_their_limit(desk: Desk) -> None:
    """A partition that is larger than the limit moves alone.

    Each group of moves has more bytes than brokers copy at once under the throttle, so that the test sees it.
    """
    megabytes = {0: 1, 1: 6, 2: 2, 3: 3, 4: 1}
    limit = 4.5
    topic = desk.hand.topic(dict.fromkeys(megabytes, (1, 2)), size=1_000_000)
    for number, size in megabytes.items():
        if size > 1:
            desk.hand.fill(topic, [number], (size - 1) * 1_000_000)
    plan = desk.plan({(topic, n): (1, 3) for n in megabytes})
    options = ("--throttle", "250kB/s", "--max-in-flight", f"{limit}MB", "--force")
    process = started(*words(desk, plan, *options))
    seen: set[frozenset[int]] = set()
    with Wire(desk.hand.servers.bootstrap, {}) as wire:
        moves = WireMoves(wire)
        while process.poll() is None:
            seen.add(frozenset(name.partition for name in moves.snapshot([topic]).running))
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert frozenset({1}) in seen
    assert any(len(one) > 1 for one in seen), "moves that fit run at the same time"
    assert all(one == {1} or sum(megabytes[n] for n in one) <= limit for one in seen), seen
    assert [desk.hand.replicas(TopicPartition(topic, n)) for n in megabytes] == [[1, 3]] * len(megabytes)


SHOWING_ELECTIONS = """
import sys
from kquota.stores.admin.elections import WireElections
from kquota.cli.main import main
elect, partitions = WireElections.elect, WireElections.partitions
def shown(self, kind, names, seconds):
    print("batch of", len(names), file=sys.stderr)
    return elect(self, kind, names, seconds)
def health(self):
    print("health", file=sys.stderr)
    return partitions(self)
WireElections.elect, WireElections.partitions = shown, health
main()
"""
"""kquota, which prints each batch of elections, and each reading of all partitions."""


def test_preferred_leaders_are_elected_in_batches(desk: Desk) -> None:
    """Between two batches kquota reads the health of the cluster."""
    topic = desk.hand.topic(dict.fromkeys(range(5), (1, 3)))
    plan = desk.plan({(topic, n): (3, 1) for n in range(5)})
    options = ("--throttle", FAST, "--force", "--elect-leaders", "--election-batch", "2")
    process = python(SHOWING_ELECTIONS, *words(desk, plan, *options))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "Preferred leaders elected: 5" in out
    _, first, rest = err.partition("batch of 2\n")
    steps = [line for line in (first + rest).splitlines() if line in ("health", "batch of 2", "batch of 1")]
    assert [step for step, _ in groupby(steps)] == ["batch of 2", "health", "batch of 2", "health", "batch of 1"]
    found = desk.hand.admin.list_topics(topic, timeout=60).topics[topic].partitions
    assert {state.leader for state in found.values()} == {3}


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
    desk.hand.servers.broker(2).process.kill()
    try:
        out, err = process.communicate(timeout=120)
    finally:
        desk.hand.start_broker(2)
    assert process.returncode == 1, err
    assert f"({other}-0). kquota undoes the move (--abort-on-trouble)" in err
    assert "error: kquota undid the move (--abort-on-trouble): 1 partition outside the plan" in err
    assert "2 of 2 partitions have the replicas from before the move" in out
    assert [desk.hand.replicas(TopicPartition(topic, n)) for n in (0, 1)] == [[1], [1]]
    until(lambda: desk.standing(topic) == prior, "every value is restored")
    assert (status(desk).code, "no run is open" in status(desk).err) == (0, True)


def test_trouble_outside_the_plan_refuses_the_move(desk: Desk) -> None:
    """A broker is down, so partitions of other topics have a replica out of sync."""
    other = desk.hand.topic({0: (1, 2)})
    topic = desk.hand.topic({0: (1,)})
    plan = desk.plan({(topic, 0): (3,)})
    desk.hand.servers.broker(2).process.kill()
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
