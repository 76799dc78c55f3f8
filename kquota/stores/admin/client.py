"""An extension of kafka-python's client that waits for throttle times (KIP-219), connects again, and lets signals
interrupt it.

kafka-python alone forgets the throttle time when a connection ends, and ignores it in the first answer of the first
connection. After the bootstrap, kafka-python does not connect again if a broker closes a new connection, for example at
a limit (KIP-612).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from kquota.interrupt import deferred
from kquota.stores.login import listening

Throttled: TypeAlias = Callable[[float], None]
"""A callback that is called before each wait for a broker's throttle time. It receives the duration in seconds."""
CLOSED: Final = (
    "the connection was closed before it could be used. "
    "The port may belong to another listener, or the server may limit new connections (connection_creation_rate)"
)
OUT_OF_TIME: Final = (kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError)
_TURN_SECONDS: Final = 0.1
"""The maximum wait in one turn of the loop, in seconds. Signals are handled at the end of each turn."""


def is_closed(error: BaseException) -> bool:
    """Return True if the server closed the connection without an answer.

    The server may limit connections, be shutting down, or use another protocol.
    """
    cause = listening.cause(error)
    if isinstance(cause, ConnectionRefusedError):
        return False
    return "disconnected" in str(error) or isinstance(cause, ConnectionError) or "EOF" in str(cause)


class Loop(NetworkSelector):  # type: ignore[misc]
    """A loop that handles signals only between two turns, because a task would swallow a handler's exceptions."""

    def _poll_once(self, timeout: float | None = None) -> None:
        with deferred():
            super()._poll_once(_TURN_SECONDS if timeout is None else min(timeout, _TURN_SECONDS))


class Manager(KafkaConnectionManager):  # type: ignore[misc]
    """kafka-python's connection manager. A request to a broker that throttles this client waits instead of failing. The
    manager also keeps the reason for a failed bootstrap.
    """

    def __init__(self, net: NetworkSelector, *, throttled: Throttled, **settings: Any) -> None:
        self.ended = Future()
        """A future that is done when the bootstrap has succeeded or failed."""
        self.failure: BaseException | None = None
        """The error that best explains a failure of the bootstrap, or None before the first error."""
        self._throttled = throttled
        self._mute_ends: dict[Any, float] = {}
        super().__init__(net, **settings)

    def muted(self, node_id: int | None) -> float:
        """Return the seconds for which this node, or every node (None), still throttles this client."""
        nodes = [known.node_id for known in self.cluster.brokers()] if node_id is None else [node_id]
        end = min((self._mute_ends.get(node, 0.0) for node in nodes), default=0.0)
        return max(0.0, end - time.monotonic())

    def send(self, request: Any, node_id: int | None = None, request_timeout_ms: float | None = None) -> Any:
        """Send a request and return its future, as KafkaConnectionManager does.

        The request first waits for the connection and the throttle time. Its timeout begins after this wait.
        """
        chosen = self.least_loaded_node() if node_id is None else node_id
        connection = self._conns.get(chosen)
        if connection is not None and connection.connected and not self.muted(chosen):
            return super().send(request, chosen, request_timeout_ms)
        return self.call_soon(self._send_later, request, node_id, request_timeout_ms)

    async def _send_later(self, request: Any, node_id: int | None, timeout_ms: float | None) -> Any:
        chosen = self.least_loaded_node() if node_id is None else node_id
        if chosen is not None:
            # Connect first, because a broker may already throttle this client in its first answer.
            await self._connected(chosen)
        if wait := self.muted(chosen):
            self._throttled(wait)
            await self._net.sleep(wait)
            return await self.send(request, node_id, timeout_ms)
        return await super().send(request, chosen, timeout_ms)

    async def _connected(self, node_id: int) -> None:
        """Connect. Raises NodeNotReadyError if another attempt may help. In that case, nothing was sent."""
        try:
            await self.get_connection(node_id)
        except kafka_errors.NodeNotReadyError:
            raise
        except (kafka_errors.KafkaError, OSError) as error:
            if not is_closed(error):
                raise
            self.update_backoff(node_id)
            raise kafka_errors.NodeNotReadyError(node_id) from error

    def get_connection(self, node_id: Any, *arguments: Any, **keywords: Any) -> Any:
        """Return a connection, as KafkaConnectionManager does. Also record the throttle time of every answer, beginning
        with the first, and, until the bootstrap has ended, the errors of the connection.
        """
        connection = super().get_connection(node_id, *arguments, **keywords)
        if "_maybe_throttle" not in vars(connection):
            paused = connection._maybe_throttle

            def heard(answer: Any) -> None:
                paused(answer)
                seconds = getattr(answer, "throttle_time_ms", 0) / 1_000
                self._mute_ends[node_id] = max(self._mute_ends.get(node_id, 0.0), time.monotonic() + seconds)

            connection._maybe_throttle = heard
        if not self.ended.is_done:
            # A close before the connection is ready may be due to a connection limit, so another attempt can help. A
            # later close is final.
            answered = connection.close_future
            connection.init_future.add_errback(lambda error: self._failed(error, final=not is_closed(error)))
            connection.init_future.add_callback(lambda _: answered.add_errback(partial(self._failed, final=True)))
        return connection

    async def _build_transport(self, *arguments: Any, **keywords: Any) -> Any:
        transport = await super()._build_transport(*arguments, **keywords)
        transport._sock_recv = _last_data_first(transport._sock_recv)
        return transport

    def _failed(self, error: BaseException, *, final: bool) -> None:
        if self.ended.is_done:
            return
        # A timeout does not replace an earlier error, because the earlier error explains more.
        if self.failure is None or not isinstance(error, OUT_OF_TIME):
            self.failure = error
        if final:
            self.ended.failure(error)


_Received: TypeAlias = tuple[bytes, Exception | None]


def _last_data_first(receive: Callable[[], _Received]) -> Callable[[], _Received]:
    """Return a function like `receive` that delivers the last data before it reports that the connection has ended.
    kafka-python drops this data, although it is usually the broker's reason for refusing a login.
    """
    ended: list[Exception] = []

    def received() -> _Received:
        if ended:
            return b"", ended[0]
        data, error = receive()
        if data and error is not None:
            ended.append(error)
            return data, None
        return data, error

    return received
