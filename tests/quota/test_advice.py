"""Proposals from measured use: rounding, the limit now, sums, and another number of brokers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.quota.advice import (
    BucketStatistics,
    KeyTotal,
    ProposedLimit,
    Resized,
    Wish,
    advised,
    proposals,
    resized,
    rounded_up,
    totals,
)
from kquota.quota.entity import Entity
from kquota.quota.precedence import Quotas
from kquota.quota.usage import QuotaBucket
from kquota.terms import CONTROLLER_MUTATION_RATE, DEFAULT, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE

ALICE, BILLING = Entity(user="alice"), Entity(client_id="billing")
QUOTAS: Quotas = {
    Entity(client_id=DEFAULT): {PRODUCER_BYTE_RATE: 2e6},
    ALICE: {PRODUCER_BYTE_RATE: 6e6, CONTROLLER_MUTATION_RATE: 4.0, REQUEST_PERCENTAGE: 50.0},
}


def use(percentile: float, key: str = PRODUCER_BYTE_RATE, most: float = 9e6, **names: str) -> BucketStatistics:
    bucket = QuotaBucket(key=key, user=names.get("user"), client_id=names.get("client_id"))
    return BucketStatistics(bucket=bucket, broker="1", percentile=percentile, most=most, seconds=60, throttled=0)


def of(found: BucketStatistics, **wish: int) -> ProposedLimit:
    [one] = proposals([found], QUOTAS, Wish(head_room=1.5, **wish))
    return one


LIMITS: dict[str, tuple[ProposedLimit, tuple[Entity, float, float | None, bool, bool]]] = {
    "a default applies now": (of(use(1e6, client_id="billing")), (BILLING, 1.5e6, 2e6, True, True)),
    "looser than now": (of(use(4e6, client_id="billing")), (BILLING, 6e6, 2e6, False, False)),
    "never more used": (of(use(1e6, most=1.4e6, client_id="billing")), (BILLING, 1.5e6, 2e6, True, False)),
    "unlimited now": (of(use(10, key=REQUEST_PERCENTAGE, client_id="billing")), (BILLING, 15.0, None, True, True)),
    "idle": (of(use(0.0, client_id="billing")), (BILLING, 100_000.0, 2e6, True, True)),
    "twice the brokers": (of(use(1e6, user="alice"), brokers=3, later=6), (ALICE, 750_000.0, 6e6, True, True)),
    "twice the brokers, and as much as now": (
        of(use(4e6, user="alice"), brokers=3, later=6),
        (ALICE, 3e6, 6e6, False, False),
    ),
    "a limit of the cluster": (
        of(use(3, key=CONTROLLER_MUTATION_RATE, user="alice"), brokers=3, later=6),
        (ALICE, 4.5, 4.0, False, False),
    ),
}


@pytest.mark.parametrize(("found", "expected"), LIMITS.values(), ids=LIMITS)
def test_the_proposal_of_a_client(
    found: ProposedLimit, expected: tuple[Entity, float, float | None, bool, bool]
) -> None:
    assert (found.entity, found.limit, found.now, found.tighter, found.throttles) == expected


@given(st.floats(1e-3, 1e15), st.booleans())
def test_a_rounded_limit_is_not_smaller_and_at_most_a_tenth_larger(value: float, whole: bool) -> None:
    found = rounded_up(value, whole=whole)
    assert value * (1 - 1e-9) <= found <= value * 1.1 + (1.0 if whole else 1e-12)
    assert rounded_up(found, whole=whole) == found
    assert found.is_integer() or not whole


def test_sums_are_on_one_broker() -> None:
    found = [of(use(1e6, client_id="a"), brokers=1, later=2), of(use(3e6, client_id="b"), brokers=1, later=2)]
    [total] = totals(found, {PRODUCER_BYTE_RATE: 1.5e6})
    assert total == KeyTotal(key=PRODUCER_BYTE_RATE, clients=2, used=2e6, limits=3.05e6, capacity=1.5e6)
    assert total.share == pytest.approx(3.05 / 1.5)
    [unknown] = totals(found, {})
    assert unknown.share is None


def test_limits_without_a_proposal_follow_the_number_of_brokers() -> None:
    wish = Wish(head_room=1.5, brokers=3, later=6)
    found = [of(use(1e6, user="alice"), brokers=3, later=6)]
    changed = resized(QUOTAS, found, wish)
    assert changed == (
        Resized(entity=Entity(client_id=DEFAULT), key=PRODUCER_BYTE_RATE, old=2e6, new=1e6),
        Resized(entity=ALICE, key=REQUEST_PERCENTAGE, old=50.0, new=25.0),
    )
    assert advised(QUOTAS, found, changed) == {
        Entity(client_id=DEFAULT): {PRODUCER_BYTE_RATE: 1e6},
        ALICE: {PRODUCER_BYTE_RATE: 750_000.0, CONTROLLER_MUTATION_RATE: 4.0, REQUEST_PERCENTAGE: 25.0},
    }
    assert resized(QUOTAS, found, Wish(head_room=1.5, brokers=3)) == ()
