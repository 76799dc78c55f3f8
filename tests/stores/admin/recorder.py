"""A proxy (HTTP CONNECT) between a client and its brokers that records the time of each request and answer."""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Self

_API_VERSIONS: Final = 18
_FLEXIBLE: Final = {3: 9, 19: 5, 20: 4, 29: 2, 32: 4, 35: 2, 37: 2, 44: 1, 48: 1, 49: 1, 75: 0}
"""For each request, the first version whose answer has tags in its header. The body of each answer begins with the
throttle time.
"""

_DESCRIBE_QUORUM: Final = 55
"""The key of DescribeQuorum, whose answer has no throttle time."""

_CLOSING: Final = (4, 9, 11)
"""The codes of Linux for FIN_WAIT1, LAST_ACK and CLOSING."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One message. `at` is a monotonic time in seconds. `throttle` is its throttle time, which requests do not have."""

    connection: int
    at: float
    api: int
    throttle: float | None


@dataclass
class Recorder:
    """The proxy, which runs in a `with` block. A Wire with `settings` connects through it.

    `hang_ups` has the seconds after which each of the next connections is reset, as by a broker that limits connections
    (KIP-612).
    """

    hang_ups: list[float] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    _open: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing the socket alone does not wake a waiting accept.
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()

    @property
    def settings(self) -> dict[str, object]:
        return {"proxy_url": f"http://127.0.0.1:{self._server.getsockname()[1]}"}

    def cut(self) -> None:
        """End every connection, like a broker that stops, or that has received nothing for ten minutes.

        Wait until the kernels of both sides have closed the connections.
        """
        while self._open:
            end = self._open.pop()
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            while _untold(end):
                time.sleep(0.001)

    def early(self) -> list[tuple[Passed, Passed]]:
        """Return pairs of an answer with a throttle time and a request that came on the same connection before this
        time had passed.
        """
        return [
            (answer, request)
            for answer in self.passed
            for request in self.passed
            if answer.throttle
            and request.throttle is None
            and request.connection == answer.connection
            and answer.at < request.at < answer.at + answer.throttle
        ]

    @property
    def throttles(self) -> list[float]:
        """Return the throttle times that brokers requested."""
        return [message.throttle for message in self.passed if message.throttle]

    def _accept(self) -> None:
        for number in range(1_000_000):
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            hang_up = self.hang_ups.pop(0) if self.hang_ups else None
            threading.Thread(target=self._serve, args=(client, number, hang_up), daemon=True).start()

    def _serve(self, client: socket.socket, number: int, hang_up: float | None) -> None:
        asked = b""
        while b"\r\n\r\n" not in asked:
            asked += client.recv(4_096)
        if hang_up is not None:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            time.sleep(hang_up)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            return
        host, _, port = asked.split()[1].decode().rpartition(":")
        broker = socket.create_connection((host, int(port)))
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        self._open += [client, broker]
        asked_for: dict[int, tuple[int, int]] = {}

        def request(frame: bytes) -> None:
            api, version, correlation = struct.unpack_from(">hhi", frame)
            asked_for[correlation] = (api, version)
            self.passed.append(Passed(connection=number, at=time.monotonic(), api=api, throttle=None))

        def answer(frame: bytes) -> None:
            api, version = asked_for.pop(struct.unpack_from(">i", frame)[0])
            throttle = _throttle_ms(frame[4:], api, version) / 1_000
            self.passed.append(Passed(connection=number, at=time.monotonic(), api=api, throttle=throttle))

        threading.Thread(target=_carry, args=(broker, client, answer), daemon=True).start()
        _carry(client, broker, request)


def _untold(end: socket.socket) -> bool:
    """Return True if this end of the connection is closed, and the kernel of the other side has not confirmed it."""
    if sys.platform != "linux":
        return False
    with contextlib.suppress(OSError):
        return end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _CLOSING
    return False


def _carry(source: socket.socket, target: socket.socket, seen: Callable[[bytes], None]) -> None:
    """Send messages on. Each message is recorded first, so a reader never receives it before the recorded time."""
    pending = b""
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            pending += data
            for frame in _frames(pending):
                seen(frame)
                pending = pending[4 + len(frame) :]
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _frames(data: bytes) -> Iterator[bytes]:
    """Yield the complete messages in `data`."""
    start = 0
    while len(data) >= start + 4:
        size = struct.unpack_from(">i", data, start)[0]
        if len(data) < start + 4 + size:
            return
        yield data[start + 4 : start + 4 + size]
        start += 4 + size


def _throttle_ms(body: bytes, api: int, version: int) -> int:
    if api == _DESCRIBE_QUORUM:
        return 0
    if api == _API_VERSIONS:
        # Its header never has tags, and its throttle time follows the list of requests; a version that the broker
        # does not know is answered in the first one, which has none.
        if version == 0 or struct.unpack_from(">h", body)[0]:
            return 0
        compact = version >= 3
        count = body[2] - 1 if compact else struct.unpack_from(">i", body, 2)[0]
        at = 3 + count * 7 if compact else 6 + count * 6
    else:
        at = 1 if version >= _FLEXIBLE[api] else 0
    return int(struct.unpack_from(">i", body, at)[0])
