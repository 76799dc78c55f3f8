"""A signal at any moment of the start ends kquota with one line, no traceback, and the exit code of the signal."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

LINES = {
    signal.SIGINT: "kquota: interrupted\n",
    signal.SIGTERM: "kquota: stopped by SIGTERM\n",
    signal.SIGHUP: "kquota: stopped by SIGHUP\n",
}
START = """
import os, sys
number, at = map(int, sys.argv[1:3])
sys.argv[1:] = sys.argv[3:]
imports = 0

def hook(event, _):
    global imports
    if event == "import":
        imports += 1
        if imports == at:
            os.kill(os.getpid(), number)

import signal  # Its import is that of the entry point.
import kquota.__main__ as entry
at += imports
sys.addaudithook(hook)
entry.main()
"""
COMMAND = ("configs", "--bootstrap-server", "127.0.0.1:1", "--describe", "--entity-type", "users")


@pytest.mark.parametrize("number", LINES, ids=lambda number: number.name)
@pytest.mark.parametrize("at", [1, 20, 60, 120, 180, 240])
def test_a_signal_during_the_start_ends_with_one_line(number: signal.Signals, at: int) -> None:
    """The signal comes at the import with this number: the command makes more than 240 imports."""
    ran = subprocess.run(
        [sys.executable, "-c", START, str(int(number)), str(at), *COMMAND],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (128 + number, "", LINES[number])


def test_the_entry_point_imports_almost_nothing_before_it_handles_signals() -> None:
    """A Ctrl-C before that ends with a traceback of Python, which no program can prevent."""
    program = """
import re, sys  # The script of pip imports these.
before = set(sys.modules)
import kquota.__main__
print(*sorted(set(sys.modules) - before))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert set(ran.stdout.split()) == {"__future__", "gc", "kquota", "kquota.__main__", "signal"}


def test_an_ignored_signal_stays_ignored() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", START, str(int(signal.SIGHUP)), "60", "--version"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("kquota ")


def test_a_signal_that_python_turns_into_another_error_is_still_a_signal() -> None:
    """During `__set_name__` the exception of a signal becomes RuntimeError, during the import of C code ImportError."""
    program = """
import signal
from kquota.cli import main

def wrapped(**_):
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt as error:
        raise RuntimeError("Error calling __set_name__") from error

main.app = wrapped
main.main()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (143, "", LINES[signal.SIGTERM])
