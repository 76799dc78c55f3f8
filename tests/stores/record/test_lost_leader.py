"""A leader that dies, and one that hangs, between two appends."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.topic_log import WireLog
from tests.stores.record.contract import entries
from tests.stores.record.stage import create, delete, handle
from tests.waiting import until

pytestmark = pytest.mark.kafka
CONTROLLER = 1
"""The sandbox's KRaft controller is in this broker's process."""
LOST_SECONDS = 90.0
"""A limit for each append. The election of another leader takes 9 s, and longer on a busy machine."""


@contextmanager
def led_by_another(cluster: Sandbox) -> Iterator[tuple[Wire, WireLog, int]]:
    """A log and its leader, which is not the controller. The topic is healthy again at the end."""
    with Wire(cluster.bootstrap, {}) as wire:
        names = [create(wire)]
        while (leader := leader_of(wire, names[-1])) == CONTROLLER:
            names.append(create(wire))
        log = handle(wire, names[-1], LOST_SECONDS)
        log.append([("a", b"1")])
        yield wire, log, leader
        until(lambda: in_sync(wire, names[-1]) == 3, "every replica is in sync again")
        for name in names:
            delete(wire, name)


def leader_of(wire: Wire, name: str) -> int:
    (topic,) = wire.metadata([name]).topics
    return int(topic.partitions[0].leader_id)


def in_sync(wire: Wire, name: str) -> int:
    (topic,) = wire.metadata([name], seconds=30).topics
    return len(topic.partitions[0].isr_nodes) if topic.partitions else 0


def test_a_dead_leader_delays_the_append(kafka_431: Sandbox) -> None:
    with led_by_another(kafka_431) as (_, log, leader):
        kafka_431.broker(leader).process.kill()
        try:
            log.append([("a", b"2")])
            log.append([("a", b"3")])
        finally:
            kafka_431.start_broker(leader)
        assert entries(log.read()) == [("a", b"1"), ("a", b"2"), ("a", b"3")]


def test_a_leader_that_hangs_delays_the_append_and_appends_nothing_later(kafka_431: Sandbox) -> None:
    with led_by_another(kafka_431) as (wire, log, leader):
        pid = kafka_431.broker(leader).process.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            log.append([("a", b"2")])
        finally:
            os.kill(pid, signal.SIGCONT)
        log.append([("a", b"3")])
        until(lambda: in_sync(wire, log._partition.name) == 3, "the broker is running again")
        log.append([("a", b"4")])
        assert entries(log.read()) == [("a", b"%d" % n) for n in (1, 2, 3, 4)]
        fresh = handle(wire, log._partition.name)
        assert [item.value for item in fresh.read()] == [b"1", b"2", b"3", b"4"]
