"""Translates the login to a cluster into settings of librdkafka, for clients of `confluent_kafka`."""

from __future__ import annotations

import time
from typing import Any, Final

from kquota.errors import Invalid
from kquota.stores.login import keystores
from kquota.stores.login.keystores import PemFile, Pkcs12File
from kquota.stores.login.oauth import Tokens
from kquota.stores.login.security import Kerberos, Password, Security
from kquota.stores.login.tls import PROTOCOLS, Tls

_TUNING: Final = {
    "request.timeout.ms": "socket.timeout.ms",
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.ms",
    "connections.max.idle.ms": "connections.max.idle.ms",
    "reconnect.backoff.ms": "reconnect.backoff.ms",
    "reconnect.backoff.max.ms": "reconnect.backoff.max.ms",
    "metadata.max.age.ms": "metadata.max.age.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}
"""The setting of librdkafka for each property of `security.TUNING` that librdkafka supports.

librdkafka has no `default.api.timeout.ms`. Instead, each call of the client has a timeout.
"""
_LEAST: Final = {"socket.timeout.ms": 10, "socket.connection.setup.timeout.ms": 1000, "metadata.max.age.ms": 1}


def settings(security: Security) -> dict[str, Any]:
    """Return the settings for a `confluent_kafka` client. Raises Invalid for a login that librdkafka cannot use."""
    found: dict[str, Any] = {"security.protocol": security.protocol.lower()}
    if security.client_id is not None:
        found["client.id"] = security.client_id
    if security.protocol.endswith("SSL"):
        assert security.tls is not None
        found |= _tls(security.tls)
    match security.credentials:
        case Password(mechanism=mechanism, username=username, password=password):
            found |= {"sasl.mechanism": mechanism, "sasl.username": username, "sasl.password": password}
        case Kerberos():
            raise Invalid(
                f"{security.where}: sasl.mechanism=GSSAPI: the librdkafka that pip installs does not support GSSAPI. "
                "Use a login with another mechanism"
            )
        case None:
            pass
        case tokens:
            found |= {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": _asked(security, tokens)}
    for name, value in security.tuning.items():
        if name in _TUNING and value >= 0:
            found[_TUNING[name]] = max(value, _LEAST.get(_TUNING[name], 0))
    return found


def _tls(wanted: Tls) -> dict[str, Any]:
    if wanted.protocols != PROTOCOLS:
        raise Invalid(
            f"{wanted.where}: ssl.enabled.protocols: kquota probes with librdkafka, which cannot be limited to "
            f"{', '.join(wanted.protocols)}. Remove the property if the connection is secure without it"
        )
    found: dict[str, Any] = {
        "ssl.endpoint.identification.algorithm": "https" if wanted.check_host else "none",
        "enable.ssl.certificate.verification": True,
    }
    if wanted.trust is not None:
        found["ssl.ca.pem"] = wanted.trust
    match wanted.identity:
        case PemFile(path=path, password=password):
            found |= {"ssl.certificate.location": str(path), "ssl.key.location": str(path)}
            found |= {} if password is None else {"ssl.key.password": password}
        case Pkcs12File(path=path, password=password):
            found |= {"ssl.keystore.location": str(path), "ssl.keystore.password": password or ""}
        case None:
            pass
        case inline:
            pair = keystores.key_pair(inline, wanted.where)
            found |= {"ssl.certificate.pem": pair.chain, "ssl.key.pem": pair.key, "ssl.key.password": pair.password}
    return found


def _asked(security: Security, wanted: Tokens) -> Any:
    def token(_config: str) -> tuple[str, float, str, dict[str, str]]:
        from kquota.stores.login import tokens  # imported here: urllib.request takes 40 ms

        found = tokens.token(wanted, security.context)
        ends = found.expires if found.expires is not None else time.time() + 300.0
        return found.value, ends, found.principal, dict(wanted.extensions)

    return token
