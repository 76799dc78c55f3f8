"""The functions for programs return a result for each topic, and raise the quota violation with all results."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

import kquota
from kquota.errors import Invalid, KquotaError, Refused, Unreachable
from kquota.mutation import Creation, QuotaViolatedException, create_partitions, create_topics, delete_topics
from kquota.mutation.admin import with_partitions
from kquota.mutation.port import Failure, Topics
from tests.mutation.fake import MemoryTopics


@dataclass
class Connected:
    topics: Topics
    checked: Topics = field(default_factory=MemoryTopics)
    timeout: float = 60.0
    rate: float | None = None
    asked: int = 0

    def mutation_rate(self) -> float | None:
        return self.rate

    def mutation_burst(self) -> float:
        return 11.0

    def default_partitions(self) -> int:
        self.asked += 1
        return 12


Call = Callable[[Connected], Mapping[str, KquotaError | None]]
CREATIONS = [Creation(topic=f"t-{n}", partitions=80) for n in range(3)]
LARGE = {"t-0": 80, "t-1": 80, "t-2": 80}
CALLS: dict[str, tuple[dict[str, int], Call]] = {
    # the existing topics, and a call that costs more than the bucket holds
    "create": ({}, lambda c: create_topics(c, CREATIONS, retry_quota_violated=False)),
    "grow": (
        dict.fromkeys(LARGE, 1),
        lambda c: create_partitions(c, dict.fromkeys(LARGE, 81), retry_quota_violated=False),
    ),
    "delete": (LARGE, lambda c: delete_topics(c, list(LARGE), retry_quota_violated=False)),
}


@pytest.mark.parametrize(("held", "call"), CALLS.values(), ids=CALLS)
def test_without_retries_the_first_violation_has_the_time_and_every_result(held: dict[str, int], call: Call) -> None:
    cluster = MemoryTopics(rate=5, held=dict(held))
    with pytest.raises(QuotaViolatedException) as raised:
        call(Connected(cluster))
    assert 4_900 < raised.value.throttle_time_ms <= 5_000
    kinds = {topic: type(error) for topic, error in raised.value.results.items()}
    assert kinds == {"t-0": type(None), "t-1": QuotaViolatedException, "t-2": QuotaViolatedException}
    assert len(cluster.requests) == 1


def test_default_partition_counts_are_taken_from_the_answer() -> None:
    creations = [Creation(topic="a"), Creation(topic="b", partitions=2), Creation(topic="c", assignment={0: (), 1: ()})]
    cluster = Connected(MemoryTopics())
    assert [one.mutations for one in with_partitions(cluster, [*creations, Creation(topic="d")])] == [12, 2, 2, 12]
    assert cluster.asked == 1
    assert with_partitions(cluster, creations[1:]) == creations[1:]
    assert cluster.asked == 1, "the default is read only if a creation needs it"


def test_validation_that_uses_no_quota_does_not_wait() -> None:
    cluster = Connected(MemoryTopics(), rate=5)
    results = create_topics(cluster, [Creation(topic=f"t-{n}", partitions=20) for n in range(100)], validate_only=True)
    assert set(results.values()) == {None}


def test_any_other_error_belongs_to_its_topic() -> None:
    cluster = Connected(MemoryTopics(held={"t-1": 1}))
    results = create_topics(cluster, CREATIONS)
    assert (results["t-0"], results["t-2"]) == (None, None)
    assert isinstance(results["t-1"], Refused)
    assert str(results["t-1"]) == "TopicAlreadyExists (36)"
    grown = create_partitions(cluster, {"t-0": 81, "no-such": 3})
    assert (grown["t-0"], str(grown["no-such"])) == (None, "UnknownTopicOrPartition (3)")
    gone = delete_topics(cluster, ["t-0", "no-such"])
    assert (gone["t-0"], str(gone["no-such"])) == (None, "UnknownTopicOrPartition (3)")


def test_a_topic_with_an_unknown_result_is_not_reported_as_refused() -> None:
    late = {"t-1": Failure(code=7, reason="RequestTimedOut (7)")}
    results = create_topics(Connected(MemoryTopics(late=late)), CREATIONS)
    assert (results["t-0"], results["t-2"]) == (None, None)
    assert isinstance(results["t-1"], Unreachable)


def test_validation_creates_no_topic() -> None:
    cluster = Connected(MemoryTopics())
    assert create_topics(cluster, CREATIONS, validate_only=True) == dict.fromkeys(LARGE)
    assert isinstance(cluster.topics, MemoryTopics)
    assert (cluster.topics.held, cluster.topics.requests) == ({}, [])


def test_an_unsent_topic_is_not_reported_as_done() -> None:
    results = create_topics(Connected(MemoryTopics(lost_at=1)), CREATIONS)
    assert all(isinstance(error, Unreachable) for error in results.values())
    assert "topic t-2: not sent, because" in str(results["t-2"])


def test_a_short_timeout_raises_the_violation() -> None:
    for timeout, of_the_file in ((0.5, 60.0), (None, 0.5)):
        cluster = MemoryTopics(rate=5)
        with pytest.raises(QuotaViolatedException, match="quota of this principal has been exceeded"):
            create_topics(Connected(cluster, timeout=of_the_file), CREATIONS, timeout=timeout)
        assert list(cluster.held) == ["t-0"]


def test_a_single_name_is_not_read_as_a_list_of_letters() -> None:
    cluster = MemoryTopics(held=dict.fromkeys("abc", 1))
    with pytest.raises(Invalid, match=r"Nothing was sent. Give a list of names, for example \['abc'\]"):
        delete_topics(Connected(cluster), "abc")
    assert len(cluster.held) == 3
    assert delete_topics(Connected(cluster), iter("ab")) == {"a": None, "b": None}


@pytest.mark.parametrize("timeout", [0, -1, math.nan])
def test_a_timeout_of_zero_is_refused_before_any_request(timeout: float) -> None:
    cluster = MemoryTopics()
    with pytest.raises(Invalid, match=r"must be more than 0 seconds\. Nothing was sent"):
        create_topics(Connected(cluster), CREATIONS, timeout=timeout)
    assert cluster.requests == []


def test_importing_kquota_loads_no_client() -> None:
    """A program that does not create topics does not need this import."""
    code = (
        "import sys, kquota, kquota.mutation; print(*{'kafka', 'confluent_kafka', 'kazoo', 'typer'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_a_cluster_comes_from_connect() -> None:
    with pytest.raises(Unreachable, match="127"), kquota.connect("127.0.0.1:1"):
        pass
