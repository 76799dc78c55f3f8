"""Explaining a failed TLS handshake to an operator, and detecting whether a port speaks TLS."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import Final

_PROBE_SECONDS: Final = 4.0
_PROBED: Final = 2


def cause(error: BaseException | None) -> OSError | None:
    """Return the error of TLS or of the socket that caused an error of a client library."""
    while error is not None:
        if isinstance(error, OSError):
            return error
        inner = next((argument for argument in error.args if isinstance(argument, OSError)), None)
        error = inner or error.__cause__ or error.__context__
    return None


def explained(error: OSError) -> str | None:
    """Return the reason of a failed handshake for an operator, None if TLS is not the cause."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _unverified(error)
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
    (("CERTIFICATE_REQUIRED",), "the server requires a client certificate: configure a key store"),
    (
        ("ALERT_BAD_CERTIFICATE",),
        "the server requires a client certificate, or does not accept this one: check the key store",
    ),
    (("ALERT_UNKNOWN_CA", "ALERT_CERTIFICATE"), "the server does not accept this client's certificate"),
    (("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"), "server and client have no TLS version in common"),
    (("HANDSHAKE_FAILURE",), "the server refused the handshake: no common cipher suite, or no client certificate"),
)


def _unverified(error: ssl.SSLCertVerificationError) -> str:
    said = error.verify_message.rstrip(".")
    if "expired" in said:
        return f"the server's certificate is no longer valid ({said})"
    if "not yet valid" in said:
        return f"the server's certificate is not valid yet ({said}). Check the clock of this machine"
    if "mismatch" in said:
        return f"the server's certificate is for another name ({said}); use a name that it contains"
    if "self-signed" in said or "issuer" in said:
        return f"the server's certificate is not signed by an authority in the trust store ({said})"
    return f"the server's certificate was not accepted ({said})"


def speaks_tls(servers: Sequence[tuple[str, int]]) -> bool:
    """Return True if one of the first servers answers a TLS handshake, so a client without TLS fails there.

    Sends no data after the handshake.
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
