"""The size limit of a run in the shared record, for each store: a larger run is refused, and a smaller one is read."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kquota.errors import Refused
from kquota.reassign.course import BrokerCourse, Course
from kquota.reassign.run import Run, Stamp
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin import topic_setup
from kquota.stores.admin.connection import Wire
from kquota.stores.record import sheet
from kquota.stores.record.lease import LeaseClock, Sighting
from kquota.stores.record.shared import Shared
from kquota.stores.record.topic import TopicRecord
from kquota.stores.record.znodes import ZnodeRecord
from kquota.stores.state.log import Log
from kquota.stores.zookeeper.znode import LIVE_BROKERS, NOTIFICATIONS
from kquota.stores.zookeeper.znodes import Znodes
from kquota.terms import BrokerId
from tests.hosts.tree import MemoryTree, MemoryZnodes
from tests.stores.record.broker import BrokerWire, HeldTopic
from tests.stores.record.fake import MemoryTopic
from tests.stores.record.hosts import RUN
from tests.stores.record.stage import handle

CLUSTER = "cluster"


def moved_to(brokers: int) -> Run:
    """A run with copies to this many brokers. They are in the sheet of the run and not in a part."""
    course = Course(brokers=tuple(BrokerCourse(broker=BrokerId(10_000 + n)) for n in range(brokers)))
    return replace(RUN, stamp=Stamp(version=1), course=course)


def size(brokers: int) -> int:
    return len(sheet.encode(moved_to(brokers), CLUSTER).sheet)


FITS = (sheet.LARGEST_SHEET - size(1)) // (size(2) - size(1)) + 1
"""The largest number of brokers for which the sheet is not too large."""


def test_the_two_runs_are_next_to_the_limit() -> None:
    assert size(FITS) <= sheet.LARGEST_SHEET < size(FITS + 1)


class LargestRunContract:
    """The subclass provides `record`: each call is another process's view of one record, which is new in each test."""

    def record(self) -> Shared:
        raise NotImplementedError

    def test_a_run_that_fits_is_read_by_others(self) -> None:
        run, record = moved_to(FITS), self.record()
        with record.lock("move run", take_over=False):
            record.put(run)
            record.flush()
        found = self.record().runs(whole=True)[run.id]
        assert replace(found, stamp=run.stamp) == run

    def test_a_larger_run_is_refused_and_not_stored(self) -> None:
        run, record = moved_to(FITS + 1), self.record()
        with record.lock("move run", take_over=False):
            sizes = f"{size(FITS + 1):,} bytes, at most 900,000"
            refusal = f"run {run.id} is too large for the record in {record.place} ({sizes}). Split the plan"
            with pytest.raises(Refused, match=re.escape(refusal)):
                record.put(run)
            record.flush()
            other = self.record()
            assert (other.runs(), other.unreadable) == ({}, {})
            record.put(moved_to(1))
            record.flush()
        assert list(self.record().runs()) == [run.id]

    def test_a_run_that_grows_loses_its_course_and_can_end(self) -> None:
        begun, record = moved_to(1), self.record()
        grown = replace(moved_to(FITS + 50), stamp=Stamp(version=2))
        with record.lock("move run", take_over=False):
            record.put(begun)
            record.flush()
            record.put(replace(grown, course=replace(grown.course, expected=60.0, verdict="done")))
            record.flush()
        found = self.record().runs(whole=True)[begun.id]
        assert replace(found, stamp=None) == replace(begun, stamp=None, course=Course(expected=60.0, verdict="done"))


class OnTopic(LargestRunContract):
    def log(self) -> Log:
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def seen(self, tmp_path: Path) -> None:
        self.path = tmp_path / "lock.seen"

    def record(self) -> Shared:
        return TopicRecord(self.log(), "runs", CLUSTER, Sighting(self.path, LeaseClock()))


@pytest.mark.unit
class TestTopicInMemory(OnTopic):
    @pytest.fixture(autouse=True)
    def stage(self) -> None:
        self.topic = MemoryTopic()

    def log(self) -> Log:
        return self.topic.handle()


@pytest.mark.unit
class TestTopicOfBrokerInMemory(OnTopic):
    @pytest.fixture(autouse=True)
    def stage(self) -> None:
        self.wire = BrokerWire({"runs": HeldTopic()})

    def log(self) -> Log:
        return handle(self.wire, "runs")


class TestTopicOnRealBrokers(OnTopic):
    @pytest.fixture(autouse=True)
    def stage(self, kafka_431: Sandbox) -> Iterator[None]:
        self.name = f"record-{uuid.uuid4().hex[:8]}"
        with Wire(kafka_431.bootstrap, {}) as wire:
            self.wire = wire
            topic_setup.create(wire, self.name)
            yield
            topic_setup.delete(wire, self.name)

    def log(self) -> Log:
        return handle(self.wire, self.name)


@pytest.mark.unit
class TestZnodesInMemory(LargestRunContract):
    @pytest.fixture(autouse=True)
    def stage(self) -> None:
        self.tree = MemoryTree()

    def record(self) -> Shared:
        return ZnodeRecord(MemoryZnodes(self.tree), CLUSTER)


@pytest.mark.zookeeper
class TestZnodesInZooKeeper(LargestRunContract):
    @pytest.fixture(autouse=True)
    def stage(self, zookeeper: Sandbox) -> Iterator[None]:
        client = KazooClient(hosts=zookeeper.zookeeper)
        client.start()
        root = f"/record-{uuid.uuid4().hex[:8]}"
        for path in (LIVE_BROKERS, NOTIFICATIONS):
            client.create(root + path, b"", makepath=True)
        self.znodes = Znodes(f"{zookeeper.zookeeper}{root}")
        yield
        self.znodes.close()
        client.delete(root, recursive=True)
        client.stop()

    def record(self) -> Shared:
        return ZnodeRecord(self.znodes, CLUSTER)
