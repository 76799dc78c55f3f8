"""Runs kquota like a script: a process with its exit code, stdout and stderr, all of which each test checks."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import typer
from typer.main import get_command

from tests import canary
from tests.cli.formats import must_be_promised

_TARGET = re.compile(r"^kquota: target cluster: .*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of one process. `err` omits the line that names the target cluster, and `whole_err` has all of stderr.

    `tests/cli/test_target_cluster.py` tests this line for every command, so other tests do not repeat it.
    """

    code: int
    out: str
    err: str
    whole_err: str = field(default="", compare=False)


def ended(code: int, out: str, err: str) -> Ran:
    """Return the result of a process with this stderr."""
    return Ran(code, out, _TARGET.sub("", err), err)


def run(command: list[str], env: dict[str, str] | None = None, stdin: str = "") -> Ran:
    """Run any command without a terminal."""
    done = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **(env or {})},
        check=False,
    )
    return ended(done.returncode, done.stdout, done.stderr)


def kquota(*arguments: str, env: dict[str, str] | None = None) -> Ran:
    """Run `kquota ARGUMENTS…`. Fail on a traceback, and on a JSON key that docs/formats.md does not list."""
    ran = run([sys.executable, "-m", "kquota", *arguments], {**(env or {}), **canary.environment(arguments)})
    assert "Traceback" not in ran.err, ran.err
    assert canary.leaks(ran.out, ran.err) == []
    must_be_promised(arguments, ran.out)
    return ran


def started(*arguments: str) -> subprocess.Popen[str]:
    """Start `kquota ARGUMENTS…` as a process that runs in parallel to the test."""
    return _going_on("-m", "kquota", *arguments)


def python(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a program that imports kquota and runs in parallel to the test."""
    return _going_on("-c", program, *arguments)


def _going_on(*words: str) -> subprocess.Popen[str]:
    # A background job of a shell ignores Ctrl-C, and so do its children. This process receives it as on a terminal.
    hears = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    command = [sys.executable, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hears)


def changes_of(move: Callable[..., Ran]) -> list[dict[str, Any]]:
    """Return the changes of the throttle of the only run, as `kquota move report` shows them. `move` runs `kquota
    move`.
    """
    (run,) = json.loads(move("report", "--output", "json").out)["runs"]
    found: list[dict[str, Any]] = json.loads(move("report", run["run"], "--output", "json").out)["changes"]
    return found


def kquota_here(*arguments: str) -> Ran:
    """Run `kquota ARGUMENTS…` in this process, because a random sequence of processes would take minutes."""
    from kquota.cli.main import app, main

    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["kquota", *arguments])
        # A process registers one command. Here each call would build the commands of all previous calls.
        patch.setattr(app, "registered_commands", [])
        patch.setattr(app, "registered_groups", [])
        patch.setattr("typer.main.get_command", _parser)
        try:
            main()
        except SystemExit as exited:
            code = int(exited.code or 0)
    assert canary.leaks(out.getvalue(), err.getvalue()) == []
    return ended(code, out.getvalue(), err.getvalue())


def _parser(app: typer.Typer) -> object:
    """Return the Click command of the registered commands. Typer needs up to 6 ms to build it, for `move`."""
    return _parser_of(app, *(group.typer_instance for group in app.registered_groups))


@functools.cache
def _parser_of(app: typer.Typer, *_: typer.Typer | None) -> object:
    """Return the parser of these commands, which are the key of the cache. They are constants of modules, and parsing a
    command line changes none of them."""
    return get_command(app)
