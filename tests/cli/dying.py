"""A kquota that dies or stops at its n-th step: a request to a broker or to ZooKeeper, a line of its journal, or the
n-th of the writes that a test names.

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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kafka.protocol.admin.configs import IncrementalAlterConfigsRequest
from kafka.protocol.admin.topics import AlterPartitionReassignmentsRequest

from kquota.entity_types import ENTITIES
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.moves import WireMoves
from kquota.stores.state import runs
from kquota.stores.zookeeper.moves import ZooKeeperMoves
from kquota.stores.zookeeper.znode import Create, Delete, SetData
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
        "kquota.cli.reassign_partitions.verification",
        "kquota.cli.move.recovery",
        "kquota.cli.move.adjust.run",
        "kquota.cli.throttle.set.run",
        "kquota.cli.throttle.clear.run",
        "kquota.cli.throttle.doctor.run",
        "kquota.cli.record.run",
        "kquota.cli.topics.run",
        "kquota.cli.leader_election.run",
        "kquota.cli.configs.resources",
        "kquota.cli.quota.run",
        "kquota.cli.quota.probe.run",
        "kquota.cli.log_dirs.run",
        "kquota.stores.record.sharing",
        "kquota.stores.admin.elections",
        "kquota.stores.record.topic",
        "kquota.stores.record.znodes",
        "kquota.stores.admin.topic_log",
        __name__,
    ]
)
_REQUESTS = ((Wire, "ask"), (Wire, "ask_each"), (Znodes, "commit"), (Znodes, "read_all"))
_RENAMES = ((os, "replace"),)
_SUBMITS = ((WireMoves, "submit"), (ZooKeeperMoves, "submit"))
_CONFIGS: Final = {row.wire.code: kind for kind, row in ENTITIES.items() if row.wire is not None}
_LONGEST = 120
"""A time limit in seconds. No command in these tests needs so long."""
SUBMISSION: Final = "/admin/reassign_partitions"
"""A submission of moves, as `Doom.writes` names it."""
RENAMED: Final = "a file that gets its name"
"""The end of the write of a file, as `Doom.writes` names it."""


class Death(enum.Enum):
    """The moment at which the process dies. Only a journal line, and a request to several brokers of which only the
    first one receives it, can be written in part: any other TORN request is an AFTER.
    """

    BEFORE = "before the step"
    TORN = "in the middle of the step"
    AFTER = "after the step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doom:
    """The step, counted from 1, and the kind of death: kill -9, or a SIGSTOP from which the process can continue.

    With `submitting` only the submission of moves to the cluster counts as a step. With `writes`, only these writes do:
    requests to brokers by their names (`CreateTopics`), znodes and what is below them (`/kquota/record`), or RENAMED.
    The config of a topic or of a broker, and SUBMISSION, have the path of their znode over brokers too
    (`/config/brokers`). `first` prepares the process.
    """

    n: int
    death: Death
    signal: signal.Signals = signal.SIGKILL
    submitting: bool = False
    writes: tuple[str, ...] = ()
    first: Callable[[], None] | None = None


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
        """Return True if the kernel reports that a SIGSTOP has stopped the process."""
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state not in "ZX", "the command ended before it could be stopped"
        return state == "T"

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> Ran:
        """Wait for the end of the process. The exit code of a killed process is -9."""
        self._process.join(_LONGEST)
        assert self._process.exitcode is not None, "the command does not end"
        out, err = self._texts
        ran = ended(self._process.exitcode, out.read_text(), err.read_text())
        assert "Traceback" not in ran.err, ran.err
        return ran


def run(*arguments: str, folder: Path, doom: Doom | None = None) -> Ran:
    """Run `kquota ARGUMENTS…` in a process. If the doom is reached, the exit code is -9."""
    return Mortal(*arguments, folder=folder, doom=doom).end()


def _live(arguments: tuple[str, ...], out: str, err: str, doom: Doom | None) -> None:
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    if doom is not None:
        if doom.first is not None:
            doom.first()
        _doom(doom)
    sys.argv = ["kquota", *arguments]
    from kquota.cli.main import main

    main()


def _doom(doom: Doom) -> None:
    """Count the real steps of the real code, and die at the given step."""
    steps = 0

    def counts(arguments: Iterable[Any]) -> bool:
        return doom.writes in ((), (RENAMED,)) or any(name.startswith(doom.writes) for name in _written(arguments))

    def step(real: Callable[..., Any], torn: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            nonlocal steps
            steps += counts(arguments)
            if steps != doom.n or not counts(arguments):
                return real(*arguments)
            if doom.death is Death.BEFORE:
                os.kill(os.getpid(), doom.signal)
                return real(*arguments)
            answer = (torn if doom.death is Death.TORN else real)(*arguments)
            os.kill(os.getpid(), doom.signal)
            return answer

        return counted

    for owner, name in _RENAMES if doom.writes == (RENAMED,) else _SUBMITS if doom.submitting else _REQUESTS:
        real = getattr(owner, name)
        setattr(owner, name, step(real, _to_the_first(real) if name == "ask_each" else real))
    if doom.submitting or doom.writes:
        return
    runs._append = step(runs._append, lambda descriptor, data: os.write(descriptor, data[: len(data) // 2]))


def _to_the_first(ask_each: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement that sends only the first broker its request."""
    return lambda wire, requests, *more: ask_each(wire, dict([*requests.items()][:1]), *more)


def _written(arguments: Iterable[Any]) -> Iterator[str]:
    """Yield the names of the writes in the arguments of a step, as in `Doom.writes`."""
    for argument in arguments:
        match argument:
            case Mapping():
                yield from _written(argument.values())
            case list() | tuple():
                yield from _written(argument)
            case Create() | SetData() | Delete():
                yield argument.path
            case IncrementalAlterConfigsRequest():
                for resource in argument.resources:
                    yield f"/config/{_CONFIGS[resource.resource_type]}/{resource.resource_name}"
            case AlterPartitionReassignmentsRequest():
                yield SUBMISSION
            case _:
                yield str(getattr(type(argument), "name", ""))
