"""Parses server addresses, checks if servers accept connections and use TLS, and explains failed TLS handshakes."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any, Final

from kquota.addresses import host_and_port, is_host, is_port
from kquota.errors import Invalid, Unreachable


def addresses(text: str, option: str, config: str) -> list[tuple[str, int]]:
    """Return the hosts and ports in a text such as `host1:9092,[::1]:9092`. Raises Invalid for any other text.

    In messages, `option` is the name of the option with the addresses, and `config` that of the option whose file sets
    the protocol.
    """
    pairs = [_host_and_port(part.strip(), option, config) for part in text.split(",") if part.strip()]
    if not pairs:
        raise Invalid(f"{option}: no address is given. Write host:port")
    return pairs


def must_listen(what: str, text: str, option: str, config: str, deadline: float) -> list[str]:
    """Return the addresses (host:port), beginning with the first one that accepts a connection.

    The addresses before that one come last. `what` is the kind of server, for messages. All attempts together take
    about `deadline` seconds at most, and lookups of host names take additional time. Raises Unreachable with the reason
    for each address if none of them accepts a connection. Raises Invalid like `addresses`.
    """
    give_up = time.monotonic() + deadline
    pairs = addresses(text, option, config)
    causes = []
    for index, (host, port) in enumerate(pairs):
        began = time.monotonic()
        try:
            try:
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            finally:
                give_up += time.monotonic() - began
            left = max(0.1, give_up - time.monotonic())
            _connect(found, left / (len(pairs) - index))
        except OSError as error:
            causes.append(f"{host_and_port(host, port)}: {error.strerror or error}")
        else:
            return [host_and_port(*pair) for pair in (*pairs[index:], *pairs[:index])]
    raise Unreachable(f"no {what} accepts a connection at {text} ({'; '.join(causes)}). Check {option}")


def _connect(found: Sequence[Any], seconds: float) -> None:
    """Connect to the first IP address of a lookup that accepts a connection, and close the connection.

    All attempts together take about `seconds` at most. Raises the OSError of the last attempt.
    """
    give_up = time.monotonic() + seconds
    for index, (family, kind, protocol, _, address) in enumerate(found, 1):
        left = max(0.1, give_up - time.monotonic())
        try:
            with socket.socket(family, kind, protocol) as connection:
                connection.settimeout(left / (len(found) - index + 1))
                connection.connect(address)
                return
        except OSError:
            if index == len(found):
                raise


def _host_and_port(address: str, option: str, config: str) -> tuple[str, int]:
    protocol, colon, _ = address.partition("://")
    if colon:
        raise Invalid(
            f"{option}: {address!r}: leave out {protocol}://, because security.protocol in {config} sets the protocol"
        )
    host, colon, port = address.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not is_port(port):
        raise Invalid(f"{option}: {address!r} is not host:port. Give a host and a port")
    if not is_host(host):
        raise Invalid(f"{option}: {address!r}: {host!r} is not a valid host name")
    return host, int(port)


_PROBE_SECONDS: Final = 4.0
_PROBED: Final = 2


def cause(error: BaseException | None) -> OSError | None:
    """Return the TLS error or socket error that caused the error of a client library, or None for another cause."""
    while error is not None:
        if isinstance(error, OSError):
            return error
        inner = next((argument for argument in error.args if isinstance(argument, OSError)), None)
        error = inner or error.__cause__ or error.__context__
    return None


def explained(error: OSError, step: str | None = None) -> str | None:
    """Return the reason for a failed TLS handshake, with a next step for an operator if there is one. Return None for
    any other error.

    `step` is the next step for a reason that has no step of its own. A reset connection counts as a failed handshake.
    """
    words, own = _unverified(error) if isinstance(error, ssl.SSLCertVerificationError) else (_failed(error), None)
    last = own or step
    return f"{words}. {last}" if words is not None and last is not None else words


def _failed(error: OSError) -> str | None:
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError)):
        return "the connection was closed during the TLS handshake; the port probably does not speak TLS"
    if not isinstance(error, ssl.SSLError):
        return None
    reason = error.reason or ""
    for marks, words in _REASONS:
        if any(mark in reason for mark in marks):
            return f"{words} ({reason})"
    return f"TLS failed ({reason or type(error).__name__})"


_REASONS: Final = (
    (("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"), "the port does not speak TLS"),
    (("CERTIFICATE_REQUIRED",), "the server requires a client certificate, so a key store is needed"),
    (
        ("ALERT_BAD_CERTIFICATE",),
        "the server requires a client certificate, or does not accept the one in the key store",
    ),
    (
        ("ALERT_UNKNOWN_CA", "ALERT_CERTIFICATE"),
        "the server does not accept this client's certificate from the key store",
    ),
    (("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"), "server and client have no TLS version in common"),
    (("HANDSHAKE_FAILURE",), "the server refused the handshake: no common cipher suite, or no client certificate"),
)


_UNVERIFIED: Final = (
    (("expired",), "is no longer valid", "Renew it, or check the clock of this machine"),
    (("not yet valid",), "is not valid yet", "Check the clock of this machine"),
    (("mismatch",), "is for another name", "Use a name that it contains"),
    (("self-signed", "issuer"), "is not signed by an authority in the trust store", None),
    (("",), "was not accepted", None),
)
"""Each row has texts to find in OpenSSL's reason, then the problem of the server's certificate, then the next step or
None.
"""


def _unverified(error: ssl.SSLCertVerificationError) -> tuple[str, str | None]:
    reason = error.verify_message.rstrip(".")
    problem, step = next((words, step) for marks, words, step in _UNVERIFIED if any(mark in reason for mark in marks))
    return f"the server's certificate {problem} ({reason})", step


def speaks_tls(servers: Sequence[tuple[str, int]]) -> bool:
    """Return True if one of the first two servers answers a TLS handshake. A client without TLS cannot use that server.

    Waits about 4 seconds at most for a connection to each IP address of a server, and again for the handshake. Sends no
    data after the handshake.
    """
    return any(_answers(host, port) for host, port in servers[:_PROBED])


def _answers(host: str, port: int) -> bool:
    probe = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    probe.check_hostname = False
    probe.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), timeout=_PROBE_SECONDS) as plain:
            probe.wrap_socket(plain, server_hostname=host).close()
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False
    return True
