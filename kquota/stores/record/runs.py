"""The runs of one cluster: the journals of this host, joined with the record that all hosts share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kquota.errors import Busy, KquotaError, Parameter, Refused
from kquota.reassign.run import Owner, Run
from kquota.stores.record.shared import Joined, Shared, Unshared, ended, joined, ordered, version_of
from kquota.stores.state.journal import JournaledRun
from kquota.stores.state.process import me, runs_here
from kquota.stores.state.runs import RunFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRuns:
    """The runs on record, newest first, and the ids of runs that cannot be read, with the reasons."""

    runs: tuple[Run, ...]
    unread: Mapping[str, KquotaError]


class RecordedRuns:
    """The runs of one cluster. Every write goes first to the journal, and then to the shared record.

    Implements `kquota.reassign.port.Runs`. `warned` is called once for each run that cannot be read in the record, is
    missing from the record, or was continued elsewhere.
    """

    def __init__(self, files: RunFiles, shared: Shared, warned: Callable[[str], None] = lambda _: None) -> None:
        self._files = files
        self._shared = shared
        self._warned = warned
        self._warned_of: set[str] = set()
        self._latest: dict[str, Run] = {}
        self._before_unsent: dict[str, Run] = {}

    @contextmanager
    def hold(self, doing: str, *, take_over: bool = False) -> Iterator[None]:
        """Hold the lock of the journals of this host and the lock of the record, so that no other kquota writes.
        Without a shared record, kquota can still write on other hosts.

        Also sends newer versions from the journals to the record, and marks runs in the journals as ended if they have
        ended in the record. With `take_over`, takes the lock of the record even from a holder that may be alive. Raises
        Busy, which names the holder, if a lock is held or another kquota takes over. After a takeover, also undoes the
        unsent versions in the journals. Raises Refused if a journal or the record cannot be read or written, and
        Unreachable or Unknown if the cluster does not answer.
        """
        with self._files.hold(doing), self._shared.lock(doing, take_over=take_over):
            self._before_unsent.clear()
            found = self._joined()
            for run_id in found.ahead:
                run = found.runs[run_id]
                if run_id in found.missing and run.stamp is not None and run.stamp.record == self._shared.identity:
                    # An earlier attempt wrote the journal and then failed. Another write would look like a new version.
                    self._shared.put(run)
                else:
                    # The journal names the record, so that a later command over another connection finds the record.
                    self._next(run)
            self._learn_ends(found)
            self._shared.flush()  # the command may fail, and its reads must show these runs
            try:
                yield
                self._shared.flush()
            except Busy:
                self._take_back()
                raise

    @property
    def settled(self) -> bool:
        found = self._joined()
        return not found.ahead and not any(self._ended_elsewhere(found))

    @property
    def cluster_id(self) -> str:
        return self._files.cluster_id

    @property
    def me(self) -> Owner:
        return me()

    @property
    def shared(self) -> bool:
        return self._shared.identity is not None

    @property
    def alone(self) -> KquotaError | None:
        """The reason why other hosts do not see these runs, or None if they do."""
        return self._shared.why if isinstance(self._shared, Unshared) else None

    @property
    def unseen(self) -> KquotaError | None:
        """The reason why this host may not see every run of other hosts, or None if it sees all of them."""
        return self._shared.why if isinstance(self._shared, Unshared) else self._shared.gap

    @property
    def hidden(self) -> bool:
        """True if runs of other hosts may be on record that this host cannot see: this user cannot read the shared
        record, or the record has lost runs.
        """
        return self._shared.hidden if isinstance(self._shared, Unshared) else self._shared.gap is not None

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The ids of the runs that could not be read when the shared record was last read, sorted."""
        return tuple(sorted(self._shared.unreadable))

    def every(self) -> tuple[Run, ...]:
        return ordered(self._joined(whole=True).runs.values())

    def latest(self, run: Run) -> Run:
        """Return the run as this process last read or wrote it, even if the run has ended. If this process has neither
        read nor written the run, return `run`.
        """
        return self._latest.get(run.id, run)

    def past(self, *, whole: bool) -> PastRuns:
        """Return all readable runs, newest first, and for every other run the reason why it cannot be read.

        An ended run without a journal on this host has an empty plan, unless `whole` is set. Even with `whole`, the
        plan is empty if the run is large and its record is in ZooKeeper. Raises Refused if the folder of the journals
        cannot be read.
        """
        unread: dict[str, KquotaError] = {}
        found = self._joined_with(self._files.every(unread), whole=whole)
        unread |= {name: KquotaError(why) for name, why in self._shared.unreadable.items()}
        return PastRuns(runs=ordered(found.runs.values())[::-1], unread=unread)

    def unfinished(self) -> tuple[Run, ...]:
        return ordered(run for run in self._joined().runs.values() if run.finished is None)

    @property
    def late_seconds(self) -> float:
        return self._shared.late_seconds

    def writer(self) -> str | None:
        """Return a description of the command that is writing now, or None if no such command is known.

        With a shared record, the command can run on any host. Without one, it runs on this host.
        """
        return self._shared.writer() or self._files.writer()

    def record_writer(self) -> str | None:
        """Return a description of the command that holds the lock of the shared record, or None if no such command is
        known. With `take_over`, `hold` takes over only this lock, not that of the journals.
        """
        return self._shared.writer()

    def is_running(self, run: Run) -> bool:
        """Return True if the process that began the run is known to run on this host.

        That process need not hold the lock, for example between two waves. The process that last wrote the record does
        not count, because any command can write a run that shares a rate.
        """
        return run.owner is not None and runs_here(run.owner)

    def begin(self, run: Run) -> None:
        """Write the first version of a run. Also raises Refused if the record has an unreadable run with this id."""
        if run.id in self._latest:
            raise Busy(f"run {run.id}: another run with this id began within the same second. Try again")
        self._write(run, 1)

    def update(self, run: Run) -> None:
        """Write the next version of a run if the run changed, or if this host has no journal of the run.

        Also writes the next version if the last one belongs to another record, or if another process wrote the last one
        to the shared record. A version that the other process wrote only to its own journal then cannot become current
        (see `joined`). Raises the errors of `begin`.
        """
        if run.id not in self._latest:
            self._joined()
        latest = self._latest.get(run.id)
        stamp = None if latest is None else latest.stamp
        anothers = self.shared and (stamp is None or stamp.by != me())
        elsewhere = stamp is not None and stamp.record != self._shared.identity
        if latest != run or anothers or elsewhere or not self._files.has(run):
            self._next(run)

    def place(self, run: Run) -> str:
        here = self._files.has(run) or not self.shared
        return self._files.place(run) if here else self._shared.place

    def must_hold(self) -> None:
        """Call this just before each write to the cluster. Raises Busy like `Shared.must_hold`."""
        self._shared.must_hold()

    def keep_alive(self) -> None:
        """Call this while a command waits. Raises Busy if another kquota has taken over."""
        self._shared.keep_alive()

    def _next(self, run: Run) -> None:
        self._write(run, version_of(self._latest.get(run.id)) + 1)

    def _learn_ends(self, found: Joined) -> None:
        """Record in this host's journals the runs that ended elsewhere, because the shared record may be lost later.

        The new line of the journal has the stamp from the record, because this host has sent nothing. If the run is
        in `found.lost`, the line counts as written only to the journal, so that `joined` still reports the run as lost.
        """
        for run in self._ended_elsewhere(found):
            there = found.runs[run.id]
            if run.id in found.lost or there.stamp is None:
                self._files.write(run, None, max(version_of(run), version_of(there)))
            else:
                self._files.copy(run, replace(there.stamp, record=self._shared.identity))

    def _ended_elsewhere(self, found: Joined) -> Iterator[Run]:
        for run_id, kept in self._files.every().items():
            run = found.runs.get(run_id, kept.run)
            if run.finished is not None and kept.run.finished is None:
                yield replace(kept.run, finished=run.finished, aborting=run.aborting)

    def _write(self, run: Run, version: int) -> None:
        if (why := self._shared.unreadable.get(run.id)) is not None:
            raise Refused(
                f"run {run.id}: the record in {self._shared.place} has this run in a form that cannot be read ({why}), "
                "so kquota does not overwrite it. Use the version of kquota that wrote it, or ",
                Parameter("record"),
                " none to use only the journals of this host",
            )
        before = self._latest.get(run.id)
        if before is not None and run.id not in self._shared.unsent:
            self._before_unsent[run.id] = before
        stamped = self._files.write(run, self._shared.identity, version)
        self._latest[run.id] = stamped
        self._shared.put(stamped)
        if run.finished is not None:
            self._shared.flush()

    def _take_back(self) -> None:
        """Undo the unsent versions in the journals, because the new holder of the lock may have changed the version
        before them.
        """
        for run_id in sorted(self._before_unsent.keys() & self._shared.unsent):
            version = version_of(self._latest[run_id]) + 1
            self._latest[run_id] = self._files.write(self._before_unsent[run_id], self._shared.identity, version)

    def _joined(self, *, whole: bool = False) -> Joined:
        found = self._joined_with(self._files.every(), whole=whole)
        self._latest |= found.runs
        for run_id, why in self._shared.unreadable.items():
            self._warn_once(
                run_id,
                f"recorded run {run_id} in {self._shared.place} cannot be read ({why}), so kquota leaves it unchanged",
            )
        for run_id in found.missing:
            self._warn_once(
                run_id,
                f"run {run_id} is missing from the record in {self._shared.place}, although this host has sent it "
                "there. The next command that writes sends the run again",
            )
        for run_id in found.lost:
            self._warn_once(
                run_id,
                f"run {run_id} was continued on another host while this host wrote only its own journal "
                f"({self._files.folder}). kquota uses the record in {self._shared.place}",
            )
        return found

    def _joined_with(self, local: Mapping[str, JournaledRun], *, whole: bool) -> Joined:
        shared = self._shared.runs(whole=whole)
        unreadable = self._shared.unreadable.keys()
        done = ended(shared.values())
        full = len(done) + len(unreadable) >= self._shared.keeps
        oldest = (done[0].begun, done[0].id) if done and full else None
        return joined(
            local, shared, self._shared.identity, unreadable=unreadable, oldest=oldest, gap=self._shared.gap is not None
        )

    def _warn_once(self, run_id: str, line: str) -> None:
        if run_id not in self._warned_of:
            self._warned_of.add(run_id)
            self._warned(line)
