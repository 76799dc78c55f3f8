"""Creating and deleting topics under the broker's own bucket: the probe measures the rate of the quota."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Refused
from kquota.probe import load
from kquota.probe.load import Kind, Load
from kquota.probe.mutations import mutate
from tests.mutation.fake import FakeClock, MemoryTopics
from tests.profiles import examples


def a_load(limit: float | None, seconds: float = 20.0) -> Load:
    rate = load.mutation_rate(limit)
    return Load(
        kind=Kind.CREATE_TOPICS, topic="t", leaders={}, rate=rate, limit=limit, warm=load.warm(None), seconds=seconds
    )


@examples(30)
@given(st.floats(0.5, 300), st.floats(5, 60))
def test_the_rate_of_the_quota_is_measured_with_any_initial_bucket(limit: float, seconds: float) -> None:
    cluster = MemoryTopics(clock=FakeClock(), rate=limit)
    made: list[str] = []
    found = mutate(cluster, cluster.clock, a_load(limit, seconds), made.append, lambda _: None)
    assert found.rate == pytest.approx(limit, rel=0.05)
    assert found.throttles.count > 0
    assert set(cluster.held) <= set(made)


# With more than twice the expected quota, the full bucket lasts longer than the warm-up and the measured time.
OF_BROKERS = {
    "the same quota": (5.0, 5.0),
    "a higher quota": (5.0, 11.5),
    "a quota that throttles for minutes": (5.0, 0.005),
    "a very low quota": (0.005, 0.005),
    "a quota that was not known": (None, 2.0),
}


@pytest.mark.parametrize(("limit", "rate"), OF_BROKERS.values(), ids=OF_BROKERS)
def test_a_load_ends_in_time_also_if_the_quota_changes_while_it_runs(limit: float | None, rate: float) -> None:
    cluster, wanted = MemoryTopics(clock=FakeClock(), rate=rate), a_load(limit)
    mutate(cluster, cluster.clock, wanted, lambda _: None, lambda _: None)
    assert 20 < cluster.clock.now < wanted.longest + 1


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
