"""The contract of a Quotas port. The fake and each real store on each real Kafka pass it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from kquota.quota import actions
from kquota.quota.entity import EVERY, Entity, Filter
from kquota.quota.limits import QuotaChange
from kquota.quota.port import ClusterQuotas
from kquota.terms import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    DEFAULT,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from tests.waiting import attempts

LIMITS = {
    PRODUCER_BYTE_RATE: 1_048_576.0,
    CONSUMER_BYTE_RATE: 20_000_000.0,
    REQUEST_PERCENTAGE: 12.5,
    CONTROLLER_MUTATION_RATE: 2.5,
}
NAMES = {
    "plain": "alice",
    "a principal": "CN=a b,O=x/ü",
    "the wire's word for the default": "<default>",
    "the same, encoded": "%3Cdefault%3E",
    "NUL": "nul\0byte",
    "a path upwards": "../../brokers/ids/1",
    "an emoji": "🦊",
    "what URLEncoder does and does not encode": "a*b~c+d.e-f_g%h&i=j",
    "a newline and an escape": "a\n\x1b[31mb",
    "right to left": "\u202eabc",
    "250 characters": "x" * 250,
}


class QuotasContract:
    """Subclass it with a `quotas` fixture."""

    @pytest.fixture
    def quotas(self) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def unique(self) -> str:
        return uuid.uuid4().hex[:8]

    @pytest.mark.parametrize(
        "entity",
        [
            pytest.param(lambda u: Entity(user=u), id="user"),
            pytest.param(lambda u: Entity(client_id=u), id="client-id"),
            pytest.param(lambda u: Entity(user=u, client_id="c" + u), id="user and client-id"),
            pytest.param(lambda u: Entity(user=u, client_id=DEFAULT), id="user and default client-id"),
            pytest.param(lambda u: Entity(user=DEFAULT, client_id=u), id="default user and client-id"),
            pytest.param(lambda _: Entity(user=DEFAULT), id="default user"),
            pytest.param(lambda _: Entity(client_id=DEFAULT), id="default client-id"),
            pytest.param(lambda _: Entity(user=DEFAULT, client_id=DEFAULT), id="both defaults"),
            pytest.param(lambda u: Entity(ip=f"10.{int(u[:2], 16)}.{int(u[2:4], 16)}.7"), id="IP"),
            pytest.param(lambda _: Entity(ip=DEFAULT), id="default IP"),
        ],
    )
    def test_set_keys_are_described_and_deleted_keys_are_not(
        self, quotas: ClusterQuotas, unique: str, entity: Callable[[str], Entity]
    ) -> None:
        one = entity(unique)
        limits = LIMITS if one.ip is None else {CONNECTION_CREATION_RATE: 12_000.0}
        actions.alter(quotas, QuotaChange(entity=one, add=limits), attempts())
        assert actions.describe(quotas, Filter.of(one)) == {one: dict(sorted(limits.items()))}
        actions.alter(quotas, QuotaChange(entity=one, delete=tuple(limits)), attempts())
        assert actions.describe(quotas, Filter.of(one)) == {}

    @pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
    def test_every_name_that_kafka_accepts_is_read_back_unchanged(self, quotas: ClusterQuotas, name: str) -> None:
        for entity in (Entity(user=name), Entity(client_id=name), Entity(user=name, client_id=name)):
            actions.alter(quotas, QuotaChange(entity=entity, add={PRODUCER_BYTE_RATE: 1.0}), attempts())
            described = actions.describe(quotas, _every_like(entity))
            assert described[entity] == {PRODUCER_BYTE_RATE: 1.0}
            assert Entity(user=DEFAULT) not in described
            actions.alter(quotas, QuotaChange(entity=entity, delete=(PRODUCER_BYTE_RATE,)), attempts())
            assert entity not in actions.describe(quotas, _every_like(entity))

    def test_a_change_leaves_the_keys_that_it_does_not_name(self, quotas: ClusterQuotas, unique: str) -> None:
        entity = Entity(user=unique)
        actions.alter(
            quotas, QuotaChange(entity=entity, add={PRODUCER_BYTE_RATE: 5.0, REQUEST_PERCENTAGE: 1.5}), attempts()
        )
        change = QuotaChange(entity=entity, add={CONSUMER_BYTE_RATE: 7.0}, delete=(PRODUCER_BYTE_RATE,))
        actions.alter(quotas, change, attempts())
        assert actions.describe(quotas, Filter(user=unique)) == {
            entity: {CONSUMER_BYTE_RATE: 7.0, REQUEST_PERCENTAGE: 1.5}
        }

    def test_repeating_a_change_has_no_effect(self, quotas: ClusterQuotas, unique: str) -> None:
        entity = Entity(client_id=unique)
        for _ in range(2):
            actions.alter(quotas, QuotaChange(entity=entity, add={CONSUMER_BYTE_RATE: 9.0}), attempts())
            assert actions.describe(quotas, Filter(client_id=unique)) == {entity: {CONSUMER_BYTE_RATE: 9.0}}

    def test_deleting_an_unset_key_succeeds_and_is_reported(self, quotas: ClusterQuotas, unique: str) -> None:
        change = QuotaChange(entity=Entity(user=unique), delete=(PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE))
        assert actions.alter(quotas, change, attempts()) == (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)

    def test_a_filter_is_strict(self, quotas: ClusterQuotas, unique: str) -> None:
        user, client = f"u{unique}", f"c{unique}"
        three = [Entity(user=user), Entity(client_id=client), Entity(user=user, client_id=client)]
        for entity in three:
            actions.alter(quotas, QuotaChange(entity=entity, add={PRODUCER_BYTE_RATE: 3.0}), attempts())
        for entity in three:
            for wanted in (_every_like(entity), Filter(user=entity.user, client_id=entity.client_id)):
                assert set(three) & set(actions.describe(quotas, wanted)) == {entity}

    def test_describing_everything_omits_nothing(self, quotas: ClusterQuotas) -> None:
        keys = [CONNECTION_CREATION_RATE if entity.ip else PRODUCER_BYTE_RATE for entity in EVERY_KIND]
        for entity, key in zip(EVERY_KIND, keys, strict=True):
            actions.alter(quotas, QuotaChange(entity=entity, add={key: 4_000.0}), attempts())
        found = quotas.everything()
        assert {entity: found.get(entity) for entity in EVERY_KIND} == {
            entity: {key: 4_000.0} for entity, key in zip(EVERY_KIND, keys, strict=True)
        }
        for entity, key in zip(EVERY_KIND, keys, strict=True):
            actions.alter(quotas, QuotaChange(entity=entity, delete=(key,)), attempts())
        assert not set(EVERY_KIND) & set(quotas.everything())

    def test_several_changes_at_once(self, quotas: ClusterQuotas, unique: str) -> None:
        """The changes include a new user and a client of this user. On ZooKeeper, one node is inside the other."""
        entities = [
            Entity(user=unique, client_id="a"),
            Entity(user=unique),
            Entity(user=unique, client_id=DEFAULT),
            Entity(client_id=unique),
        ]
        changes = [QuotaChange(entity=entity, add={PRODUCER_BYTE_RATE: 100.0 + i}) for i, entity in enumerate(entities)]
        quotas.alter(changes)
        for change in changes:
            actions.alter(quotas, change, attempts())
        assert actions.describe(quotas, Filter(user=unique, client_id=EVERY)) == {
            entities[2]: {PRODUCER_BYTE_RATE: 102.0},
            entities[0]: {PRODUCER_BYTE_RATE: 100.0},
        }


def _every_like(entity: Entity) -> Filter:
    return Filter(user=None if entity.user is None else EVERY, client_id=None if entity.client_id is None else EVERY)


EVERY_KIND = (
    Entity(user="e-u"),
    Entity(client_id="e-c"),
    Entity(user="e-u", client_id="e-c"),
    Entity(user="e-u", client_id=DEFAULT),
    Entity(ip="10.255.255.254"),
)
