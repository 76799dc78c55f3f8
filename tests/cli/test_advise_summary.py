"""The sentences of `quota advise` about clients that the proposed limits would have throttled."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kquota.cli.quota.advise.answer import Advised, client, summary
from kquota.quota.advice import BucketStatistics, ProposedLimit
from kquota.quota.document import Document
from kquota.quota.entity import Entity
from kquota.quota.usage import QuotaBucket
from kquota.simulate.steady import ThrottledTime
from kquota.terms import CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE

pytestmark = pytest.mark.unit
TIME = datetime(2026, 11, 20, tzinfo=UTC)
NONE = "the proposed limits would have throttled no client"
ONE = "the proposed limits would have throttled 1 client:"
UNPREDICTED = "1 client used more than the proposed controller_mutation_rate. kquota does not predict the throttle time"


def proposed(key: str, most: float) -> ProposedLimit:
    """A limit of 200,000 for a client without a limit."""
    bucket = QuotaBucket(key=key, user="alice", client_id=None)
    use = BucketStatistics(bucket=bucket, broker="1", percentile=1.0, most=most, seconds=60, throttled=0)
    return ProposedLimit(use=use, entity=Entity(user="alice"), limit=200_000.0, now=None, spread=1.0)


LOW, HIGH = proposed(PRODUCER_BYTE_RATE, 1e5), proposed(PRODUCER_BYTE_RATE, 1e6)
FEW, MANY = proposed(CONTROLLER_MUTATION_RATE, 1e5), proposed(CONTROLLER_MUTATION_RATE, 1e6)
WAITS = ThrottledTime(seconds=50.0, spells=1, longest=50.0)
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
    answer = Advised(
        cluster="c",
        begin=TIME,
        end=TIME,
        percentile=99.0,
        head_room=0.5,
        brokers=None,
        brokers_later=None,
        totals=(),
        resized=(),
        clients=tuple(client(one, waits) for one, waits in found),
        quotas=Document(limits={}),
    )
    lines = [line.removesuffix(" for this key") for line in summary(answer)]
    assert [line for line in lines if line in (NONE, ONE, UNPREDICTED)] == expected
