"""Key stores and trust stores: PEM and PKCS12 files, and PEM in properties (KIP-651)."""

from __future__ import annotations

import codecs
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from kquota import bounded
from kquota.errors import Invalid

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

_JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_TYPES: Final = ("PEM", "PKCS12", "JKS")
_DER: Final = b"0"
_PEM_MARK: Final = b"-----BEGIN "
_CERTIFICATE: Final = re.compile(
    rb"^-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE)-----.*?(?:^-----END \1-----|\Z)", re.DOTALL | re.MULTILINE
)
"""A certificate from its first to its last line. Without a last line, the match is the rest of the text."""
_BARE_KEY: Final = (b"-----BEGIN PRIVATE KEY", b"-----BEGIN RSA PRIVATE KEY", b"-----BEGIN EC PRIVATE KEY")


@dataclass(frozen=True, slots=True, kw_only=True)
class PemFile:
    """A PEM file with a certificate chain and its key."""

    path: Path
    password: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pkcs12File:
    """A PKCS12 store with a key."""

    path: Path
    password: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InlinePem:
    """A certificate chain and its key in PEM format."""

    chain: str
    key: str = field(repr=False)
    password: str | None = field(repr=False)


Identity: TypeAlias = PemFile | Pkcs12File | InlinePem
"""The source of a client's own certificate and key. The key is still in its original form, usually encrypted.
Without a password in the properties, `password` is None.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate chain, leaf first, and its key, both in PEM. The key is encrypted with `password`."""

    chain: str
    key: str = field(repr=False)
    password: str = field(repr=False)


def trusted(found: Mapping[str, str], prefix: str, where: str) -> str | None:
    """Return the certificates of the trust store in PEM, or None without a trust store.

    `found` are the properties, and `prefix` is the beginning of the relevant ones, for example `ssl.`. Raises Invalid
    if the store cannot be read or contains no certificate, or if its format is unsupported or is not the one in
    `truststore.type`. The message names the file and the property. A damaged certificate in PEM raises an error only
    when the store is loaded.
    """
    inline = found.get(f"{prefix}truststore.certificates")
    if inline:
        return _certificates(_unfolded(inline).encode(), f"{where}: {prefix}truststore.certificates")
    located = _located(found, f"{prefix}truststore", where)
    if located is None:
        return None
    path, data, is_pem = located
    what = f"{where}: {prefix}truststore.location: {path}"
    if is_pem:
        return _certificates(data, what)
    from cryptography.hazmat.primitives.serialization import Encoding

    _key, certificates = _pkcs12(data, found.get(f"{prefix}truststore.password"), f"{prefix}truststore.password", what)
    if not certificates:
        raise Invalid(f"{what} contains no certificate. Add the certificate of the server's authority")
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)


def identity(found: Mapping[str, str], prefix: str, where: str) -> Identity | None:
    """Return the source of the client's own certificate and key, or None without a key store.

    PEM in the properties takes precedence over a file. Does not decrypt the key. Raises Invalid if the file cannot be
    read, if its format is unsupported or is not the one in `keystore.type`, or if only one of chain and key is given.
    """
    key, chain = found.get(f"{prefix}keystore.key"), found.get(f"{prefix}keystore.certificate.chain")
    key_password = found.get(f"{prefix}key.password")
    if key or chain:
        if not key or not chain:
            missing = f"{prefix}keystore.certificate.chain" if key else f"{prefix}keystore.key"
            raise Invalid(f"{where}: {missing} is missing. Set the certificate chain and the key together")
        return InlinePem(chain=_unfolded(chain), key=_unfolded(key), password=key_password)
    located = _located(found, f"{prefix}keystore", where)
    if located is None:
        return None
    path, _data, is_pem = located
    if is_pem:
        return PemFile(path=path, password=key_password or found.get(f"{prefix}keystore.password"))
    return Pkcs12File(path=path, password=found.get(f"{prefix}keystore.password"))


def holds_bare_key(found: PemFile) -> bool:
    """Return True if the file has a key that may be unencrypted. Raises OSError if the file cannot be read."""
    data = bounded.file_bytes(found.path, bounded.STORE)
    return any(mark in data for mark in _BARE_KEY)


def key_pair(found: Pkcs12File | InlinePem, where: str) -> KeyPair:
    """Return the chain, and the key encrypted again, so that the decrypted key never leaves the memory of this process.

    Raises Invalid if the store or the text is malformed, cannot be decrypted or has no key. The message begins with
    `where`. Raises OSError if the file cannot be read.
    """
    import secrets  # imported here: it takes 10 ms, and only a PKCS12 store or PEM in properties needs it

    from cryptography.hazmat.primitives import serialization as pem

    if isinstance(found, Pkcs12File):
        what = f"{where}: {found.path}"
        key, certificates = _pkcs12(
            bounded.file_bytes(found.path, bounded.STORE), found.password, "the store's password", what
        )
        if key is None:
            raise Invalid(f"{what} contains no key. Give a key store with the private key of the client")
        chain = "".join(certificate.public_bytes(pem.Encoding.PEM).decode() for certificate in certificates)
    else:
        key, chain = _inline_key(found, where), found.chain
    password = secrets.token_urlsafe(24)
    cipher = pem.BestAvailableEncryption(password.encode())
    text = key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, cipher).decode()
    return KeyPair(chain=chain, key=text, password=password)


def _inline_key(found: InlinePem, where: str) -> PrivateKeyTypes:
    from cryptography.exceptions import InternalError, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    password = found.password.encode() if found.password is not None and "ENCRYPTED" in found.key else None
    try:
        return load_pem_private_key(found.key.encode(), password)
    except (TypeError, ValueError, InternalError, UnsupportedAlgorithm):
        raise Invalid(
            f"{where}: the key in the properties cannot be read. Check that the key is in PEM, and check its password"
        ) from None


def _located(found: Mapping[str, str], store: str, where: str) -> tuple[Path, bytes, bool] | None:
    """Return the path of a store, its bytes, and True if the bytes are PEM. Return None without a location."""
    location, declared = found.get(f"{store}.location"), found.get(f"{store}.type", "").upper()
    if declared and declared not in _TYPES:
        step = f"Correct {store}.type, or convert the store to PKCS12"
        raise Invalid(f"{where}: {store}.type: kquota reads only {' and '.join(_TYPES[:2])}. {step}")
    if not location:
        return None
    path = Path(location)
    try:
        data = bounded.file_bytes(path, bounded.STORE)
    except OSError as error:
        problem = f"{where}: {store}.location: cannot read {path}: {error.strerror or error}"
        raise Invalid(f"{problem}. Check the path and its permissions") from None
    if data.startswith(_JKS):
        words = f"{where}: {store}.location: {path} is a JKS store, which kquota does not read"
        raise Invalid(f"{words}. {_convert(path, store)}")
    is_pem = _PEM_MARK in data
    if not is_pem and not data.startswith(_DER):
        raise Invalid(f"{where}: {store}.location: {path} is neither PEM nor PKCS12. Convert the store to PKCS12")
    if declared and is_pem != (declared == "PEM"):
        kind = "PEM" if is_pem else "PKCS12"
        raise Invalid(f"{where}: {store}.type is {declared}, but {path} is {kind}. Set {store}.type to {kind}")
    return path, data, is_pem


def _unfolded(text: str) -> str:
    """Return PEM with the line breaks that OpenSSL needs. Properties usually have blanks instead (KIP-651)."""
    blocks = re.finditer(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", text, re.DOTALL)
    return "".join(_block(block[1], "".join(block[2].split())) for block in blocks)


def _block(kind: str, body: str) -> str:
    lines = [body[start : start + 64] for start in range(0, len(body), 64)]
    return "\n".join((f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""))


def _convert(path: Path, store: str) -> str:
    new = path.with_suffix(".pkcs12" if path.suffix.lower() == ".p12" else ".p12")
    old_and_new = f"-srckeystore {shlex.quote(str(path))} -destkeystore {shlex.quote(str(new))}"
    command = f"keytool -importkeystore {old_and_new} -deststoretype PKCS12"
    return f"Convert it with `{command}`, and set {store}.location to {new}"


def _certificates(data: bytes, what: str) -> str:
    """Return only the certificates, because Python refuses text with a non-ASCII character, even in a comment."""
    found = [match[0] for match in _CERTIFICATE.finditer(data.removeprefix(codecs.BOM_UTF8))]
    if not found:
        raise Invalid(f"{what} contains no certificate. Add the certificate of the server's authority")
    # A damaged certificate stays in the text, so that it is reported when the store is loaded.
    return "".join(f"{one.decode('ascii', 'backslashreplace')}\n" for one in found)


def _pkcs12(
    data: bytes, password: str | None, setting: str, what: str
) -> tuple[PrivateKeyTypes | None, list[Certificate]]:
    """Return the key of a store, if it has one, and its certificates. The certificate of the key is the first."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except UnsupportedAlgorithm as error:
        raise Invalid(f"{what} cannot be opened ({error}). Create the store with another algorithm") from None
    except ValueError:
        given = "is wrong" if password is not None else "is missing"
        raise Invalid(f"{what} cannot be opened: {setting} {given}, or the file is damaged. Check both") from None
    own = [store.cert] if store.cert is not None else []
    return store.key, [entry.certificate for entry in (*own, *store.additional_certs)]
