"""Creating and deleting topics under the broker's own bucket: the probe measures the rate of the quota."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquota.errors import Refused
from kquota.probe import load
from kquota.probe.load import Kind, Load
from kquota.probe.mutations import mutate
from tests.mutation.fake import FakeClock, MemoryTopics


def a_load(limit: float | None, seconds: float = 20.0) -> Load:
    rate = load.mutating(limit)
    return Load(
        kind=Kind.CREATE_TOPICS, topic="t", leaders={}, rate=rate, limit=limit, warm=load.warm(None), seconds=seconds
    )


@settings(max_examples=30)
@given(st.floats(0.5, 300), st.floats(5, 60))
def test_the_rate_of_the_quota_is_measured_with_any_initial_bucket(limit: float, seconds: float) -> None:
    cluster = MemoryTopics(clock=FakeClock(), rate=limit)
    made: list[str] = []
    found = mutate(cluster, cluster.clock, a_load(limit, seconds), made.append, lambda _: None)
    assert found.rate == pytest.approx(limit, rel=0.05)
    assert found.throttles.count > 0
    assert set(cluster.held) <= set(made)


def test_without_a_quota_a_low_rate_is_requested_and_accepted() -> None:
    cluster = MemoryTopics(clock=FakeClock())
    found = mutate(cluster, cluster.clock, a_load(None), lambda _: None, lambda _: None)
    assert found.throttles.count == 0
    assert found.rate == pytest.approx(load.UNLIMITED_MUTATIONS, rel=0.05)
    assert cluster.clock.now == pytest.approx(20, abs=1)


def test_an_existing_topic_ends_the_probe_and_is_not_deleted() -> None:
    cluster = MemoryTopics(clock=FakeClock(), held={"t-0": 9})
    with pytest.raises(Refused, match="topic t-0: TopicAlreadyExists"):
        mutate(cluster, cluster.clock, a_load(None), lambda _: None, lambda _: None)
    assert cluster.held == {"t-0": 9}
