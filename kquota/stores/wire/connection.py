"""One connection to a cluster: bootstrap by a deadline, requests to any or to a named broker, errors translated."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from kafka import errors as kafka_errors
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from kquota.errors import KquotaError, Refused, Unreachable
from kquota.stores import handshake
from kquota.stores.reach import must_listen
from kquota.stores.wire import bootstrap as start
from kquota.stores.wire.hang_up import Limited
from kquota.stores.wire.loop import Loop
from kquota.stores.wire.mute import Throttled, unheard
from kquota.terms import BrokerId

CLIENT_ID: Final = "kquota"
CONNECT_SECONDS: Final = 10.0
REQUEST_SECONDS: Final = 30.0
_POLL_MS: Final = 20
_SHOWN: Final = 5
_LARGEST_ANSWER: Final = 512 * 2**20  # kafka-python's own 1 MB is less than the log dirs of one busy broker


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Broker:
    """A live broker, as metadata names it."""

    id: BrokerId
    host: str
    port: int
    rack: str | None


class Wire:
    """An open connection to one cluster; a context manager.

    Requests and answers are kafka-python's message classes; only the modules of this package see them.
    """

    def __init__(
        self,
        bootstrap: str,
        security: Mapping[str, object],
        deadline: float = CONNECT_SECONDS,
        throttled: Throttled = unheard,
        option: str = "--command-config",
    ) -> None:
        """Connect to the first of `bootstrap` (host:port, joined by commas) that answers.

        `security` are kafka-python's settings (`login.settings`); `throttled` hears of each wait for a broker that
        throttles us (KIP-219); `option` is where an error says to look. Raises Unreachable after at most `deadline`
        seconds (or their default.api.timeout.ms), at once if every address refuses or TLS fails; Refused if the login
        is.
        """
        # Its warnings are for a library's author; what matters of them comes back as an error. DEBUG shows passwords.
        logging.getLogger("kafka").setLevel(logging.INFO if os.environ.get("KQUOTA_DEBUG") else logging.CRITICAL + 1)
        self._bootstrap = bootstrap
        deadline = _seconds(security, "default_api_timeout_ms", deadline)
        self._patience = _seconds(security, "request_timeout_ms", REQUEST_SECONDS)
        give_up = time.monotonic() + deadline
        protocol = str(security.get("security_protocol", "PLAINTEXT"))
        self._tls = protocol.endswith("SSL")
        servers = must_listen("Kafka broker", bootstrap, "--bootstrap-server", deadline)
        ours: dict[str, Any] = {
            "client_id": CLIENT_ID,
            "client_software_name": "kquota",
            "receive_message_max_bytes": _LARGEST_ANSWER,
            "request_timeout_ms": int(self._patience * 1000),
            "socket_connection_setup_timeout_ms": int(deadline * 1000),
            "max_in_flight_requests_per_connection": 100,
            "throttled": throttled,
        }
        self._oldest: tuple[int, ...] | None = None
        self._net = Loop()
        self._manager, failure = start.first(self._net, servers, ours | dict(security), give_up)
        if failure is not None:
            self.close()
            raise start.failed(failure, bootstrap, protocol, deadline, option) from failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._manager.close()
        self._net.close()

    @property
    def cluster_id(self) -> str:
        """The cluster's id, the same from every broker."""
        return str(self._manager.cluster.cluster_id)

    @property
    def controller(self) -> BrokerId | None:
        """The controller on ZooKeeper clusters; on KRaft any broker forwards, and this is one of them."""
        controller = self._manager.cluster.controller
        return None if controller is None else BrokerId(controller.node_id)

    def brokers(self) -> dict[BrokerId, Broker]:
        """The live brokers, by id."""
        found = (
            Broker(id=BrokerId(b.node_id), host=b.host, port=b.port, rack=b.rack)
            for b in self._manager.cluster.brokers()
        )
        return {broker.id: broker for broker in sorted(found)}

    def version(self) -> tuple[int, ...]:
        """The broker's release as its API versions tell it, for example (3, 9); never newer than it is."""
        return tuple(self._manager.broker_version)

    def oldest(self) -> tuple[int, ...]:
        """The oldest release among the brokers that answer: in a rolling upgrade they are not all of one.

        Asked once, and not from 4.0 on, which runs beside no Kafka that matters (3.3 on KRaft at the oldest).
        """
        if self._oldest is None and self.version() >= (4, 0):
            self._oldest = self.version()
        if self._oldest is None:
            asked = ApiVersionsRequest(client_software_name="kquota", client_software_version="0")
            answers = self.ask_each(dict.fromkeys(self.brokers(), asked)).values()
            told = [_release(a) for a in answers if not isinstance(a, KquotaError) and not a.error_code]
            self._oldest = min([self.version(), *told])
        return self._oldest

    def metadata(self, topics: list[str] | None) -> Any:
        """A fresh MetadataResponse of `topics`, or of all (None); also refreshes brokers and controller."""
        named = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
        answer = self.ask(MetadataRequest(topics=named, allow_auto_topic_creation=False, min_version=1))
        self._manager.cluster.update_metadata(answer)
        return answer

    def ask(self, request: Any, broker: BrokerId | None = None) -> Any:
        """Send to `broker`, or to any, and return the answer.

        A connection that the broker has muted (KIP-219) is waited for, however long. Raises Unreachable, and Refused
        if the broker does not know this request.
        """
        return self._run(lambda: self._manager.send(request, node_id=broker), request, broker)

    def ask_each(self, requests: Mapping[BrokerId, Any]) -> dict[BrokerId, Any | KquotaError]:
        """Send each broker its request, all in flight together; an error stands in the place of its broker's answer.

        Muted connections (KIP-219) are waited for.
        """
        give_up = time.monotonic() + self._patience
        answers: dict[BrokerId, Any | kafka_errors.KafkaError] = {}
        left = dict(requests)
        self._look()
        while left:
            answers |= self._net.run(self._together, left)
            left = {b: r for b, r in left.items() if isinstance(answers[b], kafka_errors.NodeNotReadyError)}
            if time.monotonic() > give_up:
                break
            if left:
                self._net.poll(timeout_ms=_POLL_MS)
        return {
            broker: self._explained(answer, requests[broker], broker)
            if isinstance(answer, kafka_errors.KafkaError)
            else answer
            for broker, answer in answers.items()
        }

    async def _together(self, requests: Mapping[BrokerId, Any]) -> dict[BrokerId, Any | kafka_errors.KafkaError]:
        answers: dict[BrokerId, Any | kafka_errors.KafkaError] = {}
        sent: dict[BrokerId, Awaitable[Any]] = {}
        longest_ms = max(map(self._longest_ms, requests))
        for broker, request in requests.items():
            try:
                sent[broker] = self._manager.send(request, node_id=broker)
            except kafka_errors.KafkaError as error:
                answers[broker] = error
        for broker, future in sent.items():
            try:
                answers[broker] = await self._manager.wait_for(future, longest_ms)
            except kafka_errors.KafkaError as error:
                answers[broker] = error
        return answers

    def _longest_ms(self, broker: BrokerId | None) -> int:
        """For a request, the connection before it, and the mute before both.

        A TLS handshake that nobody answers has no time-out of its own.
        """
        return int((self._patience + CONNECT_SECONDS + self._manager.muted(broker)) * 1000)

    def _look(self) -> None:
        """A connection that ended while nobody looked is seen here, not by the next request."""
        self._net.poll(timeout_ms=0)

    def _run(self, send: Callable[[], Awaitable[Any]], request: Any, broker: BrokerId | None) -> Any:
        give_up = time.monotonic() + self._patience + self._manager.muted(broker)
        self._look()
        while True:
            try:
                return self._net.run(lambda: self._manager.wait_for(send(), self._longest_ms(broker)))
            except kafka_errors.NodeNotReadyError as error:
                if time.monotonic() > give_up:
                    raise self._explained(error, request, broker) from error
                self._net.poll(timeout_ms=_POLL_MS)
            except kafka_errors.KafkaError as error:
                raise self._explained(error, request, broker) from error

    def _explained(self, error: kafka_errors.KafkaError, request: Any, broker: BrokerId | None) -> KquotaError:
        name = type(request).__name__.removesuffix("Request")
        where = f"Kafka at {self._bootstrap}" if broker is None else f"broker {broker}"
        if isinstance(error, kafka_errors.IncompatibleBrokerVersion):
            return Refused(f"{where}: this Kafka is too old for {name}; on a ZooKeeper cluster use --zookeeper")
        if isinstance(error, kafka_errors.NodeNotReadyError) and self._manager.hang_ups.limits(broker):
            return Unreachable(f"{where}: no answer to {name}: {Limited()}")
        cause = handshake.cause(error)
        told = handshake.explained(cause) if cause is not None and self._tls else None
        hint = ""
        if broker is None and isinstance(cause or error, (OSError, kafka_errors.KafkaConnectionError)):
            named = ", ".join(f"{known.host}:{known.port}" for known in list(self.brokers().values())[:_SHOWN])
            hint = f"; the cluster names its brokers as {named}: can they be reached from here?"
        return Unreachable(f"{where}: no answer to {name} ({told or _cause(error)}){hint}")


def kafka_error(code: int, message: str | None) -> str:
    """A broker's error as one phrase: its name, code and own words."""
    name = kafka_errors.for_code(code).__name__.removesuffix("Error")
    return f"{name} ({code})" + (f": {message}" if message else "")


def _release(answer: Any) -> tuple[int, ...]:
    versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    return tuple(BrokerVersionData(api_versions=versions).broker_version)


def _seconds(settings: Mapping[str, object], name: str, otherwise: float) -> float:
    milliseconds = settings.get(name)
    return milliseconds / 1000 if isinstance(milliseconds, int) else otherwise


def _cause(error: BaseException) -> str:
    """A library's error as one phrase; its own text would name its class again."""
    said = ": ".join(map(str, error.args))
    return f"{type(error).__name__.removesuffix('Error')}{': ' + said if said else ''}"
