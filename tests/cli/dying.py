"""A kquota that dies or stops at its n-th step: a request to a broker or to ZooKeeper, or a line of its journal.

The real code runs in a process that is forked from one with all modules loaded, because thirty starts would take half a
minute.
"""

from __future__ import annotations

import enum
import multiprocessing
import os
import signal
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kquota.stores.admin.connection import Wire
from kquota.stores.admin.moves import WireMoves
from kquota.stores.state import runs
from kquota.stores.zookeeper.moves import ZooKeeperMoves
from kquota.stores.zookeeper.znodes import Znodes
from tests.cli.run import Ran, ended

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "pytest",
        "kquota.cli.reassign_partitions.run",
        "kquota.cli.reassign_partitions.execution",
        "kquota.cli.reassign_partitions.cancellation",
        "kquota.cli.move.status",
        "kquota.cli.move.recovery",
        "kquota.stores.record.topic",
        "kquota.stores.record.znodes",
        "kquota.stores.admin.topic_log",
        __name__,
    ]
)
_REQUESTS = ((Wire, "ask"), (Wire, "ask_each"), (Znodes, "commit"), (Znodes, "read_all"))
_SUBMITS = ((WireMoves, "submit"), (ZooKeeperMoves, "submit"))
_LONGEST = 120
"""Seconds that no command in these tests needs."""


class Death(enum.Enum):
    """The moment at which the process dies. Only a journal line can be written in part: a TORN request is an AFTER."""

    BEFORE = "before the step"
    TORN = "in the middle of the step"
    AFTER = "after the step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doom:
    """The step, counted from 1, and the kind of death: kill -9, or a SIGSTOP from which the process can continue.

    With `submitting` only the submission of moves to the cluster counts as a step.
    """

    n: int
    death: Death
    signal: signal.Signals = signal.SIGKILL
    submitting: bool = False


class Mortal:
    """`kquota ARGUMENTS…` as a process that runs in parallel to the test."""

    def __init__(self, *arguments: str, folder: Path, doom: Doom | None = None) -> None:
        self._texts = folder / f"{uuid.uuid4().hex}.out", folder / f"{uuid.uuid4().hex}.err"
        out, err = map(str, self._texts)
        self._process = _FORKS.Process(target=_live, args=(arguments, out, err, doom))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def stopped(self) -> bool:
        """True if a SIGSTOP has stopped it, as the kernel reports."""
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state not in "ZX", "the command ended before it could be stopped"
        return state == "T"

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> Ran:
        """Waits for its end. The exit code of a killed process is -9."""
        self._process.join(_LONGEST)
        assert self._process.exitcode is not None, "the command does not end"
        out, err = self._texts
        ran = ended(self._process.exitcode, out.read_text(), err.read_text())
        assert "Traceback" not in ran.err, ran.err
        return ran


def run(*arguments: str, folder: Path, doom: Doom | None = None) -> Ran:
    """Runs `kquota ARGUMENTS…` in a process. If the doom is reached, the exit code is -9."""
    return Mortal(*arguments, folder=folder, doom=doom).end()


def _live(arguments: tuple[str, ...], out: str, err: str, doom: Doom | None) -> None:
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    if doom is not None:
        _doom(doom)
    sys.argv = ["kquota", *arguments]
    from kquota.cli.main import main

    main()


def _doom(doom: Doom) -> None:
    """Counts the real steps of the real code, and dies at the given one."""
    steps = 0

    def step(real: Callable[..., Any], torn: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps != doom.n:
                return real(*arguments)
            if doom.death is Death.BEFORE:
                os.kill(os.getpid(), doom.signal)
                return real(*arguments)
            answer = (torn if doom.death is Death.TORN else real)(*arguments)
            os.kill(os.getpid(), doom.signal)
            return answer

        return counted

    for owner, name in _SUBMITS if doom.submitting else _REQUESTS:
        real = getattr(owner, name)
        setattr(owner, name, step(real, real))
    if doom.submitting:
        return
    runs._append = step(runs._append, lambda descriptor, data: os.write(descriptor, data[: len(data) // 2]))
