"""The shared record in the cluster's ZooKeeper: `/kquota/runs/<id>`, written in one transaction with the throttle.

`/kquota/parts/<id>` has the large fields of a run, which are written before the run. `/kquota/lock` is ephemeral and
names the process that writes. A new lock always has version 0, so each holder also increments the version of `/kquota`.
This version and the versions of the runs' znodes are the fencing tokens.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from kquota.errors import AGAIN_LATER, Busy, KquotaError, Unreachable
from kquota.reassign.run import Run
from kquota.stores.record import sheet
from kquota.stores.record.shared import MAYBE_LOST, ZOOKEEPER, ended
from kquota.stores.record.sheet import Unreadable
from kquota.stores.state import run_fields
from kquota.stores.state.process import Holder, holder, holder_of
from kquota.stores.zookeeper.znode import Check, Create, Delete, Node, SetData, ZnodeOperation, json_in
from kquota.stores.zookeeper.znodes import Znodes

ROOT: Final = "/kquota"
LOCK: Final = "/kquota/lock"
_RUNS: Final = "/kquota/runs"
_PARTS: Final = "/kquota/parts"
_TRIES: Final = 4
"""Attempts to take the lock. An attempt fails if another process takes or releases the lock at the same time, or if
`/kquota` is missing and must first be created.
"""
_NEW_SESSION_LOOKS: Final = 10
_LOOK_SECONDS: Final = 0.2
_STAGED_BYTES: Final = 200_000
"""The maximum size in bytes of the sheets of several runs in one transaction, which may also contain configs."""
_ENDED: Final = 20
"""The number of newest ended runs to keep, so that other hosts see their end."""


class ZnodeLock:
    """`/kquota/lock`: an ephemeral znode that names its holder and ends with the session. Implements `Fence`."""

    def __init__(self, znodes: Znodes) -> None:
        self._znodes = znodes
        self._mine: bytes | None = None
        self._term = 0
        """The version of `/kquota` since this process took the lock."""

    @property
    def held(self) -> bool:
        """True if this process has taken the lock."""
        return self._mine is not None

    @contextmanager
    def hold(self, doing: str, *, take_over: bool) -> Iterator[None]:
        """Hold the lock until the context ends. Raises Busy, which names the holder, if another process holds the lock
        and may be alive. With `take_over`, takes the lock from that process.

        Also raises Busy if other processes change the lock during each of `_TRIES` attempts.
        """
        self._mine = self._taken(json.dumps(holder(doing).written()).encode(), take_over=take_over)
        try:
            yield
        finally:
            self._release()

    def operations(self) -> Sequence[ZnodeOperation]:
        if self._mine is None:
            return ()
        self.check(self._znodes.read(LOCK))
        return self.fence

    def committed(self) -> None:
        return None

    @property
    def fence(self) -> tuple[ZnodeOperation, ...]:
        """The operations that fail unless this process still holds the lock, and has held it without a gap."""
        return Check(path=LOCK, version=0), Check(path=ROOT, version=self._term)

    def check(self, node: Node | None) -> None:
        """Raise Busy if this process took the lock and `node` is not its lock."""
        if self._mine is not None and (node is None or node.data != self._mine):
            now = "now free" if node is None else f"now held by {_holder(node)}"
            raise Busy(
                "this kquota lost its lock in ZooKeeper, because its session ended or another kquota took over. "
                f"The lock is {now}. Nothing more is written"
            )

    def _taken(self, data: bytes, *, take_over: bool) -> bytes:
        for _ in range(_TRIES):
            nodes = self._znodes.read_all([ROOT, LOCK])  # `/kquota` is read first, because a later holder changes it
            root, node = nodes[ROOT], nodes[LOCK]
            if root is None:
                self._znodes.committed([Create(path=ROOT, data=b"")])
                continue
            if node is not None and not (take_over or _holder(node).dead):
                raise Busy(f"{_holder(node)} holds the lock of this cluster", AGAIN_LATER)
            old = [] if node is None else [Delete(path=LOCK, version=node.version)]
            term = SetData(path=ROOT, data=root.data, version=root.version)
            if self._znodes.committed([term, *old, Create(path=LOCK, data=data, ephemeral=True)]):
                self._term = root.version + 1
                return data
        raise Busy("other kquota processes keep taking the lock of this cluster", AGAIN_LATER)

    def _release(self) -> None:
        """Release the lock. If this fails, the end of the session releases it."""
        mine, self._mine = self._mine, None
        with contextlib.suppress(KquotaError):
            node = self._znodes.read(LOCK)
            if node is not None and node.data == mine:
                self._znodes.committed([Check(path=ROOT, version=self._term), Delete(path=LOCK, version=node.version)])


class ZnodeRecord:
    """The runs in znodes. Implements `Shared` and `Fence`.

    The transaction of the next write, or `flush`, writes each run that was `put`. If the runs are too large for one
    transaction, `put` first writes the runs of earlier calls.
    """

    identity = ZOOKEEPER
    gap = None  # nothing deletes znodes except kquota and an operator
    late_seconds = 0.0  # every write is a transaction that checks the lock
    place = f"ZooKeeper ({_RUNS})"
    keeps = _ENDED

    def __init__(self, znodes: Znodes, cluster_id: str) -> None:
        self._znodes = znodes
        self._cluster_id = cluster_id
        self._lock = ZnodeLock(znodes)
        self._versions: dict[str, int] = {}
        self._parts: dict[str, set[str]] = {}
        """The known names of the chunks in each run's parts. Other kquotas may add more chunks."""
        self._staged: dict[str, bytes | None] = {}
        self.unreadable: dict[str, str] = {}

    @contextmanager
    def lock(self, doing: str, *, take_over: bool) -> Iterator[None]:
        with self._lock.hold(doing, take_over=take_over):
            self._versions.clear()
            self._staged.clear()
            try:
                yield
            except MAYBE_LOST:
                self._must_not_be_taken_over()
                raise

    def _must_not_be_taken_over(self) -> None:
        """After the loss of the session, raise Busy if this process no longer holds the lock.

        Does nothing if ZooKeeper does not answer in the new session of kazoo.
        """
        for _ in range(_NEW_SESSION_LOOKS):
            with contextlib.suppress(Unreachable):
                self.operations()
                self._lock.check(self._znodes.read(LOCK))
                return
            time.sleep(_LOOK_SECONDS)

    def writer(self) -> str | None:
        node = self._znodes.read(LOCK)
        return None if node is None or _holder(node).dead else str(_holder(node))

    def must_hold(self) -> None:
        self.flush()
        self._lock.check(self._znodes.read(LOCK))

    def keep_alive(self) -> None:
        """Do nothing, because kazoo keeps the session alive."""

    def runs(self, *, whole: bool = False) -> Mapping[str, Run]:
        paths = {name: f"{_RUNS}/{name}" for name in self._znodes.children(_RUNS)}
        nodes = self._znodes.read_all([*paths.values(), LOCK])
        self._lock.check(nodes[LOCK])
        self.unreadable = {}
        found: dict[str, Run] = {}
        for name, path in paths.items():
            node = nodes[path]
            if node is None:
                continue
            self._versions.setdefault(name, node.version)
            try:
                found[name] = self._read(name, node, whole=whole)
            except Unreadable as error:
                self.unreadable[name] = str(error)
        if self._lock.held:
            self._clear_away(found)
        return found

    def put(self, run: Run) -> None:
        stored = self._listed(run.id)
        # Other hosts only need to see the end of a large run, so its plans and values are left out.
        whole = run.finished is None or not stored
        encoded = sheet.encode(run, self._cluster_id, lambda digest: f"{digest}-0" in stored, whole=whole)
        sheet.must_fit(run, encoded, self.place)
        for digest, data in encoded.parts.items():
            self._store(run.id, digest, data)
        others = sum(len(data) for run_id, data in self._staged.items() if data is not None and run_id != run.id)
        if others and others + len(encoded.sheet) > _STAGED_BYTES:
            self.flush()
        self._staged[run.id] = encoded.sheet

    @property
    def unsent(self) -> Collection[str]:
        return self._staged.keys()

    def flush(self) -> None:
        if self._staged and (operations := self.operations()):
            if not self._znodes.committed(operations):
                self.operations()  # raises Busy and names the faster process
                raise Busy("another kquota is writing to the same runs", AGAIN_LATER)
            self.committed()

    def operations(self) -> Sequence[ZnodeOperation]:
        names = sorted({*self._versions, *self._staged})
        if not self._lock.held:
            return ()
        paths = {name: f"{_RUNS}/{name}" for name in names}
        nodes = self._znodes.read_all([LOCK, _RUNS, *paths.values()])
        # Check the runs first, because their znodes name the process that took over even if it has already ended.
        writes = [write for name, path in paths.items() for write in self._operations_of(name, nodes[path])]
        self._lock.check(nodes[LOCK])
        made = [Create(path=_RUNS, data=b"")] if self._staged and nodes[_RUNS] is None else []
        return [*self._lock.fence, *made, *writes]

    def committed(self) -> None:
        for name, data in self._staged.items():
            if data is None:
                self._versions.pop(name, None)
            else:
                self._versions[name] = self._versions.get(name, -1) + 1
        self._staged.clear()

    def _read(self, name: str, node: Node, *, whole: bool) -> Run:
        if not run_fields.is_run_id(name):
            raise Unreadable("its name is not a run id")
        return sheet.decode(node.data, name, self._cluster_id, lambda d: self._part(name, d), whole=whole).run

    def _listed(self, run_id: str) -> set[str]:
        self._parts[run_id] = set(self._znodes.children(f"{_PARTS}/{run_id}"))
        return self._parts[run_id]

    def _part(self, run_id: str, digest: str) -> bytes | None:
        there = self._parts.get(run_id, set())
        if f"{digest}-0" not in there:
            there = self._listed(run_id)
        paths = [f"{_PARTS}/{run_id}/{digest}-{n}" for n in range(sum(one.startswith(f"{digest}-") for one in there))]
        if len(paths) * sheet.PART_BYTES > 2 * sheet.LARGEST:
            return None
        nodes = self._znodes.read_all(paths)
        chunks = [node.data for path in paths if (node := nodes[path]) is not None]
        return b"".join(chunks) if chunks and len(chunks) == len(paths) else None

    def _store(self, run_id: str, digest: str, data: bytes) -> None:
        """Write the chunks of a part. Keeps the chunks of an earlier attempt, because they have the same bytes."""
        folder = f"{_PARTS}/{run_id}"
        for path in (ROOT, _PARTS, folder):
            self._znodes.committed([Create(path=path, data=b"")])
        for n, chunk in sheet.chunks(data):
            self._znodes.committed([Create(path=f"{folder}/{digest}-{n}", data=chunk)])
            self._parts[run_id].add(f"{digest}-{n}")

    def _clear_away(self, found: Mapping[str, Run]) -> None:
        """Delete at once the parts of ended runs and of runs that are not in the record. Delete the oldest ended runs
        with the next transaction.
        """
        done = ended(found.values())
        for run in done[:-_ENDED]:
            self._staged.setdefault(run.id, None)
        still_open = found.keys() - {run.id for run in done} | self.unreadable.keys()
        begun = {name for name, data in self._staged.items() if data is not None}  # their parts are already there
        for name in self._znodes.children(_PARTS):
            if name not in still_open | begun:
                self._parts.pop(name, None)
                for part in self._znodes.children(f"{_PARTS}/{name}"):
                    self._znodes.committed([Delete(path=f"{_PARTS}/{name}/{part}", version=0)])
                self._znodes.committed([Delete(path=f"{_PARTS}/{name}", version=0)])

    def _operations_of(self, name: str, node: Node | None) -> list[ZnodeOperation]:
        path, held = f"{_RUNS}/{name}", self._versions.get(name)
        if node is None and held is not None:
            raise Busy(f"run {name}: its znode {path} was deleted. Nothing more is written")
        if node is not None and node.version != held:
            raise Busy(f"run {name} was taken over by {_writer(node)}. Nothing more is written")
        if name not in self._staged:
            return [] if held is None else [Check(path=path, version=held)]
        data = self._staged[name]
        if data is None:
            return [] if held is None else [Delete(path=path, version=held)]
        return [Create(path=path, data=data) if held is None else SetData(path=path, data=data, version=held)]


def _holder(node: Node) -> Holder:
    return holder_of(json_in(node))


def _writer(node: Node) -> str:
    by = json_in(node).get("by")
    return str(holder_of({**by, "doing": "move"} if isinstance(by, dict) else {}))
