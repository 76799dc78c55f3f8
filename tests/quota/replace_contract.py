"""The contract of replacing, in addition to `QuotasContract`: each entity by itself, and no other entity changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kquota.quota import actions
from kquota.quota.actions import Outcome, apply
from kquota.quota.difference import difference
from kquota.quota.document import Document
from kquota.quota.entity import Entity, Filter
from kquota.quota.limits import Limits, QuotaChange, Replacement
from kquota.quota.port import ClusterQuotas
from kquota.terms import CONSUMER_BYTE_RATE, DEFAULT, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from tests.quota.contract import LIMITS, NAMES
from tests.waiting import attempts


def applied(quotas: ClusterQuotas, limits: Mapping[Entity, Limits]) -> Outcome:
    found = difference(Document(limits=limits), quotas.everything(), prune=False)
    return apply(quotas, found.replacements, attempts(), lambda _: None)


class ReplaceContract:
    """Subclass it with a `quotas` fixture."""

    @pytest.fixture
    def quotas(self) -> Any:
        raise NotImplementedError

    def test_named_entities_get_exactly_the_written_limits(self, quotas: ClusterQuotas) -> None:
        """The entities include users, their clients and defaults at once. On ZooKeeper, the znodes are nested."""
        entities = [Entity(user=name, client_id=client) for name in NAMES.values() for client in (None, "c", DEFAULT)]
        limits = {entity: dict(list(LIMITS.items())[: 1 + n % 4]) for n, entity in enumerate(entities)}
        assert applied(quotas, limits) == Outcome(done=tuple(sorted(limits, key=Entity.order)))
        standing = quotas.everything()
        assert {entity: standing.get(entity) for entity in limits} == limits
        assert applied(quotas, limits) == Outcome(done=())
        fewer: dict[Entity, Limits] = {entity: {REQUEST_PERCENTAGE: 1.5} for entity in entities}
        applied(quotas, fewer)
        standing = quotas.everything()
        assert {entity: standing.get(entity) for entity in fewer} == fewer
        assert applied(quotas, {key: {} for key in entities}).undone == {}
        assert not set(entities) & set(quotas.everything())

    def test_a_key_that_does_not_change_is_not_sent(self, quotas: ClusterQuotas) -> None:
        """A concurrent change of that key by another client survives, at least on the Admin API."""
        entity = Entity(user="unsent")
        applied(quotas, {entity: {PRODUCER_BYTE_RATE: 5.0, CONSUMER_BYTE_RATE: 6.0}})
        after = {PRODUCER_BYTE_RATE: 5.0, CONSUMER_BYTE_RATE: 7.0}
        (replacement,) = difference(Document(limits={entity: after}), quotas.everything(), prune=False).replacements
        assert replacement.change == QuotaChange(entity=entity, add={CONSUMER_BYTE_RATE: 7.0})
        assert quotas.replace([replacement]) == {}
        actions.alter(quotas, replacement.change, attempts())
        assert quotas.describe(Filter.of(entity)) == {entity: after}
        applied(quotas, {entity: {}})


class ConditionalContract(ReplaceContract):
    """Additional contract for connections with conditional writes."""

    def test_an_entity_that_changed_in_between_is_skipped_and_the_rest_is_written(self, quotas: ClusterQuotas) -> None:
        one, other = Entity(user="moved"), Entity(user="unmoved")
        applied(quotas, {one: {PRODUCER_BYTE_RATE: 1.0}, other: {PRODUCER_BYTE_RATE: 1.0}})
        read = quotas.everything()
        found = [Replacement(entity=e, before=read[e], after={PRODUCER_BYTE_RATE: 2.0}) for e in (one, other)]
        actions.alter(quotas, QuotaChange(entity=one, add={CONSUMER_BYTE_RATE: 9.0}), attempts())
        undone = quotas.replace(found)
        assert list(undone) == [one]
        assert "changed" in str(undone[one])
        standing = quotas.everything()
        assert standing[one] == {PRODUCER_BYTE_RATE: 1.0, CONSUMER_BYTE_RATE: 9.0}
        assert standing[other] == {PRODUCER_BYTE_RATE: 2.0}
        applied(quotas, {one: {}, other: {}})

    def test_an_entity_that_was_deleted_or_created_in_between_is_skipped(self, quotas: ClusterQuotas) -> None:
        gone, new = Entity(user="gone"), Entity(client_id="new")
        applied(quotas, {gone: {PRODUCER_BYTE_RATE: 1.0}, new: {}})
        read = quotas.everything()
        found = [
            Replacement(entity=gone, before=read[gone], after={PRODUCER_BYTE_RATE: 2.0}),
            Replacement(entity=new, before={}, after={PRODUCER_BYTE_RATE: 2.0}),
        ]
        quotas.alter(
            [
                QuotaChange(entity=gone, delete=(PRODUCER_BYTE_RATE,)),
                QuotaChange(entity=new, add={PRODUCER_BYTE_RATE: 3.0}),
            ]
        )
        assert set(quotas.replace(found)) == {gone, new}
        assert quotas.everything().get(new) == {PRODUCER_BYTE_RATE: 3.0}
        assert gone not in quotas.everything()
        applied(quotas, {new: {}})
