"""The runs of one cluster: the journals of this host, joined with the record that all hosts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from kquota.errors import Busy, KquotaError
from kquota.reassign.run import Owner, Run
from kquota.stores.record.shared import Joined, Shared, Unshared, joined, version_of
from kquota.stores.state.process import me
from kquota.stores.state.runs import RunFiles


class RecordedRuns:
    """Every write goes to the journal first, to the shared record next, and only then to the cluster.

    Implements `kquota.reassign.port.Runs`. `warned` hears of runs that cannot be read, once each.
    """

    def __init__(self, files: RunFiles, shared: Shared, warned: Callable[[str], None] = lambda _: None) -> None:
        self._files = files
        self._shared = shared
        self._warned = warned
        self._told: set[str] = set()
        self._latest: dict[str, Run] = {}

    @contextmanager
    def hold(self, doing: str, *, take_over: bool = False) -> Iterator[None]:
        """Keep every other kquota of this folder, and of the record, from writing. Raises Busy, naming the holder."""
        with self._files.hold(doing), self._shared.lock(doing, take_over=take_over):
            found = self._joined()
            for run_id in found.ahead:
                # The journal notes where the run is on record: a later command over another connection looks there.
                self._next(found.runs[run_id])
            self._learn_ends(found)
            yield
            self._shared.flush()

    @property
    def settled(self) -> bool:
        found = self._joined()
        return not found.ahead and not any(self._ended_elsewhere(found))

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self._files.cluster_id

    @property
    def me(self) -> Owner:
        """This process."""
        return me()

    @property
    def shared(self) -> bool:
        """Whether every host of the team sees these runs."""
        return self._shared.identity is not None

    @property
    def alone(self) -> KquotaError | None:
        """Why other hosts do not see these runs; None where they do."""
        return self._shared.why if isinstance(self._shared, Unshared) else None

    @property
    def hidden(self) -> bool:
        """Whether there may be a shared record that this user may not read."""
        return isinstance(self._shared, Unshared) and self._shared.hidden

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The ids of runs on record that this kquota cannot read: nothing is known of what they have set."""
        return tuple(sorted(self._shared.unreadable))

    def every(self) -> tuple[Run, ...]:
        """Oldest first, ended runs too. Raises Refused when a journal cannot be understood."""
        return _ordered(self._joined(whole=True).runs.values())

    def unfinished(self) -> tuple[Run, ...]:
        """Oldest first, those of other hosts too. Raises Refused when a journal cannot be understood."""
        return _ordered(run for run in self._joined().runs.values() if run.finished is None)

    @property
    def late_seconds(self) -> float:
        """For how long a write of the kquota that was taken over may still arrive at a broker."""
        return self._shared.late_seconds

    def writer(self) -> str | None:
        """The command that writes just now on any host, in words; None when there is none, or nothing is shared."""
        found = self._shared.writer()
        return None if found is None else str(found)

    def begin(self, run: Run) -> None:
        """Write a new record. Raises Busy when there is one of this id, Refused when it cannot be written."""
        if run.id in self._latest:
            raise Busy(f"run {run.id}: a run of this plan began in this very second; try again")
        self._write(run, 1)

    def update(self, run: Run) -> None:
        """Write the run's next version, if it differs or another process wrote the last one. Raises as `begin`.

        Whoever continues a run outnumbers what the process before it may have written only to its own journal.
        """
        if run.id not in self._latest:
            self._joined()
        latest = self._latest.get(run.id)
        anothers = self.shared and (latest is None or latest.stamp is None or latest.stamp.by != me())
        if latest != run or anothers or not self._files.has(run):
            self._next(run)

    def place(self, run: Run) -> str:
        """The path of its journal, else where the shared record is."""
        here = self._files.has(run) or not self.shared
        return self._files.place(run) if here else self._shared.place

    def must_hold(self) -> None:
        """To be called just before a write to the cluster. Raises Busy when another kquota has taken over."""
        self._shared.must_hold()

    def keep_alive(self) -> None:
        """To be called while a command waits. Raises Busy when another kquota has taken over."""
        self._shared.keep_alive()

    def _next(self, run: Run) -> None:
        self._write(run, version_of(self._latest.get(run.id)) + 1)

    def _learn_ends(self, found: Joined) -> None:
        """Runs that ended elsewhere end in the journals of this host too: it may lose sight of the shared record."""
        for run in self._ended_elsewhere(found):
            self._files.write(run, self._shared.identity, version_of(found.runs.get(run.id, run)))

    def _ended_elsewhere(self, found: Joined) -> Iterator[Run]:
        """What is open in a journal of this host and has ended, as it is to be written there."""
        for run_id, kept in self._files.every().items():
            run = found.runs.get(run_id, kept.run)
            if run.finished is not None and kept.run.finished is None:
                yield replace(kept.run, finished=run.finished, aborting=run.aborting)

    def _write(self, run: Run, version: int) -> None:
        stamped = self._files.write(run, self._shared.identity, version)
        self._latest[run.id] = stamped
        self._shared.put(stamped)
        if run.finished is not None:
            self._shared.flush()

    def _joined(self, *, whole: bool = False) -> Joined:
        shared = self._shared.runs(whole=whole)
        found = joined(self._files.every(), shared, self._shared.identity)
        self._latest |= found.runs
        for run_id, why in self._shared.unreadable.items():
            self._tell(
                run_id,
                f"run {run_id} on record in {self._shared.place} cannot be read, so kquota leaves it unchanged: {why}",
            )
        for run_id in found.lost:
            self._tell(
                run_id,
                f"run {run_id} went on elsewhere while this host wrote only its own journal "
                f"({self._files.folder}); kquota uses the record in {self._shared.place}",
            )
        return found

    def _tell(self, run_id: str, line: str) -> None:
        if run_id not in self._told:
            self._told.add(run_id)
            self._warned(line)


def _ordered(runs: Iterable[Run]) -> tuple[Run, ...]:
    return tuple(sorted(runs, key=lambda run: (run.begun, run.id)))
