"""Reads and writes of configs while brokers do not answer, and after an outage."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kquota.errors import KquotaError, Unreachable
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.stores.admin.connection import HUNG_SECONDS, Wire
from kquota.stores.admin.controller_configs import ControllerConfigs
from kquota.stores.admin.controllers import ControllerWire
from kquota.stores.admin.requests import on_the_wire, own_source
from kquota.stores.admin.settings import WireSettings
from kquota.terms import LEADER_RATE, LEADER_REPLICAS, BrokerId

ONE, TWO = BrokerId(1), BrokerId(2)
LISTED = Setting.of_topic("t", LEADER_REPLICAS)


class Brokers:
    """A wire to live brokers 1 and 2. Those in `hung` do not answer. `asked` has the broker of each request, and
    `limits` the time limit of each round of requests.
    """

    def __init__(self) -> None:
        self.hung: set[BrokerId] = set()
        self.asked: list[BrokerId] = []
        self.limits: list[float | None] = []

    def brokers(self) -> dict[BrokerId, None]:
        return {ONE: None, TWO: None}

    def refresh(self) -> None:
        """The brokers never change."""

    def ask_each(
        self, requests: Mapping[BrokerId, Any], seconds: float | None = None
    ) -> dict[BrokerId, Any | KquotaError]:
        self.asked += requests
        self.limits.append(seconds)
        return {b: Unreachable(f"broker {b}: no answer") if b in self.hung else _answer() for b in requests}


def _answer(setting: Setting = LISTED, value: str | None = "0:1") -> Any:
    code, name = on_the_wire(setting.resource)
    config = SimpleNamespace(name=setting.key, value=value, config_source=own_source(setting.resource))
    result = SimpleNamespace(resource_type=code, resource_name=name, error_code=0, configs=[config])
    return SimpleNamespace(results=[result])


def test_brokers_are_asked_again_after_an_outage() -> None:
    brokers = Brokers()
    settings = WireSettings(cast(Wire, brokers))
    brokers.hung = {ONE, TWO}
    with pytest.raises(Unreachable, match="no broker answers"):
        settings.values([LISTED])
    assert brokers.asked == [ONE, TWO]
    brokers.hung = set()
    assert settings.values([LISTED]) == {LISTED: "0:1"}


def test_a_silent_broker_is_not_asked_again_while_another_broker_answers() -> None:
    brokers = Brokers()
    settings = WireSettings(cast(Wire, brokers))
    brokers.hung = {ONE}
    settings.values([LISTED])
    brokers.hung = set()
    settings.values([LISTED])
    assert brokers.asked == [ONE, TWO, TWO]


def test_the_time_limit_is_short_while_another_broker_can_answer() -> None:
    brokers = Brokers()
    settings = WireSettings(cast(Wire, brokers))
    brokers.hung = {ONE}
    settings.values([LISTED])
    settings.values([LISTED, Setting.of_broker(ONE, LEADER_RATE)])
    assert brokers.asked == [ONE, TWO, TWO, ONE]
    assert brokers.limits == [HUNG_SECONDS, None, None]


def test_a_rate_is_not_written_if_its_broker_dies_after_the_read() -> None:
    rate, alive = Setting.of_broker(TWO, LEADER_RATE), [ONE, TWO]

    class Dying(Brokers):
        has_controller = True

        def brokers(self) -> dict[BrokerId, None]:
            return dict.fromkeys(alive)

        def ask_each(self, requests: Mapping[BrokerId, Any], seconds: float | None = None) -> dict[BrokerId, Any]:
            alive[:] = [ONE]
            return dict.fromkeys(requests, _answer(rate, None))

    (error,) = WireSettings(cast(Wire, Dying())).change([Change(setting=rate, before=None, after="1")]).values()
    assert isinstance(error, Unreachable)
    assert str(error) == f"{rate} was not written, because the broker is dead. Check that the broker is running"


def test_a_controller_that_does_not_answer_is_asked_once() -> None:
    class Controllers(Brokers):
        controller = ONE

    controllers = Controllers()
    configs = ControllerConfigs(cast(ControllerWire, controllers))
    controllers.hung = {ONE}
    with pytest.raises(Unreachable, match="the active controller does not answer"):
        configs.describe([LISTED.resource])
    assert controllers.asked == [ONE]


def test_a_topic_that_is_named_like_a_dead_broker_never_reaches_the_controllers() -> None:
    altered: list[object] = []

    class Controllers:
        active = "controller 9"

        def altered(self, operations: Mapping[Any, Any]) -> dict[Any, Any]:
            altered.extend(operations)
            return {resource: SimpleNamespace(error_code=0) for resource in operations}

    settings = WireSettings(cast(Wire, Brokers()), controllers=lambda: cast(ControllerConfigs, Controllers()))
    lists = [Setting.of_topic(topic, LEADER_REPLICAS) for topic in ("42", "t")]
    rate = Setting.of_broker(BrokerId(42), LEADER_RATE)
    done = settings.overwrite({**dict.fromkeys(lists), rate: None})
    assert (list(done.errors), altered) == (lists, [rate.resource])
