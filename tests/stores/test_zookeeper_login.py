"""A login to ZooKeeper that fails: a refused login, and a connection that is lost during the login.

The server in these tests starts a session like ZooKeeper, and answers no login.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import pytest

from kquota.errors import KquotaError, Refused, Unreachable
from kquota.stores.login.arguments import Access, Digest
from kquota.stores.zookeeper.znodes import Znodes
from tests.canary import CANARY

SESSION_MS = 300


@dataclass
class Unanswering:
    """`after` is what the server does when it receives a login: it closes the connection, stops, or does nothing."""

    after: str
    _open: list[socket.socket] = field(default_factory=list)

    def serve(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                self._open.append(client)
                threading.Thread(target=self._session, args=(client, listening), daemon=True).start()

    def _session(self, client: socket.socket, listening: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error), client.makefile("rb") as stream:
            _read(stream)
            session = struct.pack(">iiqi16s?", 0, SESSION_MS, 1, 16, b"", False)
            client.sendall(struct.pack(">i", len(session)) + session)
            _read(stream)
            if self.after == "stops":
                _shut(listening)
            if self.after != "is silent":
                _shut(client)

    def stop(self) -> None:
        for client in self._open:
            _shut(client)


def _read(stream: BinaryIO) -> None:
    (length,) = struct.unpack(">i", stream.read(4))
    stream.read(length)


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextlib.contextmanager
def serving(after: str) -> Iterator[str]:
    server = Unanswering(after)
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{listening.getsockname()[1]}"
    threading.Thread(target=server.serve, args=(listening,), daemon=True).start()
    try:
        yield address
    finally:
        _shut(listening)
        server.stop()


LOST: dict[str, tuple[type[KquotaError], str]] = {
    "closes the connection": (Refused, "the login was refused. Check the user and the password"),
    "stops": (Unreachable, "no ZooKeeper accepts a connection"),
    "is silent": (Unreachable, "the session was lost (ConnectionLoss) during the login"),
}


@pytest.mark.parametrize(("after", "expected"), LOST.items(), ids=LOST)
def test_only_a_closed_connection_is_a_refused_login(after: str, expected: tuple[type[KquotaError], str]) -> None:
    kind, words = expected
    access = Access(digest=Digest(username="kafka", password=CANARY))
    with serving(after) as address, pytest.raises(kind) as error, Znodes(address, access, 5.0):
        pass
    assert words in str(error.value)
