"""A client's login as one value: the settings for both libraries, warnings and errors.

Keys are never stored in clear.
"""

from __future__ import annotations

import base64
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kquota.errors import Invalid
from kquota.stores.login import kafka_python, rdkafka
from kquota.stores.login.security import Security, security
from tests import certificates
from tests.canary import CANARY
from tests.certificates import Certified
from tests.logins import ENDPOINT, RIGHT, WRONG, bearer, located, plain, scram
from tests.secured import ALICE, PASSWORD, PLAIN, SCRAM, Secured, escaped, jaas

PLAINTEXT = {"security.protocol": "SASL_PLAINTEXT"}


def written(folder: Path, properties: Mapping[str, str], mode: int = 0o600) -> Path:
    file = folder / "client.properties"
    file.write_text("".join(f"{key}={escaped(value)}\n" for key, value in properties.items()))
    file.chmod(mode)
    return file


def read(
    folder: Path, properties: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> tuple[Security, list[str]]:
    """The value, and the warnings."""
    told: list[str] = []
    return security(written(folder, properties), environment or {}, told.append), told


WORDS: dict[str, tuple[Mapping[str, str], dict[str, Any], dict[str, Any]]] = {
    "blanks around what is meant": (
        {"security.protocol": " plaintext ", "client.id": "x\t"},
        {"security_protocol": "PLAINTEXT", "client_id": "x"},
        {"security.protocol": "plaintext", "client.id": "x"},
    ),
    "nothing": ({}, {"security_protocol": "PLAINTEXT"}, {"security.protocol": "plaintext"}),
    "PLAIN": (
        {**PLAINTEXT, **plain()},
        {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "bob",
            "sasl_plain_password": PASSWORD,
        },
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "bob",
            "sasl.password": PASSWORD,
        },
    ),
    "SCRAM, whose names kafka-python leaves as they are": (
        {"security.protocol": "sasl_plaintext", **scram(256)},
        {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_plain_username": ALICE.replace("=", "=3D").replace(",", "=2C"),
            "sasl_plain_password": PASSWORD,
        },
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": ALICE,
            "sasl.password": PASSWORD,
        },
    ),
    "patience": (
        {
            "client.id": "me",
            "request.timeout.ms": "5000",
            "default.api.timeout.ms": "7000",
            "socket.connection.setup.timeout.ms": "2000",
            "socket.connection.setup.timeout.max.ms": "3000",
            "connections.max.idle.ms": "60000",
            "reconnect.backoff.ms": "10",
            "reconnect.backoff.max.ms": "100",
            "metadata.max.age.ms": "1000",
            "send.buffer.bytes": "-1",
            "receive.buffer.bytes": "65536",
        },
        {
            "security_protocol": "PLAINTEXT",
            "client_id": "me",
            "request_timeout_ms": 5000,
            "default_api_timeout_ms": 7000,
            "socket_connection_setup_timeout_ms": 2000,
            "socket_connection_setup_timeout_max_ms": 3000,
            "connections_max_idle_ms": 60000,
            "reconnect_backoff_ms": 10,
            "reconnect_backoff_max_ms": 100,
            "metadata_max_age_ms": 1000,
            "socket_options": [
                (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
                (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
                (socket.SOL_SOCKET, socket.SO_RCVBUF, 65536),
            ],
        },
        {
            "security.protocol": "plaintext",
            "client.id": "me",
            "socket.timeout.ms": 5000,
            "socket.connection.setup.timeout.ms": 2000,
            "connections.max.idle.ms": 60000,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 100,
            "metadata.max.age.ms": 1000,
            "socket.receive.buffer.bytes": 65536,
        },
    ),
    "idle connections that are never closed": (
        {"connections.max.idle.ms": "-1"},
        {"security_protocol": "PLAINTEXT", "connections_max_idle_ms": 2**31 - 1},
        {"security.protocol": "plaintext", "connections.max.idle.ms": 2**31 - 1},
    ),
}


@pytest.mark.parametrize(("properties", "of_kafka_python", "of_librdkafka"), WORDS.values(), ids=WORDS)
def test_the_settings_for_both_libraries(
    tmp_path: Path, properties: Mapping[str, str], of_kafka_python: dict[str, Any], of_librdkafka: dict[str, Any]
) -> None:
    found, told = read(tmp_path, properties)
    assert kafka_python.settings(found) == of_kafka_python
    assert rdkafka.settings(found) == of_librdkafka
    assert told == []
    assert CANARY not in repr(found)


USERS: dict[str, tuple[Mapping[str, str], str | None]] = {
    "no login": ({}, "ANONYMOUS"),
    "PLAIN": ({**PLAINTEXT, **plain()}, "bob"),
    "SCRAM": ({**PLAINTEXT, **scram(256)}, ALICE),
    "a certificate": ({"security.protocol": "SSL"}, None),
    "a token": ({**bearer(clientId="x", clientSecret="y"), ENDPOINT: "https://x/"}, None),
}


@pytest.mark.parametrize(("properties", "user"), USERS.values(), ids=USERS)
def test_the_user_of_a_login(tmp_path: Path, properties: Mapping[str, str], user: str | None) -> None:
    assert read(tmp_path, properties)[0].user == user


TOLD: dict[str, tuple[Mapping[str, str], str]] = {
    "of other clients": ({"acks": "all", "group.id": "g"}, "kquota does not use acks, group.id"),
    "of brokers": ({"listener.name.x.ssl.keystore.location": "f"}, "kquota does not use listener.name.x.ssl."),
    "misspelt": ({"requst.timeout.ms": "1"}, "kquota does not use requst.timeout.ms"),
    "TLS without TLS": ({"ssl.truststore.location": "f"}, "so kquota does not use ssl.truststore.location"),
    "a login without SASL": (
        {"sasl.mechanism": "PLAIN"},
        "protocol is PLAINTEXT, so kquota does not use sasl.mechanism",
    ),
    "lines that are not properties": (
        {"acks": "all", CANARY: "", "EyJ.a.b": "x"},
        "acks, 2 lines without a valid property",
    ),
    "very many": ({f"k{n}": "x" for n in range(20)}, ", k18, k19, 8 more"),
    "for a long life": ({"sasl.login.refresh.buffer.seconds": "1"}, "kquota does not use sasl.login.refresh.buffer."),
}


@pytest.mark.parametrize(("properties", "line"), TOLD.values(), ids=TOLD)
def test_properties_without_effect_are_reported_in_one_line(
    tmp_path: Path, properties: Mapping[str, str], line: str
) -> None:
    _, told = read(tmp_path, properties)
    assert [line in one for one in told] == [True]
    assert CANARY not in told[0]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_file_with_secrets_that_others_can_read_causes_a_warning(tmp_path: Path, mode: int) -> None:
    told: list[str] = []
    file = written(tmp_path, {**PLAINTEXT, **plain()}, mode)
    security(file, {}, told.append)
    wanted = (
        []
        if mode == 0o600
        else [f"command_config: {file} holds secrets, and users other than its owner can read or change it"]
    )
    assert [line.partition(". Run `chmod")[0] for line in told] == wanted


@pytest.mark.parametrize(("password", "told"), [(None, True), (CANARY, False)], ids=["in clear", "enciphered"])
def test_a_key_in_clear_that_others_can_read_causes_a_warning(
    tmp_path: Path, own: Certified, password: str | None, told: bool
) -> None:
    store = own.pem_store(tmp_path / "own.pem", password)
    store.chmod(0o644)
    _, lines = read(tmp_path, {"security.protocol": "SSL", "ssl.keystore.location": str(store)})
    assert [str(store) in line for line in lines] == [True] * told


def test_a_file_without_secrets_may_be_read_by_all(tmp_path: Path) -> None:
    told: list[str] = []
    security(written(tmp_path, {"security.protocol": "PLAINTEXT", "client.id": "x"}, 0o644), {}, told.append)
    assert told == []


KRB = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab=k;"
REFUSED: dict[str, tuple[Mapping[str, str], str]] = {
    "an unknown protocol": (
        {"security.protocol": CANARY},
        "security.protocol must be one of PLAINTEXT, SSL",
    ),
    "no mechanism": (PLAINTEXT, "sasl.mechanism is missing (Kafka's default is GSSAPI)"),
    "an unknown mechanism": (
        {**PLAINTEXT, "sasl.mechanism": CANARY},
        "sasl.mechanism must be one of PLAIN, SCRAM-SHA-256",
    ),
    "no login": ({**PLAINTEXT, "sasl.mechanism": "PLAIN"}, "sasl.jaas.config is missing"),
    "no password": (
        {**PLAINTEXT, "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas(PLAIN, username=CANARY)},
        "sasl.jaas.config has no password",
    ),
    "another login": (
        {**PLAINTEXT, "sasl.mechanism": "PLAIN", "sasl.jaas.config": f"x.{CANARY} required a={CANARY};"},
        "sasl.jaas.config: PLAIN needs the login module PlainLoginModule or ScramLoginModule",
    ),
    "a broken login": (
        {**PLAINTEXT, "sasl.mechanism": "PLAIN", "sasl.jaas.config": f'm required password="{CANARY}'},
        "a quote is not closed",
    ),
    "a delegation token": (
        {
            **PLAINTEXT,
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": jaas(SCRAM, username="u", password=CANARY, tokenauth="true"),
        },
        "delegation tokens",
    ),
    "GSSAPI": (
        {**PLAINTEXT, "sasl.mechanism": "GSSAPI", "sasl.jaas.config": KRB},
        "gssapi is not installed. Run: pip install 'kquota[gssapi]'. Then get a ticket with kinit",
    ),
    "a bearer of nothing": (bearer(), "sasl.oauthbearer.token.endpoint.url is missing. Set sasl.oauthbearer.token."),
    "an unsecured bearer": (
        bearer(unsecuredLoginStringClaim_sub=CANARY),
        "sasl.jaas.config: kquota does not create unsecured OAuth tokens. Remove unsecuredLoginStringClaim_sub. "
        "Set sasl.oauthbearer.token.",
    ),
    "an unsecured bearer's extension beside an endpoint": (
        {**bearer(unsecuredLoginExtension_traceId=CANARY), ENDPOINT: "https://x/"},
        "kquota does not create unsecured OAuth tokens. Remove unsecuredLoginExtension_traceId",
    ),
    "a bearer with another module": (
        {**PLAINTEXT, "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": jaas(CANARY, username="x", password=CANARY)},
        "sasl.mechanism=OAUTHBEARER needs the login module OAuthBearerLoginModule. Correct sasl.jaas.config",
    ),
    "a callback of one's own": (
        {**bearer(), "sasl.login.callback.handler.class": "com.acme.Callback"},
        "kquota does not run Java classes",
    ),
    "an endpoint by ftp": ({**bearer(), ENDPOINT: "ftp://x/"}, "an https, http or file URL"),
    "an endpoint with a password": (
        {**bearer(clientId="x", clientSecret="y"), ENDPOINT: f"https://u:{CANARY}@x/"},
        "sasl.oauthbearer.token.endpoint.url must not contain a user or a password",
    ),
    "an endpoint's port": (
        {**bearer(clientId="x", clientSecret="y"), ENDPOINT: "http://idp:808O/token"},
        "sasl.oauthbearer.token.endpoint.url has an invalid host or port. Write https://HOST:PORT/PATH",
    ),
    "an endpoint's port that is none": (
        {**bearer(clientId="x", clientSecret="y"), ENDPOINT: "https://idp:99999/token"},
        "sasl.oauthbearer.token.endpoint.url has an invalid host or port",
    ),
    "an endpoint's open bracket": (
        {**bearer(clientId="x", clientSecret="y"), ENDPOINT: "https://[fe80::1/t"},
        "sasl.oauthbearer.token.endpoint.url has an invalid host or port",
    ),
    "an endpoint with a slash in its password": (
        {**bearer(clientId="x", clientSecret="y"), ENDPOINT: f"https://u:{CANARY}/p@x/"},
        "sasl.oauthbearer.token.endpoint.url has an invalid host or port",
    ),
    "no client secret": (
        {**bearer(clientId="x"), ENDPOINT: "https://x/"},
        "clientSecret is missing",
    ),
    "a config provider": ({"config.providers": "file"}, "kquota does not support config providers"),
    "a value from a provider": (
        {"ssl.key.password": "${file:/etc/kafka.secrets:key}"},
        "ssl.key.password: kquota does not support config providers",
    ),
    "another TLS engine": ({"ssl.engine.factory.class": "x"}, "ssl.engine.factory.class: kquota does not support it"),
    "Java's names of cipher suites": (
        {"security.protocol": "SSL", "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"},
        "ssl.cipher.suites: kquota does not support it",
    ),
    "another provider": ({"security.providers": "x"}, "security.providers: kquota does not support it"),
    "a misspelt TLS setting": ({"ssl.trustore.location": "x"}, "ssl.trustore.location: kquota does not support it"),
    "only old TLS": (
        {"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.1"},
        "ssl.enabled.protocols: kquota supports only TLSv1.2 and TLSv1.3. Give one or both of them",
    ),
    "an unknown TLS version": (
        {"security.protocol": "SSL", "ssl.enabled.protocols": f"TLSv1.3,{CANARY}"},
        "ssl.enabled.protocols: kquota supports only TLSv1.2 and TLSv1.3. Give one or both of them",
    ),
    "an unknown TLS protocol": (
        {"security.protocol": "SSL", "ssl.protocol": CANARY},
        "ssl.protocol must be TLS, TLSv1.2 or TLSv1.3",
    ),
    "a name check that is none": (
        {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": CANARY},
        "ssl.endpoint.identification.algorithm must be https, or empty",
    ),
    "a key store of an unknown type": (
        {"security.protocol": "SSL", "ssl.keystore.type": CANARY},
        "ssl.keystore.type: kquota reads only PEM and PKCS12. Correct ssl.keystore.type, or convert the store to",
    ),
    "no number": (
        {"request.timeout.ms": CANARY},
        "request.timeout.ms must be a whole number from 1 to 2147483647",
    ),
    "no idle time": ({"connections.max.idle.ms": "0"}, "must be a whole number from 1 to 2147483647"),
    "a negative number": ({"reconnect.backoff.ms": "-1"}, "must be a whole number from 0 to 2147483647"),
}


@pytest.mark.parametrize(("properties", "reason"), REFUSED.values(), ids=REFUSED)
def test_unsupported_properties_are_refused(tmp_path: Path, properties: Mapping[str, str], reason: str) -> None:
    with pytest.raises(Invalid, match=re.escape(reason)) as refused:
        read(tmp_path, properties)
    assert CANARY.casefold() not in repr(refused.value).casefold()
    assert str(refused.value).startswith(f"command_config: {tmp_path / 'client.properties'}: ")


def test_the_login_may_be_in_the_file_that_kafka_opts_names(tmp_path: Path) -> None:
    (tmp_path / "jaas.conf").write_text(f"KafkaClient {{ {jaas(PLAIN, username='bob', password=CANARY)} }};")
    options = {"KAFKA_OPTS": f"-Djava.security.auth.login.config={tmp_path}/jaas.conf"}
    found, _ = read(tmp_path, {**PLAINTEXT, "sasl.mechanism": "PLAIN"}, options)
    assert kafka_python.settings(found)["sasl_plain_password"] == CANARY


@pytest.fixture
def with_gssapi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kquota finds a module gssapi. No test imports it."""
    (tmp_path / "gssapi.py").touch()
    monkeypatch.syspath_prepend(tmp_path)


def kerberos(folder: Path, properties: Mapping[str, str], options: str) -> Security:
    (folder / "jaas.conf").write_text(
        f"KafkaClient {{ com.sun.security.auth.module.Krb5LoginModule required {options}; }};"
    )
    environment = {"KAFKA_OPTS": f"-Djava.security.auth.login.config={folder}/jaas.conf"}
    return read(folder, {**PLAINTEXT, "sasl.mechanism": "GSSAPI", **properties}, environment)[0]


OF_KERBEROS = {
    "of the file": ({}, "file"),
    "of the property": ({"sasl.kerberos.service.name": "property"}, "property"),
    "of the login in the properties": ({"sasl.jaas.config": "a.Krb5LoginModule required serviceName=own;"}, "own"),
}


@pytest.mark.parametrize(("properties", "service"), OF_KERBEROS.values(), ids=OF_KERBEROS)
def test_the_service_of_a_kerberos_login(
    tmp_path: Path, with_gssapi: None, properties: Mapping[str, str], service: str
) -> None:
    found = kerberos(tmp_path, properties, "useTicketCache=true serviceName=file")
    assert kafka_python.settings(found)["sasl_kerberos_service_name"] == service


def test_a_keytab_in_the_file_that_kafka_opts_names_is_refused(tmp_path: Path, with_gssapi: None) -> None:
    with pytest.raises(Invalid, match="the JAAS file in KAFKA_OPTS: kquota uses a ticket, not a keytab"):
        kerberos(tmp_path, {"sasl.kerberos.service.name": "kafka"}, 'useKeyTab=true keyTab="k"')


@pytest.fixture(scope="module")
def ours() -> Certified:
    return certificates.authority("ours")


@pytest.fixture(scope="module")
def own(ours: Certified) -> Certified:
    return certificates.signed("client", ours)


def stores(folder: Path, ours: Certified, own: Certified) -> dict[str, Mapping[str, str]]:
    """Every form of a key store."""
    bundle = folder / "bundle.pem"
    bundle.write_text(f"# Főtanúsítvány\n{ours.pem}\n# Második\n{own.pem}", encoding="utf-8-sig")
    return {
        "PEM": {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(own.pem_store(folder / "own.pem"))},
        "locked PEM": {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(own.pem_store(folder / "locked.pem", CANARY)),
            "ssl.key.password": CANARY,
        },
        "PKCS12": {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(own.p12_store(folder / "own.p12", CANARY)),
            "ssl.keystore.password": CANARY,
        },
        "inline": {"ssl.keystore.key": own.key_pem(), "ssl.keystore.certificate.chain": own.pem},
        "locked inline": {
            "ssl.keystore.key": own.key_pem(CANARY),
            "ssl.keystore.certificate.chain": own.pem,
            "ssl.key.password": CANARY,
        },
        "inline trust": {"ssl.truststore.certificates": ours.pem},
        "trust with comments": {"ssl.truststore.location": str(bundle)},
        "inline, lines joined": {
            "ssl.keystore.key": own.key_pem(CANARY).replace("\n", " "),
            "ssl.keystore.certificate.chain": own.pem.replace("\n", ""),
            "ssl.key.password": f" {CANARY} ",
            "ssl.truststore.certificates": ours.pem.replace("\n", "  "),
        },
    }


FORMS = [
    *("PEM", "locked PEM", "PKCS12", "inline", "locked inline"),
    *("inline trust", "trust with comments", "inline, lines joined"),
]


@pytest.mark.parametrize("form", FORMS)
def test_both_libraries_accept_every_form_of_a_store(
    tmp_path: Path, ours: Certified, own: Certified, form: str
) -> None:
    from confluent_kafka.admin import AdminClient

    found, told = read(tmp_path, {"security.protocol": "SSL", **stores(tmp_path, ours, own)[form]})
    assert isinstance(kafka_python.settings(found)["ssl_context"], ssl.SSLContext)
    assert AdminClient(rdkafka.settings(found) | {"log_level": 0}) is not None
    assert told == []
    assert CANARY not in repr(found)
    assert "PRIVATE KEY" not in repr(found)


WATCHED = """
import sys, os
from pathlib import Path
left = []
def watch(event, arguments):
    if event == "os.remove" and str(arguments[0]).startswith(os.environ["TMPDIR"] + "/kquota-"):
        path = Path(arguments[0])
        left.append((path.stat().st_mode & 0o777, path.read_text()))
sys.addaudithook(watch)
from kquota.stores.login.security import security
security(Path(sys.argv[1]), {}, print).context()
for mode, text in left:
    print(oct(mode), "ENCRYPTED PRIVATE KEY" in text, "BEGIN PRIVATE KEY" in text)
"""


@pytest.mark.parametrize(("form", "through_a_file"), [("PKCS12", True), ("inline", True), ("PEM", False)])
def test_no_decrypted_key_is_written_to_a_disk(
    tmp_path: Path, ours: Certified, own: Certified, form: str, through_a_file: bool
) -> None:
    file = written(tmp_path, {"security.protocol": "SSL", **stores(tmp_path, ours, own)[form]})
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(file)], env={"TMPDIR": str(scratch)}, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("0o600 True False\n" if through_a_file else "", "")
    assert list(scratch.iterdir()) == []


def without_curve(certified: Certified) -> str:
    """The key, with a byte of the name of its curve changed to a curve that does not exist."""
    der = certified.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    curve = bytes.fromhex("06082a8648ce3d030107")
    assert curve in der
    body = base64.encodebytes(der.replace(curve, curve[:-1] + b"\x7f")).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n"


ODD_CURVE = base64.b64decode(
    "MIGiAgEDMIGcBgkqhkiG9w0BBwGggY4EgYswgYgwgYUGCSqGSIb3DQEHAaB4BHYwdDByBgsqhkiG9w0BDAoBAaBjMGECAQAwEAYHKoZIzj0CAQYFK4EE"
    "AAgESjBIAgEBBBUAgs4rJ7cZxuRPneG8tfQWCgUDmD+hLAMqAARFr9ymxAl+jDxtast+pzEChyitsZf+eCVdtTZrDdCzjMxEvkMG/mmO"
)
"""A PKCS12 store with only a key, on a curve that kquota cannot load (secp160r1)."""


def bad_stores(folder: Path, ours: Certified, own: Certified) -> dict[str, tuple[Mapping[str, str], str]]:
    jks = folder / "own.jks"
    jks.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    misnamed = folder / "our stores" / "own.p12"
    misnamed.parent.mkdir()
    misnamed.write_bytes(jks.read_bytes())
    (folder / "text").write_text("hello")
    (folder / "cut.pem").write_text(own.pem[:-60])
    (folder / "foreign.pem").write_text(ours.pem + own.pem.replace("\nM", "\nő"))
    (folder / "curve.p12").write_bytes(ODD_CURVE)
    forms = stores(folder, ours, own)
    other = certificates.authority("other")
    return {
        "JKS": (
            {"ssl.truststore.location": str(jks)},
            f"Convert it with `keytool -importkeystore -srckeystore {jks} -destkeystore {folder}/own.p12 "
            f"-deststoretype PKCS12`, and set ssl.truststore.location to {folder}/own.p12",
        ),
        "JKS with the suffix of PKCS12, in a folder with a space": (
            {"ssl.keystore.location": str(misnamed)},
            f"`keytool -importkeystore -srckeystore '{misnamed}' -destkeystore '{misnamed.parent}/own.pkcs12' "
            f"-deststoretype PKCS12`, and set ssl.keystore.location to {misnamed.parent}/own.pkcs12",
        ),
        "no file": ({"ssl.truststore.location": f"{folder}/none"}, "cannot read"),
        "a folder": ({"ssl.keystore.location": str(folder)}, "Is a directory"),
        "another type": (
            {"ssl.keystore.type": "BCFKS", "ssl.keystore.location": "x"},
            "kquota reads only PEM and PKCS12. Correct ssl.keystore.type, or convert the store to PKCS12",
        ),
        "neither": ({"ssl.keystore.location": f"{folder}/text"}, "neither PEM nor PKCS12"),
        "PEM that is PKCS12": ({**forms["PKCS12"], "ssl.keystore.type": "PEM"}, "ssl.keystore.type is PEM, but"),
        "a wrong store password": (
            {**forms["PKCS12"], "ssl.keystore.password": f"not{CANARY}"},
            "cannot be opened: the store's password is wrong",
        ),
        "no store password": (
            {k: v for k, v in forms["PKCS12"].items() if "password" not in k},
            "cannot be opened: the store's password is missing",
        ),
        "a key on a curve that is not supported": (
            {"ssl.keystore.location": f"{folder}/curve.p12"},
            "curve.p12 cannot be opened (Curve 1.3.132.0.8 is not supported). Create the store with another algorithm",
        ),
        "a wrong key password": ({**forms["locked PEM"], "ssl.key.password": f"not{CANARY}"}, "cannot be used"),
        "no key password": (
            {k: v for k, v in forms["locked PEM"].items() if "password" not in k},
            "the key is encrypted, and its password is missing. Set ssl.key.password",
        ),
        "no key password inline": (
            {k: v for k, v in forms["locked inline"].items() if "password" not in k},
            "the key in the properties cannot be read",
        ),
        "a damaged key inline": (
            {"ssl.keystore.certificate.chain": own.pem, "ssl.keystore.key": without_curve(own)},
            "the key in the properties cannot be read",
        ),
        "a chain without a key": (
            {"ssl.keystore.certificate.chain": own.pem},
            "ssl.keystore.key is missing. Set the certificate chain and the key together",
        ),
        "a key that does not belong to the certificate": (
            {"ssl.keystore.certificate.chain": own.pem, "ssl.keystore.key": other.key_pem()},
            "its key does not belong to its first certificate",
        ),
        "no certificate to trust": ({"ssl.truststore.certificates": own.key_pem()}, "contains no certificate"),
        "a truncated certificate to trust": (
            {"ssl.truststore.location": f"{folder}/cut.pem"},
            "the trust store holds an entry that is not a certificate",
        ),
        "a damaged certificate to trust": (
            {"ssl.truststore.location": f"{folder}/foreign.pem"},
            "the trust store holds an entry that is not a certificate",
        ),
    }


BAD = [
    "JKS",
    "JKS with the suffix of PKCS12, in a folder with a space",
    "no file",
    "a folder",
    "another type",
    "neither",
    "PEM that is PKCS12",
    "a wrong store password",
    "no store password",
    "a key on a curve that is not supported",
    "a wrong key password",
    "no key password",
    "no key password inline",
    "a damaged key inline",
    "a chain without a key",
    "a key that does not belong to the certificate",
    "no certificate to trust",
    "a truncated certificate to trust",
    "a damaged certificate to trust",
]


@pytest.mark.parametrize("name", BAD)
def test_an_unusable_store_is_reported(tmp_path: Path, ours: Certified, own: Certified, name: str) -> None:
    cases = bad_stores(tmp_path, ours, own)
    assert list(cases) == BAD
    properties, reason = cases[name]
    with pytest.raises(Invalid, match=re.escape(reason)) as refused:
        kafka_python.settings(read(tmp_path, {"security.protocol": "SSL", **properties})[0])
    assert CANARY not in repr(refused.value)
    assert "PRIVATE KEY" not in repr(refused.value)


@pytest.mark.parametrize("form", ["PEM", "PKCS12"])
def test_a_key_store_that_is_deleted_during_the_command_is_reported(
    tmp_path: Path, ours: Certified, own: Certified, form: str
) -> None:
    found, _ = read(tmp_path, {"security.protocol": "SSL", **stores(tmp_path, ours, own)[form]})
    for path in tmp_path.glob("own.*"):
        path.unlink()
    with pytest.raises(Invalid, match="the key store cannot be loaded: No such file or directory"):
        found.context()


@pytest.mark.parametrize(("listener", "properties"), RIGHT.values(), ids=RIGHT)
def test_librdkafka_logs_in(secured: Secured, tmp_path: Path, listener: str, properties: Mapping[str, str]) -> None:
    from confluent_kafka.admin import AdminClient

    found, _ = read(tmp_path, located(properties, secured.folder))
    if "ssl.enabled.protocols" in properties:
        with pytest.raises(Invalid, match="librdkafka, which cannot be limited to TLSv1"):
            rdkafka.settings(found)
        return
    client = AdminClient(rdkafka.settings(found) | {"bootstrap.servers": secured.at[listener], "log_level": 0})
    client.poll(0)
    assert set(client.list_topics(timeout=60).brokers) == {1}


@pytest.mark.parametrize("name", ["a certificate for another name", "an unknown authority", "a wrong SCRAM password"])
def test_librdkafka_cannot_log_in(secured: Secured, tmp_path: Path, name: str) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    listener, properties, _ = WRONG[name]
    found, _ = read(tmp_path, located(properties, secured.folder))
    quiet = {"bootstrap.servers": secured.at[listener], "log_level": 0, "error_cb": lambda _error: None}
    with pytest.raises(KafkaException) as refused:
        AdminClient(rdkafka.settings(found) | quiet).list_topics(timeout=3)
    assert CANARY not in repr(refused.value)
