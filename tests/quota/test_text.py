"""From an operator's words to entities, limits and changes, and what is refused on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid
from kquota.quota.change import Change
from kquota.quota.entity import EVERY, Entity, Filter
from kquota.quota.limits import keys, limits, plain
from kquota.terms import CLIENT_QUOTAS, DEFAULT

ACCEPTED = {
    "producer_byte_rate=1024": {"producer_byte_rate": 1024.0},
    "producer_byte_rate=10MB/s,consumer_byte_rate=400Mbit/s": {
        "producer_byte_rate": 10e6,
        "consumer_byte_rate": 50e6,
    },
    " request_percentage = 12.5 ": {"request_percentage": 12.5},
    "controller_mutation_rate=[2.5]": {"controller_mutation_rate": 2.5},
}
REFUSED = {
    "": "not key=value",
    "producer_byte_rate": "not key=value",
    "=5": "not key=value",
    "producer_byte_rate=": "no value",
    "producer_byte_rate=[]": "no value",
    "producer_byte_rate=1,producer_byte_rate=2": "twice",
    "producer_byte_rate=0": "at least 1 byte",
    "producer_byte_rate=-1": "not a positive number",
    "producer_byte_rate=1.5": "not a whole number",
    "producer_byte_rate=NaN": "not a positive number",
    "producer_byte_rate=inf": "not a positive number",
    "producer_byte_rate=1e999": "more than a broker",
    "producer_byte_rate=1e999999999": "not a positive number",
    "producer_byte_rate=10 Mb/s": "unknown unit 'Mb'",
    "request_percentage=0": "more than 0",
    "request_percentage=nan": "more than 0 and finite",
    "request_percentage=1e999": "more than 0 and finite",
    "request_percentage=ten": "not a number",
    "controller_mutations_rate=5": "not a quota",
    "SCRAM-SHA-256=[password=x]": "not a quota",
    "foo=1": "'foo' is not a quota",
}


@pytest.mark.parametrize(("text", "meant"), ACCEPTED.items(), ids=ACCEPTED)
def test_add_config_is_understood(text: str, meant: dict[str, float]) -> None:
    assert limits(text) == meant


@pytest.mark.parametrize(("text", "reason"), REFUSED.items(), ids=REFUSED)
def test_add_config_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        limits(text)


@pytest.mark.parametrize("text", ["", "foo", "producer_byte_rate,", "producer_byte_rate,producer_byte_rate"])
def test_delete_config_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="--delete-config"):
        keys(text)


@given(st.floats(min_value=0.001, max_value=1e15))
def test_a_stored_value_means_what_was_asked(value: float) -> None:
    assert float(plain(value)) == value


@pytest.mark.parametrize("parts", [{}, {"user": ""}, {"client_id": ""}, {"user": "a\udcffb"}])
def test_what_is_no_entity(parts: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        Entity(user=parts.get("user"), client_id=parts.get("client_id"))


@pytest.mark.parametrize("parts", [{"user": ""}, {"client_id": ""}, {"user": "a\udcffb"}])
def test_what_no_filter_can_ask_for(parts: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        Filter(user=parts.get("user"), client_id=parts.get("client_id"))


def test_the_default_is_not_a_name() -> None:
    assert Entity(user="<default>") != Entity(user=DEFAULT)
    assert not Filter(user=DEFAULT).matches(Entity(user="<default>"))
    assert Filter(user=EVERY).matches(Entity(user=DEFAULT))


names = st.one_of(st.none(), st.just(DEFAULT), st.text(min_size=1, max_size=5).filter(lambda s: s.isascii()))
entities = st.tuples(names, names).filter(any).map(lambda pair: Entity(user=pair[0], client_id=pair[1]))


@given(entities, entities)
def test_order_is_total_and_tells_entities_apart(one: Entity, other: Entity) -> None:
    assert (one.order() == other.order()) == (one == other)


@given(entities, st.dictionaries(st.sampled_from(CLIENT_QUOTAS), st.floats(1, 1e9)), st.data())
def test_a_change_in_force_is_seen(entity: Entity, before: dict[str, float], data: st.DataObject) -> None:
    add = data.draw(st.dictionaries(st.sampled_from(CLIENT_QUOTAS), st.floats(1, 1e9), max_size=2))
    delete = data.draw(st.sets(st.sampled_from([key for key in CLIENT_QUOTAS if key not in add]), min_size=1))
    change = Change(entity=entity, add=add, delete=tuple(delete))
    after = change.applied(before)
    assert change.seen(after)
    assert change.applied(after) == after
    assert {k: v for k, v in after.items() if k not in {*add, *delete}} == {
        k: v for k, v in before.items() if k not in {*add, *delete}
    }


@pytest.mark.parametrize(
    ("add", "delete"), [({}, ()), ({"producer_byte_rate": 1.0}, ("producer_byte_rate",))], ids=["nothing", "both"]
)
def test_what_is_no_change(add: dict[str, float], delete: tuple[str, ...]) -> None:
    with pytest.raises(Invalid):
        Change(entity=Entity(user="u"), add=add, delete=delete)
