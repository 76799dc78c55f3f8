"""Rules of every command: fast help, one line for each error, exit codes, output that ignores the terminal."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pytest

from kquota.cli.help import SUMMARIES, summary
from kquota.placement.goal import DISK_LIMIT, TOLERANCE
from kquota.sandbox import jars
from kquota.sandbox.cluster import BROKERS, MOST_BROKERS
from kquota.terms import SAMPLES
from man.command import root
from tests.cli.run import Ran, kquota, run, started

COMMANDS = [
    [],
    ["configs"],
    ["log-dirs"],
    ["reassign-partitions"],
    ["move"],
    ["quota", "export"],
    ["quota", "diff"],
    ["quota", "apply"],
    ["move", "plan"],
    ["move", "estimate"],
    *(["move", command] for command in ("status", "resume", "abort")),
    ["quota"],
    ["throttle"],
    *(["throttle", command] for command in ("show", "set", "clear", "doctor")),
    ["record"],
    *(["record", command] for command in ("share", "status", "unshare")),
    ["quota", "explain"],
    ["quota", "probe"],
    ["sandbox"],
    ["sandbox", "up"],
    ["sandbox", "demo"],
]
HEAVY = {
    *("pyspark", "py4j", "pandas", "numpy", "kafka", "confluent_kafka", "kazoo", "cryptography"),
    *("yaml", "rich", "tabulate", "jinja2", "matplotlib"),
}


@pytest.mark.parametrize("command", COMMANDS, ids=[" ".join(command) or "kquota" for command in COMMANDS])
def test_help_imports_no_library_of_others_and_no_work_of_a_room(command: list[str]) -> None:
    code = (
        "import sys\nfrom kquota.cli.main import main\nsys.argv = ['kquota', *sys.argv[1:], '--help']\n"
        "try: main()\nfinally: print(sorted(sys.modules), file=sys.stderr)"
    )
    ran = run([sys.executable, "-c", code, *command])
    assert ran.code == 0
    assert ran.out.startswith("Usage: kquota")
    loaded = eval(ran.err.splitlines()[-1])
    assert not {name.partition(".")[0] for name in loaded} & HEAVY
    # Most of a short command is imports: `quota --help` needs the bounds of a probe, and not its order of requests.
    assert not [name for name in loaded if name.startswith("kquota.") and name.endswith(".port")]


@pytest.mark.parametrize("columns", ["1", "40", "400"])
def test_output_does_not_depend_on_the_columns_variable(columns: str) -> None:
    assert kquota("configs", "--help", env={"COLUMNS": columns}) == kquota("configs", "--help")


# Values that a room defines and a help text repeats, because an import of the room would slow every start.
SPELT = {
    "how far from the mean": ("move plan", f"[default: {float(TOLERANCE):.0%}]"),
    "how full a disk": ("move plan", f"[default: {float(DISK_LIMIT):.0%}]"),
    "which Kafka": ("sandbox up", f"[default: {jars.NEWEST}]"),
    "which others": ("sandbox up", " or ".join(v for v, of in jars.RELEASES.items() if of.on_zookeeper)),
    "how many brokers": ("sandbox up", f"1 to {MOST_BROKERS}.  [default: {BROKERS}]"),
    "how many samples": ("quota simulate", f"[default: {SAMPLES}]"),
}


@pytest.mark.parametrize(("command", "said"), SPELT.values(), ids=SPELT)
def test_values_in_help_match_the_values_in_code(command: str, said: str) -> None:
    assert " ".join(said.split()) in " ".join(kquota(*command.split(), "--help").out.split())


WRONG = {
    "no command": ([], "Usage: kquota"),
    "unknown command": (["config"], "No such command 'config'"),
    "unknown option": (["configs", "--entity"], "No such option"),
    "no action": (["configs"], "exactly one action"),
    "two actions": (["configs", "--alter", "--describe"], "exactly one action"),
    "no entity": (["configs", "--describe"], "At least one entity type"),
    "Kafka's old singular": (["configs", "--describe", "--entity-type", "user"], "Use --entity-type users"),
    "another type": (
        ["configs", "--describe", "--entity-type", "x"],
        "must be one of topics, clients",
    ),
    "a type twice": (["configs", "--describe", "--entity-type", "users", "--entity-type", "users"], "Duplicate entity"),
    "an empty name": (["configs", "--describe", "--entity-type", "users", "--entity-name", ""], "is empty"),
    "an empty short name": (["configs", "--describe", "--user", ""], "is empty"),
    "more names than types": (
        ["configs", "--describe", "--entity-type", "users", "--entity-name", "a", "--entity-default"],
        "More entity names",
    ),
    "both forms": (["configs", "--describe", "--user", "a", "--entity-type", "clients"], "should not be used in conj"),
    "alter without a name": (
        ["configs", "--alter", "--entity-type", "users", "--add-config", "producer_byte_rate=1"],
        "An entity-name or default entity must be specified with --alter",
    ),
    "alter nothing": (["configs", "--alter", "--user", "a"], "At least one of --add-config"),
    "an unknown key": (["configs", "--alter", "--user", "a", "--add-config", "x=1"], "Unexpected config names: x."),
    "a rate of 0": (["configs", "--alter", "--user", "a", "--add-config", "producer_byte_rate=0"], "at least 1 byte"),
    "NaN": (["configs", "--alter", "--user", "a", "--add-config", "request_percentage=NaN"], "finite"),
    "infinity": (["configs", "--alter", "--user", "a", "--add-config", "controller_mutation_rate=inf"], "finite"),
    "an unknown unit": (
        ["configs", "--alter", "--user", "a", "--add-config", "producer_byte_rate=5XB"],
        "unknown unit 'XB'",
    ),
    "describe with a change": (
        ["configs", "--describe", "--user", "a", "--add-config", "x=1"],
        'can\'t be used with option "[add-config]"',
    ),
    "no cluster": (["configs", "--describe", "--user", "a"], "no cluster is given"),
    "two clusters": (
        ["configs", "--describe", "--user", "a", "--bootstrap-server", "x:1", "--zookeeper", "x:1"],
        "not both",
    ),
    "no port": (["configs", "--describe", "--user", "a", "--bootstrap-server", "localhost"], "not host:port"),
    "an address with a protocol": (
        ["configs", "--describe", "--user", "a", "--bootstrap-server", "SSL://b:9092"],
        "leave out SSL://",
    ),
    "k=v where a file belongs": (
        ["configs", "--alter", "--user", "a", "--add-config-file", "SCRAM-SHA-512=[password=CANARY]"],
        "--add-config-file: cannot read the given file: No such file",
    ),
    "no ZooKeeper port": (["configs", "--describe", "--user", "a", "--zookeeper", "localhost/x"], "not host:port"),
    "log-dirs without an action": (["log-dirs"], "--describe, --snapshot DIR and --compact DIR"),
    "a broker that is not a number": (["log-dirs", "--describe", "--broker-list", "1,x"], "broker ids"),
    "an empty topic": (["log-dirs", "--describe", "--topic-list", "a,"], "a name is empty"),
    "no topic, which Kafka's tool reads as every topic": (
        ["log-dirs", "--describe", "--topic-list", ""],
        "a name is empty",
    ),
    "no broker, which it reads as every broker": (["log-dirs", "--describe", "--broker-list", ""], "broker ids"),
    "log-dirs on ZooKeeper": (["log-dirs", "--describe"], "no cluster is given"),
}


@pytest.mark.parametrize(("arguments", "reason"), WRONG.values(), ids=WRONG)
def test_wrong_usage_prints_one_line_and_exits_2(arguments: list[str], reason: str) -> None:
    ran = kquota(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert reason in ran.err
    if arguments:
        assert ran.err.count("\n") == 1
        assert ran.err.startswith("kquota: error: ")


@pytest.mark.parametrize("option", ["--bootstrap-server", "--zookeeper"])
def test_an_unreachable_server_prints_one_line_and_exits_1(option: str) -> None:
    ran = kquota("configs", "--describe", "--user", "a", option, "127.0.0.1:1")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("kquota: error: no ")
    assert f"127.0.0.1:1: Connection refused). Check {option}" in ran.err


def test_a_server_that_is_not_kafka_is_reported_within_the_deadline() -> None:
    """The server accepts connections and never answers: the command ends at the deadline."""
    import time

    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        waiting = [
            started("configs", "--describe", "--user", "a", option, address)
            for option in ("--bootstrap-server", "--zookeeper")
        ]
        ended = [(process.communicate()[1], process.returncode) for process in waiting]
    assert [(err.count("\n"), code) for err, code in ended] == [(1, 1), (1, 1)]
    # The bound is the rule (10 s at most to connect), plus start and end of processes on a busy machine.
    assert time.monotonic() - begun < 60


def test_a_full_disk_prints_one_line_and_exits_1() -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "kquota", "--version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ran.returncode, ran.stderr) == (
        1,
        "kquota: error: stdout or a file cannot be written: No space left on device. Check the disk\n",
    )


def test_a_limit_of_the_file_size_names_ulimit(tmp_path: Path) -> None:
    with (tmp_path / "version").open("w") as limited:
        ran = subprocess.run(
            ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", sys.executable, "-m", "kquota", "--version"],
            stdout=limited,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (
        1,
        "kquota: error: stdout or a file cannot be written: File too large. Raise the limit of the file size: "
        "`ulimit -f unlimited`\n",
    )


SIMULATED = ("quota", "simulate", "--producer-byte-rate", "1MB/s", "--load", "2MB/s")


def test_a_command_whose_output_cannot_be_stored_reports_its_own_exit_code() -> None:
    """For example a quota that is set although the file of stdout is incomplete."""
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "kquota", *SIMULATED], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ran.returncode, ran.stderr) == (
        1,
        "kquota: error: stdout cannot be written: No space left on device. The command itself ended with exit code 0\n",
    )


@pytest.mark.parametrize(
    "arguments", [SIMULATED, ("--version",), ("--help",), ("quota", "top", "--help")], ids=" ".join
)
def test_a_reader_that_closes_the_pipe_does_not_change_the_exit_exit_code(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        ran = subprocess.run(
            [sys.executable, "-m", "kquota", *arguments], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ran.returncode, ran.stderr) == (0, "")


NOWHERE = ("--bootstrap-server", "127.0.0.1:1")
STDERR_CLOSED = {
    "wrong usage": (("configs", "--describe"), 2),
    "a group without a command": (("quota",), 2),
    "invalid input": (("quota", "simulate", "--producer-byte-rate", "1", "--load", "2MB/s"), 2),
    "no broker": (("move", "status", *NOWHERE), 1),
    "no broker, and damaged metrics": (("move", "status", *NOWHERE, "--textfile", "FOLDER/damaged.prom"), 1),
    "done": (("quota", "export", "--help"), 0),
}


@pytest.mark.parametrize("both", [False, True], ids=["stderr", "stdout and stderr"])
@pytest.mark.parametrize(("arguments", "code"), STDERR_CLOSED.values(), ids=STDERR_CLOSED)
def test_a_closed_pipe_of_stderr_hides_no_failure(
    arguments: tuple[str, ...], code: int, both: bool, tmp_path: Path
) -> None:
    """For example `2>&1 | head`, or a cron job whose logger has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        assert _exit_code(arguments, tmp_path, closed if both else subprocess.DEVNULL, closed) == code


@pytest.mark.parametrize(("arguments", "code"), STDERR_CLOSED.values(), ids=STDERR_CLOSED)
def test_a_full_disk_behind_stderr_hides_no_failure(arguments: tuple[str, ...], code: int, tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        assert _exit_code(arguments, tmp_path, subprocess.DEVNULL, full) == code


def _exit_code(arguments: Sequence[str], folder: Path, stdout: IO[str] | int, stderr: IO[str]) -> int:
    (folder / "damaged.prom").write_text("# HELP kquota_moves_running x\n{\n")
    words = [each.replace("FOLDER", str(folder)) for each in arguments]
    return subprocess.run(
        [sys.executable, "-m", "kquota", *words], stdout=stdout, stderr=stderr, check=False
    ).returncode


def test_ctrl_c_keeps_its_exit_code_without_a_reader_of_stderr() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        asking = started("configs", "--describe", "--user", "a", "--bootstrap-server", server)
        silent.accept()[0].close()
        assert asking.stderr is not None
        asking.stderr.close()
        asking.send_signal(signal.SIGINT)
        assert asking.wait(60) == 130
        assert asking.stdout is not None
        asking.stdout.close()


def test_a_closed_pipe_prints_no_traceback() -> None:
    piped = subprocess.run(
        f"{sys.executable} -m kquota configs --help | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert (piped.stdout, piped.stderr) == ("Usage: kquota configs [OPTIONS]\n", "")


CLOSED = {
    "stdin": ("quota diff --bootstrap-server x:1 - <&-", 2, "", "kquota: error: stdin: is empty. Give a document"),
    "stdout": ("--version >&-", 0, "", ""),
    "stderr": ("configs --describe 2>&-", 2, "", ""),
}


@pytest.mark.parametrize(("arguments", "code", "out", "err"), CLOSED.values(), ids=CLOSED)
def test_a_stream_that_is_closed_at_the_start(arguments: str, code: int, out: str, err: str) -> None:
    ran = run(["sh", "-c", f"exec {sys.executable} -m kquota {arguments}"])
    assert (ran.code, ran.out) == (code, out)
    assert ran.err.startswith(err)
    assert ran.err.count("\n") == bool(err)


def test_ctrl_c_is_reported_and_exits_130() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        arguments = ["configs", "--describe", "--user", "a", "--bootstrap-server", server]
        asking = started(*arguments)
        silent.accept()[0].close()
        asking.send_signal(signal.SIGINT)
        assert asking.communicate() == ("", "kquota: interrupted\n")
    assert asking.returncode == 130


def test_the_version() -> None:
    assert kquota("--version") == Ran(0, "kquota 0.1.0\n", "")


def test_the_help_of_kquota_repeats_the_summary_of_each_command() -> None:
    below = root().subcommands
    assert {name: summary(command.command.help) for name, command in below.items()} == dict(SUMMARIES)
    assert list(below) == list(SUMMARIES)
