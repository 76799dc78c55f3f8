"""Parsing an operator's words into entities, limits and changes, and the errors."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.cli.configs.quotas import limits, must_be_quotas
from kquota.errors import Invalid
from kquota.quota.capacity import Capacity
from kquota.quota.entity import Entity, Filter
from kquota.quota.limits import QuotaChange, plain
from kquota.quota_keys import QUOTA_KEYS, quotas_of
from kquota.terms import CLIENTS, DEFAULT, IPS, USERS
from tests.quota.fake import after

CLIENT_QUOTAS = quotas_of([USERS])
ACCEPTED = {
    "a bare number": ({"producer_byte_rate": "1024"}, {"producer_byte_rate": 1024.0}),
    "units": (
        {"producer_byte_rate": "10MB/s", "consumer_byte_rate": "400Mbit/s"},
        {"producer_byte_rate": 10e6, "consumer_byte_rate": 50e6},
    ),
    "a fraction of a percent": ({"request_percentage": "12.5"}, {"request_percentage": 12.5}),
    "an exponent": ({"controller_mutation_rate": "2.5e1"}, {"controller_mutation_rate": 25.0}),
}
REFUSED = {
    "producer_byte_rate=": "no value",
    "producer_byte_rate=0": "at least 1 byte",
    "producer_byte_rate=-1": "not a positive number",
    "producer_byte_rate=1.5": "not a whole number",
    "producer_byte_rate=NaN": "not a positive number",
    "producer_byte_rate=inf": "not a positive number",
    "producer_byte_rate=1e999": "must be at most 2^63 - 1 bytes per second",
    "producer_byte_rate=1e999999999": "not a positive number",
    "producer_byte_rate=10 Mb/s": "unknown unit 'Mb'",
    "request_percentage=0": "more than 0",
    "request_percentage=-5": "more than 0",
    "request_percentage=nan": "more than 0 and finite",
    "request_percentage=-Infinity": "more than 0 and finite",
    "request_percentage=1e999": "more than 0 and finite",
    "request_percentage=ten": "not a number",
    "request_percentage=1_000": "not a number",
    "request_percentage=1\x1c": "not a number",
    "request_percentage=\u0661": "not a number",
    "scram-sha-256=x": "Only quota and SCRAM credential configs can be added for 'users'. Unexpected config names:",
    "foo=1": "Only quota and SCRAM credential configs can be added for 'users'. Unexpected config names: foo",
    "connection_creation_rate=5": "Unexpected config names: connection_creation_rate",
}
REFUSED_OF_IPS = {
    "producer_byte_rate=5": "Only quota configs can be added for 'ips'. Unexpected config names: producer_byte_rate",
    "connection_creation_rate=1.5": "a whole number",
    "connection_creation_rate=0": "more than 0",
    "connection_creation_rate=2147483648": "at most",
}


@pytest.mark.parametrize(("pairs", "meant"), ACCEPTED.values(), ids=ACCEPTED)
def test_valid_limits(pairs: dict[str, str], meant: dict[str, float]) -> None:
    assert limits(pairs, [USERS], "--add-config") == meant


@pytest.mark.parametrize(
    ("kind", "pair", "reason"),
    [(USERS, *case) for case in REFUSED.items()] + [(IPS, *case) for case in REFUSED_OF_IPS.items()],
    ids=[*REFUSED, *REFUSED_OF_IPS],
)
def test_limits_are_refused(kind: str, pair: str, reason: str) -> None:
    key, _, text = pair.partition("=")
    with pytest.raises(Invalid, match="^--add-config: .*" + re.escape(reason)):
        limits({key: text}, [kind], "--add-config")


def test_keys_that_are_not_quotas_are_not_deleted() -> None:
    with pytest.raises(Invalid, match="Only quota configs can be deleted for 'users' and 'clients'"):
        must_be_quotas(["producer_byte_rate", "foo"], [USERS, CLIENTS], "--delete-config", "deleted")


@pytest.mark.parametrize(
    ("release", "ignored"),
    [
        ((2, 6), ("controller_mutation_rate", "connection_creation_rate")),
        ((2, 6, 3), ("controller_mutation_rate", "connection_creation_rate")),
        ((2, 7), ()),
        ((4, 3), ()),
    ],
)
def test_older_brokers_do_not_support_every_quota(release: tuple[int, ...], ignored: tuple[str, ...]) -> None:
    assert tuple(filter(Capacity(brokers=None, release=release).ignores, QUOTA_KEYS)) == ignored


@given(st.floats(min_value=0.001, max_value=1e15))
def test_a_stored_value_has_the_requested_meaning(value: float) -> None:
    assert float(plain(value)) == value


@pytest.mark.parametrize("parts", [{}, {"user": ""}, {"client_id": ""}, {"user": "a\udcffb"}, {"user": "é" * 16_384}])
def test_invalid_entities(parts: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        Entity(user=parts.get("user"), client_id=parts.get("client_id"))


@pytest.mark.parametrize("parts", [{"user": ""}, {"client_id": ""}, {"user": "a\udcffb"}])
def test_invalid_filters(parts: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        Filter(user=parts.get("user"), client_id=parts.get("client_id"))


def test_the_default_is_not_a_name() -> None:
    assert Entity(user="<default>") != Entity(user=DEFAULT)


names = st.one_of(st.none(), st.just(DEFAULT), st.text(min_size=1, max_size=5).filter(lambda s: s.isascii()))
entities = st.tuples(names, names).filter(any).map(lambda pair: Entity(user=pair[0], client_id=pair[1]))


@given(entities, entities)
def test_the_order_is_total_and_distinguishes_entities(one: Entity, other: Entity) -> None:
    assert (one.order() == other.order()) == (one == other)


@given(entities, st.dictionaries(st.sampled_from(CLIENT_QUOTAS), st.floats(1, 1e9)), st.data())
def test_a_change_in_force_is_recognized(entity: Entity, before: dict[str, float], data: st.DataObject) -> None:
    add = data.draw(st.dictionaries(st.sampled_from(CLIENT_QUOTAS), st.floats(1, 1e9), max_size=2))
    delete = data.draw(st.sets(st.sampled_from([key for key in CLIENT_QUOTAS if key not in add]), min_size=1))
    change = QuotaChange(entity=entity, add=add, delete=tuple(delete))
    assert change.seen(after(change, before))


@pytest.mark.parametrize(
    ("add", "delete"), [({}, ()), ({"producer_byte_rate": 1.0}, ("producer_byte_rate",))], ids=["nothing", "both"]
)
def test_invalid_changes(add: dict[str, float], delete: tuple[str, ...]) -> None:
    with pytest.raises(Invalid):
        QuotaChange(entity=Entity(user="u"), add=add, delete=delete)
