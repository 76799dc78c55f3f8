"""Translates the login to a cluster into settings of kafka-python.

Import `stores.admin` before this module. Otherwise, kafka-python also imports its consumer, its producer and its admin
client, which kquota does not use.
"""

from __future__ import annotations

import socket
import time
from typing import Any, Final

from kafka.net.sasl.oauth import AbstractTokenProvider

from kquota.stores.login.oauth import Token, TokenFile, Tokens
from kquota.stores.login.security import Kerberos, Password, Security

_EARLY_SECONDS: Final = 30.0
_BUFFERS: Final = {"send.buffer.bytes": socket.SO_SNDBUF, "receive.buffer.bytes": socket.SO_RCVBUF}
_ALWAYS: Final = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]


def settings(security: Security) -> dict[str, Any]:
    """Return the settings for a `Wire`, without connecting. Raises Invalid for an unusable key store or trust store."""
    found: dict[str, Any] = {"security_protocol": security.protocol}
    if security.client_id is not None:
        found["client_id"] = security.client_id
    if security.protocol.endswith("SSL"):
        found["ssl_context"] = security.context()
    match security.credentials:
        case Password(mechanism=mechanism, username=username, password=password):
            found |= {"sasl_mechanism": mechanism, "sasl_plain_password": password}
            found["sasl_plain_username"] = username if mechanism == "PLAIN" else _scram_name(username)
        case Kerberos(service=service):
            found |= {"sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": service}
        case None:
            pass
        case tokens:
            provider = _Provider(security, tokens)
            found |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": provider}
    return found | _tuning(security)


def _tuning(security: Security) -> dict[str, Any]:
    found: dict[str, Any] = {}
    options = list(_ALWAYS)
    for name, value in security.tuning.items():
        if name not in _BUFFERS:
            found[name.replace(".", "_")] = value
        elif value > 0:
            options.append((socket.SOL_SOCKET, _BUFFERS[name], value))
    return found | ({"socket_options": options} if len(options) > len(_ALWAYS) else {})


def _scram_name(name: str) -> str:
    """Escape a user's name for SCRAM (RFC 5802), because kafka-python does not."""
    return name.replace("=", "=3D").replace(",", "=2C")


class _Provider(AbstractTokenProvider):  # type: ignore[misc]
    """A token provider for kafka-python.

    A connection gets a new token if the last one expires within 30 seconds. A connection also gets a new token if the
    expiry of the last one is unknown and the source is a regular file.
    """

    def __init__(self, security: Security, wanted: Tokens) -> None:
        super().__init__()
        self._security = security
        self._wanted = wanted
        self._token: Token | None = None

    def token(self) -> str:
        if self._token is None or self._may_be_over(self._token):
            from kquota.stores.login import tokens  # imported here: urllib.request takes 40 ms

            self._token = tokens.token(self._wanted, self._security.context)
        return self._token.value

    def _may_be_over(self, token: Token) -> bool:
        if token.expires is None:
            # A pipe is read only once, because a second read could wait forever.
            return isinstance(self._wanted, TokenFile) and self._wanted.path.is_file()
        return token.expires - _EARLY_SECONDS < time.time()

    def extensions(self) -> dict[str, str]:
        return dict(self._wanted.extensions)
