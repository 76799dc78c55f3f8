"""The port of a record that all hosts share, and the rule that joins it with the journals of one host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final, Protocol

from kquota.errors import KquotaError
from kquota.reassign.run import Owner, Run
from kquota.stores.state.journal import Kept
from kquota.stores.state.process import Holder

ZOOKEEPER: Final = "zookeeper"
"""How journals name the record in the znodes of their own cluster."""


class Shared(Protocol):
    """Every run of one cluster, as all hosts see it. Any method may raise Unreachable, and Refused for a login."""

    @property
    def identity(self) -> str | None:
        """What tells this record from any other; None where there is no shared record."""

    @property
    def place(self) -> str:
        """Where it is, for people."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """The runs that this kquota could not read when it last looked, by id, and why not."""

    def lock(self, doing: str, *, take_over: bool) -> AbstractContextManager[None]:
        """Keep every other kquota of the cluster from writing. Raises Busy, naming the holder.

        `take_over` takes the lock also from a holder that may be alive; it writes nothing any more.
        """

    def writer(self) -> Holder | None:
        """Who holds the lock as of the last look, None when nobody does."""

    def must_hold(self) -> None:
        """To be called just before a write. Raises Busy when another kquota has taken over."""

    @property
    def late_seconds(self) -> float:
        """For how long a write of the kquota that was taken over may still arrive at a broker."""

    def keep_alive(self) -> None:
        """To be called while a command waits: others then see that the holder of the lock lives. Raises Busy too."""

    def runs(self, *, whole: bool = False) -> Mapping[str, Run]:
        """Every readable run with its stamp, as of now; unless `whole`, ended ones without their plans and values.

        Raises Busy for a holder that was taken over: it must not write on what another one has written since.
        """

    def put(self, run: Run) -> None:
        """Write this version of a run. Raises Busy when another kquota has taken over."""

    def flush(self) -> None:
        """Every `put` is in the record when this returns; a record may delay it until then."""


class Unshared:
    """No shared record, and why not: only the journals of this host. Implements `Shared`."""

    def __init__(self, *why: str | KquotaError, hidden: bool = False) -> None:
        """`why`: the parts of the reason. `hidden`: there may be a shared record that this user may not read."""
        self.why = KquotaError(*why)
        self.hidden = hidden

    identity = None
    place = "this host"
    late_seconds = 0.0
    unreadable: Mapping[str, str] = {}

    def lock(self, doing: str, *, take_over: bool) -> AbstractContextManager[None]:
        return nullcontext()

    def writer(self) -> Holder | None:
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
    """The runs as they are. Of those in `ahead` this host knows more than the record.

    Runs in `lost` went another way on another host while this one could not see the record.
    """

    runs: Mapping[str, Run]
    ahead: Sequence[str] = ()
    lost: Sequence[str] = ()


def joined(local: Mapping[str, Kept], shared: Mapping[str, Run], identity: str | None) -> Joined:
    """What is true of each run that this host or the record `identity` knows.

    A run that has ended in the record has ended. Otherwise the higher version is true, if it grew out of the other: a
    journal line is written first, so the journal is ahead by the lines of a command that died, or by all that was
    written without the record. It did not if the record has another process's version in the place of one of its lines.
    A run that was in the record and is there no more ended there, and was cleared away. One that began in this record
    and never got there never began: nothing is written to a cluster before its run is on record.
    """
    runs: dict[str, Run] = dict(shared)
    ahead: list[str] = []
    lost: list[str] = []
    for run_id, kept in local.items():
        there, sent = shared.get(run_id), kept.shared.get(identity or "", {})
        if there is None:
            if not sent or (len(sent) == 1 and 1 not in sent) or kept.run.finished is not None:
                runs[run_id] = kept.run
                if kept.run.finished is None and identity is not None:
                    ahead.append(run_id)
            continue
        known, version = version_of(kept.run), version_of(there)
        if there.finished is not None or version >= known:
            if version < known or (sent and version > max(sent) and known > max(sent)):
                lost.append(run_id)
        elif sent and (version > max(sent) or _of_another(sent, there)):
            lost.append(run_id)
        else:
            runs[run_id] = kept.run
            ahead.append(run_id)
    return Joined(runs=runs, ahead=tuple(ahead), lost=tuple(lost))


def _of_another(sent: Mapping[int, Owner | None], there: Run) -> bool:
    """Whether another process wrote the version that is there, of which this host has one of its own."""
    return there.stamp is not None and sent.get(there.stamp.version, there.stamp.by) != there.stamp.by


def version_of(run: Run | None) -> int:
    """The version of a run on record, 0 for one that is not."""
    return 0 if run is None or run.stamp is None else run.stamp.version
