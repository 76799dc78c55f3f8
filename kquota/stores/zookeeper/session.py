"""Starts a ZooKeeper session with a deadline, with TLS and a login if given, and explains a failed start."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KazooState

from kquota.errors import KquotaError, Unreachable
from kquota.measure import human_duration
from kquota.stores.login import listening
from kquota.stores.login.arguments import Access, ArgumentNames
from kquota.stores.login.listening import addresses

_PROBE_AFTER: Final = 1.0
"""The seconds after which kquota checks whether a server that has not answered uses TLS."""
_POLL_SECONDS: Final = 0.05
_FAILED_ATTEMPTS: Final = 3


def started(connect: str, access: Access, deadline: float) -> KazooClient:
    """Start a session with `host:port[,host:port][/chroot]`, and return its client.

    The login may still be in progress when the session has started. The first answer shows whether ZooKeeper accepted
    the login. Raises Unreachable if no session starts within `deadline` seconds or if TLS fails. Raises Invalid for a
    malformed address or an unusable key store or trust store.
    """
    names, handler = access.names, None
    servers = addresses(connect.partition("/")[0], names.zookeeper, names.command_config)
    if access.tls is not None:
        from kquota.stores.login.tls import context  # imported here: only TLS needs cryptography

        handler = _TlsHandler(context(access.tls), deadline / len(servers))
    # Never call kazoo's retry(), because it repeats a request in a new session, and a write must not be repeated. The
    # servers keep their order, because the first one has accepted a connection.
    client = KazooClient(
        hosts=connect, timeout=deadline, handler=handler, sasl_options=_sasl(access), randomize_hosts=False
    )
    try:
        failure = _waited(client, handler, connect, deadline, servers, names)
    except (ValueError, OSError) as error:
        failure = Unreachable(f"ZooKeeper at {connect}: no session started ({error}). Check {names.zookeeper}")
    if failure is not None:
        client.stop()
        client.close()
        raise failure
    return client


def _sasl(access: Access) -> dict[str, Any] | None:
    if access.digest is None:
        return None
    # Java encodes the strings of a digest as Latin-1 if possible (RFC 2831), and pure-sasl sends bytes unchanged.
    return {
        "mechanism": "DIGEST-MD5",
        "username": _bytes(access.digest.username),
        "password": _bytes(access.digest.password),
    }


def _bytes(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _waited(
    client: KazooClient,
    handler: _TlsHandler | None,
    connect: str,
    deadline: float,
    servers: Sequence[tuple[str, int]],
    names: ArgumentNames,
) -> KquotaError | None:
    """Wait until the session starts. Return None, or the error if the session does not start. Stop early if waiting
    cannot help.
    """
    begun = time.monotonic()
    states: list[str] = []
    # Record all states, because a refused login can end the session right after its start, between two checks.
    client.add_listener(states.append)
    live = client.start_async()
    asked = False
    while not live.wait(_POLL_SECONDS) and KazooState.CONNECTED not in states:
        waited = time.monotonic() - begun
        if handler is not None and handler.failures >= max(_FAILED_ATTEMPTS, len(servers)):
            break
        if handler is None and not asked and waited > _PROBE_AFTER:
            asked = True
            if listening.speaks_tls(servers):
                wanted = f"Give {names.zk_tls_config_file}, or another port"
                return Unreachable(f"ZooKeeper at {connect}: the port speaks TLS. {wanted}")
        if waited > deadline:
            break
    else:
        return None
    if handler is not None and handler.failure is not None:
        step = f"Check the port and {names.zk_tls_config_file}"
        if words := listening.explained(handler.failure, step):
            return Unreachable(f"ZooKeeper at {connect}: {words}")
    return Unreachable(
        f"ZooKeeper at {connect}: no session started within {human_duration(deadline)}. Check {names.zookeeper}"
    )


class _TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's handler with kquota's own sockets.

    kazoo's sockets do not support PKCS12 and, by default, do not check the host name.
    """

    def __init__(self, context: ssl.SSLContext, patience: float) -> None:
        """`patience` is the time limit in seconds for the connection to one server."""
        super().__init__()
        self._patience = patience
        self.failure: OSError | None = None
        self.failures = 0
        self._context = context
        handler = self

        class _Socket(ssl.SSLSocket):
            def recv(self, *arguments: Any, **keywords: Any) -> Any:
                """Record errors, because a TLS 1.3 server rejects a client's certificate only after the handshake."""
                try:
                    return super().recv(*arguments, **keywords)
                except ssl.SSLError as error:
                    if not isinstance(error, (ssl.SSLWantReadError, ssl.SSLWantWriteError)):
                        handler.failed(error)
                    raise

        context.sslsocket_class = _Socket

    def failed(self, error: OSError) -> None:
        self.failure = error
        self.failures += 1

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_: Any
    ) -> ssl.SSLSocket:
        """Return a new TLS connection, as IHandler requires. Ignores kazoo's own TLS settings."""
        plain = socket.create_connection(address, self._patience if timeout is None else min(timeout, self._patience))
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._context.wrap_socket(plain, server_hostname=hostname)
        except OSError as error:
            plain.close()
            self.failed(error)
            raise
