"""A real controller mutation quota: the rejected requests of one client, and twenty clients of one principal."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Barrier

import pytest

import kquota
from kquota.mutation import QuotaViolatedException, create_partitions, create_topics, delete_topics
from kquota.mutation.actions import Fate, TopicOutcome, carry_out, work
from kquota.mutation.pace import MutationPace
from kquota.mutation.topic import Creation, Deletion
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.stores.admin.topics import WireTopics
from tests.waiting import until

RATE = 10
BURST = 11 * RATE
CLIENTS = 20


@pytest.fixture(params=["kafka_431", "kafka_391"], ids=["4.3.1", "3.9.1"])
def cluster(request: pytest.FixtureRequest) -> Sandbox:
    found: Sandbox = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def client(cluster: Sandbox) -> Iterator[str]:
    """A client-id with a fresh bucket. Topics with its prefix are deleted at the end."""
    name = f"q{uuid.uuid4().hex[:8]}"
    with Wire(cluster.bootstrap, {}) as wire:
        quotas, entity, topics = WireQuotas(wire), Entity(client_id=name), WireTopics(wire)
        quotas.alter([QuotaChange(entity=entity, add={"controller_mutation_rate": float(RATE)})])
        until(lambda: quotas.everything().get(entity) == {"controller_mutation_rate": RATE}, "the quota is seen")
        yield name
        ours = [topic.name for topic in topics.topics(None) if topic.name.startswith(name)]
        topics.send([Deletion(topic=topic, partitions=1) for topic in ours], 30)


def test_one_client_sends_at_most_a_tenth_in_vain_and_waits_no_longer_than_the_bucket(
    cluster: Sandbox, client: str
) -> None:
    """500 topics of 20 partitions, on a smaller scale. Only the waits take time, even on a slow machine."""
    topics, partitions = 40, 5
    waits: list[float] = []
    todo = work(Creation(topic=f"{client}-{n}", partitions=partitions, replication_factor=1) for n in range(topics))
    with Wire(cluster.bootstrap, {"client_id": client}) as wire:
        pace, served = MutationPace(quota=RATE), WireTopics(wire)
        outcomes = carry_out(served, time, todo, pace, seconds=60, on_wait=lambda _, wait: waits.append(wait))
        until(
            lambda: sum(t.name.startswith(client) for t in served.topics(None)) == topics, "a broker reports all topics"
        )
    assert {outcome.fate for outcome in outcomes} == {Fate.DONE}
    assert todo.sent <= 1.1 * topics
    assert sum(waits) <= 1.1 * (topics * partitions - partitions - BURST) / RATE


def test_the_program_in_the_readme_works(cluster: Sandbox, client: str, tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text(f"client.id={client}\ndefault.api.timeout.ms=30000\n")
    one, two = f"{client}-a", f"{client}-b"
    with kquota.connect(cluster.bootstrap, tmp_path / "client.properties") as connected:
        assert connected.timeout == 30
        until(lambda: connected.mutation_rate() == RATE, "this broker has the quota, too")
        made = create_topics(
            connected, [Creation(topic=name, partitions=2, replication_factor=1) for name in (one, two)]
        )
        assert made == {one: None, two: None}
        until(lambda: len(connected.topics.topics([one, two])) == 2, "the topics are reported")
        assert create_partitions(connected, {one: 3}) == {one: None}
        again = create_topics(connected, [Creation(topic=two)], validate_only=True)
        assert str(again[two]).startswith("TopicAlreadyExists (36)")
        numbers = count()

        def violated() -> bool:
            """Brokers on ZooKeeper apply a quota a little later than it can be read."""
            large = [Creation(topic=f"{client}-{next(numbers)}", partitions=90, replication_factor=1) for _ in range(3)]
            try:
                create_topics(connected, large, retry_quota_violated=False)
            except QuotaViolatedException as error:
                assert error.throttle_time_ms > 0
                assert list(error.results) == [one.topic for one in large]
                return True
            return False

        until(violated, "the quota is in force")
        assert delete_topics(connected, [one, two]) == {one: None, two: None}


def test_twenty_clients_of_one_principal_all_end(cluster: Sandbox, client: str) -> None:
    """Each client has its own connection, and half of them may not read the quota. tests/mutation checks fairness."""
    together = Barrier(CLIENTS, timeout=120)

    def created(number: int) -> list[TopicOutcome]:
        todo = work(Creation(topic=f"{client}-{number}-{n}", partitions=1, replication_factor=1) for n in range(10))
        with Wire(cluster.bootstrap, {"client_id": client, "default_api_timeout_ms": 60_000}) as wire:
            together.wait()
            return carry_out(
                WireTopics(wire), time, todo, MutationPace(quota=RATE if number % 2 else None), seconds=120
            )

    with ThreadPoolExecutor(CLIENTS) as threads:
        outcomes = [outcome for found in threads.map(created, range(CLIENTS)) for outcome in found]
    assert (len(outcomes), {outcome.fate for outcome in outcomes}) == (10 * CLIENTS, {Fate.DONE})
