"""A recorded session at the shell: each command with its stdout and exit code, and its stderr in a file next to it.

stdout and exit codes are contracts. stderr is for people: it may change with a reason, except where it mirrors Kafka.
"""

from __future__ import annotations

import difflib
import getpass
import os
import re
import shlex
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kquota.stores.state.process import me
from tests.cli.formats import must_be_promised
from tests.cli.run import Ran, kquota_here

GOLDEN = Path(__file__).parents[1] / "golden"
_MOMENT = re.compile(r"(?!2026-03-01)\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)")
"""The pattern of a time of this run, which does not come from the clock in memory."""


@dataclass
class Transcript:
    """A session. `names` maps texts of this run, such as a port or a folder, to the words that replace them.

    Commands `run` in this process, unless they need a process of their own.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    patterns: Mapping[str, str] = field(default_factory=dict)
    run: Callable[..., Ran] = kquota_here
    _told: list[str] = field(default_factory=list)
    _said: list[str] = field(default_factory=list)

    def kquota(self, command: str) -> Ran:
        """Run `kquota COMMAND`, and record its output and exit code."""
        arguments = shlex.split(command)
        ran = self.run(*arguments)
        assert "Traceback" not in ran.err, ran.err
        must_be_promised(arguments, ran.out)
        self._told.append(f"$ kquota {command}\n{ran.out}--- exit code {ran.code}\n")
        self._said.append(f"$ kquota {command}\n{ran.whole_err}")
        return ran

    def note(self, text: str) -> None:
        """Record an event between two commands."""
        self._told.append(f"# {text}\n")
        self._said.append(f"# {text}\n")

    def must_be(self, name: str) -> None:
        """Compare the session with the file, character by character. REWRITE_GOLDEN=1 writes the file again, for
        review.
        """
        self._must_be(f"{name}.txt", self._told)
        self._must_be(f"{name}.stderr.txt", self._said)

    def _must_be(self, file: str, lines: Sequence[str]) -> None:
        seen = self._normal("\n".join(lines))
        path = GOLDEN / file
        if os.environ.get("REWRITE_GOLDEN") == "1":
            path.write_text(seen)
        known = path.read_text()
        assert seen == known, "\n".join(difflib.unified_diff(known.splitlines(), seen.splitlines(), lineterm=""))

    def _normal(self, text: str) -> str:
        for found, word in sorted(self.names.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(found, word)
        for pattern, word in self.patterns.items():
            text = re.sub(pattern, word, text)
        user, host, pid = re.escape(getpass.getuser()), re.escape(socket.gethostname()), me().pid
        for pattern, word in (
            (rf'"user": "{user}", "host": "{host}", "pid": {pid}\b', '"user": "USER", "host": "HOST", "pid": PID'),
            (rf'"user": "{user}", "host": "{host}"', '"user": "USER", "host": "HOST"'),
            (rf"\t{user}\t{host}\t", "\tUSER\tHOST\t"),
            (rf"\b{user}@{host}, pid {pid}\b", "USER@HOST, pid PID"),
            (rf"\b{user}@{host}\b", "USER@HOST"),
            (rf"\bpid {pid} on {host} as {user}\b", "pid PID on HOST as USER"),
        ):
            text = re.sub(pattern, word, text)
        return _MOMENT.sub("NOW", text)
