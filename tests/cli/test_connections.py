"""How commands connect and log in: real listeners, right and wrong configurations, and no secret visible anywhere."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kquota.sandbox.cluster import kafka_tool
from tests.canary import CANARY
from tests.cli.config_command import described_pairs
from tests.cli.run import Ran, kquota, run
from tests.logins import CLIENT, CLIENT_P12, RIGHT, SASL_SSL, SSL, TRUST_P12, WRONG, located, scram
from tests.secured import DEAD_END, Secured


def describe(secured: Secured, listener: str, properties: Mapping[str, str], env: dict[str, str] | None = None) -> Ran:
    """Run `kquota configs --describe` over this listener. The files in the folder name the stores."""
    config = secured.config("client.properties", located(properties, secured.folder))
    return ask("--bootstrap-server", secured.at[listener], "--command-config", str(config), env=env)


@pytest.mark.parametrize(("listener", "properties"), RIGHT.values(), ids=RIGHT)
def test_a_correct_config_logs_in(secured: Secured, listener: str, properties: Mapping[str, str]) -> None:
    ran = describe(secured, listener, properties)
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(("listener", "properties", "reason"), WRONG.values(), ids=WRONG)
def test_a_wrong_config_prints_one_line(
    secured: Secured, listener: str, properties: Mapping[str, str], reason: str
) -> None:
    ran = describe(secured, listener, properties)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("kquota: error: Kafka at ")
    assert ran.err.count("\n") == 1
    assert reason in ran.err
    assert CANARY not in ran.err


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def ask(*options: str, env: dict[str, str] | None = None) -> Ran:
    return kquota("configs", "--describe", "--entity-type", "users", *options, env=env)


@pytest.mark.parametrize("dead", ["refuses", "says nothing"])
def test_kquota_tries_the_next_server_when_the_first_is_dead(secured: Secured, silent: str, dead: str) -> None:
    first = "127.0.0.1:1" if dead == "refuses" else silent
    ran = ask("--bootstrap-server", f"{first},{secured.at['PLAINTEXT']}")
    assert (ran.code, ran.err) == (0, "")


def test_unreachable_advertised_listeners(secured: Secured) -> None:
    ran = ask("--bootstrap-server", secured.at["ASTRAY"])
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert f"the cluster reports its brokers as {DEAD_END}. Check that this host can reach them" in ran.err


@pytest.mark.parametrize("option", ["--bootstrap-server", "--zookeeper"])
def test_an_unanswered_handshake_ends_by_the_deadline(secured: Secured, silent: str, option: str) -> None:
    if option == "--zookeeper":
        trust = f"zookeeper.ssl.truststore.location={secured.folder}/ca.pem\n"
        file = secured.folder / "zk.properties"
        file.write_text(f"zookeeper.ssl.client.enable=true\n{trust}")
        how = ("--zk-tls-config-file", str(file))
    else:
        impatient = {**located(SSL, secured.folder), "default.api.timeout.ms": "1000"}
        how = ("--command-config", str(secured.config("client.properties", impatient)))
    started = time.monotonic()
    ran = ask(option, silent, *how)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    # The bound is the rule (at most 10 s to connect), plus the start and the end of a process on a busy machine.
    assert time.monotonic() - started < 60


def test_the_operator_can_set_the_deadline(secured: Secured, silent: str) -> None:
    file = secured.config("client.properties", {"default.api.timeout.ms": "1000"})
    ran = ask("--bootstrap-server", silent, "--command-config", str(file))
    assert "no broker answered within 1 s. Check that this is the port of a broker" in ran.err


def everything(secured: Secured) -> dict[str, str]:
    """A file with every kind of secret."""
    return located({**SASL_SSL, **TRUST_P12, **CLIENT_P12, **scram(512, f"not{CANARY}")}, secured.folder)


@pytest.mark.parametrize("debug", [{}, {"KQUOTA_DEBUG": "1"}], ids=["as always", "with tracebacks"])
@pytest.mark.parametrize("listener", ["LOGIN", "PLAINTEXT", "EXPIRED"])
def test_no_secret_is_visible(secured: Secured, tmp_path: Path, listener: str, debug: dict[str, str]) -> None:
    """Checks the output, the process table during the run, and all files that remain."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    file = secured.config("client.properties", everything(secured))
    where = ("--bootstrap-server", secured.at[listener], "--command-config", str(file))
    command = [sys.executable, "-m", "kquota", "configs", "--describe", "--entity-type", "users", *where]
    env = {**os.environ, **debug, "TMPDIR": str(scratch), "XDG_STATE_HOME": str(scratch)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        table = [Path(f"/proc/{process.pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
        out, err = process.communicate()
    assert process.returncode == 1
    assert (b"Traceback" in err) is bool(debug)
    assert CANARY.encode() not in b"".join((out, err, *table))
    assert list(scratch.iterdir()) == []


REFUSED_FILES = {
    "a wrong word": {"security.protocol": "SASL"},
    "a misspelt secret": {"ssl.keystore.pasword": CANARY},
    "a wrong store password": {"ssl.truststore.password": f"not{CANARY}"},
    "a broken login": {"sasl.jaas.config": f'x required password="{CANARY}'},
    "a broken number": {"request.timeout.ms": CANARY},
}


@pytest.mark.parametrize("debug", [{}, {"KQUOTA_DEBUG": "1"}], ids=["as always", "with tracebacks"])
@pytest.mark.parametrize("change", REFUSED_FILES.values(), ids=REFUSED_FILES)
def test_an_error_about_a_file_does_not_contain_its_secrets(
    secured: Secured, change: Mapping[str, str], debug: dict[str, str]
) -> None:
    """kquota refuses it before any connection, because no server listens there."""
    file = secured.config("client.properties", {**everything(secured), **change})
    where = ("--bootstrap-server", "127.0.0.1:1", "--command-config", str(file))
    ran = run([sys.executable, "-m", "kquota", "configs", "--describe", "--entity-type", "users", *where], debug)
    assert (ran.code, ran.out) == (1 if debug else 2, "")
    assert CANARY not in ran.err
    assert str(file) in ran.err.replace("\n", "").replace("│", "").replace(" ", "") or str(file) in ran.err


def test_pem_files_and_passwords_do_not_import_cryptography(secured: Secured) -> None:
    """OpenSSL itself reads these files, so kquota avoids the slow import of a second library."""
    file = secured.config("client.properties", located({**SASL_SSL, **CLIENT, **scram(512)}, secured.folder))
    where = ["--bootstrap-server", secured.at["LOGIN"], "--command-config", str(file)]
    code = (
        "import sys\nfrom kquota.cli.main import main\nsys.argv = ['kquota', *sys.argv[1:]]\n"
        "try: main()\nfinally: print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    ran = run([sys.executable, "-c", code, "configs", "--describe", "--entity-type", "clients", *where])
    assert ran.code == 0
    assert not {"cryptography", "confluent_kafka", "kazoo"} & set(eval(ran.err.splitlines()[-1]))


SAME = [
    "TLS, authorities as PKCS12 of no declared type",
    "client certificate as PEM",
    "client certificate as PKCS12",
    "SCRAM-SHA-512 over TLS",
    "PLAIN over TLS",
]


@pytest.mark.parametrize("name", SAME)
def test_kafkas_own_tool_reads_the_same_file(secured: Secured, name: str) -> None:
    """Passwords contain quotes, backslashes, commas and an é, and both tools read the file in the same way."""
    listener, properties = RIGHT[name]
    file = secured.config("client.properties", located(properties, secured.folder))
    asked = ["--describe", "--entity-type", "users", "--bootstrap-server", secured.at[listener]]
    kafkas = run(kafka_tool("4.3.1", "kafka.admin.ConfigCommand", *asked, "--command-config", str(file)))
    assert kafkas.code == 0, kafkas.out
    ours = kquota("configs", *asked, "--command-config", str(file))
    assert {described_pairs(line) for line in ours.out.splitlines()} == {
        described_pairs(line) for line in kafkas.out.splitlines()
    }
    assert ours.out.count("\n") == kafkas.out.count("\n") > 0
