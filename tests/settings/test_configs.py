"""The fake passes the contract, so tests on it are valid for a cluster.

It also tests a write that never becomes visible.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping

import pytest

from kquota.errors import Incomplete, Refused, Unknown, Unreachable
from kquota.settings import actions
from kquota.settings.change import ConfigChange
from kquota.settings.resource import BROKERS, TOPICS, Entry, Resource, ResourceKind
from kquota.terms import LOG_DIR_RATE
from tests.settings.contract import DEFAULT_BROKER, ConfigsContract, broker
from tests.settings.fake import FakeConfigs


class FakeStage:
    def __init__(self) -> None:
        self.configs = FakeConfigs(brokers=(1, 2, 3))
        self._names = itertools.count()

    def topic(self) -> Resource:
        topic = Resource(kind=TOPICS, name=f"t{next(self._names)}")
        self.configs.held[topic] = {}
        return topic

    def held(self, resource: Resource) -> Mapping[str, str]:
        return self.configs.held[resource]


class TestFakeConfigs(ConfigsContract):
    @pytest.fixture
    def stage(self) -> FakeStage:
        return FakeStage()


class Deaf(FakeConfigs):
    def alter(self, changes: object) -> None:
        pass


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(ConfigChange(resource=broker(1), add={LOG_DIR_RATE: "5"}), id="added"),
        pytest.param(ConfigChange(resource=broker(1), add={"there": "6"}), id="changed"),
        pytest.param(ConfigChange(resource=broker(1), delete=("there",)), id="deleted"),
    ],
)
def test_a_write_that_is_never_visible_is_unknown_not_done(change: ConfigChange) -> None:
    configs = Deaf(brokers=[1])
    configs.held[broker(1)] = {"there": "5"}
    with pytest.raises(Unknown, match="does not show it"):
        actions.alter(configs, change, iter(range(3)))


def test_an_unknown_resource_is_refused_before_any_write() -> None:
    class Untouched(FakeConfigs):
        def alter(self, changes: object) -> None:
            raise AssertionError

    configs = Untouched(brokers=[1, 2])
    with pytest.raises(Refused, match=r"broker '9' is dead.*1, 2"):
        actions.alter(configs, ConfigChange(resource=broker(9), add={LOG_DIR_RATE: "5"}), iter(range(3)))
    with pytest.raises(Refused, match="topic 't' does not exist"):
        actions.alter(configs, ConfigChange(resource=Resource(kind=TOPICS, name="t"), delete=("k",)), iter(range(3)))


def test_a_static_value_applies_after_the_dynamic_one_is_deleted() -> None:
    configs = FakeConfigs(brokers=[1], static={"num.io.threads": "8"})
    actions.alter(configs, ConfigChange(resource=broker(1), add={"num.io.threads": "16"}), iter(range(1)))
    done = actions.alter(configs, ConfigChange(resource=broker(1), delete=("num.io.threads",)), iter(range(1)))
    assert [(entry.value, entry.source) for entry in done.behind] == [("8", "STATIC_BROKER_CONFIG")]


def test_the_fake_distinguishes_part_of_a_change_from_none() -> None:
    configs = FakeConfigs(brokers=[1])
    changes = [ConfigChange(resource=broker(number), add={LOG_DIR_RATE: "5"}) for number in (1, 9)]
    with pytest.raises(Incomplete) as told:
        configs.alter(changes)
    assert (told.value.done, told.value.undone) == (("broker '1'",), ("broker '9'",))


def test_the_default_of_all_brokers_comes_last() -> None:
    many = FakeConfigs(brokers=[10, 9, 1])
    assert [str(r) for r in many.configured(BROKERS)] == [*(str(broker(n)) for n in (1, 9, 10)), str(DEFAULT_BROKER)]


def test_a_broker_that_does_not_answer_hides_no_other() -> None:
    class Mute(FakeConfigs):
        def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
            if broker(2) in resources:
                raise Unreachable("broker 2: no answer")
            return super().describe(resources)

    found, lost = actions.describe_all(Mute(brokers=[1, 2, 3]), BROKERS)
    assert list(found) == [broker(1), broker(3), DEFAULT_BROKER]
    assert {one: str(error) for one, error in lost.items()} == {broker(2): "broker 2: no answer"}


def test_no_broker_answers() -> None:
    class Gone(FakeConfigs):
        def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
            raise Unreachable("no broker answers")

    kinds: tuple[ResourceKind, ...] = (TOPICS, BROKERS)
    for kind in kinds:
        with pytest.raises(Unreachable, match="no broker answers"):
            actions.describe_all(Gone(topics=["t"], brokers=[1]), kind)


def test_the_only_broker_dies_between_two_descriptions() -> None:
    """Without its broker, the second description is empty, and raises no error of its own."""

    class Dying(FakeConfigs):
        def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
            if len(resources) > 1:
                raise Unreachable("no broker answers")
            return {}

    with pytest.raises(Unreachable, match="no broker answers"):
        actions.describe_all(Dying(brokers=[1]), BROKERS)
