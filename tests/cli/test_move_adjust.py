"""`move adjust` on real brokers: each throttle is in force and recorded, and the end of the run restores the first."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from confluent_kafka import Producer

from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_RATE, LEADER_RATE, BrokerId
from tests.cli.run import Ran, changes_of, kquota, python, started
from tests.cli.test_reassign_partitions import FAST, LASTING, SLOW, Desk, rates
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka
FAST_BYTES = "50000000"


@pytest.fixture(params=["4.3.1 Admin API"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(hand: OtherHand, connection: tuple[str, str], tmp_path: Path) -> Desk:
    return Desk(hand, connection, tmp_path)


def move(desk: Desk, *words: str) -> Ran:
    return kquota("move", *words, *desk.connection, "--state-dir", str(desk.folder / "state"))


@pytest.mark.parametrize(
    "words",
    [(FAST, "--reason", "night"), ("--deadline", "2m", "--min-rate", FAST, "--interval", "1s", "--reason", "night")],
    ids=["a rate", "a deadline"],
)
def test_a_running_move_gets_another_throttle(desk: Desk, words: tuple[str, ...]) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
    plan = desk.plan({(topic, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", SLOW).code == 0
    until(lambda: rates(SLOW).items() <= desk.standing(topic).items(), "the throttle is set")
    adjusted = move(desk, "adjust", *words)
    # With a deadline, the command has ended with the move, whose throttle is still set.
    assert adjusted.code == (8 if "--deadline" in words else 0), adjusted
    assert rates(FAST_BYTES).items() <= desk.standing(topic).items()
    desk.moved(topic, (1, 3))
    until(lambda: desk.run("--verify", plan).code == 0, "the run has ended")
    until(lambda: desk.standing(topic) == {}, "everything is restored")
    assert [(one["from"], one["to"], one["reason"]) for one in changes(desk)] == [(int(SLOW), int(FAST_BYTES), "night")]


def changes(desk: Desk) -> list[dict[str, Any]]:
    """Return the changes of the throttle of the only run."""
    return changes_of(partial(move, desk))


def probes(desk: Desk) -> list[list[tuple[int, int]]]:
    """Return the leader and the number of replicas of each partition of each scratch topic."""
    found = desk.hand.admin.list_topics(timeout=60).topics
    return [
        [(one.leader, len(one.replicas)) for _, one in sorted(topic.partitions.items())]
        for name, topic in found.items()
        if name.startswith("kquota-probe-")
    ]


PATIENT = """
from kquota.pace import reported
reported.LEAST_EXCESS_SECONDS = 1.0
from kquota.cli.main import main
main()
"""
"""kquota, for which only a write of more than a second is slow, because this machine may be busy."""


def highest(desk: Desk, topic: str) -> int:
    """Return the highest rate that is set on a broker."""
    return max(int(value) for setting, value in desk.standing(topic).items() if setting.key == FOLLOWER_RATE)


@contextmanager
def paused(desk: Desk, broker: int, seconds: float) -> Iterator[None]:
    """Pause the broker for this time, like a broker with an overloaded disk."""
    pid = desk.hand.servers.broker(broker).process.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)
    yield


def test_a_throttle_that_follows_the_clients(desk: Desk) -> None:
    """The throttle is lowest for the baseline, rises while brokers are fast, and falls when one becomes slow."""
    topic = desk.hand.topic({0: (1, 2)}, size=3 * LASTING)
    plan = desk.plan({(topic, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", "60000").code == 0
    words = ("--protect", "--min-rate", SLOW, "--max-rate", "420kB/s", "--reason", "night")
    process = python(PATIENT, "move", "adjust", *words, *desk.connection, "--state-dir", str(desk.folder / "state"))
    try:
        until(lambda: probes(desk) == [[(1, 3), (2, 3), (3, 3)]], "each broker leads a partition of the scratch topic")
        until(lambda: rates(SLOW).items() <= desk.standing(topic).items(), "the lowest throttle is set")
        until(lambda: highest(desk, topic) >= 40_000, "the throttle rises", 180)

        def falls_after_a_pause() -> bool:
            with paused(desk, 3, 4.0):
                return any(one["to"] < one["from"] for one in changes(desk)[1:])

        # One slow reading alone does not lower the throttle, so the broker stays slow.
        until(falls_after_a_pause, "the throttle falls", 180)
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "under the lowest throttle, writes take up to" in err
    until(lambda: probes(desk) == [], "the scratch topic is removed")
    first, second, *_, last = changes(desk)
    assert [(one["from"], one["to"]) for one in (first, second)] == [(60_000, 20_000), (20_000, 40_000)]
    assert first["reason"] == "night: kquota is measuring the usual latency under the lowest throttle"
    assert second["reason"].startswith("night: writes to broker ")
    assert rates(str(last["to"])).items() <= desk.standing(topic).items(), "the last throttle stays"
    assert move(desk, "adjust", FAST).code == 0
    desk.moved(topic, (1, 3))
    until(lambda: desk.run("--verify", plan).code == 0, "the run has ended")
    until(lambda: desk.standing(topic) == {}, "everything is restored")


EXPIRED = f"""
from kquota.probe import latency, scratch
scratch.MARGIN = -latency.LASTING
{PATIENT}"""
"""The same, whose scratch topics may be removed at once if it is killed."""


def test_a_killed_kquota_leaves_the_throttle_of_the_last_lost_replica(desk: Desk) -> None:
    """Broker 2, which the plan does not use, shuts down, so a partition loses an in-sync replica."""
    prior = {Setting.of_broker(BrokerId(1), LEADER_RATE): "123456789"}
    for setting, value in prior.items():
        desk.hand.write(setting, value)
    desk.hand.topic({0: (1, 2)})
    topic = desk.hand.topic({0: (1,)}, size=3 * LASTING)
    plan = desk.plan({(topic, 0): (3,)})
    words = ("--protect", "--min-rate", SLOW, "--max-rate", "420kB/s", "--force")
    where = (*desk.connection, "--state-dir", str(desk.folder / "state"))
    process = python(EXPIRED, "move", "run", plan, *words, *where)

    def in_force() -> set[str | None]:
        """Return the rates of both brokers of the move."""
        return {
            desk.hand.value(Setting.of_broker(BrokerId(n), key)) for n in (1, 3) for key in (LEADER_RATE, FOLLOWER_RATE)
        }

    def risen() -> bool:
        return all(int(rate or 0) >= 60_000 for rate in in_force())

    def lowered() -> bool:
        *_, last = found = changes(desk)
        lost = [one for one in found if one["reason"].endswith(" lost an in-sync replica")]
        assert all(one["to"] < one["from"] and one["reason"].startswith("--protect: ") for one in lost)
        return bool(lost) and in_force() == {str(last["to"])}

    def stopped() -> bool:
        """Return True if the process has stopped, and not in the middle of a later change."""
        if lowered():
            process.send_signal(signal.SIGSTOP)
            if lowered():
                return True
            process.send_signal(signal.SIGCONT)
        return False

    until(lambda: in_force() == {SLOW}, "the move begins with the lowest throttle")
    # High enough that it can fall twice, because a broker that shuts down may also be slow.
    until(risen, "the throttle rises", 240)
    desk.hand.servers.broker(2).process.stop()
    try:
        until(stopped, "the throttle falls because of the lost replica", 180)
        process.kill()
        process.communicate(timeout=120)
        last = changes(desk)[-1]
    finally:
        desk.hand.start_broker(2)
        process.kill()
    assert in_force() == {str(last["to"])}, "the last throttle stays"
    assert len(probes(desk)) == 1
    removed = kquota("quota", "probe", *desk.connection, "--clean-up")
    assert removed.code == 0, removed
    until(lambda: probes(desk) == [], "the scratch topic is removed")
    assert in_force() == {str(last["to"])}
    assert move(desk, "adjust", FAST).code == 0
    desk.moved(topic, (3,))
    until(lambda: move(desk, "resume").code == 0, "the run has ended")
    until(lambda: desk.standing(topic) == prior, "everything is restored")


def test_one_broker_gets_another_throttle(desk: Desk) -> None:
    """`move resume` keeps it, and a rate for all brokers ends it."""
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
    plan = desk.plan({(topic, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", SLOW).code == 0
    assert move(desk, "adjust", "40000", "--broker", "3", "--follower", "--force").code == 0
    three = Setting.of_broker(BrokerId(3), FOLLOWER_RATE)
    wanted = rates(SLOW) | {three: "40000"}
    assert wanted.items() <= desk.standing(topic).items()
    assert move(desk, "resume").code == 8
    assert wanted.items() <= desk.standing(topic).items()
    assert f"{three}: 40 kB/s" in move(desk, "status").out
    assert move(desk, "adjust", FAST, "--even-finish", "--interval", "1s").code == 0
    assert rates(FAST_BYTES).items() <= desk.standing(topic).items()
    desk.moved(topic, (1, 3))
    until(lambda: desk.run("--verify", plan).code == 0, "the run has ended")
    until(lambda: desk.standing(topic) == {}, "everything is restored")


def test_a_pause_ends_with_the_throttle_from_before(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
    plan = desk.plan({(topic, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", SLOW).code == 0
    assert move(desk, "adjust", "--pause").code == 0
    paused = {setting: "1" if setting.key == FOLLOWER_RATE else SLOW for setting in rates(SLOW)}
    assert paused.items() <= desk.standing(topic).items()
    watched = json.loads(move(desk, "watch", "--once", "--output", "json").out)
    assert [one["finding"] for one in watched["findings"]] == ["paused"]
    assert move(desk, "adjust", "--continue").code == 0
    assert rates(SLOW).items() <= desk.standing(topic).items()
    assert move(desk, "adjust", FAST).code == 0
    desk.moved(topic, (1, 3))
    until(lambda: desk.run("--verify", plan).code == 0, "the run has ended")
    until(lambda: desk.standing(topic) == {}, "everything is restored")


def answer_seconds(desk: Desk, topic: str, partitions: Iterable[int]) -> list[float]:
    """Return the seconds until all in-sync replicas have a write, for one write after the other.

    The first half is left out, because the producer connects to the brokers.
    """
    producer = Producer({"bootstrap.servers": desk.hand.servers.bootstrap, "acks": "all", "linger.ms": 0})
    found = []
    for number in partitions:
        began = time.monotonic()
        producer.produce(topic, bytes(100), partition=number)
        assert producer.flush(60) == 0
        found.append(time.monotonic() - began)
    return found[len(found) // 2 :]


def readings(desk: Desk) -> Iterator[tuple[datetime, int]]:
    """Return the bytes that have arrived at each reading of `move watch`."""
    where = (*desk.connection, "--state-dir", str(desk.folder / "state"))
    process = started("move", "watch", *where, "--interval", "1s", "--output", "json")
    assert process.stdout is not None
    try:
        for line in process.stdout:
            reading = json.loads(line)
            yield datetime.fromisoformat(reading["time"]), reading["moves"][0]["copied"]
    finally:
        process.terminate()
        process.communicate(timeout=120)


def test_a_pause_stops_the_copies_and_delays_no_follower(desk: Desk) -> None:
    """Kafka lets one fetch pass in each window of 11 s, which is 1 MB of one partition. Measured: 1 MB in 21 s, and
    writes of 3 to 45 ms. An in-sync follower that is delayed would wait for its window, too.
    """
    window, fetch, seconds = 11, 1_050_000, 20
    topic = desk.hand.topic({0: (1, 2), 1: (1, 3)})
    desk.hand.fill(topic, [0], 80_000_000)
    plan = desk.plan({(topic, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", "1MB/s", "--force").code == 0
    usual = answer_seconds(desk, topic, [0, 1] * 10)
    assert move(desk, "adjust", "--pause").code == 0
    slow: list[float] = []
    found: list[tuple[datetime, int]] = []
    for at, copied in readings(desk):
        found.append((at, copied))
        slow += answer_seconds(desk, topic, [0, 1] * 2)
        if (at - found[0][0]).total_seconds() > seconds:
            break
    passed = (found[-1][0] - found[0][0]).total_seconds()
    arrived = found[-1][1] - found[0][1]
    assert arrived <= fetch * (passed / window + 2)
    assert median(slow) <= max(10 * median(usual), 1.0)
    # A pause of the machine delays one write, and a delayed follower all of them.
    assert sum(one >= window for one in slow) <= max(1, len(slow) // 10)
    assert move(desk, "adjust", "--continue").code == 0
    assert any(copied > found[-1][1] + 10 * fetch for _, copied in readings(desk))
    assert move(desk, "adjust", FAST).code == 0
    desk.moved(topic, (1, 3))
    until(lambda: desk.run("--verify", plan).code == 0, "the run has ended")
    until(lambda: desk.standing(topic) == {}, "everything is restored")


def test_the_throttle_follows_the_time_of_day(desk: Desk) -> None:
    """One span ends while the move is running."""
    topic = desk.hand.topic({0: (1, 2)}, size=3 * LASTING)
    plan = desk.plan({(topic, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", SLOW).code == 0
    now = datetime.now().astimezone()
    begin, end = now - timedelta(hours=2), now + timedelta(seconds=90)
    words = ("--between", f"{begin:%H:%M}-{end:%H:%M}=40000,else=60000", "--interval", "1s")
    where = (*desk.connection, "--state-dir", str(desk.folder / "state"))
    process = started("move", "adjust", *words, *where)
    try:
        until(lambda: rates("40000").items() <= desk.standing(topic).items(), "the throttle of the span is set")
        until(lambda: rates("60000").items() <= desk.standing(topic).items(), "the other throttle is set", 150)
        assert datetime.now().astimezone() >= end.replace(second=0, microsecond=0)
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert [(one["to"], one["reason"]) for one in changes(desk)] == [(40_000, "--between"), (60_000, "--between")]
    assert move(desk, "adjust", FAST).code == 0
    desk.moved(topic, (1, 3))
    until(lambda: desk.run("--verify", plan).code == 0, "the run has ended")
    until(lambda: desk.standing(topic) == {}, "everything is restored")
