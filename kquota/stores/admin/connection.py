"""One connection to a cluster: bootstrap with a deadline, requests to one broker or to any, and translated errors."""

from __future__ import annotations

import copy
import logging
import os
import random
import time
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import kafka.errors as kafka_errors
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from kquota.addresses import host_and_port
from kquota.errors import KquotaError, Refused, Unreachable
from kquota.stores.admin import bootstrap as start
from kquota.stores.admin.client import CLOSED, Loop, Manager, Throttled
from kquota.stores.admin.partition_states import PartitionStates, PartitionStatesRequest
from kquota.stores.login import listening
from kquota.stores.login.arguments import CONTROLLER, OF_A_PROGRAM, ArgumentNames
from kquota.stores.login.listening import must_listen
from kquota.terms import WITHOUT_ZOOKEEPER, BrokerId

CLIENT_ID: Final = "kquota"
CONNECT_SECONDS: Final = 10.0
REQUEST_SECONDS: Final = 30.0
"""The timeout of a request in seconds if no `request.timeout.ms` is given. Throttle time does not count (KIP-219)."""
HUNG_SECONDS: Final = 4.0
"""If a broker does not answer a read within this many seconds, kquota asks another broker. The time is short, because a
broker whose process hangs still accepts connections, and a watch must soon report such a broker.
"""
READERS: Final = 2
"""The number of brokers that get only `HUNG_SECONDS` for a read. The next broker gets the usual time limit, because a
slow answer may be due to the network.
"""
ALTER: Final = "Alter"
ALTER_CONFIGS: Final = "AlterConfigs"
DESCRIBE: Final = "Describe"
DESCRIBE_CONFIGS: Final = "DescribeConfigs"
"""Operations of Kafka's ACLs."""
_POLL_MS: Final = 20
_METADATA_OF_KRAFT_ONLY: Final = 22
"""The level of the first `metadata.version` of Kafka 4.0."""
_SHOWN: Final = 5
_ALSO_IN_ZNODES: Final = (
    "DescribeClientQuotas",
    "AlterClientQuotas",
    "DescribeUserScramCredentials",
    "AlterUserScramCredentials",
    "IncrementalAlterConfigs",
    "ListPartitionReassignments",
    "AlterPartitionReassignments",
)
"""The requests whose data kquota can also read and write in ZooKeeper."""
_JAVA_REQUEST: Final = "Request Request("
_LARGEST_ANSWER: Final = 512 * 2**20  # kafka-python's default of 1 MB is too small for the log dirs of a busy broker


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LiveBroker:
    """A live broker, as the metadata describes it. `rack` is None if the broker has no rack."""

    id: BrokerId
    host: str
    port: int
    rack: str | None


class Wire:
    """An open connection to one cluster, as a context manager.

    Requests and answers are messages of kafka-python, or of those modules of this package that decode large answers.
    Every method that sends a request can raise the errors of `ask`.
    """

    MANAGER: ClassVar[type[Manager]] = Manager

    def __init__(
        self,
        bootstrap: str,
        security: Mapping[str, object],
        deadline: float = CONNECT_SECONDS,
        throttled: Throttled = lambda _: None,
        names: ArgumentNames = OF_A_PROGRAM,
    ) -> None:
        """Connect to the first address in `bootstrap` (host:port, separated by commas) that answers.

        `security` has kafka-python's settings (`login.kafka_python.settings`). `throttled` is called before each wait
        for a broker that throttles this client (KIP-219). Errors use the argument names in `names`.

        Raises Unreachable if no address answers within about `deadline` seconds (or the `default_api_timeout_ms` of
        `security`). Raises Unreachable at once if every address refuses the connection or if TLS fails. Raises Refused
        if the login is refused, and Invalid for a malformed address. With OAUTHBEARER, also raises the errors of
        `login.tokens.token`.
        """
        # Normally, nothing is logged, because kafka-python's warnings are for its developers, and kquota reports the
        # relevant ones as errors. The level is never DEBUG, because DEBUG shows passwords.
        logging.getLogger("kafka").setLevel(logging.INFO if os.environ.get("KQUOTA_DEBUG") else logging.CRITICAL + 1)
        self._bootstrap = bootstrap
        self._names = names
        deadline = _seconds(security, "default_api_timeout_ms", deadline)
        self._patience = _seconds(security, "request_timeout_ms", REQUEST_SECONDS)
        give_up = time.monotonic() + deadline
        protocol = str(security.get("security_protocol", "PLAINTEXT"))
        self._tls = protocol.endswith("SSL")
        servers = must_listen(
            f"Kafka {names.server}", bootstrap, names.bootstrap_server, names.command_config, deadline
        )
        ours: dict[str, Any] = {
            "client_id": CLIENT_ID,
            "client_software_name": "kquota",
            "receive_message_max_bytes": _LARGEST_ANSWER,
            "request_timeout_ms": int(self._patience * 1000),
            "socket_connection_setup_timeout_ms": int(deadline * 1000),
            "max_in_flight_requests_per_connection": 100,
            "throttled": throttled,
        }
        self._kraft_only: bool | None = None
        self._reader: BrokerId | None = None
        self._releases: dict[BrokerId, tuple[int, ...] | None] = {}
        self.has_controller = False  # True after a successful check by `controllers.must_be_active`
        self._net = Loop()
        self._manager, failure = start.first(self._net, servers, ours | dict(security), give_up, self.MANAGER)
        if failure is not None:
            self.close()
            raise start.failed(failure, bootstrap, protocol, deadline, names) from failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._manager.close()
        self._net.close()

    @property
    def cluster_id(self) -> str:
        """The cluster id, which is the same on every broker. Raises Refused if the brokers do not report one."""
        found = self._manager.cluster.cluster_id
        if found is None:
            needed = "kquota needs Kafka 0.10.1 or newer. If the cluster is new, try again"
            raise Refused(f"Kafka at {self._bootstrap}: the {self._names.server}s do not report a cluster id. {needed}")
        return str(found)

    @property
    def controller(self) -> BrokerId | None:
        """The controller on a ZooKeeper cluster, or any broker on KRaft (brokers forward requests). None if unknown."""
        controller = self._manager.cluster.controller
        return None if controller is None else BrokerId(controller.node_id)

    def brokers(self) -> dict[BrokerId, LiveBroker]:
        """Return the live brokers by id, sorted. They are from the last metadata that this connection has read."""
        found = (
            LiveBroker(id=BrokerId(b.node_id), host=b.host, port=b.port, rack=b.rack)
            for b in self._manager.cluster.brokers()
        )
        return {broker.id: broker for broker in sorted(found)}

    def version(self) -> tuple[int, ...]:
        """Return the release of the broker that answered first, for example (3, 9), as its API versions show it.

        The broker may be newer, but is never older.
        """
        return tuple(self._manager.broker_version)

    def oldest(self, *, unanswered: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Return the oldest release of the live brokers, because releases can differ during a rolling upgrade.

        A broker that did not answer counts as `unanswered`, or is left out if `unanswered` is None. Each broker is
        asked once, and again only after it was not alive, because its release may have changed. If the cluster has
        finalized a `metadata.version` of 4.0 or later (KIP-584), no broker can be older, and the result is (4, 0), even
        if all brokers are newer.
        """
        asked = ApiVersionsRequest(client_software_name="kquota", client_software_version="0", min_version=3)
        if self._kraft_only is None:
            found = self.ask(asked).finalized_features if self.version() >= WITHOUT_ZOOKEEPER else ()
            levels = {feature.name: feature.max_version_level for feature in found}
            self._kraft_only = levels.get("metadata.version", 0) >= _METADATA_OF_KRAFT_ONLY
        if self._kraft_only:
            return WITHOUT_ZOOKEEPER
        alive = self.brokers()
        self._releases = {broker: release for broker, release in self._releases.items() if broker in alive}
        if new := [broker for broker in alive if broker not in self._releases]:
            for broker, answer in self.ask_each(dict.fromkeys(new, asked)).items():
                known = not isinstance(answer, KquotaError) and not answer.error_code
                self._releases[broker] = _release(answer) if known else None
        releases = (self._releases[broker] or unanswered for broker in alive)
        return min([self.version(), *(release for release in releases if release is not None)])

    def metadata(self, topics: list[str] | None, broker: BrokerId | None = None, seconds: float | None = None) -> Any:
        """Return a new MetadataResponse for `topics` (None: all topics). Also updates `brokers` and `controller`.

        `broker` and `seconds` are the same as for `ask`.
        """
        answer = self.ask(metadata_request(topics), broker, seconds)
        self._manager.cluster.update_metadata(answer)
        return answer

    def refresh(self) -> None:
        """Update `brokers` and `controller`."""
        self.metadata([])

    def partition_states(self, request: PartitionStatesRequest) -> PartitionStates:
        """Return the partitions of the topics in the request. Also updates `brokers` and `controller`."""
        answer: PartitionStates = self.read(request)
        self._manager.cluster.update_metadata(answer.cluster)
        return answer

    def read(self, request: Any, seconds: float | None = None, *, avoid: BrokerId | None = None) -> Any:
        """Send a read-only request, and return the answer.

        kquota prefers the broker with the shortest throttle time, and then the broker that answered the last read. It
        waits `HUNG_SECONDS` for each of two brokers other than `avoid`. Then it asks any broker, even `avoid`, with the
        limit `seconds`.
        """
        readers = [broker for broker in self.brokers() if broker != avoid]
        random.shuffle(readers)
        for broker in sorted(readers, key=lambda one: (self.muted(one), one != self._reader))[:READERS]:
            try:
                # Send a copy, because kafka-python keeps the version that it has negotiated with this broker.
                answer = self.ask(copy.copy(request), broker, HUNG_SECONDS)
            except Unreachable:
                continue
            self._reader = broker
            return answer
        return self.ask(copy.copy(request), None, seconds)

    def ask(self, request: Any, broker: BrokerId | None = None, seconds: float | None = None) -> Any:
        """Send a request to `broker`, or to any broker (None), and return the answer.

        `seconds` limits each attempt, including its connection, but not the wait for a connection that the broker has
        muted (KIP-219). None means `request.timeout.ms`, plus 10 s for the connection. If `broker` is None and the
        request could not be sent, kquota tries another broker. Raises Unreachable if there is no answer, and Refused if
        the broker does not support this request. After Unreachable, `was_sent` returns whether the broker may have
        received the request.
        """
        patience = self._patience if seconds is None else seconds
        give_up = time.monotonic() + patience + self._manager.muted(broker)
        timeout_ms = None if seconds is None else seconds * 1000

        async def answered() -> Any:
            request._header = None  # `was_sent` must not see the header of an earlier attempt
            sent = self._manager.send(request, node_id=broker, request_timeout_ms=timeout_ms)
            return await self._manager.wait_for(sent, self._longest_ms(broker, seconds))

        self._look()
        others = len(self.brokers()) if broker is None else 0
        while True:
            try:
                return self._net.run(answered)
            except kafka_errors.NodeNotReadyError as error:
                if time.monotonic() > give_up:
                    raise self._explained(error, request, broker) from error
                self._net.poll(timeout_ms=_POLL_MS)
            except kafka_errors.KafkaError as error:
                failure = self._explained(error, request, broker)
                failure.__cause__ = error
                others -= 1
                if others < 1 or not isinstance(failure, Unreachable) or was_sent(request, failure):
                    raise failure from error
                # The next attempt goes to another broker, because kafka-python avoids this broker for a while.

    def muted(self, broker: BrokerId | None) -> float:
        """Return the seconds for which `broker`, or every broker (None), still throttles this client (KIP-219)."""
        return self._manager.muted(broker)

    def ask_each(
        self, requests: Mapping[BrokerId, Any], seconds: float | None = None
    ) -> dict[BrokerId, Any | KquotaError]:
        """Send each broker its request, all at the same time. Return the answer or the error of each broker.

        kquota waits for muted connections (KIP-219). `seconds` and the errors are the same as for `ask`.
        """
        give_up = time.monotonic() + (self._patience if seconds is None else seconds)
        answers: dict[BrokerId, Any | kafka_errors.KafkaError] = {}
        # Send copies, because kafka-python keeps the negotiated version in a request, and another broker may be older.
        left = {broker: copy.copy(request) for broker, request in requests.items()}
        self._look()
        while left:
            answers |= self._net.run(self._together, left, seconds)
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

    async def _together(
        self, requests: Mapping[BrokerId, Any], seconds: float | None
    ) -> dict[BrokerId, Any | kafka_errors.KafkaError]:
        answers: dict[BrokerId, Any | kafka_errors.KafkaError] = {}
        sent: dict[BrokerId, Awaitable[Any]] = {}
        longest = max(self._longest_ms(broker, seconds) for broker in requests) / 1000
        for broker, request in requests.items():
            try:
                sent[broker] = self._manager.send(request, node_id=broker)
            except kafka_errors.KafkaError as error:
                answers[broker] = error
        give_up = time.monotonic() + longest
        for broker, future in sent.items():
            # All requests share one deadline, because otherwise each broker that hangs would add its own timeout.
            left_ms = max(0, int((give_up - time.monotonic()) * 1000))
            try:
                answers[broker] = await self._manager.wait_for(future, left_ms)
            except kafka_errors.KafkaError as error:
                answers[broker] = error
        return answers

    def _longest_ms(self, broker: BrokerId | None, seconds: float | None) -> int:
        """Return the time limit in ms for a request, its connection, and the throttle time of the broker (KIP-219).

        This limit is needed because kafka-python has no timeout for a TLS handshake that gets no answer.
        """
        longest = self._patience + CONNECT_SECONDS if seconds is None else seconds
        return int((longest + self._manager.muted(broker)) * 1000)

    def _look(self) -> None:
        """Detect connections that have ended, so that the next request does not use one."""
        self._net.poll(timeout_ms=0)

    def _explained(self, error: kafka_errors.KafkaError, request: Any, broker: BrokerId | None) -> KquotaError:
        name = type(request).name.removesuffix("Request")
        where = f"Kafka at {self._bootstrap}" if broker is None else f"{self._names.server} {broker}"
        if isinstance(error, kafka_errors.IncompatibleBrokerVersion):
            words = f"{where}: this release of Kafka does not support {name}"
            if name not in _ALSO_IN_ZNODES or self._names.server == CONTROLLER:
                return Refused(words)
            return Refused(f"{words}. On a ZooKeeper cluster, use {self._names.zookeeper}, if the command has it")
        if isinstance(error, kafka_errors.NodeNotReadyError):
            return Unreachable(f"{where}: no answer to {name}: {CLOSED}")
        cause = listening.cause(error)
        tls = listening.explained(cause) if cause is not None and self._tls else None
        hint = ""
        if broker is None and isinstance(cause or error, (OSError, kafka_errors.KafkaConnectionError)):
            named = ", ".join(host_and_port(known.host, known.port) for known in list(self.brokers().values())[:_SHOWN])
            hint = f"; the cluster reports its {self._names.server}s as {named}. Check that this host can reach them"
        return Unreachable(f"{where}: no answer to {name} ({tls or start.phrase(error)}){hint}")


def metadata_request(topics: Iterable[str] | None) -> Any:
    """Return a request for the metadata of `topics` (None: all topics). It never creates a topic."""
    named = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest(topics=named, allow_auto_topic_creation=False, min_version=1)


def was_sent(request: Any, error: Unreachable) -> bool:
    """Return True if the broker may have received the request for which `Wire.ask` raised this error.

    Only the last attempt counts. kafka-python sets the header of a request when it writes the request to the
    connection. A request that was waiting for its connection at the timeout may still be written later, so a timeout
    also counts.
    """
    return request.header is not None or isinstance(error.__cause__, kafka_errors.KafkaTimeoutError)


def kafka_error(code: int, message: str | None) -> str:
    """Return a broker's error as one phrase: its name, its code and, if any, its message without a full stop.

    A KRaft controller that denies a request prints the whole Java object of the request. This message is left out.
    """
    name = kafka_errors.for_code(code).__name__.removesuffix("Error")
    if message is not None and message.startswith(_JAVA_REQUEST):
        message = None
    return f"{name} ({code})" + (f": {message.removesuffix('.')}" if message else "")


def advice_on_rights(code: int, operation: str = DESCRIBE_CONFIGS) -> str:
    """Return the next step if a request for this operation failed with this error code, or "" if no permission is
    missing. Configs and quotas are read with the default operation.
    """
    needed = {29: "the topic", 30: "the group", 31: "the cluster"}
    return f". This user needs {operation} on {needed[code]}" if code in needed else ""


def topic_refusal(topic: str, code: int) -> Refused:
    """Return the error for a topic whose metadata have this error code, with the missing permission, if any."""
    words = f"{kafka_error(code, None)}{advice_on_rights(code, DESCRIBE)}"
    return Refused(f"topic {topic}: the broker answered {words}")


def _release(answer: Any) -> tuple[int, ...]:
    versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    return tuple(BrokerVersionData(api_versions=versions).broker_version)


def _seconds(settings: Mapping[str, object], name: str, otherwise: float) -> float:
    milliseconds = settings.get(name)
    return milliseconds / 1000 if isinstance(milliseconds, int) else otherwise
