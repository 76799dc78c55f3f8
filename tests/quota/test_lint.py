"""Each rule with a set of quotas in which it has a finding, and a very similar set in which it has none."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.quota.capacity import BrokerCapacity, Capacity, QuotaWindow
from kquota.quota.entity import Entity
from kquota.quota.finding import QuotaFinding
from kquota.quota.limits import Limits, plain, value
from kquota.quota.lint import lint
from kquota.quota.precedence import Client, bucket, rungs, winner
from kquota.terms import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    DEFAULT,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    BrokerId,
)
from tests.quota.fake import after

Set = Mapping[Entity, Limits]
BROKER = BrokerCapacity(
    id=BrokerId(1),
    io_threads=8,
    network_threads=3,
    listeners=2,
    largest_batch=1_000_000,
    window=QuotaWindow(samples=11, seconds=1),
)
CLUSTER = Capacity(brokers=(BROKER,))
MB = 1e6


def user(name: Any, client_id: Any = None, **limits: float) -> Set:
    return {Entity(user=name, client_id=client_id): limits or {PRODUCER_BYTE_RATE: MB}}


def client(client_id: Any, **limits: float) -> Set:
    return {Entity(client_id=client_id): limits or {PRODUCER_BYTE_RATE: MB}}


def ip(name: Any, rate: float = 10.0) -> Set:
    return {Entity(ip=name): {CONNECTION_CREATION_RATE: rate}}


def rate(value: float, key: str = PRODUCER_BYTE_RATE) -> Set:
    return {Entity(user="u"): {key: value}}


RULES: dict[str, tuple[str, Set, Set]] = {
    "a client-id under the default user": (
        "unreachable",
        {**user(DEFAULT), **client("c")},
        {**user(DEFAULT), **client("c", consumer_byte_rate=MB)},
    ),
    "the default client-id under both defaults": (
        "unreachable",
        {**user(DEFAULT, DEFAULT), **client(DEFAULT)},
        {**user("u", DEFAULT), **client(DEFAULT)},
    ),
    "a user under its default client-id": (
        "only-without-client-id",
        {**user("u", DEFAULT), **user("u", producer_byte_rate=2 * MB)},
        {**user("v", DEFAULT), **user("u", producer_byte_rate=2 * MB)},
    ),
    "the default user under both defaults": (
        "only-without-client-id",
        {**user(DEFAULT, DEFAULT), **user(DEFAULT, producer_byte_rate=2 * MB)},
        {**user(DEFAULT, "c"), **user(DEFAULT, producer_byte_rate=2 * MB)},
    ),
    "a user equal to the default user": (
        "redundant",
        {**user(DEFAULT), **user("u")},
        {**user(DEFAULT), **user("u", producer_byte_rate=2 * MB)},
    ),
    "a user equal to the default user, which a client-id would come before": (
        "redundant",
        {**user(DEFAULT), **user("u"), **user("v", "c")},
        {**user(DEFAULT), **user("u"), **user(DEFAULT, "c", producer_byte_rate=5 * MB)},
    ),
    "a client-id equal to the user's default one": (
        "redundant",
        {**user("u", DEFAULT), **user("u", "c")},
        # The same limit, but each client now has its own bucket.
        {**user("u"), **user("u", "c")},
    ),
    "a client-id equal to the default one": (
        "redundant",
        {**client(DEFAULT), **client("c")},
        {**client(DEFAULT, consumer_byte_rate=MB), **client("c")},
    ),
    "an IP equal to the default": (
        "redundant",
        {**ip(DEFAULT), **ip("10.0.0.1")},
        {**ip(DEFAULT, 9), **ip("10.0.0.1")},
    ),
    "not a number": ("not-a-rate", rate(float("nan")), rate(MB)),
    "infinity": ("not-a-rate", rate(float("inf")), rate(2.0**63)),
    "zero": ("not-a-rate", rate(0, CONTROLLER_MUTATION_RATE), rate(0.1, CONTROLLER_MUTATION_RATE)),
    "negative": ("not-a-rate", rate(-1, CONSUMER_BYTE_RATE), rate(MB, CONSUMER_BYTE_RATE)),
    "10000 without a unit": ("low-rate", rate(10_000), rate(10_000_000)),
    "10 without a unit": ("low-rate", rate(10), rate(10 * MB)),
    "4.1 without a unit": ("low-rate", rate(4.1), rate(4_100_000)),
    "a share of a thread that binary fractions cannot show": (
        "low-percentage",
        rate(0.57, REQUEST_PERCENTAGE),
        rate(57, REQUEST_PERCENTAGE),
    ),
    "a rate that no unit makes high enough": ("low-rate", rate(0.01), rate(100_000)),
    "a window that holds just less than one batch": ("low-rate", rate(99_999), rate(100_000)),
    "a share where a percentage is meant": (
        "low-percentage",
        rate(0.5, REQUEST_PERCENTAGE),
        rate(1, REQUEST_PERCENTAGE),
    ),
    "a share that is also too low as a fraction": (
        "low-percentage",
        rate(0.005, REQUEST_PERCENTAGE),
        rate(1, REQUEST_PERCENTAGE),
    ),
    "more threads than there are": (
        "above-capacity",
        rate(1401, REQUEST_PERCENTAGE),
        # Two listeners: (8 + 2 x 3) x 100.
        rate(1400, REQUEST_PERCENTAGE),
    ),
    "a znode's name": ("looks-encoded", user("CN%3Dalice%20b"), user("CN=alice b")),
    "a znode's name as Java writes it": ("looks-encoded", user("a%7Eb"), user("a~b")),
    "a percentage in a name": ("looks-encoded", client("%2A"), client("50%2")),
    "the default's znode": ("looks-encoded", user("<default>"), user("default")),
    "the default's znode, encoded": ("looks-encoded", user("u", "%3Cdefault%3E"), user("u", DEFAULT)),
    "a principal's type": ("principal-type", user("User:alice"), user("Username:alice")),
    "white space before": ("white-space", user(" alice"), user("al ice")),
    "white space behind": ("white-space", client("c\t"), client("c")),
    "nothing but white space": ("white-space", client("  "), client("-")),
    "a host's name": ("host-name", ip("broker.example"), ip("10.0.0.1")),
    "half an address": ("host-name", ip("10.1"), ip("fe80::1%eth0")),
    "an address with a scope": ("scoped-address", ip("fe80::1%eth0"), ip("fe80%eth0")),
    "one address in two spellings": (
        "same-address",
        {**ip("::ffff:10.0.0.1"), **ip("10.0.0.1")},
        {**ip("10.0.0.2"), **ip("10.0.0.1")},
    ),
    "two cases of one name": ("look-alike", {**user("alice"), **user("Alice")}, {**user("alice"), **client("Alice")}),
    "a name beside its encoded self": (
        "look-alike",
        {**client("a b"), **user("u", "a%20b")},
        {**client("a b"), **user("u", "a b")},
    ),
}


def found(rule: str, quotas: Set, cluster: Capacity = CLUSTER) -> list[QuotaFinding]:
    return [finding for finding in lint(quotas, cluster) if finding.rule == rule]


@pytest.mark.parametrize(("rule", "fires", "silent"), RULES.values(), ids=RULES)
def test_a_rule(rule: str, fires: Set, silent: Set) -> None:
    assert len(found(rule, fires)) == 1
    assert found(rule, silent) == []


@pytest.mark.parametrize(("rule", "fires"), [case[:2] for case in RULES.values()], ids=RULES)
def test_the_proposed_commands_fix_the_finding(rule: str, fires: Set) -> None:
    (finding,) = found(rule, fires)
    cured = {entity: dict(limits) for entity, limits in fires.items()}
    for change in finding.cure:
        cured[change.entity] = after(change, cured.get(change.entity, {}))
        assert all(value(key, plain(limit)) == limit for key, limit in change.add.items()), "as an operator pastes it"
    assert found(rule, {entity: limits for entity, limits in cured.items() if limits}) == [] or not finding.cure


def test_a_renamed_entity_keeps_its_limits_unless_the_target_has_them() -> None:
    limits = {PRODUCER_BYTE_RATE: 1 * MB, CONSUMER_BYTE_RATE: 2 * MB}
    (finding,) = found("principal-type", {**user("User:u", **limits), **user("u", producer_byte_rate=3 * MB)})
    assert [(change.entity, change.add, set(change.delete)) for change in finding.cure] == [
        (Entity(user="u"), {CONSUMER_BYTE_RATE: 2 * MB}, set()),
        (Entity(user="User:u"), {}, set(limits)),
    ]
    assert finding.do == "user 'u' already has producer_byte_rate, so compare the values. To keep those of user 'u':"


UNKNOWN = Capacity(brokers=(BrokerCapacity(id=BrokerId(1)),))


@pytest.mark.parametrize("cluster", [UNKNOWN, Capacity(brokers=None)], ids=["silent brokers", "no brokers"])
def test_unknown_values_are_not_guessed(cluster: Capacity) -> None:
    assert found("above-capacity", rate(1e9, REQUEST_PERCENTAGE), cluster) == []
    (finding,) = found("low-rate", rate(10_000), cluster)
    assert "message.max.bytes=1048588 takes more than 10 s (Kafka's default message.max.bytes and quota" in finding.why


def test_a_reported_batch_size_is_not_called_a_default() -> None:
    shorter = replace(BROKER, id=BrokerId(2), window=QuotaWindow(samples=6, seconds=1))
    (finding,) = found("low-rate", rate(10_000), Capacity(brokers=(BROKER, shorter)))
    assert "message.max.bytes=1000000 takes more than 10 s (Kafka's default quota window, because" in finding.why
    (finding,) = found("low-rate", rate(10_000))
    assert finding.why.endswith("takes more than 10 s")


def test_brokers_that_are_too_old() -> None:
    quotas = rate(5, CONTROLLER_MUTATION_RATE)
    (finding,) = found("ignored", quotas, Capacity(brokers=None, release=(2, 6)))
    assert "needs Kafka 2.7, and the brokers run 2.6" in finding.why
    for release in ((2, 7), None):
        assert found("ignored", quotas, Capacity(brokers=None, release=release)) == []


def test_a_quota_callback_replaces_kafkas_rules() -> None:
    cluster = Capacity(brokers=(BROKER, BrokerCapacity(id=BrokerId(2), callback="com.example.Quotas")))
    (finding,) = found("quota-callback", {}, cluster)
    assert finding.entity is None
    assert "com.example.Quotas" in finding.what
    assert found("quota-callback", {}) == []


def test_a_correct_set_has_no_findings() -> None:
    quotas = {
        **user(DEFAULT, consumer_byte_rate=50 * MB, request_percentage=200),
        **user("alice", producer_byte_rate=10 * MB),
        **user("alice", "etl", producer_byte_rate=5 * MB, controller_mutation_rate=5),
        **client("batch", producer_byte_rate=20 * MB),
        **ip(DEFAULT, 20),
        **ip("10.0.0.1", 100),
    }
    assert lint(quotas, CLUSTER) == ()


def test_the_order_of_findings_does_not_depend_on_the_input_order() -> None:
    sets = [case[1] for case in RULES.values()]
    merged = dict(itertools.chain.from_iterable(one.items() for one in sets))
    backwards = dict(reversed(merged.items()))
    assert lint(merged, CLUSTER) == lint(backwards, CLUSTER)


names = st.one_of(st.none(), st.just(DEFAULT), st.sampled_from("ab"))
entities = st.tuples(names, names).filter(any).map(lambda pair: Entity(user=pair[0], client_id=pair[1]))
sets = st.dictionaries(entities, st.sampled_from([1 * MB, 2 * MB]).map(lambda r: {PRODUCER_BYTE_RATE: r}), max_size=9)


@given(sets)
def test_removing_a_redundant_quota_changes_no_client(quotas: Set) -> None:
    everybody = [Client(user=u, client_id=c) for u, c in itertools.product("abz", ["a", "b", "z", ""])]

    def held(among: Set) -> list[object]:
        wins = [(c, winner(rungs(among, c, PRODUCER_BYTE_RATE))) for c in everybody]
        return [None if won is None else (won.value, bucket(won.level, c)) for c, won in wins]

    def binds(entity: Entity) -> bool:
        wins = [(c, winner(rungs(quotas, c, PRODUCER_BYTE_RATE))) for c in everybody]
        return any(won is not None and won.entity == entity for c, won in wins if c.client_id)

    for entity in quotas:
        without = {other: limits for other, limits in quotas.items() if other != entity}
        missed = held(without) != held(quotas)
        redundant = [finding.entity for finding in found("redundant", quotas)]
        assert (entity in redundant) == (binds(entity) and not missed)
