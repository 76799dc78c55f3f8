"""The connection to controllers, against a server that answers like one of 4.3.1 (as its answers were recorded)."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.admin.cluster import DescribeClusterResponse, DescribeQuorumRequest, DescribeQuorumResponse
from kafka.protocol.admin.configs import DescribeConfigsResponse, IncrementalAlterConfigsResponse
from kafka.protocol.metadata import ApiVersionsResponse

from kquota import library
from kquota.errors import KquotaError, Refused, Unreachable
from kquota.settings.change import ConfigChange
from kquota.settings.resource import BROKERS, Resource
from kquota.stores.admin.controllers import ControllerWire, reported
from kquota.terms import LEADER_RATE, BrokerId

API_VERSIONS, ALTER, DESCRIBE_CLUSTER = 18, 44, 60
SERVED = ((API_VERSIONS, 0, 4), (DESCRIBE_CLUSTER, 0, 2), (ALTER, 0, 1))
NOT_CONTROLLER, NOT_AUTHORIZED, MISMATCHED = 41, 31, 114
DEAD = Resource(kind=BROKERS, name="3")


@dataclass(kw_only=True)
class Controller:
    """Controller 1 of a quorum. It answers changes with `codes`, then with success. `active` names the active one."""

    codes: list[int] = field(default_factory=list)
    active: Callable[[], int] = lambda: 1
    mismatch: bool = False
    asked: list[int] = field(default_factory=list)
    port: int = 0

    def serve(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                threading.Thread(target=self._answer_all, args=(client,), daemon=True).start()

    def _answer_all(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error), client, client.makefile("rb") as stream:
            while True:
                (length,) = struct.unpack(">i", stream.read(4))
                key, version, correlation = struct.unpack(">hhi", stream.read(length)[:8])
                self.asked.append(key)
                answer = self._answer(key, version)
                answer.with_header(correlation_id=correlation)
                client.sendall(answer.encode(header=True, framed=True))

    def _answer(self, key: int, version: int) -> Any:
        if key == API_VERSIONS:
            keys = [ApiVersionsResponse.ApiVersion(*one, version=version) for one in SERVED]
            return ApiVersionsResponse(error_code=0, api_keys=keys, version=version)
        if key == ALTER:
            kind = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
            code = self.codes.pop(0) if self.codes else 0
            return IncrementalAlterConfigsResponse(
                responses=[kind(code, None, 4, "3", version=version)], version=version
            )
        node = DescribeClusterResponse.DescribeClusterBroker(1, "127.0.0.1", self.port, None, version=version)
        return DescribeClusterResponse(
            error_code=MISMATCHED if self.mismatch else 0,
            endpoint_type=2,
            cluster_id="" if self.mismatch else "a-cluster",
            controller_id=self.active(),
            brokers=[] if self.mismatch else [node],
            version=version,
        )


@contextlib.contextmanager
def serving(controller: Controller) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        controller.port = listening.getsockname()[1]
        threading.Thread(target=controller.serve, args=(listening,), daemon=True).start()
        yield f"127.0.0.1:{controller.port}"


def altered(controller: Controller, seconds: float = 60.0) -> str:
    with serving(controller) as address, library.controllers(address, None, seconds=seconds) as found:
        assert found.cluster_id == "a-cluster"
        found.alter([ConfigChange(resource=DEAD, delete=(LEADER_RATE,))])
        assert found.describe([DEAD]) == {}, "only the broker itself shows its configs"
        return found.active.replace(address, "HERE")


def test_the_active_controller_accepts_configs_of_another_broker() -> None:
    assert altered(Controller()) == "controller 1 at HERE"


def test_a_controller_that_is_no_longer_active_has_written_nothing_and_is_asked_again() -> None:
    controller = Controller(codes=[NOT_CONTROLLER, NOT_CONTROLLER])
    altered(controller)
    assert [key for key in controller.asked if key == ALTER] == [ALTER] * 3


def test_the_start_waits_for_an_election() -> None:
    answers = iter([-1, -1])
    assert altered(Controller(active=lambda: next(answers, 1))) == "controller 1 at HERE"


FAILING: dict[str, tuple[Controller, type[KquotaError], str]] = {
    "the port of a broker": (Controller(mismatch=True), Refused, "this is not the port of a controller"),
    "no active controller": (Controller(active=lambda: -1), Unreachable, "have not elected an active controller"),
    "no permission": (Controller(codes=[NOT_AUTHORIZED]), Refused, "ClusterAuthorizationFailed"),
}


@pytest.mark.parametrize(("controller", "kind", "words"), FAILING.values(), ids=FAILING)
def test_a_failure_is_explained(controller: Controller, kind: type[KquotaError], words: str) -> None:
    with pytest.raises(kind, match=words):
        altered(controller, seconds=60.0 if controller.active() > 0 else 0.3)


class Mute(ControllerWire):
    """A connection to controllers that answers no request after the start."""

    def __init__(self, error: KquotaError) -> None:
        cluster = SimpleNamespace(metadata_request=object)
        self._manager, self._error = SimpleNamespace(cluster=cluster), error  # type: ignore[assignment]

    def ask(self, *_: object) -> Any:
        raise self._error


@pytest.mark.parametrize("error", [Unreachable("late"), Refused("not supported")], ids=str)
def test_a_failed_refresh_keeps_the_active_controller(error: KquotaError) -> None:
    Mute(error).refresh()


class Brokers:
    """A connection to brokers that answer with these messages."""

    def __init__(self, quorum: Any, configs: Any = None) -> None:
        self._quorum, self._configs = quorum, configs

    def brokers(self) -> dict[BrokerId, None]:
        return {BrokerId(2): None}

    def ask(self, request: Any, *_: object) -> Any:
        answer = self._quorum if isinstance(request, DescribeQuorumRequest) else self._configs
        if isinstance(answer, KquotaError):
            raise answer
        return answer


def quorum(nodes: dict[int, tuple[str, int]], leader: int) -> Any:
    version, topic = 2, DescribeQuorumResponse.TopicData
    part = topic.PartitionData(version=version, partition_index=0, leader_id=leader, current_voters=[], observers=[])
    listener = DescribeQuorumResponse.Node.Listener
    return DescribeQuorumResponse(
        version=version,
        error_code=0,
        topics=[topic(version=version, topic_name="__cluster_metadata", partitions=[part])],
        nodes=[
            DescribeQuorumResponse.Node(
                version=version,
                node_id=node,
                listeners=[listener(version=version, name="CONTROLLER", host=host, port=port)],
            )
            for node, (host, port) in nodes.items()
        ],
    )


def configured(voters: str) -> Any:
    version, result = 4, DescribeConfigsResponse.DescribeConfigsResult
    keys = {"controller.quorum.bootstrap.servers": "", "controller.quorum.voters": voters}
    configs = [result.DescribeConfigsResourceResult(version=version, name=k, value=v) for k, v in keys.items()]
    return DescribeConfigsResponse(version=version, results=[result(version=version, configs=configs)])


REPORTED: dict[str, tuple[Brokers, str | None]] = {
    "the active one first": (Brokers(quorum({1: ("c1", 9093), 2: ("::1", 9093)}, leader=2)), "[::1]:9093,c1:9093"),
    "before 3.9, the configuration of a broker": (
        Brokers(quorum({}, 1), configured("1@c1:9093,2@c2:1")),
        "c1:9093,c2:1",
    ),
    "no controller answers the broker": (Brokers(Unreachable("late"), configured("1@c1:9093")), "c1:9093"),
    "on ZooKeeper": (Brokers(Refused("not supported"), configured("")), None),
    "no broker answers": (Brokers(Unreachable("late"), Unreachable("late")), None),
}


@pytest.mark.parametrize(("wire", "addresses"), REPORTED.values(), ids=REPORTED)
def test_the_brokers_report_the_addresses(wire: Any, addresses: str | None) -> None:
    assert reported(wire) == addresses


@pytest.mark.parametrize(
    ("wire", "step"),
    [
        (Brokers(quorum({1: ("127.0.0.1", 1)}, leader=1)), "Check the controllers that the brokers report"),
        (Brokers(Refused("not supported"), configured("")), "On a KRaft cluster, give bootstrap_controller"),
    ],
    ids=["none accepts a connection", "none is reported"],
)
def test_an_error_about_reported_controllers_names_no_option_that_was_not_given(wire: Any, step: str) -> None:
    with pytest.raises(Unreachable) as caught, library.controllers_of(wire, None, None):
        pass
    assert str(caught.value).endswith(step)
