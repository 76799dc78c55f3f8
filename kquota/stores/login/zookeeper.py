"""The login to ZooKeeper: Kafka's file of TLS properties, and the JAAS file of ZooKeeper's clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from kquota.errors import Invalid
from kquota.java_properties import entries
from kquota.stores.login import jaas
from kquota.stores.login.arguments import OF_A_PROGRAM, Access, ArgumentNames, Digest, listed, warn_if_open
from kquota.stores.login.jaas import Login
from kquota.stores.login.tls import Tls, tls

_KAFKA_OPTS: Final = "KAFKA_OPTS"
_PREFIX: Final = "zookeeper.ssl."
_SOCKET: Final = "zookeeper.clientCnxnSocket"
_USED: Final = frozenset(
    f"{_PREFIX}{name}"
    for name in (
        *("client.enable", "keystore.location", "keystore.password", "keystore.type", "truststore.location"),
        *("truststore.password", "truststore.type", "endpoint.identification.algorithm", "hostnameVerification"),
        *("protocol", "enabled.protocols", "crl.enable", "ocsp.enable"),
    )
)


def access(
    tls_file: Path | None,
    sasl_file: Path | None,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
    names: ArgumentNames = OF_A_PROGRAM,
) -> Access:
    """Return the login from the two files. Without `tls_file`, the session does not use TLS.

    Without `sasl_file`, `KAFKA_OPTS` in `environment` can name a JAAS file, as in Kafka's tools. `warn` is called with
    each warning. Raises Invalid for an unusable file. Messages name the file and the problem, but contain no secret.
    """
    digest = _digest(sasl_file, environment, warn, names.zk_sasl_config_file)
    wanted = None if tls_file is None else _tls(tls_file, names.zk_tls_config_file, warn)
    return Access(tls=wanted, digest=digest, names=names)


def _tls(path: Path, option: str, warn: Callable[[str], None]) -> Tls:
    where = f"{option}: {path}"
    read = entries(path, option)
    # ZooKeeper writes keyStore and trustStore, but Kafka writes keystore and truststore.
    found = {_kafkas_word(key): value if "password" in key.lower() else value.strip() for key, value in read}
    if found.get(f"{_PREFIX}client.enable", "").lower() != "true":
        raise Invalid(f"{where}: {_PREFIX}client.enable must be true. For a port without TLS, leave out this file")
    if not found.get(_SOCKET, "ClientCnxnSocketNetty").endswith("ClientCnxnSocketNetty"):
        raise Invalid(
            f"{where}: {_SOCKET} must be org.apache.zookeeper.ClientCnxnSocketNetty, because only it supports TLS"
        )
    for key in sorted(found.keys() - _USED):
        if key.startswith(_PREFIX):
            raise Invalid(
                f"{where}: {key}: kquota does not support it. Remove it if the connection is secure without it"
            )
    for key in ("crl.enable", "ocsp.enable"):
        if found.get(f"{_PREFIX}{key}", "false").lower() == "true":
            raise Invalid(
                f"{where}: {_PREFIX}{key}=true: kquota does not check whether a certificate was revoked. Remove the "
                "property if the connection is secure without it"
            )
    if unused := sorted(found.keys() - _USED - {_SOCKET}):
        warn(f"{where}: kquota does not use {listed(found, unused)}")
    if found.get(f"{_PREFIX}hostnameVerification", "true").lower() == "false":
        found[f"{_PREFIX}endpoint.identification.algorithm"] = ""
    wanted = tls(found, _PREFIX, where, warn)
    if any("password" in key for key in found):
        warn_if_open(path, where, warn)
    return wanted


def _kafkas_word(key: str) -> str:
    return key.replace("keyStore", "keystore").replace("trustStore", "truststore")


def _digest(path: Path | None, environment: Mapping[str, str], warn: Callable[[str], None], sasl: str) -> Digest | None:
    """Return the login of the section `Client`, or of the section that `zookeeper.sasl.clientconfig` names.

    Without `path`, returns None if `KAFKA_OPTS` names no JAAS file or turns SASL off, or if the file has no such
    section.
    """
    options = environment.get(_KAFKA_OPTS, "")
    name = jaas.java_property(options, "zookeeper.sasl.clientconfig") or "Client"
    if path is not None:
        login, option = jaas.section(path, name, sasl), sasl
        if login is None:
            raise Invalid(f"{sasl}: {path} has no section {name}. Add it, or choose another file")
    else:
        path, option = jaas.file_in(options), _KAFKA_OPTS
        if path is None or (jaas.java_property(options, "zookeeper.sasl.client") or "true").lower() == "false":
            return None
        # A missing section is not an error, because the file may be only for brokers. ZooKeeper's own client then also
        # connects without a login.
        login = jaas.section(path, name, _KAFKA_OPTS)
        if login is None:
            return None
    warn_if_open(path, f"{option}: {path}", warn)
    return _user_digest(login, f"{option}: {path}: section {name}")


def _user_digest(login: Login, where: str) -> Digest:
    if login.name == "Krb5LoginModule":
        raise Invalid(
            f"{where}: kquota does not log in to ZooKeeper with Kerberos (GSSAPI). Use digest or a certificate"
        )
    if login.name != "DigestLoginModule":
        raise Invalid(f"{where} needs the login module org.apache.zookeeper.server.auth.DigestLoginModule")
    username, password = login.user_and_password(where)
    return Digest(username=username, password=password)
