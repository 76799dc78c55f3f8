"""TLS from the properties of Kafka and ZooKeeper: trusted certificates, the client's certificate, and TLS versions."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kquota.errors import Invalid
from kquota.stores.login import keystores
from kquota.stores.login.arguments import warn_if_open
from kquota.stores.login.keystores import Identity, KeyPair, PemFile

PROTOCOLS: Final = ("TLSv1.2", "TLSv1.3")
_OLD: Final = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The settings of a TLS handshake."""

    trust: str | None = field(repr=False)
    """The trusted certificates in PEM, or None for the authorities that this system trusts."""
    identity: Identity | None
    """The source of the client's certificate and key, or None without a client certificate."""
    check_host: bool
    """True if the server's certificate must have the name of the host."""
    protocols: tuple[str, ...]
    """The allowed TLS versions, oldest first."""
    where: str
    """The option and the path of the file with these settings, for errors."""


def tls(found: Mapping[str, str], prefix: str, where: str, warn: Callable[[str], None]) -> Tls:
    """Return the TLS settings from the properties that begin with `prefix`.

    Raises the errors of `keystores.trusted` and `keystores.identity`, and Invalid for an unsupported value. The message
    names the file and the property. `warn` is called with each warning for the operator.
    """
    named = found.get(f"{prefix}enabled.protocols", "")
    protocols = [protocol.strip() for protocol in named.split(",") if protocol.strip()] or PROTOCOLS
    allowed = tuple(protocol for protocol in PROTOCOLS if protocol in protocols)
    if not allowed or set(protocols) - {*PROTOCOLS, *_OLD}:
        raise Invalid(
            f"{where}: {prefix}enabled.protocols: kquota supports only {' and '.join(PROTOCOLS)}. "
            "Give one or both of them"
        )
    if set(protocols) & set(_OLD):
        used = " and ".join(allowed)
        warn(f"{where}: {prefix}enabled.protocols: kquota uses only {used}, because older versions are not secure")
    if found.get(f"{prefix}protocol", "TLS") not in ("TLS", *PROTOCOLS):
        raise Invalid(f"{where}: {prefix}protocol must be TLS, {' or '.join(PROTOCOLS)}")
    algorithm = found.get(f"{prefix}endpoint.identification.algorithm", "https")
    if algorithm.lower() not in ("https", ""):
        raise Invalid(
            f"{where}: {prefix}endpoint.identification.algorithm must be https, or empty for no check of the host name"
        )
    identity = keystores.identity(found, prefix, where)
    if isinstance(identity, PemFile) and keystores.holds_bare_key(identity):
        warn_if_open(identity.path, f"{where}: {prefix}keystore.location: {identity.path}", warn)
    return Tls(
        trust=keystores.trusted(found, prefix, where),
        identity=identity,
        check_host=algorithm.lower() == "https",
        protocols=allowed,
        where=where,
    )


def context(wanted: Tls) -> ssl.SSLContext:
    """Return an SSL context with these settings. kquota writes no decrypted key to disk.

    Raises Invalid for a store that cannot be used, for example because its file can no longer be read. The message
    begins with `wanted.where`.
    """
    where = wanted.where
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion[wanted.protocols[0].replace(".", "_")]
    made.maximum_version = ssl.TLSVersion[wanted.protocols[-1].replace(".", "_")]
    made.check_hostname = wanted.check_host
    # Java trusts every certificate in a trust store, including one that is not the root of an authority.
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if wanted.trust is None:
        made.load_default_certs()
    else:
        try:
            made.load_verify_locations(cadata=wanted.trust)
        except ssl.SSLError:
            raise Invalid(
                f"{where}: the trust store holds an entry that is not a certificate. Remove the entry"
            ) from None
    try:
        if isinstance(wanted.identity, PemFile):
            _load(made, wanted.identity.path, wanted.identity.password, f"{where}: {wanted.identity.path}")
        elif wanted.identity is not None:
            _load_pair(made, keystores.key_pair(wanted.identity, where), where)
    except OSError as error:
        raise Invalid(f"{where}: the key store cannot be loaded: {error.strerror}. Check the file") from None
    return made


def _load(made: ssl.SSLContext, path: Path, password: str | None, what: str) -> None:
    def asked() -> str:
        # Without a callback, OpenSSL would ask for the password on the terminal.
        if password is None:
            raise Invalid(
                f"{what}: the key is encrypted, and its password is missing. Set ssl.key.password, or "
                "zookeeper.ssl.keystore.password for ZooKeeper"
            )
        return password

    try:
        made.load_cert_chain(path, password=asked)
    except ssl.SSLError as error:
        raise Invalid(f"{what} cannot be used: {_of_store(error)}") from None


def _load_pair(made: ssl.SSLContext, pair: KeyPair, where: str) -> None:
    """Load the pair from a temporary file, because Python's TLS reads keys only from files. The key in the file is
    encrypted.
    """
    import tempfile  # imported here: only a client key needs it

    handle, name = tempfile.mkstemp(prefix="kquota-", suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{pair.chain}\n{pair.key}")
        _load(made, Path(name), pair.password, f"{where}: the key store")
    finally:
        Path(name).unlink()


def _of_store(error: ssl.SSLError) -> str:
    match error.reason:
        case "KEY_VALUES_MISMATCH":
            return "its key does not belong to its first certificate"
        case "NO_START_LINE" | "PEM_LIB" | None:
            return "it must hold a certificate and its key in PEM, and the key's password must be correct"
        case _:
            return f"it must hold a certificate and its key, and the key's password must be correct ({error.reason})"
