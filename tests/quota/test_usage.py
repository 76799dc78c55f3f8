"""The quota that limits each bucket, by the tags of its metric (ClientQuotaManager), and the order of clients."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.quota.entity import Entity
from kquota.quota.precedence import Client, QuotasByEntity, per, rungs, winner
from kquota.quota.usage import BucketUse, QuotaBucket, joined
from kquota.terms import CONTROLLER_MUTATION_RATE, DEFAULT, PRODUCER_BYTE_RATE

LEVELS: dict[int, Entity] = {
    1: Entity(user="u", client_id="c"),
    2: Entity(user="u", client_id=DEFAULT),
    3: Entity(user="u"),
    4: Entity(user=DEFAULT, client_id="c"),
    5: Entity(user=DEFAULT, client_id=DEFAULT),
    6: Entity(user=DEFAULT),
    7: Entity(client_id="c"),
    8: Entity(client_id=DEFAULT),
}
TAGS = {
    1: ("u", "c"),
    2: ("u", "c"),
    3: ("u", None),
    4: ("u", "c"),
    5: ("u", "c"),
    6: ("u", None),
    7: (None, "c"),
    8: (None, "c"),
}
IDLE = BucketUse(broker="1", used=1.0)


def bucket(user: str | None, client_id: str | None, key: str = PRODUCER_BYTE_RATE) -> QuotaBucket:
    return QuotaBucket(key=key, user=user, client_id=client_id)


@pytest.mark.parametrize("level", LEVELS)
def test_a_bucket_is_limited_by_the_entity_of_its_level(level: int) -> None:
    quotas: QuotasByEntity = {LEVELS[level]: {PRODUCER_BYTE_RATE: 10.0}}
    (found,) = joined(quotas, [(bucket(*TAGS[level]), IDLE)])
    assert (found.level, found.entity, found.limit, found.share) == (level, LEVELS[level], 10.0, 0.1)


@given(st.sets(st.sampled_from(sorted(LEVELS)), min_size=1))
def test_the_tags_that_a_broker_uses_lead_to_the_quota_that_explain_names(levels: set[int]) -> None:
    quotas: QuotasByEntity = {LEVELS[level]: {PRODUCER_BYTE_RATE: float(level)} for level in levels}
    bound = winner(rungs(quotas, Client(user="u", client_id="c"), PRODUCER_BYTE_RATE))
    assert bound is not None
    (found,) = joined(quotas, [(bucket(*TAGS[bound.level]), IDLE)])
    assert (found.level, found.limit) == (bound.level, bound.value)
    assert found.bucket.per is per(bound.level)


def test_an_old_bucket_of_another_shape_does_not_get_the_limit_of_the_new_one() -> None:
    quotas: QuotasByEntity = {LEVELS[3]: {PRODUCER_BYTE_RATE: 10.0}}
    (found,) = joined(quotas, [(bucket(None, "c"), IDLE)])
    assert (found.limit, found.shared_by, found.share) == (None, None, None)


@pytest.mark.parametrize("level", [3, 6, 7, 8])
def test_an_old_bucket_of_a_user_with_a_client_id_does_not_get_the_limit_of_one_of_them(level: int) -> None:
    """Brokers count the client in the bucket of the level that wins now. The old one expires after an hour."""
    quotas: QuotasByEntity = {LEVELS[level]: {PRODUCER_BYTE_RATE: 10.0}}
    (found,) = joined(quotas, [(bucket("u", "c"), IDLE)])
    assert (found.level, found.limit) == (None, None)


def test_the_order_is_throttled_then_near_the_limit_then_large() -> None:
    quotas: QuotasByEntity = {Entity(client_id=n): {PRODUCER_BYTE_RATE: 100.0} for n in ("half", "full", "slowed")}
    used = {"half": 50.0, "full": 99.0, "slowed": 10.0, "free": 900.0, "small": 1.0}
    found = [
        (bucket(None, name), BucketUse(broker="1", used=value, throttle_ms=5.0 if name == "slowed" else None))
        for name, value in used.items()
    ]
    assert [one.bucket.client_id for one in joined(quotas, found)] == ["slowed", "full", "half", "free", "small"]


def test_a_negative_token_bucket_is_throttled() -> None:
    key = CONTROLLER_MUTATION_RATE
    (found,) = joined({}, [(bucket(None, "c", key), BucketUse(broker="1", used=0.1, tokens=-3.0))])
    assert found.throttled


def test_the_worst_broker_gives_the_share() -> None:
    quotas: QuotasByEntity = {LEVELS[7]: {PRODUCER_BYTE_RATE: 10.0}}
    readings = [BucketUse(broker=name, used=used) for name, used in (("10", 2.0), ("2", 8.0), ("host:1", None))]
    (found,) = joined(quotas, [(bucket(None, "c"), one) for one in readings])
    assert ([one.broker for one in found.readings], found.worst.broker, found.share) == (
        ["2", "10", "host:1"],
        "2",
        0.8,
    )
