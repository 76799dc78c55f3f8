"""The effect of a binding quota: on a broker, in the cluster, as a burst. Unknown values are never guessed."""

from __future__ import annotations

import pytest

from kquota.errors import Invalid
from kquota.quota.capacity import BrokerCapacity, Capacity, QuotaWindow
from kquota.quota.entity import Entity
from kquota.quota.explain import KeyAnswer, address, explain
from kquota.quota.precedence import Client, Per
from kquota.quota_keys import quotas_of
from kquota.terms import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    DEFAULT,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USERS,
    BrokerId,
)

CLIENT_QUOTAS = quotas_of([USERS])
ALICE = Client(user="alice", client_id="c")
LIMITS = {PRODUCER_BYTE_RATE: 5e6, CONSUMER_BYTE_RATE: 7e6, REQUEST_PERCENTAGE: 50.0, CONTROLLER_MUTATION_RATE: 2.0}
QUOTAS = {Entity(user="alice"): LIMITS, Entity(ip=DEFAULT): {CONNECTION_CREATION_RATE: 9.0}}
THREE = Capacity(
    brokers=tuple(
        BrokerCapacity(
            id=BrokerId(id_),
            window=QuotaWindow(samples=11, seconds=1),
            mutation_window=QuotaWindow(samples=100, seconds=1),
            controllers=frozenset(),
            static={PRODUCER_BYTE_RATE: 1000.0 * id_},
        )
        for id_ in (1, 2, 3)
    )
)


def answers(cluster: Capacity, client: Client = ALICE, ip: str | None = None) -> dict[str, KeyAnswer]:
    return {answer.key: answer for answer in explain(QUOTAS, cluster, client=client, ip=ip).answers}


FIGURES = {
    PRODUCER_BYTE_RATE: (5e6, 15e6, 50e6, 10),
    CONSUMER_BYTE_RATE: (7e6, 21e6, 70e6, 10),
    # Its delay is at most one window, and unused quota is not saved.
    REQUEST_PERCENTAGE: (50.0, 150.0, None, None),
    # Only the controller counts, and its bucket holds all samples.
    CONTROLLER_MUTATION_RATE: (2.0, 2.0, 200.0, 100),
    CONNECTION_CREATION_RATE: (9.0, 27.0, 90.0, 10),
}


@pytest.mark.parametrize(("key", "figures"), FIGURES.items(), ids=FIGURES)
def test_the_figures(key: str, figures: tuple[float, float, float | None, int | None]) -> None:
    answer = answers(THREE, ip="10.0.0.1")[key]
    assert (answer.limit, answer.cluster, answer.burst, answer.burst_seconds) == figures


def test_keys_come_in_one_order_and_each_has_a_unit() -> None:
    assert tuple(answers(THREE, ip="10.0.0.1")) == (*CLIENT_QUOTAS, CONNECTION_CREATION_RATE)
    assert all(answer.row.unit for answer in answers(THREE, ip="10.0.0.1").values())
    assert [a.key for a in explain(QUOTAS, THREE, client=None, ip="::1").answers] == [CONNECTION_CREATION_RATE]


def test_an_unknown_value_is_null() -> None:
    for key, answer in answers(Capacity(brokers=None), ip="10.0.0.1").items():
        assert answer.limit is not None
        assert (answer.burst, answer.burst_seconds) == (None, None)
        assert answer.cluster == (answer.limit if key == CONTROLLER_MUTATION_RATE else None)


def test_an_ip_without_a_limit_shares_no_bucket() -> None:
    (answer,) = explain({}, THREE, client=None, ip="10.0.0.1").answers
    assert (answer.limit, answer.per, answer.shared) == (None, None, None)


def test_a_static_default_binds_if_no_level_does() -> None:
    """Kafka before 3.0. The bucket belongs to the client-id, and a client without one has no bucket."""
    bob = answers(THREE, Client(user="bob", client_id="c"))[PRODUCER_BYTE_RATE]
    assert (bob.winner, bob.limit, bob.static, bob.per) == (None, 1000.0, "quota.producer.default", Per.CLIENT)
    assert answers(THREE)[PRODUCER_BYTE_RATE].static is None
    assert answers(THREE, Client(user="bob", client_id=""))[PRODUCER_BYTE_RATE].limit is None
    assert answers(THREE, Client(user="bob", client_id="c"))[CONSUMER_BYTE_RATE].limit is None


ADDRESSES = {
    "10.0.0.1": ("10.0.0.1", True),
    "the same as IPv6": ("::ffff:10.0.0.1", True),
    "another": ("10.0.0.2", False),
}


@pytest.mark.parametrize(("asked", "own"), ADDRESSES.values(), ids=ADDRESSES)
def test_spellings_of_one_ip_are_equal(asked: str, own: bool) -> None:
    quotas = {
        Entity(ip="10.0.0.1"): {CONNECTION_CREATION_RATE: 5.0},
        Entity(ip="host.example"): {CONNECTION_CREATION_RATE: 1.0},
        Entity(ip=DEFAULT): {CONNECTION_CREATION_RATE: 9.0},
    }
    explained = explain(quotas, THREE, client=None, ip=asked)
    (answer,) = explained.answers
    assert answer.limit == (5.0 if own else 9.0)
    assert explained.unresolved == ("host.example",)


def test_a_host_name_is_not_an_ip() -> None:
    assert address("host.example") is None
    assert address("fe80::1%eth0") is None
    with pytest.raises(Invalid, match="not an IP address"):
        explain({}, THREE, client=None, ip="host.example")
