"""The sentences of `quota advise` about clients that the proposed limits would have throttled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kquota.cli.quota.advise.answer import Advised, summary
from kquota.quota.advice import BucketStatistics, KeyTotal, ProposedLimit
from kquota.quota.document import Document
from kquota.quota.entity import Entity
from kquota.quota.usage import QuotaBucket
from kquota.simulate.steady import ThrottledTime
from kquota.terms import CONSUMER_BYTE_RATE, CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE

pytestmark = pytest.mark.unit
TIME = datetime(2026, 11, 20, tzinfo=UTC)
NONE = "the proposed limits would have throttled no client"
ONE = "the proposed limits would have throttled 1 client:"
UNPREDICTED = "1 client used more than the proposed controller_mutation_rate. kquota does not predict the throttle time"


def proposed(key: str, most: float, user: str = "alice", throttled: int = 0) -> ProposedLimit:
    """A limit of 200,000 for a client without a limit."""
    bucket = QuotaBucket(key=key, user=user, client_id=None)
    use = BucketStatistics(bucket=bucket, broker="1", percentile=1.0, most=most, seconds=60, throttled=throttled)
    return ProposedLimit(use=use, entity=Entity(user=user), limit=200_000.0, now=None, spread=1.0)


LOW, HIGH = proposed(PRODUCER_BYTE_RATE, 1e5), proposed(PRODUCER_BYTE_RATE, 1e6)
FEW, MANY = proposed(CONTROLLER_MUTATION_RATE, 1e5), proposed(CONTROLLER_MUTATION_RATE, 1e6)
WAITS = ThrottledTime(seconds=50.0, longest=50.0)
CASES: dict[str, tuple[list[tuple[ProposedLimit, ThrottledTime | None]], list[str]]] = {
    "all use is below the limits": ([(LOW, None), (FEW, None)], [NONE]),
    "a burst that passes without a wait": ([(HIGH, ThrottledTime())], [NONE]),
    "a client that waits": ([(HIGH, WAITS)], [ONE]),
    "mutations above the limit": ([(MANY, None)], [UNPREDICTED]),
    "both": ([(HIGH, WAITS), (MANY, None)], [ONE, UNPREDICTED]),
    "a client beyond the number of predictions": ([(HIGH, None)], []),
}


@pytest.mark.parametrize(("found", "expected"), CASES.values(), ids=CASES)
def test_only_predicted_limits_throttle_no_client(
    found: list[tuple[ProposedLimit, ThrottledTime | None]], expected: list[str]
) -> None:
    lines = [line.removesuffix(" for this key") for line in summary(answer_of(found))]
    assert [line for line in lines if line in (NONE, ONE, UNPREDICTED)] == expected


@pytest.mark.parametrize(("users", "clients"), [(1, "1 client"), (6, "6 clients")])
def test_a_client_with_two_keys_counts_once(users: int, clients: str) -> None:
    keys = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)
    found = [(proposed(key, 1e6, f"user-{number}", 5), WAITS) for key in keys for number in range(users)]
    lines = list(summary(answer_of(found)))
    why = "so the real demand is higher than the measured use"
    assert f"brokers throttled {clients} during the measurement, {why}" in lines
    assert f"the proposed limits would have throttled {clients}:" in lines
    assert (lines[-1] == "... and 2 more limits. --output tsv shows all limits") == (len(found) == 12)


TOTALS = {
    PRODUCER_BYTE_RATE: f"{PRODUCER_BYTE_RATE}: 1 limit, in total 5 B/s on a broker. Total use: 3 B/s",
    CONTROLLER_MUTATION_RATE: f"{CONTROLLER_MUTATION_RATE}: 1 limit, in total 5/s in the cluster. Total use: 3/s",
}


@pytest.mark.parametrize(("key", "line"), TOTALS.items(), ids=TOTALS)
def test_a_total_names_the_place_of_its_limits(key: str, line: str) -> None:
    sums = KeyTotal(key=key, clients=1, used=3.0, limits=5.0, capacity=None)
    assert line in summary(replace(answer_of([]), totals=(sums,)))


@pytest.mark.parametrize(("limits", "share"), [(0.1, "less than 1%"), (0.5, "less than 1%"), (1.0, "1%"), (99, "99%")])
def test_a_small_share_of_the_capacity_is_not_shown_as_zero(limits: float, share: str) -> None:
    sums = KeyTotal(key=PRODUCER_BYTE_RATE, clients=1, used=0.1, limits=limits, capacity=100.0)
    (line,) = (one for one in summary(replace(answer_of([]), totals=(sums,))) if "capacity" in one)
    assert f"({share} of its capacity, 100 B/s)" in line


def answer_of(found: Sequence[tuple[ProposedLimit, ThrottledTime | None]]) -> Advised:
    return Advised(
        cluster="c",
        begin=TIME,
        end=TIME,
        percentile=99.0,
        head_room=0.5,
        brokers=None,
        brokers_later=None,
        totals=(),
        resized=(),
        clients=tuple(found),
        quotas=Document(limits={}),
    )
