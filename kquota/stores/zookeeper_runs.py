"""Runs in the cluster's own ZooKeeper, beside their journals: seen from every host, and a fence against a paused twin.

/kquota/lock is ephemeral and says who writes; /kquota/runs/<id> holds a run, and its version is the fencing token.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from kquota.errors import Busy, KquotaError, Refused
from kquota.reassign.run import Run
from kquota.stores import journal
from kquota.stores.runs import RunFiles, held_by, holder
from kquota.stores.znode import Check, Create, Delete, Node, Operation, SetData
from kquota.stores.znodes import Znodes

_ROOT: Final = "/kquota"
_RUNS: Final = "/kquota/runs"
_LOCK: Final = "/kquota/lock"
_PLAIN_BYTES: Final = 50_000
_MOST_BYTES: Final = 200_000
"""A transaction holds 1 MB, and the throttle is in it, too. The plan of a larger run is on its own host only."""


class Fence(Protocol):
    """What every write of a run has to carry along."""

    def operations(self) -> Sequence[Operation]:
        """To be done in the same transaction. Raises Busy when another kquota has taken over."""

    def committed(self) -> None:
        """That transaction was done."""


class Open:
    """No fence: for what holds nothing and runs nothing. Implements `Fence`."""

    def operations(self) -> Sequence[Operation]:
        """Nothing to carry along."""
        return ()

    def committed(self) -> None:
        """Nothing to note."""


class ZooKeeperRuns:
    """Journals, and what ZooKeeper tells of runs that other hosts began. Implements `Runs` and `Fence`.

    A record's znode is written in the transaction of whatever write of the run comes next, and at the end of `hold`.
    """

    def __init__(self, znodes: Znodes, files: RunFiles) -> None:
        self._znodes = znodes
        self._files = files
        self._lock: bytes | None = None
        self._versions: dict[str, int] = {}
        self._staged: dict[str, bytes | None] = {}

    @contextmanager
    def hold(self, doing: str) -> Iterator[None]:
        """Keep every other kquota of this cluster from writing. Raises Busy, naming who holds it."""
        with self._files.hold(doing):
            self._lock = self._locked(json.dumps(holder(doing)).encode())
            try:
                yield
                self._flush()
            finally:
                self._unlocked()

    def unfinished(self) -> tuple[Run, ...]:
        """Oldest first, those of other hosts, too. Raises Refused when a record cannot be understood.

        A kquota that died between the end in its journal and that in ZooKeeper left a record there: it goes.
        """
        runs = {run.id: run for run in self._files.every()}
        ended = []
        for run, steps in self._told():
            if run.id not in runs or self._files.steps(runs[run.id]) < steps:
                runs[run.id] = run
            elif runs[run.id].finished is not None:
                ended.append(run.id)
        if ended and self._lock is not None:
            self._staged |= dict.fromkeys(ended)
            self._flush()
        return tuple(sorted((r for r in runs.values() if r.finished is None), key=lambda run: (run.begun, run.id)))

    def begin(self, run: Run) -> None:
        """Raises Busy when there is a record of this id, Refused when the folder cannot be written."""
        self._files.begin(run)
        self._stage(run)

    def update(self, run: Run) -> None:
        """A run that is finished is no longer ZooKeeper's business; its journal stays."""
        self._files.update(run)
        self._stage(run)
        if run.finished is not None:
            self._flush()

    def place(self, run: Run) -> str:
        """The path of its journal on this host."""
        return self._files.place(run)

    def operations(self) -> Sequence[Operation]:
        """A check of our lock, and every record that has changed. None without `hold`; raises Busy as `Fence` says."""
        names = sorted({*self._versions, *self._staged})
        if self._lock is None or not names:
            return ()
        paths = {name: f"{_RUNS}/{name}" for name in names}
        nodes = self._znodes.read_all([_LOCK, _ROOT, _RUNS, *paths.values()])
        self._must_hold(nodes[_LOCK])
        done: list[Operation] = [Check(path=_LOCK, version=0)]
        done += [Create(path=path, data=b"") for path in (_RUNS,) if nodes[path] is None]
        for name, path in paths.items():
            done += self._one(name, path, nodes[path])
        return done

    def committed(self) -> None:
        """From here on each record is checked against the version that it has now."""
        for name, data in self._staged.items():
            if data is None:
                self._versions.pop(name, None)
            else:
                self._versions[name] = self._versions.get(name, -1) + 1
        self._staged.clear()

    def _one(self, name: str, path: str, node: Node | None) -> list[Operation]:
        """What the fence does with one record. Raises Busy where another kquota has written it."""
        held = self._versions.get(name)
        if (None if node is None else node.version) != held:
            taken = _document(node).get("holder", {}) if node is not None else {}
            raise Busy(f"run {name} was taken over by {held_by(taken)}: nothing more is written here")
        if name not in self._staged:
            return [] if held is None else [Check(path=path, version=held)]
        data = self._staged[name]
        if data is None:
            return [] if held is None else [Delete(path=path, version=held)]
        return [Create(path=path, data=data) if held is None else SetData(path=path, data=data, version=held)]

    def _stage(self, run: Run) -> None:
        if run.finished is None:
            self._staged[run.id] = self._encoded(run)
        elif run.id in self._versions:
            self._staged[run.id] = None
        else:
            self._staged.pop(run.id, None)

    def _flush(self) -> None:
        """Write what no write of the run has carried along."""
        if self._staged and (operations := self.operations()):
            if not self._znodes.committed(operations):
                self.operations()  # raises Busy for the one who was faster
                raise Busy("another kquota writes to the same runs; try again later")
            self.committed()

    def _encoded(self, run: Run) -> bytes:
        document = {"version": 1, "steps": self._files.steps(run), "holder": holder("move"), "run": journal.first(run)}
        data = json.dumps(document, separators=(",", ":")).encode()
        data = data if len(data) <= _PLAIN_BYTES else gzip.compress(data, mtime=0)
        return data if len(data) <= _MOST_BYTES else json.dumps({**document, "run": None}).encode()

    def _told(self) -> Iterator[tuple[Run, int]]:
        """The runs that ZooKeeper tells of, each with how many steps it has. Their versions are known from here on."""
        paths = {name: f"{_RUNS}/{name}" for name in self._znodes.children(_RUNS)}
        nodes = self._znodes.read_all(paths.values())
        for name, path in paths.items():
            node = nodes[path]
            if node is None:
                continue
            self._versions.setdefault(name, node.version)
            document = _document(node)
            if document.get("run") is not None:
                yield journal.replay([document["run"]], f"ZooKeeper: {path}"), int(document["steps"])

    def _locked(self, data: bytes) -> bytes:
        """Take the lock, also from a process of this host that is dead and whose session has yet to end."""
        for _ in range(2):
            if self._znodes.read(_ROOT) is None:
                self._znodes.committed([Create(path=_ROOT, data=b"")])
            if self._znodes.committed([Create(path=_LOCK, data=data, ephemeral=True)]):
                return data
            node = self._znodes.read(_LOCK)
            told = _document(node) if node is not None else {}
            if node is not None and not _dead(told):
                break
            if node is not None:
                self._znodes.committed([Delete(path=_LOCK, version=node.version)])
        raise Busy(f"{held_by(told)} holds this cluster; try again later")

    def _unlocked(self) -> None:
        """Let go of the lock at once, unless it is another's by now; at the latest it ends with the session."""
        mine, self._lock = self._lock, None
        with contextlib.suppress(KquotaError):
            node = self._znodes.read(_LOCK)
            if node is not None and node.data == mine:
                self._znodes.committed([Delete(path=_LOCK, version=node.version)])

    def _must_hold(self, node: Node | None) -> None:
        if node is None or node.data != self._lock:
            by = "nobody" if node is None else held_by(_document(node))
            raise Busy(
                f"the session with ZooKeeper ended and its lock with it; held by {by} now: nothing more is written"
            )


def _dead(told: Mapping[str, Any]) -> bool:
    """Whether the holder was a process of this host that is no more; we hold this folder's lock, so it is not ours."""
    if told.get("host") != socket.gethostname() or not isinstance(told.get("pid"), int):
        return False
    try:
        os.kill(told["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _document(node: Node | None) -> dict[str, Any]:
    """A record, {} where there is none. Raises Refused for what no kquota wrote, or a newer one did."""
    if node is None:
        return {}
    try:
        found = json.loads(gzip.decompress(node.data) if node.data[:2] == b"\x1f\x8b" else node.data)
    except (OSError, ValueError, EOFError) as error:
        raise Refused(f"ZooKeeper: a znode under {_ROOT} holds no record of kquota; look at it by hand") from error
    if not isinstance(found, dict) or found.get("version", 1) != 1:
        raise Refused(f"ZooKeeper: a record under {_ROOT} is of a newer kquota; use that one")
    return found
