"""--command-config: Java's properties as Java reads them, security in kafka-python's words, no secret in an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from kquota.errors import Invalid
from kquota.stores.properties import properties, security

TEXTS = {
    "a=b": {"a": "b"},
    "a = b c ": {"a": "b c "},
    "a:b": {"a": "b"},
    "a b": {"a": "b"},
    "# c\n! d\n\n  a=b": {"a": "b"},
    "a=b\\\n   c": {"a": "bc"},
    "a\\=b=c\\u00e9\\t": {"a=b": "cé\t"},
    "a=": {"a": ""},
    "a": {"a": ""},
    "a=x\\\\": {"a": "x\\"},
}


@pytest.mark.parametrize(("text", "meant"), TEXTS.items(), ids=[repr(text) for text in TEXTS])
def test_java_properties(tmp_path: Path, text: str, meant: dict[str, str]) -> None:
    file = tmp_path / "p"
    file.write_text(text)
    assert properties(file) == meant


JAAS = (
    "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="alice" password="CANARY-7f3a \\\\"quoted\\\\"";'
)


def test_sasl(tmp_path: Path) -> None:
    file = tmp_path / "p"
    file.write_text(f"security.protocol=sasl_plaintext\nsasl.mechanism=SCRAM-SHA-512\n{JAAS}\nclient.id=x\n")
    assert security(file) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": 'CANARY-7f3a "quoted"',
    }


def test_tls(tmp_path: Path) -> None:
    pem = tmp_path / "ca.pem"
    pem.write_text("")
    file = tmp_path / "p"
    file.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={pem}\n"
        "ssl.endpoint.identification.algorithm=\n"
    )
    assert security(file) == {"security_protocol": "SSL", "ssl_cafile": str(pem), "ssl_check_hostname": False}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("security.protocol=TLS", "must be one of PLAINTEXT"),
        ("sasl.mechanism=DIGEST-MD5", "must be one of PLAIN"),
        ("sasl.jaas.config=x password=CANARY-7f3a;", "no username and password"),
        ("ssl.truststore.location=/t.jks\nssl.truststore.password=CANARY-7f3a", "no JKS"),
        ("ssl.keystore.type=PEM\nssl.keystore.location=/none.pem\nssl.key.password=CANARY-7f3a", "no file"),
    ],
)
def test_what_this_client_cannot_do(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "p"
    file.write_text(text)
    with pytest.raises(Invalid, match=reason) as refused:
        security(file)
    assert "CANARY" not in str(refused.value)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="cannot read"):
        security(tmp_path / "none")
