"""Proposals from measured use: rounding, the limit now, sums, and another number of brokers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.quota.advice import (
    BucketStatistics,
    KeyTotal,
    ProposalRules,
    ProposedLimit,
    Resized,
    advised,
    proposals,
    resized,
    rounded_up,
    totals,
)
from kquota.quota.difference import difference
from kquota.quota.document import Document
from kquota.quota.document_text import read, text
from kquota.quota.entity import Entity
from kquota.quota.precedence import QuotasByEntity
from kquota.quota.usage import QuotaBucket
from kquota.terms import (
    CONNECTION_CREATION_RATE,
    CONTROLLER_MUTATION_RATE,
    DEFAULT,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from tests.quota.documents import states

ALICE, BILLING = Entity(user="alice"), Entity(client_id="billing")
QUOTAS: QuotasByEntity = {
    Entity(client_id=DEFAULT): {PRODUCER_BYTE_RATE: 2e6},
    ALICE: {PRODUCER_BYTE_RATE: 6e6, CONTROLLER_MUTATION_RATE: 4.0, REQUEST_PERCENTAGE: 50.0},
}


def use(percentile: float, key: str = PRODUCER_BYTE_RATE, most: float = 9e6, **names: str) -> BucketStatistics:
    bucket = QuotaBucket(key=key, user=names.get("user"), client_id=names.get("client_id"))
    return BucketStatistics(bucket=bucket, broker="1", percentile=percentile, most=most, seconds=60, throttled=0)


def of(found: BucketStatistics, **rules: int) -> ProposedLimit:
    [one] = proposals([found], QUOTAS, ProposalRules(head_room=1.5, **rules))
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
    rules = ProposalRules(head_room=1.5, brokers=3, later=6)
    found = [of(use(1e6, user="alice"), brokers=3, later=6)]
    changed = resized(QUOTAS, found, rules)
    assert changed == (
        Resized(entity=Entity(client_id=DEFAULT), key=PRODUCER_BYTE_RATE, old=2e6, new=1e6),
        Resized(entity=ALICE, key=REQUEST_PERCENTAGE, old=50.0, new=25.0),
    )
    assert advised(QUOTAS, found, changed) == {
        Entity(client_id=DEFAULT): {PRODUCER_BYTE_RATE: 1e6},
        ALICE: {PRODUCER_BYTE_RATE: 750_000.0, CONTROLLER_MUTATION_RATE: 4.0, REQUEST_PERCENTAGE: 25.0},
    }
    assert resized(QUOTAS, found, ProposalRules(head_room=1.5, brokers=3)) == ()


IP = Entity(ip="10.0.0.7")
UNCHANGED: dict[str, tuple[Entity, str, float]] = {
    "an unlimited byte rate": (ALICE, PRODUCER_BYTE_RATE, float(2**63 - 1)),
    "an unlimited connection rate": (IP, CONNECTION_CREATION_RATE, float(2**31 - 1)),
    "zero": (ALICE, PRODUCER_BYTE_RATE, 0.0),
    "negative": (ALICE, REQUEST_PERCENTAGE, -1.0),
    "not a number": (ALICE, REQUEST_PERCENTAGE, math.nan),
    "infinite": (ALICE, REQUEST_PERCENTAGE, math.inf),
}


@pytest.mark.parametrize("later", [1, 6])
@pytest.mark.parametrize(("entity", "key", "limit"), UNCHANGED.values(), ids=UNCHANGED)
def test_a_limit_that_limits_nothing_or_is_not_valid_does_not_change(
    entity: Entity, key: str, limit: float, later: int
) -> None:
    assert resized({entity: {key: limit}}, [], ProposalRules(head_room=1.5, brokers=3, later=later)) == ()


HIGHEST: dict[str, tuple[Entity, str, float, float]] = {
    "a byte rate": (ALICE, PRODUCER_BYTE_RATE, 2.0**62, float(2**63 - 1)),
    "connections": (IP, CONNECTION_CREATION_RATE, 2.0**30, float(2**31 - 1)),
}


@pytest.mark.parametrize(("entity", "key", "old", "new"), HIGHEST.values(), ids=HIGHEST)
def test_a_limit_does_not_exceed_the_maximum_of_its_key(entity: Entity, key: str, old: float, new: float) -> None:
    (changed,) = resized({entity: {key: old}}, [], ProposalRules(head_room=1.5, brokers=9, later=1))
    assert changed.new == new


@given(
    states(),
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1e300)), max_size=3, unique_by=lambda one: one[0]),
    st.sampled_from([PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE]),
    st.integers(1, 1_000),
    st.integers(1, 1_000),
)
def test_a_proposal_is_a_valid_document(
    quotas: dict[Entity, dict[str, float]], used: list[tuple[str, float]], key: str, brokers: int, later: int
) -> None:
    rules = ProposalRules(head_room=2.0, brokers=brokers, later=later)
    found = proposals([use(percentile, key=key, user=name) for name, percentile in used], quotas, rules)
    changed = resized(quotas, found, rules)
    document = Document(limits=advised(quotas, found, changed))
    proposed = read(text(document), "quotas.yaml")
    assert {entity: limits for entity, limits in proposed.limits.items() if limits} == document.limits
    written = {one.entity for one in difference(proposed, quotas, prune=False).replacements}
    assert written <= {one.entity for one in found} | {one.entity for one in changed}


def test_a_proposal_for_a_client_id_of_a_user_keeps_the_quota_of_the_user() -> None:
    both = Entity(user="alice", client_id="billing")
    found = [of(use(1e6, user="alice", client_id="billing"))]
    document = Document(limits=advised(QUOTAS, found, []))
    assert document.limits == {ALICE: QUOTAS[ALICE], both: {PRODUCER_BYTE_RATE: 1.5e6}}
    (written,) = difference(read(text(document), "quotas.yaml"), QUOTAS, prune=False).replacements
    assert written.entity == both
