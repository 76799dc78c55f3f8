"""The contract of a Configs port. The fake and each real store on each real Kafka pass it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pytest

from kquota.errors import Refused
from kquota.settings import actions
from kquota.settings.change import ConfigChange
from kquota.settings.port import Configs
from kquota.settings.resource import BROKERS, TOPICS, Resource
from kquota.terms import DEFAULT, FOLLOWER_REPLICAS, LEADER_REPLICAS, LOG_DIR_RATE
from tests.waiting import attempts

DEFAULT_BROKER = Resource(kind=BROKERS, name=DEFAULT)
HARMLESS = str(10**15)
"""A rate that no copy on this machine reaches."""


class Stage(Protocol):
    """A cluster with the brokers 1, 2 and 3, and another client of it."""

    configs: Configs

    def topic(self) -> Resource:
        """Create a topic, and return it."""
        ...

    def held(self, resource: Resource) -> Mapping[str, str]:
        """Return the configs that are set on the resource itself, as another client sees them."""
        ...


def broker(number: int) -> Resource:
    return Resource(kind=BROKERS, name=str(number))


def own(configs: Configs, resource: Resource) -> dict[str, str | None]:
    return {entry.key: entry.value for entry in configs.describe([resource])[resource] if entry.dynamic}


class ConfigsContract:
    """Subclass it with a `stage` fixture."""

    @pytest.fixture
    def stage(self) -> Any:
        raise NotImplementedError

    @pytest.mark.parametrize(
        ("which", "first", "second", "source"),
        [
            pytest.param(
                lambda stage: stage.topic(),
                {"retention.ms": "86400000", LEADER_REPLICAS: "0:1,0:2"},
                {"retention.ms": "3600000", LEADER_REPLICAS: "*"},
                "DYNAMIC_TOPIC_CONFIG",
                id="topic",
            ),
            pytest.param(
                lambda _: broker(2),
                {LOG_DIR_RATE: HARMLESS},
                {LOG_DIR_RATE: str(2**63 - 1)},
                "DYNAMIC_BROKER_CONFIG",
                id="broker",
            ),
            pytest.param(
                lambda _: DEFAULT_BROKER,
                {LOG_DIR_RATE: HARMLESS},
                {LOG_DIR_RATE: str(2**63 - 1)},
                "DYNAMIC_DEFAULT_BROKER_CONFIG",
                id="default of all brokers",
            ),
        ],
    )
    def test_set_keys_are_described_and_deleted_keys_are_not(
        self,
        stage: Stage,
        which: Callable[[Stage], Resource],
        first: Mapping[str, str],
        second: Mapping[str, str],
        source: str,
    ) -> None:
        resource = which(stage)
        for values in (first, second, second):
            actions.alter(stage.configs, ConfigChange(resource=resource, add=values), attempts())
            entries = {e.key: e for e in stage.configs.describe([resource])[resource] if e.key in values}
            assert {key: entry.value for key, entry in entries.items()} == values
            for key, entry in entries.items():
                assert (entry.source, entry.dynamic, entry.sensitive) == (source, True, False)
                told = entry.synonyms[0]
                assert (told.source, told.key, told.value) == (source, key, values[key])
            assert values.items() <= stage.held(resource).items()
        done = actions.alter(stage.configs, ConfigChange(resource=resource, delete=tuple(second)), attempts())
        assert done.absent == ()
        assert not set(second) & own(stage.configs, resource).keys()
        assert not set(second) & stage.held(resource).keys()

    def test_a_change_leaves_the_keys_that_it_does_not_name(self, stage: Stage) -> None:
        topic = stage.topic()
        before = {"retention.ms": "86400000", "segment.ms": "3600000", LEADER_REPLICAS: "0:1"}
        actions.alter(stage.configs, ConfigChange(resource=topic, add=before), attempts())
        change = ConfigChange(resource=topic, add={FOLLOWER_REPLICAS: "0:3"}, delete=("segment.ms",))
        actions.alter(stage.configs, change, attempts())
        after = {"retention.ms": "86400000", LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:3"}
        assert stage.held(topic) == own(stage.configs, topic) == after

    def test_deleting_an_unset_config_succeeds_and_is_reported(self, stage: Stage) -> None:
        change = ConfigChange(resource=stage.topic(), delete=(LEADER_REPLICAS, "segment.ms"))
        assert actions.alter(stage.configs, change, attempts()).absent == (LEADER_REPLICAS, "segment.ms")

    def test_a_value_is_recognized_in_any_spelling_of_the_broker(self, stage: Stage) -> None:
        topic = stage.topic()
        for values in ({"retention.ms": " 086400000", "cleanup.policy": "compact, delete"}, {"retention.ms": "+5000"}):
            actions.alter(stage.configs, ConfigChange(resource=topic, add=values), attempts())
        assert {"retention.ms", "cleanup.policy"} == stage.held(topic).keys()

    def test_entries_are_sorted_by_key(self, stage: Stage) -> None:
        topic = stage.topic()
        change = ConfigChange(resource=topic, add={"segment.ms": "3600000", "cleanup.policy": "delete"})
        actions.alter(stage.configs, change, attempts())
        for entries in stage.configs.describe([topic, broker(1), DEFAULT_BROKER]).values():
            assert [entry.key for entry in entries] == sorted(entry.key for entry in entries)

    def test_a_list_of_the_maximum_length_is_read_back(self, stage: Stage) -> None:
        topic = stage.topic()
        entries = ",".join(f"{partition}:{partition % 3 + 1}" for partition in range(4_600))
        assert 30_000 < len(entries) < 32_767
        actions.alter(stage.configs, ConfigChange(resource=topic, add={LEADER_REPLICAS: entries}), attempts())
        assert stage.held(topic) == own(stage.configs, topic) == {LEADER_REPLICAS: entries}

    def test_a_topic_that_does_not_exist(self, stage: Stage) -> None:
        nobody, topic = Resource(kind=TOPICS, name="nobody-s"), stage.topic()
        assert stage.configs.describe([nobody, topic]).keys() == {topic}
        with pytest.raises(Refused, match="topic 'nobody-s' does not exist"):
            actions.alter(stage.configs, ConfigChange(resource=nobody, add={"retention.ms": "5000"}), attempts())
        with pytest.raises(Refused, match="topic 'nobody-s' does not exist"):
            stage.configs.alter([ConfigChange(resource=nobody, add={"retention.ms": "5000"})])
        assert stage.configs.describe([nobody]) == {}

    def test_resources_are_listed_in_order(self, stage: Stage) -> None:
        topic = stage.topic()
        assert stage.configs.resources(BROKERS) == (broker(1), broker(2), broker(3))
        for resource in (broker(2), DEFAULT_BROKER):
            change = ConfigChange(resource=resource, add={LOG_DIR_RATE: HARMLESS})
            actions.alter(stage.configs, change, attempts())
        found, lost = actions.describe_all(stage.configs, BROKERS)
        assert list(found)[-1] == DEFAULT_BROKER
        assert broker(2) in found
        assert lost == {}
        for topics in (stage.configs.resources(TOPICS), stage.configs.configured(TOPICS)):
            assert topic in topics
            assert [t.name for t in topics] == sorted(str(t.name) for t in topics)

    def test_several_changes_at_once(self, stage: Stage) -> None:
        """The changes concern topics, two brokers and the broker default, so the requests go to several brokers."""
        one, two = stage.topic(), stage.topic()
        changes = [
            *(ConfigChange(resource=topic, add={LEADER_REPLICAS: "0:1"}) for topic in (one, two)),
            *(ConfigChange(resource=r, add={LOG_DIR_RATE: HARMLESS}) for r in (broker(1), broker(3), DEFAULT_BROKER)),
        ]
        stage.configs.alter(changes)
        for change in changes:
            actions.alter(stage.configs, change, attempts())
            assert change.add.items() <= stage.held(change.resource).items()
        assert LOG_DIR_RATE not in stage.held(broker(2))

    def test_the_value_behind_a_deleted_one_is_reported_if_known(self, stage: Stage) -> None:
        topic = stage.topic()
        actions.alter(stage.configs, ConfigChange(resource=topic, add={"segment.ms": "3600000"}), attempts())
        done = actions.alter(stage.configs, ConfigChange(resource=topic, delete=("segment.ms",)), attempts())
        known = {entry.key for entry in stage.configs.describe([topic])[topic]}
        assert [entry.key for entry in done.behind] == (["segment.ms"] if "segment.ms" in known else [])
        assert all(not entry.dynamic and entry.value for entry in done.behind)
