"""The answers of `throttle set`: its changes, and the progress of a returning broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kquota.cli.contract import DONE, NOT_YET, worded
from kquota.cli.output import Answer, JsonObject, hidden, spread
from kquota.cli.throttle.changes import lists_first, pending, remaining
from kquota.errors import KquotaError
from kquota.list_text import named_brokers
from kquota.settings.change import Change
from kquota.terms import BrokerId
from kquota.throttle.set_and_clear import BrokerRecovery, HeldThrottle


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleSet(Answer):
    """The changes that kquota made, or would make in a dry run.

    `record` is the place where the run is recorded. `run` and `record` are None if no run is recorded.
    """

    run: str | None
    record: str | None
    dry_run: bool
    changes: tuple[Change, ...]
    dead: tuple[BrokerId, ...] = hidden()
    """The brokers that keep their rates because they do not answer."""

    def text(self) -> Iterator[str]:
        return lists_first(self.changes)


def _document(seen: BrokerRecovery) -> JsonObject:
    return {
        "run": None if seen.run is None else seen.run.id,
        "done": seen.done,
        "behind": seen.behind,
        "changes": seen.changes,
        "given_back": seen.restoration.restored,
        "pending": pending(seen.restoration.pending),
        "unlimited": seen.unlimited,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovering(Answer):
    """One check of a returning broker."""

    seen: BrokerRecovery = spread(_document)

    def text(self) -> Iterator[str]:
        return lists_first((*self.seen.restoration.restored, *self.seen.changes))


def throttle_set(
    held: HeldThrottle,
    record: str | None,
    *,
    dry_run: bool,
    notes: tuple[str, ...] = (),
    alone: KquotaError | None = None,
) -> ThrottleSet:
    """Return the answer for the throttle that was set, or that a dry run would set.

    `record` is the place where the run is recorded, or None. `alone` is the reason why other hosts do not see the run,
    or None if they see it.
    """
    return ThrottleSet(
        run=None if held.run is None or dry_run else held.run.id,
        record=record,
        dry_run=dry_run,
        changes=held.changes,
        dead=held.dead,
        notes=(*notes, *_dead(held.dead), *_outcome(held, record, alone, dry_run=dry_run)),
    )


def _dead(brokers: Sequence[BrokerId]) -> Iterator[str]:
    if brokers:
        yield (
            f"warning: the rates of {named_brokers(brokers)} (dead or unreachable) stay the same. Run the same command "
            "again when all brokers are back"
        )


def _outcome(held: HeldThrottle, record: str | None, alone: KquotaError | None, *, dry_run: bool) -> Iterator[str]:
    if held.run is None or not held.changes:
        yield f"no value that kquota can read needs a change. No config {'would be' if dry_run else 'was'} written"
    elif dry_run:
        yield "nothing was written"
    if held.run is not None and record is not None:
        yield f"run {held.run.id} is recorded, with every previous value, in {record}"
    if alone is not None:
        yield f"note: other hosts do not see this run: {worded(alone)}"


def recovering(seen: BrokerRecovery, broker: BrokerId, *, last: bool) -> Recovering:
    """Return the answer for one check. `last` is False if another check follows.

    The exit code is 8 if replicas are out of sync or a value is not restored yet, otherwise 0.
    """
    notes = tuple(remaining(seen.restoration)) if last else ()
    if seen.done:
        notes += (f"broker {broker} is in sync for all its partitions, and no throttle of this command remains set",)
    return Recovering(
        seen=seen, closing_notes=notes, code=DONE if seen.done else NOT_YET, interim=not last, is_continued=not last
    )
