"""The Configs contract on real servers: through the Admin API of each Kafka, and in each ZooKeeper."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType
from kazoo.client import KazooClient

from kquota.errors import Incomplete, Invalid, KquotaError, Refused
from kquota.sandbox.cluster import Sandbox
from kquota.settings.change import ConfigChange, meaning
from kquota.settings.port import Configs
from kquota.settings.resource import BROKERS, TOPICS, Resource
from kquota.stores.admin.configs import WireConfigs
from kquota.stores.admin.connection import Wire
from kquota.stores.zookeeper.configs import ZooKeeperConfigs
from kquota.stores.zookeeper.znodes import Znodes
from kquota.terms import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, LOG_DIR_RATE
from tests.canary import CANARY
from tests.settings.contract import DEFAULT_BROKER, HARMLESS, ConfigsContract, Stage, broker
from tests.stores.moves_stage import OtherHand
from tests.waiting import until


class RealStage:
    """A contract's stage on servers. Settings of brokers are removed when it closes."""

    def __init__(self, configs: Configs, hand: OtherHand) -> None:
        self.configs = configs
        self._hand = hand

    def topic(self) -> Resource:
        topic = Resource(kind=TOPICS, name=self._hand.topic({0: [1]}, size=1))
        # Brokers learn of a new topic at different times.
        until(lambda: topic in self.configs.describe([topic]), f"{topic} is seen")
        return topic

    def held(self, resource: Resource) -> Mapping[str, str]:
        with Wire(self._hand.servers.bootstrap, {}) as wire:
            found = WireConfigs(wire).describe([resource])[resource]
        return {entry.key: str(entry.value) for entry in found if entry.dynamic}

    def close(self) -> None:
        for resource in (broker(1), broker(2), broker(3), DEFAULT_BROKER):
            self.configs.alter([ConfigChange(resource=resource, delete=(LOG_DIR_RATE,))])


@pytest.mark.kafka
class TestAdminApi(ConfigsContract):
    @pytest.fixture
    def stage(self, cluster: Sandbox, hand: OtherHand) -> Iterator[RealStage]:
        with Wire(cluster.bootstrap, {}) as wire:
            found = RealStage(WireConfigs(wire), hand)
            yield found
            found.close()

    @pytest.fixture
    def held_by_librdkafka(self, hand: OtherHand) -> Any:
        """A client that shares no code with kquota. It cannot name the default of all brokers."""

        def held(resource: Resource) -> dict[str, str]:
            kind = ResourceType.TOPIC if resource.kind == TOPICS else ResourceType.BROKER
            asked = ConfigResource(kind, str(resource.name))
            own = {TOPICS: 1, BROKERS: 2}[resource.kind]
            found = hand.admin.describe_configs([asked])[asked].result(10)
            return {key: str(entry.value) for key, entry in found.items() if entry.source == own}

        return held

    @pytest.mark.parametrize("of_a_topic", [True, False], ids=["topic", "broker"])
    def test_another_client_sees_the_same(self, stage: Stage, held_by_librdkafka: Any, of_a_topic: bool) -> None:
        resource = stage.topic() if of_a_topic else broker(3)
        add = {LEADER_REPLICAS: "0:1", "retention.ms": "86400000"} if of_a_topic else {LOG_DIR_RATE: HARMLESS}
        stage.configs.alter([ConfigChange(resource=resource, add=add)])
        until(lambda: held_by_librdkafka(resource) == add, f"{add} is seen")
        until(lambda: stage.held(resource) == add, f"{add} is visible on every broker")

    def test_the_broker_refuses_in_its_own_words(self, stage: Stage) -> None:
        topic = stage.topic()
        with pytest.raises(Refused, match=r"topic .*: the broker answered .*Unknown topic config name: retention\.mss"):
            stage.configs.alter([ConfigChange(resource=topic, add={"retention.mss": "5"})])
        with pytest.raises(Refused, match=r"broker '1': the broker answered .*log\.dirs"):
            stage.configs.alter([ConfigChange(resource=broker(1), add={"log.dirs": "/x"})])

    def test_a_partial_failure_reports_the_completed_changes(self, stage: Stage) -> None:
        topic = stage.topic()
        changes = [
            ConfigChange(resource=topic, add={LEADER_REPLICAS: "0:1"}),
            ConfigChange(resource=broker(9), add={LOG_DIR_RATE: HARMLESS}),
            ConfigChange(resource=Resource(kind=TOPICS, name="nobody-s"), add={LEADER_REPLICAS: "0:1"}),
        ]
        with pytest.raises(Incomplete) as told:
            stage.configs.alter(changes)
        assert told.value.done == (str(topic),)
        assert set(told.value.undone) == {"broker '9'", "topic 'nobody-s'"}
        until(lambda: stage.held(topic) == {LEADER_REPLICAS: "0:1"}, "the completed part is visible")
        with pytest.raises(Refused):
            stage.configs.alter(changes[1:])

    def test_a_broker_that_is_not_alive_is_omitted(self, stage: Stage) -> None:
        assert stage.configs.describe([broker(9), broker(1)]).keys() == {broker(1)}

    def test_a_secret_is_not_reported(self, stage: Stage) -> None:
        secret = {"listener.name.none.sasl.jaas.config": CANARY}
        try:
            stage.configs.alter([ConfigChange(resource=broker(1), add=secret)])
        except Refused as error:
            assert "CANARY" not in str(error)
        (described,) = stage.configs.describe([broker(1)]).values()
        assert "CANARY" not in repr(described)
        assert any(entry.sensitive for entry in described)
        stage.configs.alter([ConfigChange(resource=broker(1), delete=tuple(secret))])

    def test_the_release(self, stage: Stage, cluster: Sandbox) -> None:
        assert cluster.kafka is not None
        assert stage.configs.release() == tuple(int(part) for part in cluster.kafka.split(".")[:2])


@pytest.fixture(params=["kafka_391", "kafka_282"], ids=["3.9.1", "2.8.2"])
def on_zookeeper(request: pytest.FixtureRequest) -> Sandbox:
    found: Sandbox = request.getfixturevalue(request.param)
    return found


def refuse_to_hide(problem: Refused) -> None:
    raise AssertionError(problem)


@pytest.fixture
def zookeeper_hand(on_zookeeper: Sandbox) -> Iterator[OtherHand]:
    found = OtherHand(on_zookeeper)
    yield found
    found.close()


@pytest.fixture
def zookeeper_stage(on_zookeeper: Sandbox, zookeeper_hand: OtherHand) -> Iterator[RealStage]:
    with Znodes(str(on_zookeeper.zookeeper)) as znodes:
        found = RealStage(ZooKeeperConfigs(znodes, refuse_to_hide), zookeeper_hand)
        yield found
        found.close()


class SeenByBrokers(RealStage):
    """The configs over ZooKeeper, with a wait until the brokers apply a change, each at its own time."""

    def held(self, resource: Resource) -> Mapping[str, str]:
        (entries,) = self.configs.describe([resource]).values()
        wanted = {entry.key: meaning(entry.value or "") for entry in entries}

        def heard() -> bool:
            held = RealStage.held(self, resource)
            return {key: meaning(value) for key, value in held.items()} == wanted

        until(heard, f"the brokers see {wanted}")
        return RealStage.held(self, resource)


@pytest.mark.kafka
class TestZooKeeper(ConfigsContract):
    @pytest.fixture
    def stage(self, on_zookeeper: Sandbox, zookeeper_hand: OtherHand) -> Iterator[RealStage]:
        with Znodes(str(on_zookeeper.zookeeper)) as znodes:
            found = SeenByBrokers(ZooKeeperConfigs(znodes, refuse_to_hide), zookeeper_hand)
            yield found
            found.close()


@pytest.fixture
def znode(on_zookeeper: Sandbox) -> Iterator[KazooClient]:
    """Another client, so that kquota does not check its own writes."""
    client = KazooClient(hosts=on_zookeeper.zookeeper)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.mark.kafka
class TestLayout:
    """FACTS: the path of a config, the content of its node, and the notification of brokers."""

    def test_node_and_notification(self, zookeeper_stage: RealStage, znode: KazooClient) -> None:
        topic = zookeeper_stage.topic()
        before = set(znode.get_children("/config/changes"))
        zookeeper_stage.configs.alter(
            [
                ConfigChange(resource=topic, add={LEADER_REPLICAS: "0:1"}),
                ConfigChange(resource=broker(2), add={LOG_DIR_RATE: HARMLESS}),
                ConfigChange(resource=DEFAULT_BROKER, add={LOG_DIR_RATE: HARMLESS}),
            ]
        )
        new = set(znode.get_children("/config/changes")) - before
        told = sorted(json.loads(znode.get(f"/config/changes/{node}")[0])["entity_path"] for node in new)
        assert told == ["brokers/2", "brokers/<default>", f"topics/{topic.name}"]
        assert znode.get(f"/config/topics/{topic.name}")[0] == b'{"version":1,"config":{"%s":"0:1"}}' % (
            LEADER_REPLICAS.encode()
        )
        for node in ("2", "<default>"):
            held = json.loads(znode.get(f"/config/brokers/{node}")[0])["config"]
            assert held == {LOG_DIR_RATE: HARMLESS}

    def test_a_change_that_changes_nothing_writes_nothing(self, zookeeper_stage: RealStage, znode: KazooClient) -> None:
        topic = zookeeper_stage.topic()
        change = ConfigChange(resource=topic, add={LEADER_REPLICAS: "0:1"}, delete=("segment.ms",))
        zookeeper_stage.configs.alter([change])
        stood = znode.get(f"/config/topics/{topic.name}")[1].version, set(znode.get_children("/config/changes"))
        zookeeper_stage.configs.alter([change])
        assert znode.get(f"/config/topics/{topic.name}")[1].version == stood[0]
        assert set(znode.get_children("/config/changes")) <= stood[1]

    def test_all_or_none(self, zookeeper_stage: RealStage) -> None:
        topic = zookeeper_stage.topic()
        good = ConfigChange(resource=topic, add={LEADER_REPLICAS: "0:1"})
        for bad, why in (
            (ConfigChange(resource=Resource(kind=TOPICS, name="nobody-s"), add={LEADER_REPLICAS: "0:1"}), Refused),
            (ConfigChange(resource=broker(1), add={LEADER_RATE: "0"}), Invalid),
            (ConfigChange(resource=topic, add={"retention.ms": "x"}), Invalid),
        ):
            with pytest.raises(why):
                zookeeper_stage.configs.alter([good, bad])
        assert zookeeper_stage.configs.describe([topic]) == {topic: ()}

    def test_a_node_that_kafka_did_not_write(
        self, zookeeper_stage: RealStage, on_zookeeper: Sandbox, znode: KazooClient
    ) -> None:
        """kquota never replaces such a node. A request for it alone is an error, and it does not hide other nodes."""
        topic, other = zookeeper_stage.topic(), zookeeper_stage.topic()
        path = f"/config/topics/{topic.name}"
        sound = znode.get(path)[0]
        znode.set(path, b"not json")
        warned: list[Refused] = []
        try:
            with pytest.raises(Refused, match=path):
                zookeeper_stage.configs.alter([ConfigChange(resource=topic, add={LEADER_REPLICAS: "0:1"})])
            with pytest.raises(Refused, match=path):
                zookeeper_stage.configs.describe([topic])
            with Znodes(str(on_zookeeper.zookeeper)) as znodes:
                found = ZooKeeperConfigs(znodes, warned.append).describe([topic, other])
            assert list(found) == [other]
            assert len(warned) == 1
            assert znode.get(path)[0] == b"not json"
        finally:
            znode.set(path, sound)

    def test_a_secret_is_not_reported(self, zookeeper_stage: RealStage, znode: KazooClient) -> None:
        key = "listener.name.external.ssl.keystore.password"
        znode.create("/config/brokers/77", json.dumps({"version": 1, "config": {key: CANARY}}).encode())
        try:
            (entries,) = zookeeper_stage.configs.describe([broker(77)]).values()
            assert [(entry.key, entry.sensitive) for entry in entries] == [(key, True)]
            assert "CANARY" not in repr(entries)
            assert broker(77) in zookeeper_stage.configs.configured(BROKERS)
            assert broker(77) not in zookeeper_stage.configs.resources(BROKERS)
        finally:
            znode.delete("/config/brokers/77")

    def test_two_writers_lose_nothing(self, zookeeper_stage: RealStage, on_zookeeper: Sandbox) -> None:
        topic, errors = zookeeper_stage.topic(), list[KquotaError]()
        barrier = threading.Barrier(2)

        def write(key: str) -> None:
            try:
                with Znodes(str(on_zookeeper.zookeeper)) as znodes:
                    mine = ZooKeeperConfigs(znodes, refuse_to_hide)
                    barrier.wait()
                    for number in range(1, 51):
                        mine.alter([ConfigChange(resource=topic, add={key: f"0:{number}"})])
            except KquotaError as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=(key,)) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        (entries,) = zookeeper_stage.configs.describe([topic]).values()
        assert {entry.key: entry.value for entry in entries} == {LEADER_REPLICAS: "0:50", FOLLOWER_REPLICAS: "0:50"}
