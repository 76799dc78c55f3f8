"""KIP-219's client side: what a broker throttles sends it nothing until the time is over, and says that it waits.

kafka-python pauses a connection by itself, but not the very first one, whose broker it does not know yet, and it
forgets the time with the connection. Nor does it connect again to a broker that limits connections (KIP-612).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

from kafka import errors as kafka_errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from kquota.stores.wire.hang_up import HangUps

Throttled: TypeAlias = Callable[[float], None]
"""Hears of each wait for a broker's throttle time, in seconds: when it begins, of a connection when it was in vain."""


def unheard(_seconds: float) -> None:
    """For whoever has nobody to tell."""


class PatientManager(KafkaConnectionManager):  # type: ignore[misc]
    """kafka-python's manager; a request to a broker that throttles us waits instead of failing."""

    def __init__(self, net: NetworkSelector, *, throttled: Throttled = unheard, **settings: Any) -> None:
        self._throttled = throttled
        self._ends: dict[Any, float] = {}
        self.hang_ups = HangUps()
        super().__init__(net, **settings)

    def muted(self, node_id: int | None) -> float:
        """The seconds for which nothing may be sent to this node; to any node at all (None)."""
        nodes = [known.node_id for known in self.cluster.brokers()] if node_id is None else [node_id]
        end = min((self._ends.get(node, 0.0) for node in nodes), default=0.0)
        return max(0.0, end - time.monotonic())

    def send(self, request: Any, node_id: int | None = None, request_timeout_ms: float | None = None) -> Any:
        """See KafkaConnectionManager; the request's time-out begins when it goes out, and not before."""
        chosen = self.least_loaded_node() if node_id is None else node_id
        connection = self._conns.get(chosen)
        if connection is not None and connection.connected and not self.muted(chosen):
            return super().send(request, chosen, request_timeout_ms)
        return self.call_soon(self._send_later, request, node_id, request_timeout_ms)

    async def _send_later(self, request: Any, node_id: int | None, timeout_ms: float | None) -> Any:
        chosen = self.least_loaded_node() if node_id is None else node_id
        if chosen is not None:
            # A broker may throttle us in its very first answer.
            await self._connected(chosen)
        if wait := self.muted(chosen):
            self._throttled(wait)
            await self._net.sleep(wait)
            return await self.send(request, node_id, timeout_ms)
        return await super().send(request, chosen, timeout_ms)

    async def _connected(self, node_id: int) -> None:
        """Raises NodeNotReadyError where it is worth trying again: nothing was sent yet."""
        try:
            await self.get_connection(node_id)
        except kafka_errors.NodeNotReadyError:
            raise
        except (kafka_errors.KafkaError, OSError) as error:
            if self.hang_ups.in_vain(node_id):
                raise
            self.update_backoff(node_id)
            raise kafka_errors.NodeNotReadyError(node_id) from error
        self.hang_ups.made(node_id)

    def _not_made(self, node_id: Any, error: BaseException, seconds: float) -> None:
        self.hang_ups.failed(node_id, error, seconds)
        if self.hang_ups.limits(node_id):
            # Nobody says how long it will be; this is how long it was this time.
            self._throttled(seconds)

    def get_connection(self, node_id: Any, *arguments: Any, **keywords: Any) -> Any:
        """See KafkaConnectionManager; every answer on it is looked at, the first ones too, and how it fails."""
        connection = super().get_connection(node_id, *arguments, **keywords)
        if "_maybe_throttle" not in vars(connection):
            paused = connection._maybe_throttle

            def heard(answer: Any) -> None:
                paused(answer)
                seconds = getattr(answer, "throttle_time_ms", 0) / 1_000
                self._ends[node_id] = max(self._ends.get(node_id, 0.0), time.monotonic() + seconds)

            connection._maybe_throttle = heard
            began = time.monotonic()
            connection.init_future.add_errback(lambda error: self._not_made(node_id, error, time.monotonic() - began))
        return connection
