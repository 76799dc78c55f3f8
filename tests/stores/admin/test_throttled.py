"""KIP-219's test plan, by packet times: a throttled client neither times out nor sends too early."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import pytest
from kafka.protocol.metadata import MetadataRequest

from kquota.mutation.actions import Fate, MutationWork, carry_out, work
from kquota.mutation.pace import MutationPace
from kquota.mutation.topic import Creation, Deletion
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.stores.admin.topics import WireTopics
from tests.stores.admin.recorder import Recorder
from tests.waiting import until

RATE = 0.16
"""Mutations per second: the bucket holds 1.76, so each topic of PARTITIONS overdraws it for 14 s or more."""
PARTITIONS = 4
"""Few, so that brokers create them within PATIENCE_MS, however busy the machine is."""
PATIENCE_MS = 9_000


@dataclass
class Stage:
    cluster: Sandbox
    client: str

    def limited(self, **quota: float) -> None:
        with Wire(self.cluster.bootstrap, {}) as wire:
            quotas, entity = WireQuotas(wire), Entity(client_id=self.client)
            quotas.alter([QuotaChange(entity=entity, add=quota)])
            until(lambda: quotas.everything().get(entity) == quota, "the quota is seen")

    def creations(self) -> Iterator[Creation]:
        """As many as needed, because brokers on ZooKeeper apply a quota a little later than it can be read."""
        for number in count():
            yield Creation(topic=f"{self.client}-{number}", partitions=PARTITIONS, replication_factor=1)

    @property
    def settings(self) -> dict[str, object]:
        return {"client_id": self.client, "request_timeout_ms": PATIENCE_MS}


@pytest.fixture
def stage(cluster: Sandbox) -> Iterator[Stage]:
    found = Stage(cluster, f"w{uuid.uuid4().hex[:8]}")
    yield found
    with Wire(found.cluster.bootstrap, {}) as wire:
        topics = WireTopics(wire)
        ours = [topic for topic in topics.topics(None) if topic.name.startswith(found.client)]
        if ours:
            topics.send([Deletion(topic=topic.name, partitions=len(topic.partitions)) for topic in ours], 30)


def test_a_rejected_mutation_waits_even_if_its_connection_is_lost(stage: Stage) -> None:
    stage.limited(controller_mutation_rate=RATE)
    creations = stage.creations()
    with Recorder() as recorder, Wire(stage.cluster.bootstrap, stage.settings | recorder.settings) as wire:

        def cut_once(doing: MutationWork, wait: float) -> None:
            recorder.cut()

        def rejected() -> bool:
            todo = work([next(creations) for _ in range(2)])
            outcomes = carry_out(WireTopics(wire), time, todo, MutationPace(quota=None), seconds=60, on_wait=cut_once)
            assert {outcome.fate for outcome in outcomes} == {Fate.DONE}
            return bool(recorder.throttles)

        until(rejected, "the quota is in force")
        assert recorder.early() == []


def test_an_old_clients_throttle_time_can_exceed_the_request_time_out(stage: Stage) -> None:
    """A request of CreateTopics below version 6 is never rejected. Its client is muted for the time that it should have
    waited (KIP-599).
    """
    stage.limited(controller_mutation_rate=RATE)
    creations = stage.creations()
    waits: list[float] = []
    old = stage.settings | {"api_version": (2, 6)}
    with (
        Recorder() as recorder,
        Wire(stage.cluster.bootstrap, old | recorder.settings, throttled=waits.append) as wire,
    ):

        def muted() -> bool:
            one = next(creations)
            assert WireTopics(wire).send([one], 30).outcomes == {one.topic: None}
            return max(recorder.throttles, default=0.0) > PATIENCE_MS / 1_000

        until(muted, "the quota is in force")
        muted()
        assert max(waits) > PATIENCE_MS / 1_000
        assert recorder.early() == []


def test_every_request_can_be_delayed_from_the_first_on(stage: Stage) -> None:
    """A request quota near 0: every answer requests a pause of one window, the maximum (KIP-124)."""
    stage.limited(request_percentage=0.0001)
    waits: list[float] = []
    with (
        Recorder() as recorder,
        Wire(stage.cluster.bootstrap, stage.settings | recorder.settings, throttled=waits.append) as wire,
    ):
        until(lambda: bool(wire.metadata([]) and recorder.throttles), "the quota is in force")
        recorder.passed.clear()
        with Wire(stage.cluster.bootstrap, stage.settings | recorder.settings) as first:
            quotas = WireQuotas(first)
            quotas.alter([QuotaChange(entity=Entity(client_id=stage.client), delete=("request_percentage",))])
        assert len(recorder.throttles) >= 2
        assert recorder.early() == []


def test_a_connection_that_ended_while_idle_is_not_a_lost_request(kafka_431: Sandbox) -> None:
    with Recorder() as recorder, Wire(kafka_431.bootstrap, recorder.settings) as wire:
        for _ in range(3):
            wire.ask(MetadataRequest(topics=[]), wire.controller)
            recorder.cut()
