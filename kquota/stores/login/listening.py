"""Checking addresses, and whether a server accepts connections there, before a client library tries for long."""

from __future__ import annotations

import socket
import time

from kquota.addresses import is_host, is_port
from kquota.errors import Invalid, Unreachable


def addresses(text: str, option: str, config: str) -> list[tuple[str, int]]:
    """Parse `host:port,[v6]:port`. Raises Invalid.

    Messages name the addresses `option`, and the file that has the protocol `config`.
    """
    pairs = [_host_and_port(part.strip(), option, config) for part in text.split(",") if part.strip()]
    if not pairs:
        raise Invalid(f"{option}: no address given; write host:port")
    return pairs


def must_listen(what: str, text: str, option: str, config: str, deadline: float) -> list[str]:
    """Return the addresses, beginning with the first one that accepts a connection.

    Raises Unreachable with the reason for each address if none does.
    """
    give_up = time.monotonic() + deadline
    pairs = addresses(text, option, config)
    causes = []
    for index, (host, port) in enumerate(pairs):
        left = max(0.1, give_up - time.monotonic())
        try:
            socket.create_connection((host, port), timeout=left / (len(pairs) - index)).close()
        except OSError as error:
            causes.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return [_written(*pair) for pair in (*pairs[index:], *pairs[:index])]
    raise Unreachable(f"no {what} at {text} ({'; '.join(causes)}); check {option}")


def _written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _host_and_port(address: str, option: str, config: str) -> tuple[str, int]:
    protocol, colon, _ = address.partition("://")
    if colon:
        raise Invalid(
            f"{option}: {address!r}: leave out {protocol}://, because security.protocol in {config} sets the protocol"
        )
    host, colon, port = address.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not is_port(port):
        raise Invalid(f"{option}: {address!r} is not host:port")
    if not is_host(host):
        raise Invalid(f"{option}: {address!r}: {host!r} is not a valid host name")
    return host, int(port)
