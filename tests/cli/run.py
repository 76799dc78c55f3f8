"""Run kquota as a script does: a process, its exit code, its stdout and its stderr, all three always looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass


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
    """`kquota ARGUMENTS…`; a traceback is never an answer."""
    ran = run([sys.executable, "-m", "kquota", *arguments], env)
    assert "Traceback" not in ran.err, ran.err
    return ran
