"""Waits until servers answer. Each wait also checks their processes, so that a failed start is reported immediately."""

from __future__ import annotations

import functools
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final

from kquota.errors import Refused
from kquota.sandbox.processes import Process
from kquota.sandbox.servers import HOST, SandboxBroker

_PATIENCE: Final = 180.0
"""The maximum wait for a server, in seconds. On a machine with two busy cores, a start took 60 s."""
_POLL: Final = 0.05


def zookeeper(process: Process, port: int) -> None:
    """Wait until ZooKeeper serves requests. Raises Refused if the server ends, or is not ready in time."""
    _until(lambda: None if "Mode:" in _four_letters(port, b"srvr") else process, [process])


def unregistered(keeper: Process, port: int, broker: SandboxBroker) -> None:
    """Wait until ZooKeeper has no session of this broker. A crashed broker cannot register again until then.

    Raises Refused if ZooKeeper ends, or the session does not end in time.
    """

    def has_not_ended() -> Process | None:
        sessions = _four_letters(port, b"dump")
        return keeper if sessions == "" or f"/brokers/ids/{broker.id}\n" in sessions else None

    _until(has_not_ended, [keeper])


def brokers(all_of_them: Sequence[SandboxBroker], wanted: Sequence[SandboxBroker]) -> None:
    """Wait until each broker in `wanted` sees the controller and every broker in `all_of_them`.

    Raises Refused if a server ends, or is not ready in time.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    def slow(asked: SandboxBroker, admin: AdminClient) -> Process | None:
        try:
            seen = admin.list_topics(timeout=1.0)
        except KafkaException:
            return asked.process
        missing = [broker.process for broker in all_of_them if broker.id not in seen.brokers]
        return missing[0] if missing else None if seen.controller_id in seen.brokers else asked.process

    for broker in wanted:
        # Refused connections are expected here, so they are not shown.
        options = {"bootstrap.servers": broker.address, "log_level": 0, "reconnect.backoff.max.ms": 200}
        admin = AdminClient(options | {"error_cb": lambda _error: None})
        _until(functools.partial(slow, broker, admin), [b.process for b in all_of_them])


def _four_letters(port: int, word: bytes) -> str:
    """Return ZooKeeper's answer to one of its four-letter words, or empty text if it does not answer."""
    try:
        with socket.create_connection((HOST, port), timeout=2.0) as connection:
            connection.sendall(word)
            return b"".join(iter(lambda: connection.recv(4096), b"")).decode(errors="replace")
    except OSError:
        return ""


def _until(slow: Callable[[], Process | None], watched: Sequence[Process]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while (waiting := slow()) is not None:
        for process in watched:
            if process.pid is None:
                words = f"{process.name} died while starting: {process.last_words()}"
                raise Refused(f"{words}. Read its log: {process.log}")
        if time.monotonic() > deadline:
            raise Refused(
                f"{waiting.name} was not ready after {_PATIENCE:.0f} s: {waiting.last_words()}. "
                f"Read its log: {waiting.log}"
            )
        time.sleep(_POLL)
