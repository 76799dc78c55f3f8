"""The reading of all throttles: unknown rates and lists are not unset."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kquota.errors import Refused
from kquota.reassign.port import Snapshot
from kquota.settings.resource import BROKERS, Entry, Resource, Setting
from kquota.sizes.port import LogDirs
from kquota.sizes.replica import LogDir
from kquota.stores.state.doctor_memory import SightingsFile
from kquota.terms import LEADER_RATE, LOG_DIR_RATE, BrokerId, TopicPartition
from kquota.throttle import actions, doctor
from kquota.throttle.port import Ports
from tests.reassign.fake import MemoryCluster, Ticks
from tests.reassign.records import alone
from tests.settings.fake import FakeConfigs
from tests.sizes.fake import FakeLogDirs
from tests.throttle.stage import LEADER, partition

RATE = Setting.of_broker(BrokerId(1), LEADER_RATE)
LISTED = Setting.of_topic("u", LEADER)


def ports(folder: Path, cluster: MemoryCluster, configs: FakeConfigs, log_dirs: LogDirs | None) -> Ports:
    memory = SightingsFile(folder, "here")
    return Ports(cluster=cluster, configs=configs, log_dirs=log_dirs, runs=alone(folder), memory=memory, clock=Ticks())


def test_doctor_removes_no_rate_while_the_list_of_a_topic_is_unknown(tmp_path: Path) -> None:
    cluster = MemoryCluster(alive={BrokerId(1), BrokerId(2)}, undescribed={"u"})
    cluster.partitions = {TopicPartition("t", 0): partition(1, 2), TopicPartition("u", 0): partition(1, 2)}
    cluster.configs = {RATE: "1000", LISTED: "0:1"}
    configs = FakeConfigs(topics=["t", "u"], brokers=[1, 2], release=(4, 1))
    configs.held[Resource(kind=BROKERS, name="1")] = {LEADER_RATE: "1000"}
    at = ports(tmp_path, cluster, configs, FakeLogDirs())
    unknown = actions.read(at)
    assert (unknown.lists, unknown.unread_topics) == ({}, ("u",))
    assert actions.leftovers(at, unknown, 0.0).changes == ()
    cluster.undescribed.clear()
    known = actions.read(at)
    assert (known.lists, known.unread_topics) == ({LISTED: "0:1"}, ())
    assert not [one for one in doctor.findings(known) if one.rule == "rates-without-lists"]


@dataclass(kw_only=True)
class Hiding(MemoryCluster):
    """A cluster that hides topics from this user, but not their running moves."""

    hides: Collection[str] = ("u",)

    def snapshot(self, topics: Collection[str] | None) -> Snapshot:
        if hidden := [topic for topic in topics or () if topic in self.hides]:
            raise Refused(f"topic {hidden[0]}: the broker answered TopicAuthorizationFailed (29)")
        found = super().snapshot(topics)
        shown = {name: now for name, now in found.partitions.items() if name.topic not in self.hides}
        return replace(found, partitions=shown)


def test_a_running_move_shows_that_its_topic_is_hidden(tmp_path: Path) -> None:
    cluster = Hiding(alive={BrokerId(1), BrokerId(2)})
    cluster.partitions = {TopicPartition("t", 0): partition(1, 2), TopicPartition("u", 0): partition(1, 2, adding=[2])}
    configs = FakeConfigs(topics=["t"], brokers=[1, 2], release=(4, 1))
    assert actions.read(ports(tmp_path, cluster, configs, FakeLogDirs())).hidden_topics == ("u",)


class OfTwo(FakeLogDirs):
    """The log dirs of brokers 1 and 2, which have a replica of the topic `secret`. Broker 3 would not answer."""

    def describe(self, brokers: Collection[BrokerId], topics: Collection[str] | None) -> list[LogDir]:
        assert BrokerId(3) not in brokers
        return super().describe(brokers, topics)


def with_rates(folder: Path, rates: Mapping[str, str], static: Mapping[str, str] | None = None) -> Ports:
    """Return a cluster that hides `u`, which moves, and `secret`. Broker 3 is alive, but did not report its rates."""
    cluster = Hiding(alive={BrokerId(1), BrokerId(2), BrokerId(3)}, hides={"u", "secret"})
    cluster.partitions = {TopicPartition("t", 0): partition(1, 2), TopicPartition("u", 0): partition(1, 2, adding=[2])}
    configs = FakeConfigs(topics=["t"], brokers=[1, 2], release=(4, 1), static=static)
    configs.held[Resource(kind=BROKERS, name="1")] = dict(rates)
    log_dirs = OfTwo()
    log_dirs.topic("secret", [[1, 2]])
    return ports(folder, cluster, configs, log_dirs)


def test_rates_without_lists_may_throttle_a_topic_that_only_log_dirs_show(tmp_path: Path) -> None:
    """A moving topic stays in the result, even if no broker that answers has its log."""
    assert actions.read_effective(with_rates(tmp_path, {LEADER_RATE: "1000"})).hidden_topics == ("secret", "u")


@pytest.mark.parametrize("static", [False, True])
def test_rates_that_need_no_list_do_not_search_for_hidden_topics(tmp_path: Path, static: bool) -> None:
    """Brokers do not enforce static rates, and the rate between log dirs needs no list."""
    there = {LEADER_RATE: "1000"} if static else {LOG_DIR_RATE: "1000"}
    at = with_rates(tmp_path, {} if static else there, there if static else None)
    assert any(actions.read(at).limits.values())
    assert actions.read_effective(at).hidden_topics == ("u",)


def test_doctor_removes_empty_lists_once_they_are_old(tmp_path: Path) -> None:
    empty = Setting.of_topic("t", LEADER)
    cluster = MemoryCluster(alive={BrokerId(1), BrokerId(2)})
    cluster.partitions = {TopicPartition("t", 0): partition(1, 2)}
    cluster.configs = {empty: ""}
    at = ports(tmp_path, cluster, FakeConfigs(topics=["t"], brokers=[1, 2]), FakeLogDirs())
    assert actions.leftovers(at, actions.read(at), 60.0).changes == ()
    at.clock.sleep(60.0)
    old = actions.leftovers(at, actions.read(at), 60.0)
    assert {change.setting for change in old.changes} == {empty}
    assert actions.remove(at, old.changes).pending == {}
    assert cluster.configs == {}


class OverZooKeeper(FakeConfigs):
    """Only brokers with a znode are configured. The znodes of the brokers in `damaged` cannot be read."""

    damaged: Collection[str] = ()

    def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
        return {one: entries for one, entries in super().describe(resources).items() if one.name not in self.damaged}


@pytest.mark.parametrize("damaged", [(), (1,), (3,)], ids=["all readable", "a live broker's", "a dead broker's"])
def test_over_zookeeper_a_broker_without_a_znode_has_no_rate(tmp_path: Path, damaged: tuple[int, ...]) -> None:
    """Broker 3 is dead. A znode that cannot be read may have a rate."""
    cluster = MemoryCluster(alive={BrokerId(1), BrokerId(2)})
    cluster.partitions = {TopicPartition("t", 0): partition(1, 2, 3)}
    configs = OverZooKeeper(topics=["t"], brokers=[2, *damaged])
    configs.damaged = tuple(map(str, damaged))
    throttles = actions.read(ports(tmp_path, cluster, configs, None))
    assert throttles.unread == damaged
    assert throttles.brokers == tuple(broker for broker in (1, 2, 3) if broker not in damaged)
