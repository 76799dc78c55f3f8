"""Documents applied on real servers: replacing by the contract, at scale, and with two writers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from kquota.errors import Refused
from kquota.quota.actions import Outcome, apply
from kquota.quota.difference import difference
from kquota.quota.document import Document, Scope
from kquota.quota.entity import Entity, Filter
from kquota.quota.limits import Limits, Replacement
from kquota.quota.port import ClusterQuotas
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.stores.zookeeper import quotas as in_zookeeper
from kquota.stores.zookeeper.quotas import ZooKeeperQuotas
from kquota.stores.zookeeper.znodes import Znodes
from kquota.terms import PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from tests.quota.replace_contract import ConditionalContract, ReplaceContract, applied
from tests.waiting import attempts


@pytest.mark.kafka
class TestAdminApi(ReplaceContract):
    @pytest.fixture
    def quotas(self, cluster: Sandbox) -> Iterator[WireQuotas]:
        with Wire(cluster.bootstrap, {}) as wire:
            yield WireQuotas(wire)


@pytest.mark.zookeeper
class TestZooKeeper(ConditionalContract):
    @pytest.fixture
    def quotas(self, zookeeper_quotas: ZooKeeperQuotas) -> ZooKeeperQuotas:
        return zookeeper_quotas

    def test_other_configs_in_the_node_survive(self, quotas: ZooKeeperQuotas, znode: KazooClient) -> None:
        entity, config = Entity(user="applied-scram"), {"SCRAM-SHA-256": "salt=MXVl", "unknown": "x"}
        znode.create("/config/users/applied-scram", json.dumps({"version": 1, "config": config}).encode())
        document = Document(limits={}, owns=Scope(patterns=("applied-*",)))
        assert entity not in quotas.everything()
        assert difference(document, quotas.everything(), prune=True).replacements == ()
        applied(quotas, {entity: {PRODUCER_BYTE_RATE: 5.0}})
        found = difference(document, quotas.everything(), prune=True)
        assert apply(quotas, found.replacements, attempts(), lambda _: None) == Outcome(done=(entity,))
        assert json.loads(znode.get("/config/users/applied-scram")[0])["config"] == config
        znode.delete("/config/users/applied-scram")

    def test_a_node_that_kafka_did_not_write_is_skipped(self, zookeeper: Sandbox, znode: KazooClient) -> None:
        assert zookeeper.zookeeper
        entities = [Entity(user=f"beside-{n:02}") for n in range(40)]
        znode.create("/config/users/beside-17", b"not json")
        try:
            with Znodes(zookeeper.zookeeper) as znodes:
                told: list[str] = []
                quotas = ZooKeeperQuotas(znodes, told.append)
                outcome = applied(quotas, {key: {PRODUCER_BYTE_RATE: 1.0} for key in entities})
                assert list(outcome.undone) == [entities[17]]
                why = outcome.undone[entities[17]]
                assert "not a config that Kafka wrote" in str(why)
                assert isinstance(why, Refused), "only cli writes the command of its next step"
                assert set(outcome.done) == set(entities) - {entities[17]}
                assert told
                assert znode.get("/config/users/beside-17")[0] == b"not json"
                applied(quotas, {key: {} for key in outcome.done})
        finally:
            znode.delete("/config/users/beside-17")

    def test_large_changes_use_several_transactions(self, quotas: ZooKeeperQuotas, znode: KazooClient) -> None:
        """A thousand users with long names exceed ZooKeeper's megabyte, which would end the session."""
        limits: dict[Entity, Limits] = {
            Entity(user=f"{n:04}" + "ü" * 200): {PRODUCER_BYTE_RATE: 1.0} for n in range(600)
        }
        assert applied(quotas, limits).undone == {}
        assert applied(quotas, {key: {} for key in limits}).undone == {}

    def test_the_number_of_notifications_is_limited(
        self, quotas: ZooKeeperQuotas, znode: KazooClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        standing = len(znode.get_children("/config/changes"))
        monkeypatch.setattr(in_zookeeper, "_MOST_NOTIFICATIONS", standing + 3)
        limits: dict[Entity, Limits] = {Entity(user=f"room-{n}"): {PRODUCER_BYTE_RATE: 1.0} for n in range(5)}
        outcome = applied(quotas, limits)
        assert (len(outcome.done), len(outcome.undone)) == (3, 2)
        assert all("15 minutes" in str(why) for why in outcome.undone.values())
        monkeypatch.undo()
        assert applied(quotas, limits).undone == {}
        applied(quotas, {key: {} for key in limits})

    def test_two_writers_lose_nothing(self, zookeeper: Sandbox, quotas: ZooKeeperQuotas) -> None:
        """Each writer increments one limit fifteen times.

        A write that ignored the current value would lose an increment.
        """
        assert zookeeper.zookeeper
        address, entity, errors = zookeeper.zookeeper, Entity(user="counted"), list[BaseException]()
        barrier = threading.Barrier(2)

        def count() -> None:
            try:
                with Znodes(address) as znodes:
                    mine = ZooKeeperQuotas(znodes, pytest.fail)
                    barrier.wait()
                    for _ in range(15):
                        while not counted(mine):
                            pass
            except BaseException as error:  # noqa: BLE001 - a thread's error is the test's
                errors.append(error)

        def counted(mine: ClusterQuotas) -> bool:
            before = mine.describe(Filter(user="counted")).get(entity, {})
            after = {PRODUCER_BYTE_RATE: before.get(PRODUCER_BYTE_RATE, 0.0) + 1}
            return not mine.replace([Replacement(entity=entity, before=before, after=after)])

        threads = [threading.Thread(target=count) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert quotas.everything()[entity] == {PRODUCER_BYTE_RATE: 30.0}
        applied(quotas, {entity: {}})


MANY: dict[Entity, Limits] = {
    Entity(user=f"many-{n:05}", client_id="c" if n % 10 == 0 else None): {
        PRODUCER_BYTE_RATE: 1000.0 + n,
        REQUEST_PERCENTAGE: 0.5 + n,
    }
    for n in range(10_000)
}


def _all_and_none_again(quotas: ClusterQuotas) -> None:
    sent: list[int] = []
    found = difference(Document(limits=MANY), quotas.everything(), prune=False)
    outcome = apply(quotas, found.replacements, attempts(), sent.append)
    assert outcome.undone == {}
    assert sent == [1_000] * 10
    standing = quotas.everything()
    assert {entity: standing.get(entity) for entity in MANY} == MANY
    assert difference(Document(limits=MANY), standing, prune=False).replacements == ()
    nothing = Document(limits={}, owns=Scope(patterns=("user:many-*",)))
    apply(quotas, difference(nothing, standing, prune=True).replacements, attempts(), sent.append)
    assert not set(MANY) & set(quotas.everything())


@pytest.mark.kafka
def test_ten_thousand_through_the_admin_api(kafka_431: Sandbox) -> None:
    with Wire(kafka_431.bootstrap, {}) as wire:
        _all_and_none_again(WireQuotas(wire))


@pytest.mark.zookeeper
def test_ten_thousand_in_zookeeper(zookeeper_quotas: ZooKeeperQuotas, znode: KazooClient) -> None:
    _all_and_none_again(zookeeper_quotas)
    # No broker listens here, so nothing removes these nodes, and every later test would read them.
    for path in [f"/config/changes/{name}" for name in znode.get_children("/config/changes")]:
        znode.delete_async(path)
    for entity in MANY:
        if entity.client_id is not None:
            znode.delete_async(f"/config/users/{entity.user}/clients/c")
            znode.delete_async(f"/config/users/{entity.user}/clients")
        znode.delete_async(f"/config/users/{entity.user}")
    assert not any(name.startswith("many-") for name in znode.get_children("/config/users"))
