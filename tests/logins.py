"""Properties that can log in at a listener of `tests.secured`, and others that cannot, each with its expected error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.canary import CANARY
from tests.secured import ALICE, OAUTH, PASSWORD, PLAIN, SCRAM, jaas

NAMES_OFF = {"ssl.endpoint.identification.algorithm": ""}
TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "ca.pem"}
TRUST_P12 = {
    "ssl.truststore.type": "PKCS12",
    "ssl.truststore.location": "trust.p12",
    "ssl.truststore.password": CANARY,
}
SSL = {"security.protocol": "SSL", **TRUST}
SASL_SSL = {"security.protocol": "SASL_SSL", **TRUST}
CLIENT = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "client.pem"}
CLIENT_LOCKED = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "client-locked.pem",
    "ssl.key.password": CANARY,
}
CLIENT_P12 = {
    "ssl.keystore.type": "PKCS12",
    "ssl.keystore.location": "client.p12",
    "ssl.keystore.password": CANARY,
    "ssl.key.password": CANARY,
}
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


def plain(user: str = "bob", password: str = PASSWORD) -> dict[str, str]:
    return {"sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas(PLAIN, username=user, password=password)}


def scram(size: int, password: str = PASSWORD) -> dict[str, str]:
    login = jaas(SCRAM, username=ALICE, password=password)
    return {"sasl.mechanism": f"SCRAM-SHA-{size}", "sasl.jaas.config": login}


def bearer(**options: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": jaas(OAUTH, **options),
    }


IMPATIENT = {"default.api.timeout.ms": "5000"}
"""A short deadline for a port that closes each connection before it answers, because kquota reconnects until then."""
CLOSED = "The port may belong to another listener, or the server may limit new connections (connection_creation_rate). "
CLOSED += "Check the port, and security.protocol ({}) in "

RIGHT: dict[str, tuple[str, Mapping[str, str]]] = {
    "no security": ("PLAINTEXT", {"security.protocol": "PLAINTEXT", "client.id": "x"}),
    "TLS, authorities as PEM": ("TLS", SSL),
    "TLS, authorities as PKCS12": ("TLS", {"security.protocol": "SSL", **TRUST_P12}),
    "TLS, authorities as PKCS12 of no declared type": (
        "TLS",
        {key: value for key, value in {"security.protocol": "SSL", **TRUST_P12}.items() if "type" not in key},
    ),
    "TLS 1.2 alone": ("TLS12", {**SSL, "ssl.enabled.protocols": "TLSv1.2"}),
    "a certificate for another name, names not checked": ("ELSEWHERE", {**SSL, **NAMES_OFF}),
    "client certificate as PEM": ("MTLS", {**SSL, **CLIENT}),
    "client certificate as PEM with a password": ("MTLS", {**SSL, **CLIENT_LOCKED}),
    "client certificate as PKCS12": ("MTLS", {**SSL, **CLIENT_P12}),
    "PLAIN over TLS": ("LOGIN", {**SASL_SSL, **plain()}),
    "SCRAM-SHA-256 over TLS": ("LOGIN", {**SASL_SSL, **scram(256)}),
    "SCRAM-SHA-512 over TLS": ("LOGIN", {**SASL_SSL, **scram(512)}),
    "SCRAM-SHA-512 without TLS": ("BARELOGIN", {"security.protocol": "SASL_PLAINTEXT", **scram(512)}),
    "a bearer token in a file": ("BEARER", {**bearer(), ENDPOINT: "token"}),
}

WRONG: dict[str, tuple[str, Mapping[str, str], str]] = {
    "an expired certificate": (
        "EXPIRED",
        SSL,
        "the server's certificate is no longer valid (certificate has expired). Renew it, or check the clock of this "
        "machine\n",
    ),
    "a certificate for another name": ("ELSEWHERE", SSL, "the server's certificate is for another name (IP address mi"),
    "an unknown authority": (
        "TLS",
        {**SSL, "ssl.truststore.location": "stranger.pem"},
        "is not signed by an authority in the trust store",
    ),
    "the machine's authorities do not know it": (
        "TLS",
        {"security.protocol": "SSL"},
        "is not signed by an authority in the trust store",
    ),
    "no client certificate": ("MTLS", SSL, "the server requires a client certificate"),
    "a stranger's client certificate": (
        "MTLS",
        {**SSL, **CLIENT, "ssl.keystore.location": "stranger-client.pem"},
        "the server does not accept this client's certificate",
    ),
    "TLS on a plain port": ("PLAINTEXT", {**SSL, **IMPATIENT}, CLOSED.format("SSL")),
    "no TLS on a TLS port": ("TLS", IMPATIENT, "the port speaks TLS, so set security.protocol=SSL or SASL_SSL"),
    "no TLS on a TLS port that wants a certificate": ("MTLS", IMPATIENT, "the port speaks TLS, so set security"),
    "a login without TLS on a TLS port": (
        "LOGIN",
        {"security.protocol": "SASL_PLAINTEXT", **plain(), **IMPATIENT},
        "the port speaks TLS, so set security.protocol=SASL_SSL",
    ),
    "no login where one is wanted": ("BARELOGIN", {}, CLOSED.format("PLAINTEXT")),
    "no login over TLS where one is wanted": ("LOGIN", SSL, CLOSED.format("SSL")),
    "a login where none is taken": (
        "PLAINTEXT",
        {"security.protocol": "SASL_PLAINTEXT", **plain()},
        "the port does not accept a login",
    ),
    "TLS 1.3 where only 1.2 is": (
        "TLS12",
        {**SSL, "ssl.enabled.protocols": "TLSv1.3"},
        "server and client have no TLS version in common",
    ),
    "a wrong password": ("LOGIN", {**SASL_SSL, **plain(password=CANARY)}, "the login was refused (Auth"),
    "a wrong SCRAM password": ("LOGIN", {**SASL_SSL, **scram(512, password=CANARY)}, "invalid credentials"),
    "an unknown user": ("LOGIN", {**SASL_SSL, **plain(user="mallory")}, "Invalid username or password"),
    "a mechanism that the port does not take": (
        "BEARER",
        {**plain(), "security.protocol": "SASL_PLAINTEXT"},
        "does not support this sasl.mechanism",
    ),
    "a token that has ended": (
        "BEARER",
        {**bearer(), ENDPOINT: "ended-token"},
        "the login was refused",
    ),
}


def located(properties: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the same properties with the real paths of stores and tokens."""

    def placed(key: str, value: str) -> str:
        if key == ENDPOINT:
            return f"file://{folder / value}"
        return str(folder / value) if key.endswith("store.location") else value

    return {key: placed(key, value) for key, value in properties.items()}
