"""Certificates for tests: authorities, servers and clients, as PEM and PKCS12 stores, created in each run."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """A certificate with its key and its signer."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: tuple[x509.Certificate, ...] = ()

    @property
    def pem(self) -> str:
        """The certificate, followed by its chain."""
        return "".join(c.public_bytes(Encoding.PEM).decode() for c in (self.certificate, *self.chain))

    def key_pem(self, password: str | None = None) -> str:
        cipher = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, cipher).decode()

    def pem_store(self, path: Path, password: str | None = None) -> Path:
        """Write a file with the key and the chain, and return its path."""
        return _private(path, (self.key_pem(password) + self.pem).encode())

    def p12_store(self, path: Path, password: str) -> Path:
        """Write a PKCS12 key store, and return its path."""
        cipher = BestAvailableEncryption(password.encode())
        stored = pkcs12.serialize_key_and_certificates(b"own", self.key, self.certificate, self.chain or None, cipher)
        return _private(path, stored)

    def p12_trust(self, path: Path, password: str) -> Path:
        """Write a PKCS12 trust store in the form of keytool, and return its path."""
        entry = pkcs12.PKCS12Certificate(self.certificate, b"authority")
        return _private(path, pkcs12.serialize_java_truststore([entry], BestAvailableEncryption(password.encode())))


def authority(name: str) -> Certified:
    """Return a self-signed authority."""
    return _made(name, None, (), authority=True)


def signed(name: str, by: Certified, *, hosts: tuple[str, ...] = (), days: int = 2) -> Certified:
    """Return a certificate for `hosts`. With negative `days`, it has expired."""
    return _made(name, by, hosts, days=days)


def _made(
    name: str, by: Certified | None, hosts: tuple[str, ...], *, authority: bool = False, days: int = 2
) -> Certified:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if by is None else by.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(host) for host in hosts]), critical=False)
    certificate = builder.sign(key if by is None else by.key, hashes.SHA256())
    return Certified(certificate=certificate, key=key, chain=() if by is None else (by.certificate,))


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private(path: Path, data: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path
