"""The writes that set and restore the throttle of a run. The run is recorded before its throttle is set. After a write,
kquota waits until reads show the new value, for at most `SEEN_SECONDS`, but not for settings of dead brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from kquota.errors import Busy, Conflict, KquotaError, NextStep, Refused, StepFor, Unknown, Unreachable
from kquota.reassign.port import Clock, MoveCluster, MovePorts
from kquota.reassign.restoring import (
    assumed_values,
    others_after,
    part_of,
    passing_on,
    repeat_changes,
    restore_changes,
    taking,
    unchanged_rates,
    without_values,
)
from kquota.reassign.run import Run, others_than, with_id
from kquota.settings.change import Change, lists_first, needed
from kquota.settings.resource import Setting
from kquota.terms import SEEN_SECONDS, BrokerId, TopicPartition

_STEP: Final = 0.05
_ATTEMPTS: Final = 5

WantedValues: TypeAlias = Mapping[Setting, tuple[str, ...]]


class Unread(KquotaError):
    """The reason why a setting is pending: its value could not be read. `rest` is the end of the sentence."""

    def __init__(self, *rest: object) -> None:
        super().__init__("could not be read", *rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """The changes that were made, the settings that are still pending (with reasons), and notes for the operator."""

    restored: tuple[Change, ...] = ()
    pending: Mapping[Setting, KquotaError] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class UnconfirmedWrite(Unreachable):
    """The connection was lost while a throttle was written, so reads may not show the write yet."""


def wait_until(done: Callable[[], bool], clock: Clock) -> bool:
    """Wait until `done` returns True, for at most `SEEN_SECONDS`. Return False if the time is up first."""
    deadline = clock.monotonic() + SEEN_SECONDS
    while not done():
        if clock.monotonic() >= deadline:
            return False
        clock.sleep(_STEP)
    return True


def read(cluster: MoveCluster, wanted: WantedValues) -> dict[Setting, str | None]:
    """Return the value of every wanted setting, or None if it is unset. Raises Unreachable if a value cannot be
    read.
    """
    now = dict(cluster.values(list(wanted)))
    if missing := [setting for setting in wanted if setting not in now]:
        setting = missing[0]
        if setting.is_list:
            describe = StepFor(NextStep.SHOW_TOPIC_CONFIGS, setting.name)
            raise Unreachable(f"{setting} could not be read. ", describe, " shows the reason")
        raise Unreachable(f"{setting} could not be read. Check that the broker is running")
    return now


def enforce(ports: MovePorts, run: Run, wanted: WantedValues, now: Mapping[Setting, str | None]) -> Run:
    """Write `wanted`, wait until reads show it, and return the recorded run. `now` has the current values.

    If other clients write at the same time, kquota reads the values, and then merges and writes again. It also records
    new prior values of other open runs, as `others_after` returns them.

    Raises UnconfirmedWrite if the connection is lost during a write. Raises Unknown if a write is uncertain or does not
    become visible in time. Raises Conflict if other clients write during each of `_ATTEMPTS` attempts. Also raises the
    other errors of the cluster and of the record.
    """
    for _ in range(_ATTEMPTS):
        changes = needed(wanted, now)
        others = _others_after(ports, run, changes)
        try:
            errors = ports.cluster.change(changes) if changes else {}
            unseen = _unseen(ports, [c for c in changes if c.setting not in errors])
        except Unreachable as lost:
            raise UnconfirmedWrite(lost) from lost
        # An unknown write comes first, because it may still take effect, so the run must stay open.
        if (unknown := next((one for one in errors.values() if isinstance(one, Unknown)), None)) is not None:
            raise unknown
        if unseen:
            raise Unknown(
                f"{unseen[0].setting} was written, but the cluster does not show it after {SEEN_SECONDS:.0f} s"
            )
        for error in errors.values():
            if not isinstance(error, Conflict):
                raise error
        if not errors:
            return run
        now = read(ports.cluster, wanted)
        run = record(ports, run, taking(run, wanted, now, others))
    raise Conflict(
        f"{next(iter(errors))}: another client changed the value {_ATTEMPTS} times in a row. Run the same command again"
    )


def _others_after(ports: MovePorts, run: Run, changes: Sequence[Change]) -> tuple[Run, ...]:
    others = others_than(run, ports.runs.unfinished())
    after = others_after(run, changes, others)
    return tuple(record(ports, before, other) for before, other in zip(others, after, strict=True))


def restore_run(ports: MovePorts, run: Run, *, close: bool = True, certain: bool = False) -> Restoration:
    """Restore every value that the run took, lists before rates, and close the run unless something is pending.

    Lists come first, because they are usually fewer and take effect at once. A rate without a list throttles nothing.
    If something is pending, or without `close`, the run stays open, and holds only what is pending. If a late write of
    a kquota that lost the lock may still arrive, this function waits until none can, and restores again.

    Without `certain`, kquota also writes current values again, because a read does not prove that the run's values are
    unset. Give `certain` only if this process wrote all values itself and read them back. Raises the errors of the
    cluster and of the record.
    """
    restoration = _restore(ports, run, certain=certain)
    if ports.runs.late_seconds > 0:
        ports.clock.sleep(ports.runs.late_seconds)
        again = _restore(ports, run)
        restoration = replace(again, restored=tuple(dict.fromkeys((*restoration.restored, *again.restored))))
    if close and not restoration.pending:
        # A closed record keeps the values that the run took, because operators read the record later.
        record(ports, run, replace(run, finished=ports.clock.now()))
    else:
        # Record only pending values: a broker may be dead for a long time, and later moves may take restored settings.
        record(ports, run, without_values(run, run.taken, restoration.pending))
    return restoration


def restore_after(ports: MovePorts, run: Run, error: KquotaError) -> Restoration:
    """Restore the values that a run had written before `error`, as far as possible. If the restoration fails, all
    settings are pending. Raises Busy if another kquota has taken over the lock, because that process owns the run now.
    """
    try:
        # A failed step may have recorded more than its caller knows.
        latest = with_id(ports.runs.unfinished(), run.id)
        return restore_run(ports, latest or run, certain=not isinstance(error, UnconfirmedWrite))
    except Busy:
        raise
    except KquotaError as second:
        return Restoration(pending=dict.fromkeys(run.taken, second))


def restore_ended(ports: MovePorts, run: Run, ended: Collection[TopicPartition]) -> tuple[Restoration, Run]:
    """Restore the list entries of partitions whose moves have ended. Return the result, and the recorded run without
    the restored entries. Raises the errors of the cluster and of the record.
    """
    part = part_of(run, ended)
    if not part.taken:
        return Restoration(), run
    restoration = _restore(ports, part)
    return restoration, record(ports, run, without_values(run, part.taken, restoration.pending))


def _restore(ports: MovePorts, part: Run, *, certain: bool = False) -> Restoration:
    """Restore the values in `part`, and retry after a conflict. Values that cannot be restored now are pending."""
    others = others_than(part, ports.runs.unfinished())
    done: list[Change] = []
    for _ in range(_ATTEMPTS):
        now = ports.cluster.values(list(part.taken))
        pending: dict[Setting, KquotaError] = {setting: Unread() for setting in part.held if setting not in now}
        later = _pass_on(ports, part, now, others)
        changes = restore_changes(part, now, others)
        everything = changes if certain else (*changes, *repeat_changes(part, now, others))
        errors = _write_errors(ports, everything)
        done += [change for change in changes if change.setting not in errors]
        pending |= errors
        if not any(isinstance(error, Conflict) for error in errors.values()):
            break
    # `overwrite` accepts only settings of dead brokers. An unread setting of a topic stays pending.
    unread = [setting for setting in pending if setting not in now and setting.kind == "broker"]
    overwritten = _overwritten(ports, part, unread, later) if unread else Restoration()
    return Restoration(
        restored=(*done, *overwritten.restored),
        pending={**{s: why for s, why in pending.items() if s not in unread}, **overwritten.pending},
        notes=(*unchanged_rates(part, now, others), *overwritten.notes),
    )


def _pass_on(ports: MovePorts, part: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[Run, ...]:
    """Record that other runs restore the values that they share with `part`. Return all other runs.

    Each run that shares values is written, even if it does not change, because the journal of a process that lost the
    lock may say that this run has ended. Such an end no longer counts once a later version of the run is recorded.
    """
    later = tuple(passing_on(part, now, other, others) for other in others)
    for other in later:
        if other.held.keys() & part.taken.keys():
            ports.runs.update(other)
    return later


def _overwritten(ports: MovePorts, part: Run, unread: Collection[Setting], others: Sequence[Run]) -> Restoration:
    """Restore settings of dead brokers through the controllers."""
    dead = replace(part, taken={setting: part.taken[setting] for setting in unread})
    assumed = assumed_values(dead)
    changes = restore_changes(dead, assumed, others)
    try:
        done = ports.cluster.overwrite({change.setting: change.after for change in changes})
    except (Unreachable, Refused) as error:
        return Restoration(pending=dict.fromkeys(unread, Unread(", and ", error)))
    _pass_on(ports, dead, assumed, others)
    accepted = tuple(change for change in changes if change.setting not in done.errors)
    return Restoration(
        restored=accepted,
        pending={setting: Unread(", and ", error) for setting, error in done.errors.items()},
        notes=tuple(_unread_before(change, done.by) for change in accepted),
    )


def clear_dead(cluster: MoveCluster, brokers: Collection[BrokerId], keys: Collection[str]) -> Restoration:
    """Remove these settings of dead brokers through the controllers, whatever their values are.

    `restored` is empty in the result, because the previous values are unknown. Settings that could not be removed are
    pending, with the reason.
    """
    wanted = [Setting.of_broker(broker, key) for broker in brokers for key in keys]
    if not wanted:
        return Restoration()
    try:
        done = cluster.overwrite(dict.fromkeys(wanted))
    except (Unreachable, Refused) as error:
        return Restoration(pending=dict.fromkeys(wanted, Unread(", and ", error)))
    failed = {setting.name for setting in done.errors}
    return Restoration(
        pending={setting: Unread(", and ", error) for setting, error in done.errors.items()},
        notes=tuple(
            f"broker {broker} is dead: {done.by} accepted the change, so the rates of broker {broker} are unset when "
            "it starts. The previous values are unknown"
            for broker in brokers
            if str(broker) not in failed
        ),
    )


def _unread_before(change: Change, by: str) -> str:
    after = "unset" if change.after is None else change.after
    return (
        f"broker {change.setting.name} is dead: {by} accepted the change, so {change.setting.key} is {after} when the "
        "broker starts. The previous value could not be read"
    )


def write(ports: MovePorts, changes: Sequence[Change]) -> Restoration:
    """Make each change if the value is still its `before`, lists before rates, and wait until reads show the changes.

    A change that fails is pending, and is not retried. A change that does not become visible within `SEEN_SECONDS` is
    also pending. Raises the errors of the cluster.
    """
    errors = _write_errors(ports, changes)
    return Restoration(
        restored=tuple(change for change in changes if change.setting not in errors),
        pending=errors,
    )


def _write_errors(ports: MovePorts, changes: Sequence[Change]) -> dict[Setting, KquotaError]:
    """Write the changes, and return the errors of those that failed or did not become visible in time."""
    errors: dict[Setting, KquotaError] = {}
    for batch in filter(None, lists_first(changes)):
        errors |= ports.cluster.change(batch)
        for change in _unseen(ports, [c for c in batch if c.setting not in errors]):
            errors[change.setting] = Unknown(
                f"was written, but the cluster does not show it after {SEEN_SECONDS:.0f} s"
            )
    return errors


def _unseen(ports: MovePorts, changes: Sequence[Change]) -> list[Change]:
    left = list(changes)

    def seen() -> bool:
        if left:
            now = ports.cluster.values([change.setting for change in left])
            left[:] = [c for c in left if c.setting not in now or not c.seen_in(now[c.setting])]
        return not left

    wait_until(seen, ports.clock)
    return left


def record(ports: MovePorts, before: Run, after: Run) -> Run:
    """Return `after`. If it differs from `before`, record it first. Raises the errors of the record."""
    if after != before:
        ports.runs.update(after)
    return after
