"""Java's properties read like Java, and JAAS lines read like Kafka. No error contains a secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid
from kquota.java_properties import entries, text_of
from kquota.stores.login import jaas
from kquota.stores.login.arguments import warn_if_open
from tests.canary import CANARY
from tests.secured import PLAIN, escaped
from tests.secured import jaas as quoted

TEXTS = {
    "a=b": {"a": "b"},
    "a = b c ": {"a": "b c "},
    "a:b": {"a": "b"},
    "a b": {"a": "b"},
    "a\t=\fb": {"a": "b"},
    "a==b": {"a": "=b"},
    "a = = b": {"a": "= b"},
    "# c\n! d\n\n  a=b": {"a": "b"},
    "# c\\\na=b": {"a": "b"},
    "a=b\\\n   c": {"a": "bc"},
    "a=b\\\r\n   # c": {"a": "b# c"},
    "a=b\\": {"a": "b"},
    "a=b\\\\\nc=d": {"a": "b\\", "c": "d"},
    "a=b\rc=d": {"a": "b", "c": "d"},
    "a\\=b=c\\u00e9\\t": {"a=b": "cé\t"},
    "a\\ b=\\ c": {"a b": " c"},
    "a=\\ud83d\\ude00": {"a": "\N{GRINNING FACE}"},
    "a=\\\\u12": {"a": "\\u12"},
    "a=x\\q": {"a": "xq"},
    "a=": {"a": ""},
    "a": {"a": ""},
    "": {},
    "=b": {"": "b"},
    "a=x\\\\": {"a": "x\\"},
    "a=1\na=2": {"a": "2"},
    "a=b\x85c\u00a0d": {"a": "b\x85c\u00a0d"},
}


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "p.properties"
    file.write_bytes(text.encode("latin-1"))
    return file


@pytest.mark.parametrize(("text", "meant"), TEXTS.items(), ids=[repr(text) for text in TEXTS])
def test_java_properties(tmp_path: Path, text: str, meant: dict[str, str]) -> None:
    assert dict(entries(written(tmp_path, text), "command_config")) == meant


def test_a_written_file_has_the_same_entries(tmp_path: Path) -> None:
    properties = {"#a b": "", "!": "\\ \n", "k=:#!\\": "a\tb=é\N{GRINNING FACE}:#! ", "\u0130": "\u00a0"}
    text = text_of(properties)
    assert text.isascii()
    assert dict(entries(written(tmp_path, text), "command_config")) == properties


def test_bytes_are_latin_1_as_for_kafkas_tools(tmp_path: Path) -> None:
    file = tmp_path / "p.properties"
    file.write_bytes("a=é".encode())
    assert dict(entries(file, "command_config")) == {"a": "Ã©"}


def test_a_byte_order_mark_hides_no_key(tmp_path: Path) -> None:
    path = tmp_path / "from-windows.properties"
    path.write_text("security.protocol=SSL\r\n", encoding="utf-8-sig")
    assert dict(entries(path, "command_config")) == {"security.protocol": "SSL"}


@pytest.mark.parametrize("broken", [rf"a={CANARY}\u12", rf"a={CANARY}\ud83d"])
def test_a_broken_escape_is_reported_without_its_line(tmp_path: Path, broken: str) -> None:
    with pytest.raises(Invalid, match=r"\\u") as refused:
        entries(written(tmp_path, broken), "command_config")
    assert CANARY not in str(refused.value)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"--zk-tls-config-file: cannot read .*: No such file"):
        entries(tmp_path / "none", "--zk-tls-config-file")


@pytest.mark.parametrize(
    ("mode", "others"),
    [(0o600, False), (0o400, False), (0o711, False), (0o640, True), (0o604, True), (0o620, True)],
)
def test_files_that_others_can_read(tmp_path: Path, mode: int, others: bool) -> None:
    file = written(tmp_path, "")
    file.chmod(mode)
    told: list[str] = []
    warn_if_open(file, "it", told.append)
    line = f"it holds secrets, and users other than its owner can read or change it. Run `chmod 600 {file}`"
    assert told == ([line] if others else [])


MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
LOGINS = {
    'm required username="alice" password="p";': {"username": "alice", "password": "p"},
    "m required username=alice password=p;": {"username": "alice", "password": "p"},
    "m REQUIRED\n  a='b'\n;": {"a": "b"},
    'm required a="b;=\\"\\\\,";': {"a": 'b;="\\,'},
    'm required a="\\t\\101\\q";': {"a": "\tAq"},
    "m required /* no */ a=b // c\n;": {"a": "b"},
    'm required a="";': {"a": ""},
    "m required;": {},
}


@pytest.mark.parametrize(("text", "options"), LOGINS.items(), ids=LOGINS)
def test_a_jaas_line(text: str, options: dict[str, str]) -> None:
    assert jaas.login(text, "x").options == options


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no login module"),
        (f"{CANARY}", "the login module must be followed by"),
        (f'm required password="{CANARY}"', "does not end with a semicolon"),
        (f'm required password="{CANARY};', "a quote is not closed"),
        (f"m required {CANARY};", "= is missing after the name"),
        (f"m required password=; {CANARY}", "an option has no value"),
        (f"m required password=one {CANARY};", "= is missing after the name"),
        (f"m required a=b; n required password={CANARY};", "x has more than one login module"),
    ],
)
def test_invalid_jaas_lines(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as refused:
        jaas.login(text, "x")
    assert CANARY not in repr(refused.value)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), st.text("ab=,;"))
def test_every_password_survives_jaas_and_java(password: str, user: str) -> None:
    """A password that an operator writes with Kafka's two layers of escapes is read back unchanged."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "p"
        line = quoted(PLAIN, username=user, password=password)
        file.write_text(f"sasl.jaas.config={escaped(line)}\n", encoding="latin-1")
        found = jaas.login(dict(entries(file, "command_config"))["sasl.jaas.config"], "x")
    assert found.options == {"username": user, "password": password}


FILE = f"""
// as operators have it
Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required user_super="{CANARY}"; }};
Client {{
  org.apache.zookeeper.server.auth.DigestLoginModule required
  username="kafka"
  password="{CANARY}";
}};
Two {{ a required; b optional x=y; }};
"""


def test_a_section_of_a_jaas_file(tmp_path: Path) -> None:
    found = jaas.section(written(tmp_path, FILE), "Client", "x")
    assert found is not None
    assert (found.name, found.options) == ("DigestLoginModule", {"username": "kafka", "password": CANARY})
    assert CANARY not in repr(found)
    assert jaas.section(written(tmp_path, FILE), "Other", "x") is None


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        (FILE, "Two", "section Two has 2 login modules"),
        (FILE + FILE, "Client", "section Client is listed twice. Remove one of them"),
        (f"{CANARY}", "Client", "{ is missing after the name of a section"),
        (f"Client {{ m required a={CANARY}; }}", "Client", "; is missing after the }"),
        (f"Client {{ m required a={CANARY};", "Client", "not closed"),
        (f"Client {{ m required a={CANARY} }};", "Client", "= is missing"),
    ],
)
def test_invalid_jaas_files(tmp_path: Path, text: str, name: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as refused:
        jaas.section(written(tmp_path, text), name, "x")
    assert CANARY not in repr(refused.value)


def test_the_options_for_a_jvm() -> None:
    options = '-Xmx1g -Djava.security.auth.login.config="/a b/jaas.conf" -Dzookeeper.sasl.clientconfig=Mine'
    assert jaas.file_in(options) == Path("/a b/jaas.conf")
    assert jaas.java_property(options, "zookeeper.sasl.clientconfig") == "Mine"
    assert jaas.file_in("-Xmx1g") is None
