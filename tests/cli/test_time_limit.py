"""--timeout in real processes: a server that never answers, and a process that does not react to a signal."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from kquota.cli.unattended import GRACE_SECONDS

ALLOWED = 30.0
"""Seconds beyond the limit on a busy machine. Without the limit, each command would take even longer."""
COMMANDS = {
    "status": ("move", "status"),
    "resume": ("move", "resume"),
    "doctor": ("throttle", "doctor"),
    "all runs": ("reassign-partitions", "--verify", "--all-runs"),
}


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and never answers, like a broker that was stopped."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def ended(*words: str, blocked: bool = False) -> tuple[subprocess.CompletedProcess[str], float]:
    """The process and its seconds. If SIGALRM is `blocked`, only the watchdog can end it."""
    began = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-m", "kquota", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])) if blocked else None,
    )
    return ran, time.monotonic() - began


@pytest.mark.parametrize("option", ["--bootstrap-server", "--zookeeper"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_in_its_time_although_no_server_answers(silent: str, command: str, option: str) -> None:
    ran, seconds = ended(*COMMANDS[command], option, silent, "--quiet", "--timeout", "500ms")
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (75, "", 1), ran
    assert "--timeout 500ms: the command did not end in time" in ran.stderr
    assert seconds < 0.5 + GRACE_SECONDS + ALLOWED


def test_a_process_that_does_not_hear_the_alarm_ends_a_little_later(silent: str) -> None:
    ran, seconds = ended("move", "status", "--bootstrap-server", silent, "--timeout", "500ms", blocked=True)
    assert (ran.returncode, ran.stdout) == (75, "")
    assert ran.stderr.startswith("kquota: error: --timeout 500ms")
    assert 0.5 + GRACE_SECONDS <= seconds < 0.5 + GRACE_SECONDS + ALLOWED
