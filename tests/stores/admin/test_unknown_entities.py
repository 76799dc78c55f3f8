"""Quotas of entity types that Kafka does not have: kquota names them, leaves them out, and never writes them."""

from __future__ import annotations

from typing import Any

import pytest

from kquota.quota.actions import apply
from kquota.quota.difference import difference
from kquota.quota.document import Document, Scope
from kquota.quota.entity import EVERY, Entity, Filter
from kquota.stores.admin.quotas import WireQuotas
from kquota.terms import DEFAULT, PRODUCER_BYTE_RATE
from tests.quota.contract import QuotasContract
from tests.quota.replace_contract import ReplaceContract
from tests.stores.admin.quota_broker import Parts, QuotaBroker

pytestmark = pytest.mark.unit
PREFIX: Parts = frozenset({("client-id-prefix", "etl-")})
CASES: dict[str, tuple[Parts, str]] = {
    "one part": (PREFIX, "quota of client-id-prefix 'etl-' (producer_byte_rate=1000): kquota does not know the entity"),
    "a default": (frozenset({("client-id-prefix", None)}), "quota of client-id-prefix default (producer_byte_rate"),
    "with a user": (
        frozenset({("user", "alice"), ("client-id-prefix", "etl-")}),
        "quota of client-id-prefix 'etl-' user 'alice' (producer_byte_rate=1000): kquota does not know the entity type "
        "client-id-prefix.",
    ),
}


def beside_an_unknown_entity(*, lenient: bool) -> WireQuotas:
    broker: Any = QuotaBroker(lenient=lenient)
    broker.held[PREFIX] = {PRODUCER_BYTE_RATE: 1_000.0}
    return WireQuotas(broker)


class TestBesideAnUnknownEntity(QuotasContract, ReplaceContract):
    """The contract also holds where such an entity exists, and where each answer has it."""

    @pytest.fixture(params=[False, True], ids=["strict", "lenient"])
    def quotas(self, request: pytest.FixtureRequest) -> Any:
        return beside_an_unknown_entity(lenient=request.param)


@pytest.mark.parametrize(("parts", "line"), CASES.values(), ids=CASES.keys())
def test_it_is_named_once_and_is_not_a_limit(parts: Parts, line: str) -> None:
    broker: Any = QuotaBroker(lenient=True)
    broker.held = {parts: {PRODUCER_BYTE_RATE: 1_000.0}, frozenset({("user", "bob")}): {PRODUCER_BYTE_RATE: 5.0}}
    told: list[str] = []
    quotas = WireQuotas(broker, told.append)
    assert quotas.everything() == {Entity(user="bob"): {PRODUCER_BYTE_RATE: 5.0}}
    assert quotas.describe(Filter(user=EVERY)) == {Entity(user="bob"): {PRODUCER_BYTE_RATE: 5.0}}
    assert len(told) == 1
    assert told[0].startswith(line)


def test_pruning_everything_keeps_it() -> None:
    broker: Any = QuotaBroker()
    mixed: Parts = frozenset({("user", "alice"), ("client-id-prefix", "etl-")})
    broker.held = {parts: {PRODUCER_BYTE_RATE: 1_000.0} for parts in (PREFIX, mixed)}
    broker.held |= {frozenset({("client-id", "etl-1")}): {PRODUCER_BYTE_RATE: 7.0}}
    broker.held |= {frozenset({("user", None)}): {PRODUCER_BYTE_RATE: 8.0}}
    quotas = WireQuotas(broker)
    everything = Document(limits={}, owns=Scope(patterns=("*", "default-user", "default-client", "default-ip")))
    found = difference(everything, quotas.everything(), prune=True)
    outcome = apply(quotas, found.replacements, iter(range(2)), lambda _: None)
    assert (outcome.done, outcome.undone) == ((Entity(client_id="etl-1"), Entity(user=DEFAULT)), {})
    assert {parts: held for parts, held in broker.held.items() if held} == {
        PREFIX: {PRODUCER_BYTE_RATE: 1_000.0},
        mixed: {PRODUCER_BYTE_RATE: 1_000.0},
    }
