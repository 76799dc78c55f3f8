"""The time limit of simultaneous requests, and whether a request was sent after several attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import IncompatibleBrokerVersion, KafkaConnectionError, KafkaTimeoutError
from kafka.protocol.admin.topics import DeleteTopicsRequest, ElectLeadersRequest

from kquota.errors import Refused, Unknown, Unreachable
from kquota.stores.admin import connection, topic_setup
from kquota.stores.admin.connection import Wire, was_sent
from kquota.stores.admin.partition_states import PartitionStatesRequest, topic_states
from kquota.stores.admin.running import (
    NOT_CONTROLLER,
    RunningMovesRequest,
    ask_controller,
    moves_by_topic,
    moving_topics,
)
from kquota.stores.login.arguments import CONTROLLER, OF_A_PROGRAM, ArgumentNames
from kquota.terms import BrokerId


class Time:
    """A clock that advances only while kquota waits."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Net:
    """An event loop without connections."""

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return asyncio.run(work(*arguments))

    def poll(self, timeout_ms: float) -> None:
        pass


class Hanging:
    """A request that gets no answer."""

    name = "MetadataRequest"


class Manager:
    """Connections to brokers. `answer` returns or raises the result of each attempt."""

    def __init__(self, time: Time, answer: Callable[[Any], Any]) -> None:
        self.cluster = SimpleNamespace(
            brokers=list, controller=SimpleNamespace(node_id=1), update_metadata=lambda _: None
        )
        self._time, self._answer = time, answer
        self.broker_version = (4, 3)

    def muted(self, _broker: BrokerId | None) -> float:
        return 0.0

    def send(self, request: Any, **_: object) -> Any:
        return request

    async def wait_for(self, request: Any, timeout_ms: int) -> Any:
        if isinstance(request, Hanging):
            self._time.seconds += timeout_ms / 1000
            raise KafkaTimeoutError("late")
        return self._answer(request)


class StubWire(Wire):
    """A wire without a cluster."""

    def __init__(self, manager: Manager, names: ArgumentNames = OF_A_PROGRAM) -> None:
        self._bootstrap, self._names, self._patience, self._tls = "k1:9092", names, 30.0, False
        self._manager, self._net = manager, Net()  # type: ignore[assignment]
        self._reader = None

    def refresh(self) -> None:
        pass


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    for module in ("connection", "running"):
        monkeypatch.setattr(f"kquota.stores.admin.{module}.time", found)
    return found


def test_brokers_that_hang_share_one_time_limit(time: Time) -> None:
    wire = StubWire(Manager(time, lambda request: request))
    requests: dict[BrokerId, Any] = {BrokerId(number): Hanging() for number in range(1, 5)} | {BrokerId(5): "answers"}
    answers = wire.ask_each(requests, 8.0)
    assert time.seconds == pytest.approx(8.0)
    assert [isinstance(answer, Unreachable) for answer in answers.values()] == [True] * 4 + [False]


def test_only_the_last_attempt_decides_whether_a_request_was_sent(time: Time) -> None:
    attempts = 0

    def answer(request: Any) -> Any:
        nonlocal attempts
        attempts += 1
        if attempts == 2:
            raise KafkaConnectionError("refused")
        request.with_header()
        return SimpleNamespace(error_code=NOT_CONTROLLER if attempts == 1 else 0)

    found = ask_controller(StubWire(Manager(time, answer)), RunningMovesRequest())
    assert (found.error_code, attempts) == (0, 3)


def test_a_cluster_without_an_id_is_refused(time: Time) -> None:
    """Redpanda has no id during its first start. The journals of all such clusters would share one folder."""
    wire = StubWire(Manager(time, lambda request: request))
    wire._manager.cluster.cluster_id = "id"
    assert wire.cluster_id == "id"
    wire._manager.cluster.cluster_id = None
    with pytest.raises(Refused, match=r"^Kafka at k1:9092: the brokers do not report a cluster id"):
        _ = wire.cluster_id


def test_a_request_whose_only_attempt_was_written_was_sent(time: Time) -> None:
    def answer(request: Any) -> Any:
        request.with_header()
        raise KafkaConnectionError("closed")

    request = RunningMovesRequest()
    with pytest.raises(Unreachable) as error:
        StubWire(Manager(time, answer)).ask(request, BrokerId(1))
    assert was_sent(request, error.value)
    assert "no answer to ListPartitionReassignments (" in str(error.value)


@pytest.mark.parametrize(
    ("server", "kind", "step"),
    [
        ("broker", RunningMovesRequest, ". On a ZooKeeper cluster, use zookeeper, if the command has it"),
        ("broker", ElectLeadersRequest, ""),
        (CONTROLLER, RunningMovesRequest, ""),
    ],
    ids=["also in ZooKeeper", "only through brokers", "through controllers"],
)
def test_zookeeper_is_suggested_only_for_a_request_that_it_can_replace(
    time: Time, server: str, kind: type[Any], step: str
) -> None:
    def answer(_request: Any) -> Any:
        raise IncompatibleBrokerVersion("too old")

    wire = StubWire(Manager(time, answer), replace(OF_A_PROGRAM, server=server))
    with pytest.raises(Refused) as error:
        wire.ask(kind(), BrokerId(1))
    name = kind.name.removesuffix("Request")
    assert str(error.value) == f"{server} 1: this release of Kafka does not support {name}{step}"


MUTATIONS: dict[str, tuple[Callable[[Wire, str], object], str]] = {
    "create": (topic_setup.create, "created"),
    "delete": (topic_setup.delete, "deleted"),
}


@pytest.mark.parametrize(("mutate", "done"), MUTATIONS.values(), ids=MUTATIONS)
@pytest.mark.parametrize("written", [False, True])
def test_a_topic_may_have_changed_only_if_the_request_was_sent(
    time: Time, mutate: Callable[[Wire, str], object], done: str, written: bool
) -> None:
    def answer(request: Any) -> Any:
        if written:
            request.with_header()
        raise KafkaConnectionError("closed" if written else "refused")

    with pytest.raises(Unknown if written else Unreachable) as error:
        mutate(StubWire(Manager(time, answer)), "t")
    assert (f"topic t may have been {done}" in str(error.value)) == written


def test_a_deleted_topic_is_unknown_if_the_controller_does_not_answer_afterwards(
    time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a ZooKeeper cluster."""
    monkeypatch.setattr(topic_setup, "time", time)

    def answer(request: Any) -> Any:
        request.with_header()
        if isinstance(request, DeleteTopicsRequest):
            deleted = SimpleNamespace(name="t", error_code=0, error_message=None)
            return SimpleNamespace(responses=[deleted], throttle_time_ms=0)
        raise KafkaConnectionError("closed")

    manager = Manager(time, answer)
    manager.broker_version = (3, 9)
    with pytest.raises(Unknown, match=r"^topic t was deleted, but its name may still be in use after 30 s\. Check"):
        topic_setup.delete(StubWire(manager), "t")


def test_an_election_of_more_than_10_seconds_makes_the_controller_unreachable(time: Time) -> None:
    moved = SimpleNamespace(error_code=NOT_CONTROLLER, error_message=None)
    wire = StubWire(Manager(time, lambda _: moved))
    with pytest.raises(Unreachable, match="NotController"):
        moves_by_topic(wire, moving_topics())
    assert time.seconds > connection.CONNECT_SECONDS


class Stopped(Manager):
    """Broker 1 accepts connections, but never answers. The metadata names it as the controller."""

    def __init__(self, time: Time, answer: Callable[[Any], Any]) -> None:
        super().__init__(time, answer)
        self.asked: list[int | None] = []
        self.cluster.brokers = lambda: [SimpleNamespace(node_id=one, host="k", port=1, rack=None) for one in (1, 2, 3)]

    def send(self, request: Any, **options: Any) -> Any:
        node_id = options.get("node_id")
        self.asked.append(node_id)
        return Hanging() if node_id in (1, None) else request


def test_another_broker_reports_the_running_moves_if_the_first_one_is_stopped(time: Time) -> None:
    manager = Stopped(time, lambda _: SimpleNamespace(error_code=0, topics=[]))
    assert moves_by_topic(StubWire(manager), moving_topics()) == {}
    assert (manager.asked[0], time.seconds) == (1, connection.HUNG_SECONDS)


def test_a_controller_that_is_stopped_is_asked_again_because_others_know_no_moves(time: Time) -> None:
    """As on a ZooKeeper cluster."""
    moved = SimpleNamespace(error_code=NOT_CONTROLLER, error_message=None)
    manager = Stopped(time, lambda _: moved)
    with pytest.raises(Unreachable, match="broker 1"):
        moves_by_topic(StubWire(manager), moving_topics())
    assert manager.asked[0] == manager.asked[2] == 1


def test_a_read_waits_only_once_for_a_stopped_broker(time: Time) -> None:
    manager = Stopped(time, lambda _: SimpleNamespace(cluster=None))
    wire = StubWire(manager)
    for _ in range(20):
        wire.partition_states(PartitionStatesRequest([], topic_states()))
    assert time.seconds <= connection.HUNG_SECONDS
    assert len(set(manager.asked[2:])) == 1, "kquota prefers the broker that has answered"
