"""Creating and deleting topics under the broker's own bucket: the quota's rate is what is measured."""

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
def test_the_rate_of_the_quota_is_measured_whatever_the_bucket_held(limit: float, seconds: float) -> None:
    cluster = MemoryTopics(clock=FakeClock(), rate=limit)
    made: list[str] = []
    found = mutate(cluster, cluster.clock, a_load(limit, seconds), made.append, lambda _: None)
    assert found.rate == pytest.approx(limit, rel=0.05)
    assert found.throttles.count > 0
    assert set(cluster.held) <= set(made)


def test_without_a_quota_a_little_is_asked_for_and_let_through() -> None:
    cluster = MemoryTopics(clock=FakeClock())
    found = mutate(cluster, cluster.clock, a_load(None), lambda _: None, lambda _: None)
    assert found.throttles.count == 0
    assert found.rate == pytest.approx(load.UNLIMITED_MUTATIONS, rel=0.05)
    assert cluster.clock.now == pytest.approx(20, abs=1)


def test_a_topic_that_exists_ends_it_and_is_no_probes() -> None:
    cluster = MemoryTopics(clock=FakeClock(), held={"t-0": 9})
    with pytest.raises(Refused, match="topic t-0: TopicAlreadyExists"):
        mutate(cluster, cluster.clock, a_load(None), lambda _: None, lambda _: None)
    assert cluster.held == {"t-0": 9}
