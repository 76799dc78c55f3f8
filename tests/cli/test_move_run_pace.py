"""`move run` whose throttle follows the clients, the metrics of real brokers, the lag of groups, or a deadline."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from kquota.sandbox import cluster as sandbox
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_RATE, BrokerId
from tests.background import working
from tests.cli.run import Ran, changes_of, kquota, python
from tests.stores.moves_stage import OtherHand
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.kafka

PATIENT = """
from kquota.pace import reported
reported.LEAST_EXCESS_SECONDS = 0.4
from kquota.cli.main import main
main()
"""
"""kquota, for which only a time of more than 0.4 s is high, because this machine may be busy. A request quota delays a
client by up to a second.
"""
SIZE = 48_000_000
"""So many bytes take at least two minutes under the highest throttle of these tests: a move must not end before its
throttle has fallen.
"""
CLIENT = "batch"
GROUP = "billing"
RECORDS_PER_SECOND = 1_000


@pytest.fixture(scope="module")
def servers() -> Iterator[Sandbox]:
    name = f"pace-{os.getpid()}"
    yield sandbox.up(name=name, kafka="4.3.1", brokers=2, metrics=True, owner_pid=os.getpid())
    sandbox.down(name)


@pytest.fixture
def hand(servers: Sandbox) -> Iterator[OtherHand]:
    found = OtherHand(servers)
    yield found
    found.close()


class Operator:
    """Moves a partition from broker 1 to broker 2, with a state folder of their own."""

    def __init__(self, hand: OtherHand, folder: Path, size: int = SIZE) -> None:
        self.hand = hand
        self.at = ("--bootstrap-server", hand.servers.bootstrap, "--state-dir", str(folder / "state"))
        self.topic = hand.topic({0: (1,)}, size=size)
        self.plan = folder / "plan.json"
        entry = {"topic": self.topic, "partition": 0, "replicas": [2]}
        self.plan.write_text(json.dumps({"version": 1, "partitions": [entry]}))

    @property
    def rate(self) -> int:
        """The follower rate of the destination, or 0 if none is set."""
        return int(self.hand.rates().get(Setting.of_broker(BrokerId(2), FOLLOWER_RATE), 0))

    def changes(self) -> list[dict[str, Any]]:
        return changes_of(self.move)

    def move(self, *words: str) -> Ran:
        return kquota("move", *words, *self.at)


@pytest.fixture
def operator(hand: OtherHand, tmp_path: Path) -> Operator:
    return Operator(hand, tmp_path)


@contextmanager
def limited_client(servers: Sandbox) -> Iterator[None]:
    """A client whose requests need more of a thread than its quota allows, so brokers delay it."""
    quota = ("--alter", "--entity-type", "clients", "--entity-name", CLIENT, "--add-config", "request_percentage=0.1")
    assert kquota("configs", "--bootstrap-server", servers.bootstrap, *quota).code == 0
    traffic.create(servers.bootstrap, CLIENT, [[1]])
    stop = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": servers.bootstrap, "client.id": CLIENT, "linger.ms": 0})
        while not stop.is_set():
            producer.produce(CLIENT, bytes(100))
            producer.flush(0.5)
        producer.purge()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_whole_move_follows_the_clients_and_the_metrics_of_brokers(servers: Sandbox, operator: Operator) -> None:
    words = ("--protect", "--min-rate", "20kB/s", "--throttle", "420kB/s", "--metrics", servers.metrics, "--force")
    process = python(PATIENT, "move", "run", str(operator.plan), *operator.at, *words, "--reason", "night")
    until(lambda: operator.rate == 20_000, "the move begins with the lowest throttle")
    until(lambda: operator.rate > 20_000, "the throttle rises", 180)
    with limited_client(servers):
        until(
            lambda: any(one["to"] < one["from"] and "request quotas" in one["reason"] for one in operator.changes()),
            "the throttle falls because a client is delayed",
            180,
        )

    def ended() -> bool:
        """The metrics show the delay for a while, so kquota may lower the throttle again before the move has ended."""
        operator.move("adjust", "50MB/s")
        return process.poll() is not None

    assert operator.move("adjust", "50MB/s").code == 0
    until(ended, "the move ends under a high throttle")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "under the lowest throttle, writes take up to" in err
    assert operator.hand.rates() == {}
    assert not [name for name in operator.hand.admin.list_topics(timeout=60).topics if name.startswith("kquota-probe-")]
    first = operator.changes()[0]
    assert first["from"] == 20_000
    assert first["reason"].startswith("night: writes to broker ")


@contextmanager
def group(servers: Sandbox) -> Iterator[threading.Event]:
    """A consumer group with committed offsets, which kquota therefore finds when it first looks for groups.

    While the returned event is set, the group reads an eighth of the new records, and fewer records arrive, so their
    rate is certainly not the reason for the lag. Otherwise the group keeps up.
    """
    traffic.create(servers.bootstrap, GROUP, [[1]])
    stop, slow, committed = threading.Event(), threading.Event(), threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": servers.bootstrap})
        at, due = time.monotonic(), 0.0
        while not stop.wait(0.1):
            since, at = at, time.monotonic()
            due += (at - since) * RECORDS_PER_SECOND * (0.8 if slow.is_set() else 1)
            for _ in range(int(due)):
                producer.produce(GROUP, bytes(10))
            due -= int(due)
            producer.poll(0)
        producer.purge()

    def on_commit(error: object, _: object) -> None:
        if error is None:
            committed.set()

    def read() -> None:
        config = {"bootstrap.servers": servers.bootstrap, "group.id": GROUP, "auto.commit.interval.ms": 1_000}
        consumer = Consumer({**config, "on_commit": on_commit})
        consumer.subscribe([GROUP])
        while not stop.wait(0.1):
            consumer.consume(RECORDS_PER_SECOND // (100 if slow.is_set() else 1), 0.1)
        consumer.close()

    with working(stop, write, read):
        assert committed.wait(PATIENCE), "the group has committed no offsets"
        yield slow


def test_a_whole_move_follows_the_lag_of_consumer_groups(servers: Sandbox, operator: Operator) -> None:
    """The group is slow only while the throttle is above the lowest one. If it were slow under the lowest throttle for
    half a minute, as may happen on a busy machine, kquota would rightly ignore its lag.
    """
    lowest = 20_000
    words = ("--protect", "--min-rate", f"{lowest}", "--throttle", "210kB/s", "--force")

    def falls() -> bool:
        if operator.rate > lowest:
            slow.set()
        else:
            slow.clear()
        return any(
            one["to"] < one["from"] and f"consumer group {GROUP!r}" in one["reason"] for one in operator.changes()
        )

    with group(servers) as slow:
        process = python(PATIENT, "move", "run", str(operator.plan), *operator.at, *words)
        until(lambda: operator.rate == lowest, "the move begins with the lowest throttle")
        until(falls, "the throttle falls because the lag of the group grows", 300)
    assert operator.move("adjust", "50MB/s").code == 0
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert operator.hand.rates() == {}


def test_a_whole_move_meets_its_deadline(operator: Operator) -> None:
    """Under its first throttle, it would need 40 minutes, and under the highest one 5 s.

    Measured: as long as the deadline. The bounds are wider than the 10% of the benchmark, because this machine may be
    busy: changes of the throttle and the end of the move may then come late.
    """
    deadline = 90.0
    words = ("--throttle", "20000", "--deadline", f"{deadline:g}s", "--max-rate", "10MB/s", "--force")
    ran = operator.move("run", str(operator.plan), *words, "--output", "json")
    assert ran.code == 0, ran
    assert 0.7 * deadline < json.loads(ran.out)["command_seconds"] < 1.5 * deadline
    assert operator.changes()[0]["reason"] == "--deadline"
    assert operator.hand.rates() == {}


BAD = {
    "two ways": (("--protect", "--deadline", "1h"), "--deadline and --protect cannot be combined"),
    "no throttle to change": (
        ("--protect", "--unthrottled"),
        "--unthrottled: --protect needs a throttle that it can change",
    ),
    "no highest throttle": (("--protect",), "Give --max-rate or --throttle"),
    "no first throttle": (("--deadline", "1h"), "--deadline: the throttle at the start of the move is missing"),
    "bounds without a way": (("--throttle", "1MB/s", "--min-rate", "1MB/s"), "--min-rate and --max-rate need"),
    "metrics without --protect": (("--throttle", "1MB/s", "--metrics", "http://b:1"), "--metrics needs --protect"),
    "a latency without --protect": (("--throttle", "1MB/s", "--max-latency", "1s"), "--max-latency needs --protect"),
    "no latency": (("--protect", "--throttle", "1MB/s", "--max-latency", "0s"), "--max-latency '0s': must be more"),
    "no room between the bounds": (
        ("--protect", "--min-rate", "2MB/s", "--throttle", "1MB/s"),
        "not below the highest",
    ),
}


@pytest.mark.parametrize(("words", "why"), BAD.values(), ids=BAD)
def test_options_that_contradict_each_other_are_refused(
    hand: OtherHand, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    operator = Operator(hand, tmp_path, size=10_000)
    ran = operator.move("run", str(operator.plan), *words)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert operator.hand.rates() == {}
