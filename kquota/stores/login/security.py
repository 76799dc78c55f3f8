"""The login of a client: the properties that Kafka's tools accept, as one checked value for every client library."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

from kquota.errors import Invalid
from kquota.java_properties import entries
from kquota.stores.login import jaas, oauth
from kquota.stores.login.arguments import OF_A_PROGRAM, listed, warn_if_open
from kquota.stores.login.jaas import Login
from kquota.stores.login.oauth import ClientCredentials, TokenFile, Tokens
from kquota.stores.login.tls import Tls, context, tls
from kquota.terms import ANONYMOUS

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
_SECRET: Final = re.compile(r"password|secret|jaas|keystore\.key|token(?!\.endpoint)", re.IGNORECASE)
_PROVIDED: Final = re.compile(r"\$\{(?:file|dir|directory|env|securefile|vault)\w*:")
_TRIMMED: Final = "".join(map(chr, range(0x21)))
_OAUTH_SECONDS: Final = 10.0

TUNING: Final = {
    "request.timeout.ms": 1,
    "default.api.timeout.ms": 1,
    "socket.connection.setup.timeout.ms": 1,
    "socket.connection.setup.timeout.max.ms": 1,
    "connections.max.idle.ms": 1,
    "reconnect.backoff.ms": 0,
    "reconnect.backoff.max.ms": 0,
    "metadata.max.age.ms": 0,
    "send.buffer.bytes": -1,
    "receive.buffer.bytes": -1,
}
"""The integer properties that kquota supports with every security protocol, each with its minimum."""
_LONGEST_MS: Final = 2**31 - 1
_NEVER_IDLE: Final = ("connections.max.idle.ms", "-1")
"""With this value of the property, Kafka's clients never close an idle connection. kquota uses `_LONGEST_MS` (24 days)
instead of -1. With -1, kafka-python would close each connection at once, and librdkafka refuses a negative value.
"""
_ALWAYS: Final = frozenset({"security.protocol", "client.id", *TUNING})
_TLS: Final = frozenset(
    f"ssl.{name}"
    for name in (
        *("truststore.location", "truststore.password", "truststore.type", "truststore.certificates"),
        *("keystore.location", "keystore.password", "keystore.type", "keystore.key", "keystore.certificate.chain"),
        *("key.password", "endpoint.identification.algorithm", "enabled.protocols", "protocol"),
    )
)
_SASL: Final = frozenset(
    {
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.kerberos.service.name",
        "sasl.login.callback.handler.class",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.header.urlencode",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
    }
)
_CALLBACKS: Final = "sasl.login.callback.handler.class"
_OAUTH_CALLBACKS: Final = "OAuthBearerLoginCallbackHandler"
_ENDPOINT: Final = "Set sasl.oauthbearer.token.endpoint.url to the URL of an identity provider, or to file://FILE"
# These properties have no effect in kquota: they select Java classes, control when a long-lived client logs in again,
# or are for brokers that validate tokens.
_HARMLESS: Final = re.compile(
    r"sasl\.login\.(refresh|retry)\..*|sasl\.kerberos\.(?!service\.name).*|ssl\.(key|trust)manager\.algorithm"
    r"|ssl\.secure\.random\.implementation|sasl\.oauthbearer\.(jwks|expected|sub|scope\.claim|clock).*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Password:
    """A login with PLAIN or SCRAM."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kerberos:
    """A login with GSSAPI and a ticket from `kinit`."""

    service: str


Credentials: TypeAlias = Password | Kerberos | Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """The login to the brokers or the KRaft controllers of a cluster."""

    where: str
    """The option and the path of the properties file, for errors."""
    option: str = OF_A_PROGRAM.command_config
    """The name of the argument with the properties file, for errors."""
    protocol: str = "PLAINTEXT"
    credentials: Credentials | None = None
    """The user's login, or None without SASL."""
    tls: Tls | None = None
    """The TLS settings for the brokers and for an identity provider, or None if neither of them uses TLS."""
    client_id: str | None = None
    """The client-id in the properties file, or None if the file does not set one."""
    tuning: Mapping[str, int] = field(default_factory=dict)
    """The properties of `TUNING` that the file sets."""

    @property
    def user(self) -> str | None:
        """The user that brokers derive from this login, or None for `SSL`, a token or a ticket.

        Only the broker knows the rules that turn the name of a certificate, a token or a ticket into a principal.
        """
        if self.protocol == "PLAINTEXT":
            return ANONYMOUS
        return self.credentials.username if isinstance(self.credentials, Password) else None

    def context(self) -> ssl.SSLContext:
        """Return the SSL context for `tls`, which must not be None. Raises Invalid if a store cannot be used."""
        assert self.tls is not None
        return context(self.tls)


def security(
    path: Path,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
    option: str = OF_A_PROGRAM.command_config,
) -> Security:
    """Return the checked login from a properties file. `warn` is called with each warning for the operator.

    If the file has no `sasl.jaas.config`, `KAFKA_OPTS` in `environment` can name a JAAS file. Raises Invalid for an
    unreadable file, for an unusable or missing property, and for GSSAPI without the package `gssapi`. Messages name the
    file and the property, or `KAFKA_OPTS` and the JAAS file. They can contain the path of a store, and the address of a
    token endpoint. Otherwise they contain only values that kquota knows, for example `SASL_SSL`, because any other
    value may be a secret in the wrong line.
    """
    where = f"{option}: {path}"
    # Trim values like Java's String.trim, because Kafka trims all of its settings, including passwords.
    found = {key: value.strip(_TRIMMED) for key, value in entries(path, option)}
    _no_providers(found, where)
    protocol = _one_of(_PROTOCOLS, found.get("security.protocol", "PLAINTEXT").upper(), "security.protocol", where)
    _name_unused(found, protocol, where, warn)
    if any(_SECRET.search(key) for key in found):
        warn_if_open(path, where, warn)
    credentials = _credentials(found, where, environment, warn) if protocol.startswith("SASL") else None
    asks_by_tls = isinstance(credentials, ClientCredentials) and credentials.uses_tls
    return Security(
        where=where,
        option=option,
        protocol=protocol,
        credentials=credentials,
        tls=tls(found, "ssl.", where, warn) if protocol.endswith("SSL") or asks_by_tls else None,
        client_id=found.get("client.id") or None,
        tuning={
            name: _LONGEST_MS if (name, found[name]) == _NEVER_IDLE else _whole(found[name], name, least, where)
            for name, least in TUNING.items()
            if name in found
        },
    )


def _no_providers(found: Mapping[str, str], where: str) -> None:
    for key, value in found.items():
        if key.startswith("config.providers") or _PROVIDED.search(value):
            raise Invalid(
                f"{where}: {key}: kquota does not support config providers. "
                "Remove each property config.providers…, write each value in place of its placeholder, and run "
                "chmod 600 on the file"
            )


def _name_unused(found: Mapping[str, str], protocol: str, where: str, warn: Callable[[str], None]) -> None:
    """Raise Invalid for security properties that kquota does not support, and warn about properties without effect."""
    uses_sasl = protocol.startswith("SASL")
    # The same trust store also applies to the token endpoint.
    uses_tls = protocol.endswith("SSL") or (uses_sasl and "sasl.oauthbearer.token.endpoint.url" in found)
    known = _ALWAYS | _SASL | _TLS
    used = _ALWAYS | (_SASL if uses_sasl else frozenset()) | (_TLS if uses_tls else frozenset())
    for key in sorted(found.keys() - known):
        if key.startswith(("ssl.", "sasl.", "security.")) and not _HARMLESS.fullmatch(key):
            raise Invalid(
                f"{where}: {key}: kquota does not support it. Remove it if the connection is secure without it"
            )
    if idle := sorted(found.keys() & known - used):
        warn(f"{where}: security.protocol is {protocol}, so kquota does not use {', '.join(idle)}")
    if unused := sorted(found.keys() - known):
        warn(f"{where}: kquota does not use {listed(found, unused)}")


def _credentials(
    found: Mapping[str, str], where: str, environment: Mapping[str, str], warn: Callable[[str], None]
) -> Credentials:
    if "sasl.mechanism" not in found:
        raise Invalid(
            f"{where}: sasl.mechanism is missing (Kafka's default is GSSAPI). Set it to one of {', '.join(_MECHANISMS)}"
        )
    mechanism = _one_of(_MECHANISMS, found["sasl.mechanism"], "sasl.mechanism", where)
    if mechanism == "GSSAPI":
        return _kerberos(found, where, environment)
    login = _login(found, where, environment)
    if mechanism == "OAUTHBEARER":
        return _tokens(found, login, where, warn)
    if login is None:
        raise Invalid(
            f"{where}: sasl.jaas.config is missing. Set it to the login module with the user and the password"
        )
    place = _place(found)
    if login.name not in ("PlainLoginModule", "ScramLoginModule"):
        raise Invalid(f"{where}: {place}: {mechanism} needs the login module PlainLoginModule or ScramLoginModule")
    if login.options.get("tokenauth", "false").lower() == "true":
        raise Invalid(
            f"{where}: {place}: kquota does not support delegation tokens. Remove "
            "tokenauth, and give a username and a password"
        )
    username, password = login.user_and_password(f"{where}: {place}")
    return Password(mechanism=mechanism, username=username, password=password)


def _login(found: Mapping[str, str], where: str, environment: Mapping[str, str]) -> Login | None:
    if text := found.get("sasl.jaas.config"):
        return jaas.login(text, f"{where}: sasl.jaas.config")
    file = jaas.file_in(environment.get("KAFKA_OPTS", ""))
    return None if file is None else jaas.section(file, "KafkaClient", "KAFKA_OPTS")


def _place(found: Mapping[str, str]) -> str:
    return "sasl.jaas.config" if found.get("sasl.jaas.config") else "the JAAS file in KAFKA_OPTS"


def _tokens(found: Mapping[str, str], login: Login | None, where: str, warn: Callable[[str], None]) -> Tokens:
    callbacks = found.get(_CALLBACKS, _OAUTH_CALLBACKS)
    if callbacks.rpartition(".")[2] != _OAUTH_CALLBACKS:
        raise Invalid(f"{where}: {_CALLBACKS}: kquota does not run Java classes. It supports only {_OAUTH_CALLBACKS}")
    if login is not None and login.name != "OAuthBearerLoginModule":
        raise Invalid(
            f"{where}: sasl.mechanism=OAUTHBEARER needs the login module OAuthBearerLoginModule. "
            f"Correct {_place(found)}"
        )
    options = login.options if login is not None else {}
    url = found.get("sasl.oauthbearer.token.endpoint.url")
    if unsecured := sorted(option for option in options if option.startswith("unsecuredLogin")):
        also = "" if url else f". {_ENDPOINT}"
        raise Invalid(
            f"{where}: {_place(found)}: kquota does not create unsecured OAuth tokens. "
            f"Remove {', '.join(unsecured)}{also}"
        )
    if not url:
        raise Invalid(f"{where}: sasl.oauthbearer.token.endpoint.url is missing. {_ENDPOINT}")
    parts = _split(url, where)
    scheme = parts.scheme.lower()
    if scheme == "file":
        return TokenFile(path=Path(unquote(parts.path)), extensions=oauth.extensions(options))
    if scheme not in ("http", "https") or not parts.hostname:
        raise Invalid(f"{where}: sasl.oauthbearer.token.endpoint.url must be an https, http or file URL")
    if "@" in parts.netloc:
        raise Invalid(
            f"{where}: sasl.oauthbearer.token.endpoint.url must not contain a user or a password. "
            "Use clientId and clientSecret"
        )
    if scheme == "http":
        warn(f"{where}: kquota sends the client secret to {oauth.shown(url)} without TLS. Use an https URL")
    return _client_credentials(found, options, url, where)


def _split(url: str, where: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # because urlsplit checks the port only on access
    except ValueError:
        # Python's message would repeat a password that contains a slash.
        raise Invalid(
            f"{where}: sasl.oauthbearer.token.endpoint.url has an invalid host or port. Write https://HOST:PORT/PATH"
        ) from None
    return parts


def _client_credentials(
    found: Mapping[str, str], options: Mapping[str, str], url: str, where: str
) -> ClientCredentials:
    prefix = "sasl.oauthbearer.client.credentials.client"
    client, secret = options.get("clientId", found.get(f"{prefix}.id")), options.get("clientSecret")
    secret = secret if secret is not None else found.get(f"{prefix}.secret")
    if not client or not secret:
        option, key = ("clientSecret", "secret") if client else ("clientId", "id")
        raise Invalid(f"{where}: {option} is missing. Set it in sasl.jaas.config, or set {prefix}.{key}")
    waits = [f"sasl.login.{which}.timeout.ms" for which in ("connect", "read")]
    given = [_whole(found[key], key, 1, where) / 1000 for key in waits if found.get(key)]
    return ClientCredentials(
        url=url,
        client_id=client,
        secret=secret,
        scope=options.get("scope", found.get("sasl.oauthbearer.scope")),
        encode_header=found.get("sasl.oauthbearer.header.urlencode", "false").lower() == "true",
        seconds=max(given, default=_OAUTH_SECONDS),
        extensions=oauth.extensions(options),
    )


def _kerberos(found: Mapping[str, str], where: str, environment: Mapping[str, str]) -> Kerberos:
    if find_spec("gssapi") is None:
        raise Invalid(
            f"{where}: sasl.mechanism=GSSAPI: gssapi is not installed. Run: pip install 'kquota[gssapi]'. Then get a "
            "ticket with kinit, because kquota does not read a keytab"
        )
    login = _login(found, where, environment)
    options = login.options if login is not None else {}
    if options.get("useKeyTab", "false").lower() == "true":
        raise Invalid(
            f"{where}: {_place(found)}: kquota uses a ticket, not a keytab. Remove useKeyTab=true, and run "
            "kinit -kt KEYTAB PRINCIPAL (replace KEYTAB and PRINCIPAL with keyTab and principal of this login)"
        )
    service = found.get("sasl.kerberos.service.name") or options.get("serviceName")
    if not service:
        raise Invalid(f"{where}: sasl.kerberos.service.name is missing. Set it, usually to kafka")
    return Kerberos(service=service)


def _whole(text: str, name: str, least: int, where: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,10}", text.strip()) or not least <= int(text) < 2**31:
        raise Invalid(f"{where}: {name} must be a whole number from {least} to {2**31 - 1}")
    return int(text)


def _one_of(allowed: tuple[str, ...], value: str, name: str, where: str) -> str:
    if value not in allowed:
        raise Invalid(f"{where}: {name} must be one of {', '.join(allowed)}")
    return value
