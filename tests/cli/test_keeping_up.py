"""A throttle under which the copies can never catch up is refused before any write."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kquota.sandbox.cluster import Sandbox
from tests.cli.run import kquota
from tests.cli.test_reassign_partitions import FAST, Desk
from tests.stores.moves_stage import OtherHand
from tests.waiting import until


@contextmanager
def writing(servers: Sandbox, topic: str) -> Iterator[None]:
    """Writes about 2 MB/s to partition 0 until the block ends. The first data has arrived when the block begins."""
    stop, arrived = threading.Event(), threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": servers.bootstrap, "linger.ms": 5, "log_level": 2})
        while not stop.wait(0.05):
            for _ in range(10):
                producer.produce(topic, b"x" * 10_000, partition=0, on_delivery=lambda *_: arrived.set())
            producer.poll(0)
        producer.flush(30)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert arrived.wait(60)
        yield
    finally:
        stop.set()
        thread.join()


NEVER = re.compile(r"under this throttle the move never ends: broker 1 (has|uses its whole throttle) ")


@pytest.mark.kafka
def test_a_throttle_below_the_write_rate_is_refused_unless_forced(kafka_431: Sandbox, tmp_path: Path) -> None:
    hand = OtherHand(kafka_431)
    desk = Desk(hand, ("--bootstrap-server", kafka_431.bootstrap), tmp_path)
    try:
        topic = hand.topic({0: (1, 2)}, size=3_000_000)
        plan = desk.plan({(topic, 0): (1, 3)})
        with writing(kafka_431, topic):
            refused = desk.run("--execute", plan, "--throttle", "100kB/s")
            for _ in range(2):
                if refused.code != 0:
                    break
                # On a busy machine the writer may pause while kquota measures, and then the write rate seems to be 0.
                assert desk.run("--cancel", plan).code == 0
                until(lambda: desk.standing(topic) == {}, "everything is restored")
                refused = desk.run("--execute", plan, "--throttle", "100kB/s")
            assert (refused.code, refused.out) == (1, "")
            assert NEVER.search(refused.err)
            assert "Nothing was written" in refused.err
            assert desk.standing(topic) == {}
            assert desk.run("--execute", plan, "--throttle", "100kB/s", "--force").code == 0
            before = desk.standing(topic)
            state = ("--state-dir", str(tmp_path / "state"), "--reassignment-json-file", plan)
            words = ("throttle", "set", *desk.connection, *state, "--throttle", "90kB/s")
            slower = kquota(*words)
            assert (slower.code, slower.out, desk.standing(topic)) == (1, "", before)
            assert NEVER.search(slower.err)
            assert "To set the given throttle anyway, give --force" in slower.err
            assert kquota(*words, "--force").code == 0
        assert desk.run("--execute", plan, "--throttle", FAST).code == 0
        desk.moved(topic, (1, 3))
        assert desk.run("--verify", plan).code == 0
        until(lambda: desk.standing(topic) == {}, "everything is restored")
    finally:
        hand.close()
