"""The shared record in a compacted topic. Except to take the lock, only the lock holder appends.

The keys are `run/<id>` (the sheet of a run), `part/…` (a chunk of a part: a large field of a run) and `lock`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from kquota.errors import AGAIN_LATER, Busy, KquotaError, NextStep, Refused
from kquota.reassign.run import Run
from kquota.stores.record import sheet
from kquota.stores.record.lease import (
    HEARTBEAT_SECONDS,
    LEASE_SECONDS,
    WRITE_SECONDS,
    Lock,
    Sighting,
    lock_of,
)
from kquota.stores.record.shared import ended
from kquota.stores.record.sheet import Sheet, Unreadable
from kquota.stores.state import run_fields
from kquota.stores.state.log import Item, KeyAndValue, Log, Stale
from kquota.stores.state.process import holder

LOCK: Final = "lock"
_RUN: Final = "run/"
_PART: Final = "part/"
_ENDED: Final = 50
"""The number of newest ended runs to keep, so that other hosts and reports can read them."""
_LOOK_SECONDS: Final = 1.0
_FRESH_SECONDS: Final = 1.0
"""The seconds for which the lock holder reuses its last reading. Another kquota appends in the meantime only if it
takes over, and `Log.append` then fails.
"""


class TopicRecord:
    """The runs in a topic. Implements `Shared`.

    If another kquota may hold the lock, `lock` calls `waiting` with a message, and waits until the lock has been
    unchanged for one lease. If the holder sends a heartbeat meanwhile, `lock` raises Busy. Otherwise, it takes the
    lock.

    - Without `waiting`, `lock` raises Busy instead of waiting.
    - Without `take_over`, `lock` raises Refused for a lock that it cannot read.
    - With `take_over`, `lock` takes any lock at once. If another kquota may have held it, `lock` then waits
      `WRITE_SECONDS`.
    """

    keeps = _ENDED

    def __init__(
        self,
        log: Log,
        name: str,
        cluster_id: str,
        seen: Sighting,
        waiting: Callable[[str], None] | None = None,
    ) -> None:
        self._log = log
        self._name = name
        self._cluster_id = cluster_id
        self._seen = seen
        self._clock = seen.clock
        self._waiting = waiting
        self._items: dict[str, tuple[int, bytes]] = {}
        """The offset and the value of each key that the topic has."""
        self._mine: Lock | None = None
        self._sent = 0.0
        self._read_at = float("-inf")
        self._late_until = 0.0
        self.unreadable: dict[str, str] = {}
        self._sheets: dict[str, tuple[tuple[int, bool], Sheet]] = {}
        self.unsent: set[str] = set()

    @property
    def identity(self) -> str:
        return f"topic {self._log.identity}"

    @property
    def place(self) -> str:
        return f"topic {self._name}"

    @property
    def gap(self) -> KquotaError | None:
        if self._read_at == float("-inf"):
            self._read()
        if not self._log.truncated:
            return None
        deleted = f"records were deleted from topic {self._name}, so runs of other hosts may be missing from it. "
        again = (NextStep.UNSHARE_RECORD, " and ", NextStep.SHARE_RECORD, " on every host")
        return KquotaError(deleted, "After every run has ended, create the topic again with ", *again)

    @contextmanager
    def lock(self, doing: str, *, take_over: bool) -> Iterator[None]:
        self._take(doing, take_over=take_over)
        self.unsent.clear()
        try:
            yield
        finally:
            self._release()

    def writer(self) -> str | None:
        found = self._found(forced=True)
        return None if found is None or found.released or found.holder.dead else str(found.holder)

    @property
    def late_seconds(self) -> float:
        # The previous holder may have been suspended between its lock check and its write, which can then still arrive.
        return max(0.0, self._late_until - self._clock.seconds())

    def keep_alive(self) -> None:
        if self._mine is not None and self._clock.seconds() - self._sent > HEARTBEAT_SECONDS:
            self._append([])

    def must_hold(self) -> None:
        if self._mine is None:
            return
        self._must_be(self._mine)
        self.keep_alive()
        if self._clock.seconds() - self._sent > WRITE_SECONDS:
            raise Busy(
                f"record in {self.place}: the brokers answered too late for a safe write. Nothing more is written",
                AGAIN_LATER,
            )

    def runs(self, *, whole: bool = False) -> Mapping[str, Run]:
        if self._mine is None:
            self._read()
        else:
            self._refresh()
            self._must_be(self._mine)
        self.unreadable = {}
        found: dict[str, Run] = {}
        for key in self._items:
            if not key.startswith(_RUN):
                continue
            name = key.removeprefix(_RUN)
            try:
                found[name] = self._sheet(name, whole=whole).run
            except Unreadable as error:
                self.unreadable[name if run_fields.is_run_id(name) else repr(name)[:60]] = str(error)
        return found

    def put(self, run: Run) -> None:
        encoded = sheet.encode(run, self._cluster_id, lambda digest: f"{_PART}{run.id}/{digest}/0" in self._items)
        sheet.must_fit(run, encoded, self.place)
        for digest, data in encoded.parts.items():
            chunks = sheet.chunks(data)
            for n, chunk in chunks:
                self._append([(f"{_PART}{run.id}/{digest}/{n}", b"%d\n" % len(chunks) + chunk)])
        try:
            self._append([(f"{_RUN}{run.id}", encoded.sheet)])
        except Busy:
            self.unsent.add(run.id)
            raise
        if run.finished is not None:
            self._clear_away()

    def flush(self) -> None:
        return None

    def _sheet(self, name: str, *, whole: bool) -> Sheet:
        offset, value = self._items[f"{_RUN}{name}"]
        mark = (offset, whole)
        if name not in self._sheets or self._sheets[name][0] != mark:
            if not run_fields.is_run_id(name):
                raise Unreadable("its key is not a run id")
            read = sheet.decode(value, name, self._cluster_id, lambda d: self._part(name, d), whole=whole)
            self._sheets[name] = (mark, read)
        return self._sheets[name][1]

    def _part(self, run_id: str, digest: str) -> bytes | None:
        chunks: list[bytes] = []
        while True:
            item = self._items.get(f"{_PART}{run_id}/{digest}/{len(chunks)}")
            if item is None:
                return None
            number, _, chunk = item[1].partition(b"\n")
            chunks.append(chunk)
            if number == b"%d" % len(chunks):
                return b"".join(chunks)

    def _clear_away(self) -> None:
        """Delete all ended runs except the newest `_ENDED`. Also delete the parts that no remaining or unreadable sheet
        needs.
        """
        runs = self.runs()
        forgotten = {run.id for run in ended(runs.values())[:-_ENDED]}
        needed = {
            f"{i}/{digest}" for i, (_, read) in self._sheets.items() if i not in forgotten for digest in read.parts
        }
        keys = [f"{_RUN}{run_id}" for run_id in sorted(forgotten)]
        for key in sorted(self._items):
            if key.startswith(_PART):
                run_id = key.removeprefix(_PART).partition("/")[0]
                named = key.removeprefix(_PART).rpartition("/")[0]
                if named not in needed and run_id not in self.unreadable:
                    keys.append(key)
        if keys:
            self._append([(key, None) for key in keys])

    def _take(self, doing: str, *, take_over: bool) -> None:
        mark = ""
        while True:
            self._read()
            found = self._found(forced=take_over)
            # The holder of a lock that this kquota cannot read may be alive.
            taken = LOCK in self._items if found is None else not found.released and not found.holder.dead
            if found is not None and taken and not take_over:
                left = LEASE_SECONDS - self._seen.unchanged(f"{self.identity} {found.mark}")
                if left > 0:
                    mark = self._wait(found, left, mark)
                    continue
            mine = Lock(term=1 if found is None else found.term + 1, heartbeat=1, holder=holder(doing))
            sent = self._clock.seconds()
            with suppress(Stale):
                self._log.append([(LOCK, mine.written(self._cluster_id))])
                break
        self._keep(self._log.seen(), sent)
        self._refresh()
        self._must_be(mine)
        self._mine, self._sent = mine, sent
        if taken:
            self._late_until = sent + LEASE_SECONDS
        if taken and take_over:
            # Wait, because the previous holder may have just checked its lock, and can still write for WRITE_SECONDS.
            self._clock.sleep(WRITE_SECONDS)

    def _wait(self, found: Lock, left: float, before: str) -> str:
        """Wait a moment for a heartbeat of the holder, and return the mark of its lock. `before` is the last returned
        mark, or empty in the first call. Raises Busy if the mark has changed since the last call, or if this record
        does not wait for a lock.
        """
        if self._waiting is None or before not in ("", found.mark):
            raise Busy(
                f"{found.holder} holds the lock of this cluster",
                AGAIN_LATER,
                f". If that process is dead, the lock is free in {left:.0f} s",
            )
        if not before:
            self._waiting(
                f"{found.holder} holds the lock of this cluster. Waiting up to {left:.0f} s for its heartbeat "
                "(press Ctrl-C to stop waiting)"
            )
        self._clock.sleep(min(left, _LOOK_SECONDS))
        return found.mark

    def _release(self) -> None:
        """Release the lock. If that fails, another kquota can take the lock after one lease without a heartbeat."""
        with suppress(KquotaError):
            self._refresh()
            found = self._found()
            if self._mine is not None and found is not None and found.term == self._mine.term:
                released = replace(found, heartbeat=found.heartbeat + 1, released=True)
                self._log.offer([(LOCK, released.written(self._cluster_id))])
        self._mine = None

    def _append(self, entries: list[KeyAndValue]) -> None:
        """Append the entries and a heartbeat in one batch."""
        if self._mine is None:
            raise Busy(f"kquota does not hold the lock of {self.place}, so it writes nothing")
        self._must_be(self._mine)
        renewed, sent = replace(self._mine, heartbeat=self._mine.heartbeat + 1), self._clock.seconds()
        self._read_at = float("-inf")
        try:
            self._log.append([*entries, (LOCK, renewed.written(self._cluster_id))])
        except Stale as error:
            self._read()
            raise self._taken_over() from error
        self._mine, self._sent = renewed, sent
        self._keep(self._log.seen(), sent)
        self._refresh()

    def _must_be(self, mine: Lock) -> None:
        """Raise Busy unless the last reading shows the lock `mine`. `Log.append` detects only later changes."""
        found = self._found(forced=True)
        if found is None or found.term != mine.term:
            raise self._taken_over()

    def _taken_over(self) -> Busy:
        found = self._found(forced=True)
        who = "another kquota" if found is None else str(found.holder)
        return Busy(f"{self.place}: {who} has taken over the lock. Nothing more is written")

    def _found(self, *, forced: bool = False) -> Lock | None:
        if LOCK not in self._items:
            return None
        try:
            return lock_of(self._items[LOCK][1], self._cluster_id)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if forced:
                return None
            raise Refused(
                f"{self.place}: the lock cannot be read ({type(error).__name__}: {error!s:.200}). A newer kquota, a "
                "kquota for another cluster or another program wrote this lock"
            ) from error

    def _read(self) -> None:
        asked = self._clock.seconds()
        self._keep(self._log.read(), asked)

    def _refresh(self) -> None:
        """Read the topic again if the last reading is too old. Only the holder of the lock may call this (see
        `_FRESH_SECONDS`).
        """
        if self._clock.seconds() - self._read_at > _FRESH_SECONDS:
            self._read()

    def _keep(self, items: Sequence[Item], asked: float) -> None:
        self._read_at = asked
        for item in items:
            if item.value is None:
                self._items.pop(item.key, None)
            else:
                self._items[item.key] = item.offset, item.value
