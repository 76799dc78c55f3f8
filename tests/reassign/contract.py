"""The contract of a MoveCluster, which defines the port. Subclasses provide a `stage`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol

import pytest

from kquota.errors import Conflict, Unreachable
from kquota.reassign.moves import Replicas
from kquota.reassign.port import MoveCluster
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, BrokerId, TopicPartition
from tests.waiting import until


class Stage(Protocol):
    """A cluster under test, and another client of it that does not use kquota's code."""

    @property
    def cluster(self) -> MoveCluster: ...

    @property
    def brokers(self) -> tuple[BrokerId, BrokerId, BrokerId]: ...

    def topic(self, replicas: Mapping[int, Replicas]) -> str:
        """Create a topic with enough data in every partition to observe a move at 1 kB/s, and return its name."""

    def write(self, setting: Setting, value: str | None) -> None:
        """Write a value as another tool, and wait until it is in force."""

    def heard(self) -> None:
        """Wait until every broker applies all writes so far. A write that can be read may not be applied yet."""

    def finish(self, name: TopicPartition) -> None:
        """Let a move finish without a throttle, and wait for its end."""


class ClusterContract:
    """Subclass it with a `stage` fixture."""

    def changed(self, stage: Stage, setting: Setting, before: str | None, after: str | None) -> None:
        assert stage.cluster.change([Change(setting=setting, before=before, after=after)]) == {}
        until(lambda: stage.cluster.values([setting]) == {setting: after})

    def test_a_snapshot_shows_brokers_and_partitions(self, stage: Stage) -> None:
        one, two, _ = stage.brokers
        topic = stage.topic({0: (one, two), 1: (two, one)})
        found = stage.cluster.snapshot([topic])
        assert set(stage.brokers) <= found.alive
        assert {name: now.replicas for name, now in found.partitions.items()} == {
            TopicPartition(topic, 0): (one, two),
            TopicPartition(topic, 1): (two, one),
        }
        now = found.partitions[TopicPartition(topic, 0)]
        assert now.leader in (one, two)
        assert set(now.isr) == {one, two}
        assert not now.moving
        assert not found.running.keys() & found.partitions.keys()

    def test_a_topic_that_does_not_exist_has_no_partitions_and_no_values(self, stage: Stage) -> None:
        assert stage.cluster.snapshot(["no-such-topic"]).partitions == {}
        setting = Setting.of_topic("no-such-topic", LEADER_REPLICAS)
        assert stage.cluster.values([setting]) == {setting: None}

    @pytest.mark.parametrize("key", [LEADER_REPLICAS, FOLLOWER_REPLICAS])
    def test_entries_are_added_to_a_list_and_removed(self, stage: Stage, key: str) -> None:
        setting = Setting.of_topic(stage.topic({0: (stage.brokers[0],)}), key)
        assert stage.cluster.values([setting]) == {setting: None}
        self.changed(stage, setting, None, "0:1,0:2")
        self.changed(stage, setting, "0:1,0:2", None)

    def test_entries_of_other_tools_stay_unchanged(self, stage: Stage) -> None:
        setting = Setting.of_topic(stage.topic({0: (stage.brokers[0],)}), LEADER_REPLICAS)
        stage.write(setting, "7:7")
        self.changed(stage, setting, "7:7", "7:7,0:1,0:2")
        self.changed(stage, setting, "7:7,0:1,0:2", "7:7")

    def test_empty_is_not_unset(self, stage: Stage) -> None:
        setting = Setting.of_topic(stage.topic({0: (stage.brokers[0],)}), LEADER_REPLICAS)
        stage.write(setting, "")
        assert stage.cluster.values([setting]) == {setting: ""}
        self.changed(stage, setting, "", "0:1")
        self.changed(stage, setting, "0:1", "")
        self.changed(stage, setting, "", None)

    def test_a_concurrently_added_entry_survives(self, stage: Stage) -> None:
        setting = Setting.of_topic(stage.topic({0: (stage.brokers[0],)}), LEADER_REPLICAS)
        stage.write(setting, "7:7")
        errors = stage.cluster.change([Change(setting=setting, before=None, after="0:1")])
        assert isinstance(errors.get(setting), Conflict | None)
        kept = "7:7" if errors else "7:7,0:1"
        until(lambda: stage.cluster.values([setting]) == {setting: kept})

    def test_both_rates_of_a_broker(self, stage: Stage) -> None:
        settings = [Setting.of_broker(stage.brokers[0], key) for key in (LEADER_RATE, FOLLOWER_RATE)]
        assert stage.cluster.values(settings) == dict.fromkeys(settings)
        assert stage.cluster.change([Change(setting=s, before=None, after="1000") for s in settings]) == {}
        until(lambda: stage.cluster.values(settings) == dict.fromkeys(settings, "1000"))
        self.changed(stage, settings[0], "1000", "2000")
        assert stage.cluster.values(settings[1:]) == {settings[1]: "1000"}
        self.changed(stage, settings[0], "2000", None)
        self.changed(stage, settings[1], "1000", None)

    def test_a_concurrently_changed_rate_is_a_conflict(self, stage: Stage) -> None:
        setting = Setting.of_broker(stage.brokers[1], LEADER_RATE)
        stage.write(setting, "5000")
        errors = stage.cluster.change([Change(setting=setting, before=None, after="1000")])
        assert isinstance(errors[setting], Conflict)
        assert stage.cluster.values([setting]) == {setting: "5000"}
        self.changed(stage, setting, "5000", None)

    def test_other_configs_of_a_topic_stay(self, stage: Stage) -> None:
        topic = stage.topic({0: (stage.brokers[0],)})
        other = Setting.of_topic(topic, "retention.ms")
        stage.write(other, "123456789")
        self.changed(stage, Setting.of_topic(topic, LEADER_REPLICAS), None, "0:1")
        self.changed(stage, Setting.of_topic(topic, LEADER_REPLICAS), "0:1", None)
        assert stage.cluster.values([other]) == {other: "123456789"}

    def test_a_move_starts_once_and_ends_at_its_target(self, stage: Stage) -> None:
        one, two, three = stage.brokers
        topic = stage.topic({0: (one, two)})
        name = TopicPartition(topic, 0)
        throttle = {
            Setting.of_topic(topic, LEADER_REPLICAS): f"0:{one},0:{two}",
            Setting.of_topic(topic, FOLLOWER_REPLICAS): f"0:{three}",
            **{Setting.of_broker(b, key): "1000" for b in stage.brokers for key in (LEADER_RATE, FOLLOWER_RATE)},
        }
        changes = [Change(setting=setting, before=None, after=value) for setting, value in throttle.items()]
        assert stage.cluster.change(changes) == {}
        until(lambda: stage.cluster.values(throttle) == throttle)
        # A busy broker without its new rate would copy everything before the test sees the move.
        stage.heard()
        for _ in range(2):
            assert stage.cluster.submit({name: (one, three)}) == {}
            until(lambda: name in stage.cluster.snapshot([topic]).running)
        now = stage.cluster.snapshot([topic]).partitions[name]
        assert (set(now.adding), set(now.removing)) == ({three}, {two})
        assert (set(now.before), now.target) == ({one, two}, (one, three))
        stage.finish(name)
        until(lambda: stage.cluster.snapshot([topic]).partitions[name].replicas == (one, three))
        assert name not in stage.cluster.snapshot([topic]).running
        for setting, value in throttle.items():
            if stage.cluster.values([setting]) == {setting: value}:
                self.changed(stage, setting, value, None)

    def test_stale_seconds_after_a_move_the_replicas_are_current(self, stage: Stage) -> None:
        one, two, three = stage.brokers
        topic = stage.topic({0: (one, two)})
        name = TopicPartition(topic, 0)
        for target in ((one, three), (three, two), (two, one)):
            assert stage.cluster.submit({name: target}) == {}
            stage.finish(name)
            until(lambda: name not in stage.cluster.snapshot(()).running)
            time.sleep(stage.cluster.stale_seconds)
            assert stage.cluster.snapshot([topic]).partitions[name].replicas == target

    def test_a_partition_that_cannot_move_does_not_delay_the_others(self, stage: Stage) -> None:
        one, two, _ = stage.brokers
        topic = stage.topic({0: (one,)})
        here, nowhere = TopicPartition(topic, 0), TopicPartition(topic, 99)
        errors = stage.cluster.submit({here: (two,), nowhere: (two,)})
        assert set(errors) == {nowhere}
        assert errors[nowhere]
        stage.finish(here)
        until(lambda: stage.cluster.snapshot([topic]).partitions[here].replicas == (two,))


class DeadStage(Protocol):
    """A cluster in which broker `dead` died with a follower rate of 7. Broker `alive` has no rate."""

    @property
    def cluster(self) -> MoveCluster: ...

    @property
    def dead(self) -> BrokerId: ...

    @property
    def alive(self) -> BrokerId: ...

    def returns(self) -> None:
        """Start the dead broker again."""


class DeadBrokerContract:
    """The changes that a cluster with controllers accepts for a dead broker. Subclass it with a `stage` fixture."""

    def test_a_dead_broker_finds_the_written_values_when_it_starts(self, stage: DeadStage) -> None:
        leader, follower = (Setting.of_broker(stage.dead, key) for key in (LEADER_RATE, FOLLOWER_RATE))
        assert stage.cluster.values([leader, follower]) == {}
        for _ in range(2):
            done = stage.cluster.overwrite({leader: "5000", follower: None})
            assert (done.errors, "controller" in done.by) == ({}, True)
        assert stage.cluster.values([leader, follower]) == {}, "only the broker itself can show it"
        stage.returns()
        until(lambda: stage.cluster.values([leader, follower]) == {leader: "5000", follower: None})

    def test_a_live_broker_is_not_overwritten(self, stage: DeadStage) -> None:
        setting = Setting.of_broker(stage.alive, LEADER_RATE)
        done = stage.cluster.overwrite({setting: "5000"})
        assert isinstance(done.errors[setting], Unreachable)
        assert stage.cluster.values([setting]) == {setting: None}

    def test_a_topic_is_not_overwritten_even_if_its_name_is_the_id_of_the_dead_broker(self, stage: DeadStage) -> None:
        setting = Setting.of_topic(str(stage.dead), LEADER_REPLICAS)
        assert isinstance(stage.cluster.overwrite({setting: None}).errors[setting], Unreachable)
