"""SCRAM credentials of `kquota configs` on real brokers: a client logs in with them, and no password is shown."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import pty
import re
import subprocess
import sys
import termios
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kquota.quota.scram import MECHANISMS, ScramKeys
from kquota.sandbox import cluster as sandbox
from kquota.sandbox.cluster import Sandbox
from kquota.sandbox.servers import HOST, free_ports
from tests.canary import CANARY
from tests.cli.config_command import ConfigCommands, settled
from tests.cli.run import Ran, kquota, kquota_here, run
from tests.secured import SCRAM, Secured, jaas, properties_file

PASSWORD = f"{CANARY} é, =[x]"
NOWHERE = ("--bootstrap-server", "127.0.0.1:1")
_SHOWN_SECONDS = 60.0


@pytest.fixture
def user() -> str:
    return f"s-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file with the password on one line."""
    file = tmp_path / "user.secret"
    file.write_text(f"{PASSWORD}\n")
    return file


def credential(mechanism: str, iterations: int = 8192) -> str:
    return f"{mechanism}=[iterations={iterations}]"


def as_client(address: str, login: Path) -> Ran:
    """Run kquota as a client with this login."""
    at = ("--bootstrap-server", address, "--command-config", str(login))
    return kquota_here("configs", *at, "--describe", "--entity-type", "ips")


def login_file(folder: Path, mechanism: str, user: str, password: str) -> Path:
    module = jaas(SCRAM, username=user, password=password)
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": module}
    return properties_file(folder / f"{user}.properties", settings)


def must_log_in(address: str, login: Path) -> None:
    """Check that the broker accepts the login. An answer about missing permissions also proves a login."""
    # A broker accepts a credential only some time after it is written.
    ran = settled(lambda: as_client(address, login), lambda ran: "the login was refused" not in ran.err)
    assert ran.code == 0 or "ClusterAuthorizationFailed" in ran.err, ran


def must_not_log_in(address: str, login: Path) -> None:
    ran = settled(lambda: as_client(address, login), lambda ran: "the login was refused" in ran.err)
    assert ran.code == 1
    assert "the login was refused" in ran.err


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_logs_in_with_the_new_password(secured: Secured, secret: Path, user: str, mechanism: str) -> None:
    at = ("configs", "--bootstrap-server", secured.at["PLAINTEXT"])
    made = kquota(*at, "--alter", "--user", user, "--add-config", credential(mechanism), "--password-file", str(secret))
    assert made == Ran(0, f"Completed updating config for user {user}.\n", "")
    shown = kquota(*at, "--describe", "--user", user)
    assert shown.out == f"SCRAM credential configs for user-principal '{user}' are {mechanism}=iterations=8192\n"
    must_log_in(secured.at["BARELOGIN"], login_file(secret.parent, mechanism, user, PASSWORD))
    must_not_log_in(secured.at["BARELOGIN"], login_file(secret.parent, mechanism, user, "wrong"))
    gone = kquota(*at, "--alter", "--user", user, "--delete-config", mechanism)
    assert gone == made
    must_not_log_in(secured.at["BARELOGIN"], login_file(secret.parent, mechanism, user, PASSWORD))


@dataclass(frozen=True)
class WithLogin:
    """A sandbox with ZooKeeper, and the address of a listener that needs a SCRAM login."""

    cluster: Sandbox
    address: str


@pytest.fixture(scope="module")
def with_login() -> Iterator[WithLogin]:
    """One broker of 3.9.1 on ZooKeeper, with a listener for SCRAM."""
    (port,) = free_ports(1)
    listener = {
        "listeners": f"LOGIN://{HOST}:{port}",
        "advertised.listeners": f"LOGIN://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
        "listener.name.login.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.login.scram-sha-256.sasl.jaas.config": jaas(SCRAM),
        "listener.name.login.scram-sha-512.sasl.jaas.config": jaas(SCRAM),
    }
    started = sandbox.up(name="scram-3.9.1", kafka="3.9.1", brokers=1, properties=listener, owner_pid=os.getpid())
    yield WithLogin(started, f"{HOST}:{port}")
    sandbox.down("scram-3.9.1")


@pytest.mark.kafka
@pytest.mark.parametrize("over", ["--zookeeper", "--bootstrap-server"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_of_brokers_on_zookeeper_logs_in(
    with_login: WithLogin, secret: Path, user: str, mechanism: str, over: str
) -> None:
    address = with_login.cluster.bootstrap if over == "--bootstrap-server" else str(with_login.cluster.zookeeper)
    at = ("configs", over, address)
    assert kquota(*at, "--alter", "--user", user, "--add-config", "producer_byte_rate=5").code == 0
    add = ("--add-config", credential(mechanism), "--password-file", str(secret))
    assert kquota(*at, "--alter", "--user", user, *add).code == 0
    assert mechanism in kquota(*at, "--describe", "--user", user).out
    must_log_in(with_login.address, login_file(secret.parent, mechanism, user, PASSWORD))
    must_not_log_in(with_login.address, login_file(secret.parent, mechanism, user, "wrong"))
    assert kquota(*at, "--alter", "--user", user, "--delete-config", mechanism).code == 0
    must_not_log_in(with_login.address, login_file(secret.parent, mechanism, user, PASSWORD))
    left = kquota(*at, "--describe", "--user", user).out
    assert "producer_byte_rate=5" in left
    assert mechanism not in left


def stored(zookeeper: str, user: str) -> dict[str, str]:
    """The config in the user's znode."""
    client = KazooClient(hosts=zookeeper)
    client.start()
    try:
        return dict(json.loads(client.get(f"/config/users/{user}")[0])["config"])
    finally:
        client.stop()
        client.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_znode_has_the_keys_that_kafkas_tool_writes(
    kafka_391: Sandbox, config_commands: ConfigCommands, secret: Path, user: str, mechanism: str
) -> None:
    """Kafka's tool chooses another salt, so the keys are derived again from its salt and from kquota's."""
    at, tool = ("--zookeeper", str(kafka_391.zookeeper)), config_commands("3.9.1")
    add = f"{mechanism}=[iterations=8192,password={CANARY}-é]"
    theirs = tool(*at, "--alter", "--user", user, "--add-config", add)
    assert theirs.code == 0
    by_kafka = stored(at[1], user)[mechanism]
    ours = ("--add-config", credential(mechanism), "--password-file", str(secret))
    assert kquota("configs", *at, "--alter", "--user", user, *ours) == Ran(0, theirs.out, "")
    by_kquota = stored(at[1], user)[mechanism]
    for text, password in ((by_kafka, f"{CANARY}-é"), (by_kquota, PASSWORD)):
        salt = base64.b64decode(re.match("salt=([^,]+),", text)[1])  # type: ignore[index]
        salted = hashlib.pbkdf2_hmac(MECHANISMS[mechanism].algorithm, password.encode(), salt, 8192)
        keys = ScramKeys(mechanism=mechanism, iterations=8192, salt=salt, salted_password=salted)
        assert keys.stored() == text
    assert tool(*at, "--alter", "--user", user, "--delete-config", mechanism).code == 0


def typed(arguments: Sequence[str], *lines: str) -> tuple[int, str]:
    """Run kquota on a terminal of its own, and type a line at each prompt. Return the exit code and what it showed."""
    terminal, own = pty.openpty()

    def controlling() -> None:
        os.setsid()
        fcntl.ioctl(own, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, "-m", "kquota", *arguments], stdin=own, stdout=own, stderr=own, preexec_fn=controlling
    )
    os.close(own)
    shown, left = "", list(lines)
    while True:
        try:
            text = os.read(terminal, 4096).decode()
        except OSError:  # the process has ended
            break
        shown += text
        if left and re.search(r"(password of user .*|repeat the password): $", shown):
            os.write(terminal, f"{left.pop(0)}\n".encode())
            shown += "<typed>"
    os.close(terminal)
    return process.wait(_SHOWN_SECONDS), shown


def test_the_password_is_typed_twice_and_not_shown(secured: Secured, tmp_path: Path, user: str) -> None:
    at = ("configs", "--bootstrap-server", secured.at["PLAINTEXT"])
    add = (*at, "--alter", "--user", user, "--add-config", "SCRAM-SHA-512=[]")
    code, shown = typed(add, PASSWORD, PASSWORD)
    assert (code, CANARY in shown, shown.count("<typed>")) == (0, False, 2)
    must_log_in(secured.at["BARELOGIN"], login_file(tmp_path, "SCRAM-SHA-512", user, PASSWORD))
    shown_after = kquota(*at, "--describe", "--user", user).out
    assert shown_after.endswith(" are SCRAM-SHA-512=iterations=4096\n")
    assert kquota(*at, "--alter", "--user", user, "--delete-config", "SCRAM-SHA-512").code == 0


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("one", "two"), "the two passwords differ. Nothing was written. Run the command again"),
        (("",), "the password is empty. Give at least one character"),
    ],
)
def test_an_unusable_typed_password_is_refused(lines: tuple[str, ...], words: str) -> None:
    add = ("configs", *NOWHERE, "--alter", "--user", "a", "--add-config", "SCRAM-SHA-512=[iterations=8192]")
    code, shown = typed(add, *lines)
    assert code == 2
    assert shown.splitlines()[-1] == f"kquota: error: {words}"


def test_the_password_comes_from_standard_input(secured: Secured, tmp_path: Path, user: str) -> None:
    at = ["-m", "kquota", "configs", "--bootstrap-server", secured.at["PLAINTEXT"]]
    add = ["--alter", "--user", user, "--add-config", credential("SCRAM-SHA-256"), "--password-file", "-"]
    ran = run([sys.executable, *at, *add], stdin=f"{PASSWORD}\r\n")
    assert ran == Ran(0, f"Completed updating config for user {user}.\n", "")
    must_log_in(secured.at["BARELOGIN"], login_file(tmp_path, "SCRAM-SHA-256", user, PASSWORD))
    assert run([sys.executable, *at, "--alter", "--user", user, "--delete-config", "SCRAM-SHA-256"]).code == 0


def test_both_mechanisms_are_set_at_once_and_deleting_twice_succeeds(secured: Secured, secret: Path, user: str) -> None:
    """Kafka 4.3.1 refuses two credentials of a user in one request."""
    at = ("configs", "--bootstrap-server", secured.at["PLAINTEXT"], "--alter", "--user", user)
    both = ",".join(credential(mechanism) for mechanism in MECHANISMS)
    assert kquota(*at, "--add-config", both, "--password-file", str(secret)).code == 0
    shown = kquota(*at[:3], "--describe", "--user", user, "--output", "json")
    assert json.loads(shown.out)["scram"] == [
        {"user": user, "mechanism": mechanism, "iterations": 8192} for mechanism in MECHANISMS
    ]
    assert kquota(*at, "--delete-config", ",".join(MECHANISMS)).err == ""
    again = kquota(*at, "--delete-config", "SCRAM-SHA-512")
    assert (again.code, again.err) == (0, f"kquota: user '{user}': SCRAM-SHA-512 was not set; nothing to delete\n")


def test_a_properties_file_can_have_the_password(secured: Secured, tmp_path: Path, user: str) -> None:
    file = properties_file(tmp_path / "user.properties", {"SCRAM-SHA-256": f"iterations=8192,password={PASSWORD}"})
    at = ("configs", "--bootstrap-server", secured.at["PLAINTEXT"], "--alter", "--user", user)
    assert kquota(*at, "--add-config-file", str(file)).code == 0
    must_log_in(secured.at["BARELOGIN"], login_file(tmp_path, "SCRAM-SHA-256", user, PASSWORD))
    assert kquota(*at, "--delete-config", "SCRAM-SHA-256").code == 0


def test_a_dry_run_writes_no_credential(secured: Secured, secret: Path, user: str) -> None:
    at = ("configs", "--bootstrap-server", secured.at["PLAINTEXT"])
    add = ("--alter", "--user", user, "--add-config", credential("SCRAM-SHA-512"), "--password-file", str(secret))
    ran = kquota(*at, *add, "--dry-run")
    assert ran == Ran(0, f"user '{user}': set SCRAM-SHA-512=iterations=8192\n", "kquota: nothing was written\n")
    assert kquota(*at, "--describe", "--user", user) == Ran(0, "", "")


ADD = "--add-config"
REFUSED = {
    "a password on the command line": (
        [ADD, f"SCRAM-SHA-256=[iterations=8192,password={CANARY}]"],
        "do not write a password on a command line",
    ),
    "a password after a quota": ([ADD, f"producer_byte_rate=5, scram-sha-512=password={CANARY}"], "--password-file"),
    "a password in a key to delete": (["--delete-config", f"SCRAM-SHA-512=[password={CANARY}]"], "--password-file"),
    "a password with an equals sign": ([f"{ADD}=SCRAM-SHA-256=[password={CANARY}]"], "--password-file"),
    "a forgotten option": ([f"SCRAM-SHA-256=[password={CANARY}]"], "unexpected argument 'SCRAM-SHA-256'"),
    "no terminal": ([ADD, "SCRAM-SHA-256=[iterations=8192]"], "Give --password-file FILE (`-` for stdin)"),
    "too few iterations": (
        [ADD, "SCRAM-SHA-512=[iterations=100]"],
        "Iterations 100 is less than the minimum 4096 required for SCRAM-SHA-512",
    ),
    "too many iterations": ([ADD, "SCRAM-SHA-512=[iterations=16385]"], "more than the maximum 16384"),
    "iterations that are not a number": (
        [ADD, "SCRAM-SHA-512=[iterations=x]"],
        "Invalid credential property SCRAM",
    ),
    "a quota beside a credential": (
        [ADD, "SCRAM-SHA-512=[iterations=8192],producer_byte_rate=5"],
        "Cannot alter both quota and SCRAM credential configs simultaneously for 'users'",
    ),
    "an unknown key beside a credential": (
        [ADD, "SCRAM-SHA-512=[iterations=8192],no_quota=5"],
        "Only quota and SCRAM credential configs can be added for 'users'. Unexpected config names: no_quota",
    ),
    "an unknown key to delete beside a credential": (
        ["--delete-config", "SCRAM-SHA-512,no_quota"],
        "Only quota and SCRAM credential configs can be deleted for 'users'. Unexpected config names: no_quota",
    ),
    "an unknown mechanism": ([ADD, "SCRAM-SHA-1=[iterations=8192]"], "SCRAM-SHA-1: not supported by Kafka"),
    "added and deleted": ([ADD, "SCRAM-SHA-512=[]", "--delete-config", "SCRAM-SHA-512"], "both added and deleted"),
    "a password without a credential": ([ADD, "producer_byte_rate=5", "--password-file", "f"], "SCRAM"),
    "a password to delete": (["--delete-config", "SCRAM-SHA-512", "--password-file", "f"], "needs no password"),
    "a file that is not there": ([ADD, "SCRAM-SHA-512=[]", "--password-file", "/nowhere/f"], "cannot be read"),
}


@pytest.mark.parametrize("connection", ["--bootstrap-server", "--zookeeper"])
@pytest.mark.parametrize(("arguments", "words"), REFUSED.values(), ids=REFUSED)
def test_kquota_refuses_before_it_connects(arguments: list[str], words: str, connection: str) -> None:
    ran = kquota_here("configs", connection, "127.0.0.1:1", "--alter", "--user", "a", *arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert words in ran.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{CANARY}\nsecond\n", "has more than one line"),
        ("\n", "is empty"),
        (f"\ufeff{CANARY}\n".encode("utf-16").decode("latin-1"), "UTF-16"),
    ],
)
def test_an_unusable_password_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "user.secret"
    file.write_bytes(text.encode("latin-1"))
    add = ("--user", "a", ADD, "SCRAM-SHA-512=[]", "--password-file", str(file))
    ran = kquota_here("configs", *NOWHERE, "--alter", *add)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert words in ran.err


@pytest.mark.parametrize("entity", [["--user-defaults"], ["--client", "c"], ["--user", "a", "--client", "c"]])
def test_only_a_named_user_has_credentials(entity: list[str]) -> None:
    ran = kquota_here("configs", *NOWHERE, "--alter", *entity, ADD, "SCRAM-SHA-512=[iterations=8192]")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "The use of --entity-default or --user-defaults" in ran.err or "Only quota configs can be added" in ran.err


def test_controllers_accept_no_credentials() -> None:
    add = ("--user", "a", ADD, "SCRAM-SHA-512=[iterations=8192]", "--dry-run")
    ran = kquota_here("configs", "--bootstrap-controller", "127.0.0.1:1", "--alter", *add)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("controllers do not show client quotas or SCRAM credentials. Use --bootstrap-server\n")
