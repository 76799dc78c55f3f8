"""Hosts that share a topic in memory, with one clock. Each has a state folder and its own view."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kquota.measure import ByteRate
from kquota.reassign.plan import Plan
from kquota.reassign.run import Owner, Run, Taken
from kquota.settings.resource import Setting
from kquota.stores.record import topic
from kquota.stores.record.lease import LeaseClock, Sighting
from kquota.stores.record.runs import RecordedRuns
from kquota.stores.record.topic import TopicRecord
from kquota.stores.state.process import Holder
from kquota.stores.state.runs import RunFiles
from kquota.terms import LEADER_RATE, BrokerId, TopicPartition
from tests.stores.record.fake import MemoryTopic

TIME = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
T0 = TopicPartition("t", 0)
RATE = Setting.of_broker(BrokerId(1), LEADER_RATE)
RUN = Run(
    id="20260301T123000Z-0123456789ab",
    begun=TIME,
    plan=Plan(targets={T0: (BrokerId(1),)}),
    rollback=Plan(targets={T0: (BrokerId(2),)}),
    rate=ByteRate(5),
    taken={RATE: Taken(setting=RATE, prior=None, ours=("5",))},
)


@dataclass
class Hours(LeaseClock):
    """A clock that advances only in a wait, or when a test sets it."""

    now: float = 1000.0
    waits: list[float] = field(default_factory=list)

    def seconds(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@dataclass
class Team:
    """One cluster's topic, and its hosts. Each command is a new process, whose view `process` creates."""

    folder: Path
    topic: MemoryTopic = field(default_factory=MemoryTopic)
    clock: Hours = field(default_factory=Hours)
    said: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)

    def process(self, host: str, *, patient: bool = False) -> RecordedRuns:
        files = RunFiles(self.folder / host, "cluster")
        seen = Sighting(files.folder / "lock.seen", self.clock)
        waiting = self.said.append if patient else None
        record = TopicRecord(self.topic.handle(), "__kquota_runs", "cluster", seen, waiting)
        return RecordedRuns(files, record, self.warned.append)


def on_another_machine(patch: pytest.MonkeyPatch, host: str) -> None:
    """Make this process appear to be on another machine, so that no host can check whether it is alive."""

    def holder(doing: str) -> Holder:
        owner = Owner(user="alice", host=host, pid=7, since=TIME)
        return Holder(owner=owner, doing=doing, machine=f"{host}'s boot", started="1")

    patch.setattr(topic, "holder", holder)


def faster(run: Run, rate: int) -> Run:
    return replace(run, rate=ByteRate(rate))
