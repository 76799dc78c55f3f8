"""The port of a record that all hosts share, and the rule that joins it with the journals of one host."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol

from kquota.errors import Incomplete, KquotaError, Unknown, Unreachable
from kquota.reassign.run import Owner, Run
from kquota.stores.record.sheet import NOTHING
from kquota.stores.state.journal import JournaledRun

ZOOKEEPER: Final = "zookeeper"
"""The name that journals use for the record in the znodes of the cluster."""
MAYBE_LOST: Final = (Unreachable, Unknown, Incomplete)
"""The errors that a lost session can cause. Another kquota may then have taken over."""


class Shared(Protocol):
    """The runs of one cluster, as all hosts see them.

    Any method can raise Unreachable if the record does not answer, and Refused if the login fails.
    """

    @property
    def identity(self) -> str | None:
        """A name that no other record of this cluster has, or None without a shared record."""

    @property
    def place(self) -> str:
        """The place of the record, for messages."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """The runs that the last call of `runs` could not read, by id, with the reason."""

    @property
    def gap(self) -> KquotaError | None:
        """The reason why runs may be missing from the record although they were sent there, or None."""

    def lock(self, doing: str, *, take_over: bool) -> AbstractContextManager[None]:
        """Lock the cluster, so that no other kquota writes. Raises Busy, which names the holder, if the lock is held.

        With `take_over`, also takes the lock from a holder that may be alive. That holder then writes nothing more.
        """

    def writer(self) -> str | None:
        """Describe the holder of the lock at the last reading. Returns None if the lock was free or unreadable, or if
        its holder has ended.
        """

    def must_hold(self) -> None:
        """Call this just before each write to the cluster.

        Raises Busy if another kquota has taken over, or if the lease was last renewed too long ago for a safe write.
        """

    @property
    def late_seconds(self) -> float:
        """The seconds for which a write of the previous lock holder can still reach a broker, or 0.0 if none can."""

    @property
    def keeps(self) -> int:
        """The number of ended runs that the record keeps. It deletes older ones."""

    def keep_alive(self) -> None:
        """Call this while a command waits, to show that the holder is alive. Raises Busy like `put`."""

    def runs(self, *, whole: bool = False) -> Mapping[str, Run]:
        """Return every readable run by id, with its stamp. Unless `whole`, the fields in `NOTHING` are empty for ended
        runs.

        Raises Busy if another kquota has taken over the caller's lock, because the runs may be out of date.
        """

    def put(self, run: Run) -> None:
        """Write this version of a run, at the latest when `flush` is called. Raises Busy if another kquota has taken
        over, and Refused for a run that is too large.
        """

    def flush(self) -> None:
        """Write every run that `put` has not yet written. Raises Busy if another kquota has taken over."""

    @property
    def unsent(self) -> Collection[str]:
        """The ids of runs whose last version is not in the record, because `flush` must still send it, or because of
        Busy.
        """


class Unshared:
    """The absence of a shared record, with the reason. Implements `Shared`."""

    def __init__(self, *why: str | KquotaError, hidden: bool = False) -> None:
        """`why` has the parts of the reason. With `hidden`, a shared record may exist that this user cannot read."""
        self.why = KquotaError(*why)
        self.hidden = hidden

    identity = None
    place = "this host"
    gap = None
    late_seconds = 0.0
    keeps = 0
    unreadable: Mapping[str, str] = {}
    unsent: Collection[str] = ()

    def lock(self, doing: str, *, take_over: bool) -> AbstractContextManager[None]:
        return nullcontext()

    def writer(self) -> str | None:
        return None

    def must_hold(self) -> None:
        return None

    def keep_alive(self) -> None:
        return None

    def runs(self, *, whole: bool = False) -> Mapping[str, Run]:
        return {}

    def put(self, run: Run) -> None:
        return None

    def flush(self) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The current version of each run, and the ids of runs for which the journals and the record differ."""

    runs: Mapping[str, Run]
    ahead: Sequence[str] = ()
    """Runs to send to the record, because this host has a newer version, or an open run that is not in the record."""
    missing: Sequence[str] = ()
    """Runs in `ahead` that are not in the record although this host sent them there."""
    lost: Sequence[str] = ()
    """Runs that were continued on another host while this host wrote without the record."""


def joined(
    local: Mapping[str, JournaledRun],
    shared: Mapping[str, Run],
    identity: str | None,
    *,
    unreadable: Collection[str] = (),
    oldest: tuple[datetime, str] | None,
    gap: bool = False,
) -> Joined:
    """Return the current version of each run that this host or the shared record has. `identity` is the identity of the
    record, or None without a shared record.

    `unreadable` has the ids of the runs in the record that cannot be read. `oldest` has the start time and the id of
    the oldest ended run in the record, or is None if the record is not full. A full record may have deleted older runs.
    With `gap`, the record may have lost any run, so no open run is left out because it is not in the record.

    - A run that cannot be read in the record is left out, because its last version is unknown.
    - A run that has ended in the record has ended.
    - The higher version of any other run in the record is current. The journal is written first, so it can be ahead by
      the versions of a command that died, or by all versions that were written without the record. A journal does not
      count if it does not continue the version in the record, because another process wrote that version.
    - A run that is not in the record and has ended in the journal has ended.
    - An open run that is not in the record is left out if this host has written only its first version, and has sent
      it there. Such a run never began, because kquota writes nothing to a cluster before the run is on record.
    - An open run that is not in the record is also left out if it is older than `oldest`, and this host has sent
      several versions. Such a run has ended, and kquota has deleted it from the record.
    - Any other open run that is not in the record is current. Either it has not reached the record yet, or the record
      has lost it, for example because someone deleted znodes.
    """
    runs: dict[str, Run] = dict(shared)
    ahead: list[str] = []
    missing: list[str] = []
    lost: list[str] = []
    for run_id, kept in local.items():
        there, sent = shared.get(run_id), kept.shared.get(identity or "", {})
        if there is None and run_id in unreadable:
            continue
        if there is None:
            never_began = not gap and sent.keys() == {1} and version_of(kept.run) == 1
            deleted = not gap and oldest is not None and len(sent) > 1 and (kept.run.begun, run_id) < oldest
            if kept.run.finished is not None or not (never_began or deleted):
                runs[run_id] = kept.run
            if kept.run.finished is None and identity is not None and run_id in runs:
                ahead.append(run_id)
                missing += [run_id] if sent else []
            continue
        known, version = version_of(kept.run), version_of(there)
        if there.finished is not None and not there.plan.targets:
            # The record can omit the plans and values of an ended run. The journal still has them.
            runs[run_id] = replace(there, **{name: getattr(kept.run, name) for name in NOTHING})
        if there.finished is not None or version >= known:
            twice = version == known and _of_another(sent, there)
            if version < known or twice or (sent and version > max(sent) and known > max(sent)):
                lost.append(run_id)
        elif sent and (version > max(sent) or _of_another(sent, there)):
            lost.append(run_id)
        else:
            runs[run_id] = kept.run
            ahead.append(run_id)
    return Joined(runs=runs, ahead=tuple(ahead), missing=tuple(missing), lost=tuple(lost))


def _of_another(sent: Mapping[int, Owner | None], there: Run) -> bool:
    """Return True if another process wrote the version in the record, although this host has sent a version with the
    same number.
    """
    return there.stamp is not None and sent.get(there.stamp.version, there.stamp.by) != there.stamp.by


def ordered(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs, oldest first."""
    return tuple(sorted(runs, key=lambda run: (run.begun, run.id)))


def ended(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs that have ended, oldest first."""
    return ordered(run for run in runs if run.finished is not None)


def open_or_unreadable(record: Shared) -> list[str]:
    """Return the ids of the runs that are open or cannot be read, sorted."""
    return sorted([*(run.id for run in record.runs().values() if run.finished is None), *record.unreadable])


def version_of(run: Run | None) -> int:
    """Return the version of a recorded run, or 0 for None and for a run that is not recorded."""
    return 0 if run is None or run.stamp is None else run.stamp.version
