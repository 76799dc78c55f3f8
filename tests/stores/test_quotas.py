"""The Quotas contract on real servers: through the Admin API of each Kafka, and in each ZooKeeper."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient

from kquota.errors import Invalid, KquotaError, Refused
from kquota.quota.entity import EVERY, Entity, Filter
from kquota.quota.limits import QuotaChange
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.stores.zookeeper.quotas import ZooKeeperQuotas
from kquota.stores.zookeeper.znode import decoded, encoded
from kquota.stores.zookeeper.znodes import Znodes
from kquota.terms import CONSUMER_BYTE_RATE, DEFAULT, PRODUCER_BYTE_RATE
from tests.quota.contract import NAMES, QuotasContract
from tests.quota.scram_contract import ScramContract

SCRAM = {"SCRAM-SHA-256": "salt=MXVl,stored_key=dGVz,server_key=a+/=,iterations=8192", "unknown": 'é "quoted"'}


@pytest.mark.kafka
class TestAdminApi(QuotasContract):
    @pytest.fixture
    def quotas(self, cluster: Sandbox) -> Iterator[WireQuotas]:
        with Wire(cluster.bootstrap, {}) as wire:
            yield WireQuotas(wire)


@pytest.mark.kafka
class TestScramAdminApi(ScramContract):
    @pytest.fixture
    def principals(self, cluster: Sandbox) -> Iterator[WireQuotas]:
        with Wire(cluster.bootstrap, {}) as wire:
            yield WireQuotas(wire)


class _Interrupted:
    """kazoo's own socket, in a process that receives Ctrl-C at the worst moment."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def send(self, data: bytes) -> None:
        signal.raise_signal(signal.SIGINT)
        self._socket.send(data)


@pytest.fixture
def hears() -> Iterator[None]:
    """A background job of a shell ignores Ctrl-C. This test receives it as on a terminal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.zookeeper
def test_ctrl_c_is_not_reported_as_a_lost_connection(zookeeper: Sandbox, hears: None) -> None:
    assert zookeeper.zookeeper
    with Znodes(zookeeper.zookeeper) as znodes:
        connection: Any = znodes._client._connection
        connection._write_sock = _Interrupted(connection._write_sock)
        with pytest.raises(KeyboardInterrupt):
            znodes.read("/config")
        connection._write_sock = connection._write_sock._socket
        assert znodes.read("/config") is not None


@pytest.mark.zookeeper
class TestZooKeeper(QuotasContract):
    @pytest.fixture
    def quotas(self, zookeeper_quotas: ZooKeeperQuotas) -> ZooKeeperQuotas:
        return zookeeper_quotas

    @pytest.mark.parametrize("name", [".", ".."])
    def test_names_that_no_znode_can_have_are_refused(self, quotas: ZooKeeperQuotas, name: str) -> None:
        with pytest.raises(
            Invalid, match=r"^neither kquota nor a broker can store the name .* in ZooKeeper\. Use another name$"
        ):
            quotas.alter([QuotaChange(entity=Entity(user=name), add={PRODUCER_BYTE_RATE: 1.0})])


@pytest.mark.zookeeper
class TestScramZooKeeper(ScramContract):
    @pytest.fixture
    def principals(self, zookeeper_quotas: ZooKeeperQuotas) -> ZooKeeperQuotas:
        return zookeeper_quotas


@pytest.mark.zookeeper
class TestLayout:
    """FACTS: the path of an entity, the content of its node, and the notification of brokers."""

    def test_node_and_notification(self, zookeeper_quotas: ZooKeeperQuotas, znode: KazooClient) -> None:
        before = set(znode.get_children("/config/changes"))
        entity = Entity(user="CN=layout b,O=x/ü", client_id=DEFAULT)
        zookeeper_quotas.alter([QuotaChange(entity=entity, add={PRODUCER_BYTE_RATE: 1024.0})])
        path = "users/CN%3Dlayout%20b%2CO%3Dx%2F%C3%BC/clients/<default>"
        assert znode.get(f"/config/{path}")[0] == b'{"version":1,"config":{"producer_byte_rate":"1024"}}'
        assert znode.get("/config/users/CN%3Dlayout%20b%2CO%3Dx%2F%C3%BC")[0] == b""
        (new,) = set(znode.get_children("/config/changes")) - before
        assert json.loads(znode.get(f"/config/changes/{new}")[0]) == {"version": 2, "entity_path": path}

    def test_live_brokers_are_the_registered_ones(self, zookeeper_quotas: ZooKeeperQuotas, znode: KazooClient) -> None:
        names = ("5", "abc", "-1", "٣")
        for name in names:
            znode.create(f"/brokers/ids/{name}", b"{}", makepath=True)
        assert zookeeper_quotas.brokers() == {5}
        for name in names:
            znode.delete(f"/brokers/ids/{name}")

    def test_a_change_that_changes_nothing_writes_nothing(
        self, zookeeper_quotas: ZooKeeperQuotas, znode: KazooClient
    ) -> None:
        change = QuotaChange(entity=Entity(user="still"), add={PRODUCER_BYTE_RATE: 7.0})
        zookeeper_quotas.alter([change])
        stood = znode.get("/config/users/still")[1].version, znode.get_children("/config/changes")
        zookeeper_quotas.alter([change])
        assert (znode.get("/config/users/still")[1].version, znode.get_children("/config/changes")) == stood

    def test_other_configs_in_the_node_survive_and_are_not_shown(
        self, zookeeper_quotas: ZooKeeperQuotas, znode: KazooClient
    ) -> None:
        znode.create("/config/users/scrammed", json.dumps({"version": 1, "config": SCRAM, "more": [1]}).encode())
        entity = Entity(user="scrammed")
        zookeeper_quotas.alter([QuotaChange(entity=entity, add={PRODUCER_BYTE_RATE: 5.0})])
        assert zookeeper_quotas.describe(Filter(user=EVERY))[entity] == {PRODUCER_BYTE_RATE: 5.0}
        zookeeper_quotas.alter([QuotaChange(entity=entity, delete=(PRODUCER_BYTE_RATE,))])
        assert json.loads(znode.get("/config/users/scrammed")[0]) == {"version": 1, "config": SCRAM, "more": [1]}

    @pytest.mark.parametrize("data", [b"not json", b'{"version":3,"config":{}}', b'{"version":1,"config":[]}', b"[]"])
    def test_a_node_that_kafka_did_not_write_is_never_replaced(
        self, zookeeper_quotas: ZooKeeperQuotas, znode: KazooClient, data: bytes
    ) -> None:
        znode.create("/config/users/strange", data)
        try:
            with pytest.raises(Refused, match="/config/users/strange"):
                zookeeper_quotas.alter([QuotaChange(entity=Entity(user="strange"), add={PRODUCER_BYTE_RATE: 5.0})])
            assert znode.get("/config/users/strange")[0] == data
        finally:
            znode.delete("/config/users/strange")

    def test_an_unreadable_node_does_not_hide_the_others(self, zookeeper: Sandbox, znode: KazooClient) -> None:
        assert zookeeper.zookeeper
        told: list[str] = []
        znode.create("/config/clients/%C3%28", b'{"version":1,"config":{"producer_byte_rate":"1"}}', makepath=True)
        znode.create("/config/clients/bad", b'{"version":1,"config":{"producer_byte_rate":"ten"}}', makepath=True)
        znode.create("/config/clients/good", b'{"version":1,"config":{"producer_byte_rate":"1"}}', makepath=True)
        try:
            with Znodes(zookeeper.zookeeper) as znodes:
                found = ZooKeeperQuotas(znodes, told.append).describe(Filter(client_id=EVERY))
            assert found[Entity(client_id="good")] == {PRODUCER_BYTE_RATE: 1.0}
            assert Entity(client_id="bad") not in found
            assert len(told) == 2
        finally:
            for node in ("%C3%28", "bad", "good"):
                znode.delete(f"/config/clients/{node}")

    def test_two_writers_lose_nothing(self, zookeeper: Sandbox, zookeeper_quotas: ZooKeeperQuotas) -> None:
        """Kafka's own tool ignores the node's version, and loses updates."""
        assert zookeeper.zookeeper
        address, errors, entity = zookeeper.zookeeper, list[KquotaError](), Entity(user="contended")
        barrier = threading.Barrier(2)

        def write(key: str) -> None:
            try:
                with Znodes(address) as znodes:
                    mine = ZooKeeperQuotas(znodes, pytest.fail)
                    barrier.wait()
                    for value in range(1, 101):
                        mine.alter([QuotaChange(entity=entity, add={key: float(value)})])
                        assert mine.describe(Filter(user="contended"))[entity][key] == value
            except KquotaError as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=(key,)) for key in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        found = zookeeper_quotas.describe(Filter(user="contended"))
        assert found == {entity: {PRODUCER_BYTE_RATE: 100.0, CONSUMER_BYTE_RATE: 100.0}}


@pytest.mark.zookeeper
class TestWhoseZooKeeper:
    @pytest.mark.parametrize(
        ("nodes", "reason"),
        [
            ({}, "not the ZooKeeper of a Kafka cluster"),
            ({"/config/changes": b""}, "not the ZooKeeper of a Kafka cluster"),
            (
                {"/brokers/ids": b"", "/config/changes": b"", "/controller": b'{"kraftControllerEpoch":3}'},
                "KRaft or migrating",
            ),
            ({"/brokers/ids": b"", "/config/changes": b"", "/migration": b"{}"}, "KRaft or migrating"),
        ],
        ids=["empty", "half", "KRaft", "in migration"],
    )
    def test_a_refused_change_has_no_effect(
        self,
        zookeeper: Sandbox,
        znode: KazooClient,
        nodes: dict[str, bytes],
        reason: str,
        request: pytest.FixtureRequest,
    ) -> None:
        root = f"/{request.node.callspec.id.replace(' ', '-')}"
        znode.create(root)
        for path, data in nodes.items():
            znode.create(root + path, data, makepath=True)
        before = znode.get_children(root)
        with pytest.raises(Refused, match=reason):
            Znodes(f"{zookeeper.zookeeper}{root}").close()
        assert znode.get_children(root) == before

    def test_a_zookeeper_cluster_of_kafka_39_is_not_kraft(self, zookeeper: Sandbox, znode: KazooClient) -> None:
        """Its /controller contains kraftControllerEpoch -1."""
        for path in ("/plain/brokers/ids", "/plain/config/changes"):
            znode.create(path, b"", makepath=True)
        znode.create("/plain/controller", b'{"version":2,"brokerid":1,"kraftControllerEpoch":-1}')
        with Znodes(f"{zookeeper.zookeeper}/plain") as znodes:
            assert ZooKeeperQuotas(znodes, pytest.fail).describe(Filter(user=EVERY)) == {}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_name_survives_its_encoding(name: str) -> None:
    assert decoded(encoded(name)) == name
    assert "/" not in encoded(name)
