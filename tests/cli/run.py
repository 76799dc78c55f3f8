"""Run kquota as a script does: a process, its exit code, its stdout and its stderr, all three always looked at."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import pytest

from tests.cli.formats import must_be_promised


@dataclass(frozen=True, slots=True)
class Ran:
    """How one process ended."""

    code: int
    out: str
    err: str


def run(command: list[str], env: dict[str, str] | None = None, stdin: str = "") -> Ran:
    """Any command, without a terminal."""
    done = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **(env or {})},
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def kquota(*arguments: str, env: dict[str, str] | None = None) -> Ran:
    """`kquota ARGUMENTS…`; a traceback is never an answer, and a document has no key that is nowhere promised."""
    ran = run([sys.executable, "-m", "kquota", *arguments], env)
    assert "Traceback" not in ran.err, ran.err
    must_be_promised(arguments, ran.out)
    return ran


def started(*arguments: str) -> subprocess.Popen[str]:
    """`kquota ARGUMENTS…`, going on while the test does."""
    return _going_on("-m", "kquota", *arguments)


def python(program: str, *arguments: str) -> subprocess.Popen[str]:
    """A program that imports kquota, going on while the test does."""
    return _going_on("-c", program, *arguments)


def _going_on(*words: str) -> subprocess.Popen[str]:
    # A run in a shell's background is deaf to Ctrl-C, and so are its children: as from a terminal, this one hears it.
    hears = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    command = [sys.executable, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hears)


def kquota_here(*arguments: str) -> Ran:
    """`kquota ARGUMENTS…` in this process: the many calls of a random sequence would be processes for minutes."""
    from kquota.cli import suggestion
    from kquota.cli.main import app, main

    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["kquota", *arguments])
        # A process registers the command that it runs once; here each call would build those of all calls before it.
        patch.setattr(app, "registered_commands", [])
        patch.setattr(app, "registered_groups", [])
        patch.setattr(suggestion, "GIVEN", {})
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Ran(code, out.getvalue(), err.getvalue())
