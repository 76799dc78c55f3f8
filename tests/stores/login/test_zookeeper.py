"""ZooKeeper's two files as one value: accepted properties, and refusals before any connection. No secret is printed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from kquota.errors import Invalid
from kquota.stores.login.arguments import Access, Digest
from kquota.stores.login.zookeeper import access
from tests.canary import CANARY
from tests.secured import digest

ENABLED = {"zookeeper.ssl.client.enable": "true"}


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def tls_file(folder: Path, properties: Mapping[str, str], mode: int = 0o600) -> Path:
    return written(folder / "zk.properties", "".join(f"{k}={v}\n" for k, v in properties.items()), mode)


def read(tls: Path | None = None, sasl: Path | None = None, options: str = "") -> tuple[Access, list[str]]:
    told: list[str] = []
    return access(tls, sasl, {"KAFKA_OPTS": options}, told.append), told


def section(name: str = "Client", **options: str) -> str:
    return f"{name} {{ {digest(**(options or {'username': 'kafka', 'password': CANARY}))} }};\n"


KAFKA = Digest(username="kafka", password=CANARY)


def test_an_open_zookeeper_needs_no_login() -> None:
    assert read() == (Access(), [])


def test_the_login_of_a_file(tmp_path: Path) -> None:
    found, told = read(sasl=written(tmp_path / "jaas", section("Server") + section()))
    assert (found.digest, told) == (KAFKA, [])
    assert CANARY not in repr(found)


OPTS: dict[str, tuple[str, Digest | None]] = {
    "the file that Kafka's tools read": ("-Xmx1g -Djava.security.auth.login.config={file}", KAFKA),
    "another section": ("-Djava.security.auth.login.config={file} -Dzookeeper.sasl.clientconfig=Other", None),
    "logins switched off": ("-Djava.security.auth.login.config={file} -Dzookeeper.sasl.client=false", None),
    "no file": ("-Xmx1g", None),
}


@pytest.mark.parametrize(("options", "login"), OPTS.values(), ids=OPTS)
def test_the_login_that_kafka_opts_names(tmp_path: Path, options: str, login: Digest | None) -> None:
    file = written(tmp_path / "jaas", section())
    assert read(options=options.format(file=file))[0].digest == login


def test_the_option_takes_precedence_over_kafka_opts(tmp_path: Path) -> None:
    file = written(tmp_path / "jaas", section("Mine", username="me", password="x") + section())
    options = f"-Djava.security.auth.login.config={tmp_path}/none -Dzookeeper.sasl.clientconfig=Mine"
    assert read(sasl=file, options=options)[0].digest == Digest(username="me", password="x")


REFUSED_LOGINS: dict[str, tuple[str, str]] = {
    "no section": (section("Server"), " has no section Client"),
    "Kerberos": (
        "Client { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true; };",
        "kquota does not log in to ZooKeeper with Kerberos (GSSAPI). Use digest or a certificate",
    ),
    "another module": (
        f"Client {{ x.{CANARY} required password={CANARY}; }};",
        "needs the login module org.apache.zookeeper.server.auth.DigestLoginModule",
    ),
    "no password": (section(username=CANARY), "section Client has no password"),
    "broken": (f'Client {{ x required password="{CANARY}; }};', "a quote is not closed"),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED_LOGINS.values(), ids=REFUSED_LOGINS)
def test_invalid_logins(tmp_path: Path, text: str, reason: str) -> None:
    file = written(tmp_path / "jaas", text)
    with pytest.raises(Invalid, match=re.escape(reason)) as refused:
        read(sasl=file)
    assert str(refused.value).startswith("zk_sasl_config_file: ")
    assert CANARY not in repr(refused.value)


@pytest.mark.parametrize("options", ["-Djava.security.auth.login.config={}/none", ""])
def test_a_file_that_cannot_be_read(tmp_path: Path, options: str) -> None:
    named = None if options else tmp_path / "none"
    with pytest.raises(Invalid, match=r"(KAFKA_OPTS|zk_sasl_config_file): cannot read .*: No such file"):
        read(sasl=named, options=options.format(tmp_path))


REFUSED: dict[str, tuple[Mapping[str, str], str]] = {
    "TLS not switched on": ({}, "zookeeper.ssl.client.enable must be true"),
    "TLS switched off": ({"zookeeper.ssl.client.enable": "false"}, "zookeeper.ssl.client.enable must be true"),
    "a socket without TLS": (
        {**ENABLED, "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNIO"},
        "zookeeper.clientCnxnSocket must be",
    ),
    "revocation lists": (
        {**ENABLED, "zookeeper.ssl.crl.enable": "true"},
        "zookeeper.ssl.crl.enable=true: kquota does not check",
    ),
    "Java's names of cipher suites": (
        {**ENABLED, "zookeeper.ssl.ciphersuites": "TLS_AES_256_GCM_SHA384"},
        "zookeeper.ssl.ciphersuites: kquota does not support it",
    ),
    "a misspelt setting": ({**ENABLED, "zookeeper.ssl.truststor.location": "x"}, "kquota does not support it"),
    "no such store": ({**ENABLED, "zookeeper.ssl.truststore.location": "/none"}, "cannot read /none"),
    "a store of no known type": (
        {**ENABLED, "zookeeper.ssl.keystore.location": "x", "zookeeper.ssl.keystore.type": "BCFKS"},
        "kquota reads only PEM and PKCS12. Correct zookeeper.ssl.keystore.type, or convert the store to PKCS12",
    ),
}


@pytest.mark.parametrize(("properties", "reason"), REFUSED.values(), ids=REFUSED)
def test_unsupported_tls_properties(tmp_path: Path, properties: Mapping[str, str], reason: str) -> None:
    with pytest.raises(Invalid, match=re.escape(reason)) as refused:
        read(tls=tls_file(tmp_path, properties))
    assert str(refused.value).startswith("zk_tls_config_file: ")


def test_unused_properties_and_readable_files_cause_warnings(tmp_path: Path) -> None:
    secret = {**ENABLED, "zookeeper.connect": "z:1", "zookeeper.ssl.truststore.password": CANARY}
    _, told = read(tls=tls_file(tmp_path, secret, 0o644), sasl=written(tmp_path / "jaas", section(), 0o644))
    assert [line.partition(": ")[2] for line in told] == [
        f"{tmp_path}/jaas holds secrets, and users other than its owner can read or change it. "
        f"Run `chmod 600 {tmp_path}/jaas`",
        f"{tmp_path}/zk.properties: kquota does not use zookeeper.connect",
        f"{tmp_path}/zk.properties holds secrets, and users other than its owner can read or change it. "
        f"Run `chmod 600 {tmp_path}/zk.properties`",
    ]
