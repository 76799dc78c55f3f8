"""Sets and restores the throttle of a run. The run is recorded before its throttle is set. After a write to a live
broker, kquota waits until reads show the new value, for at most `SEEN_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kquota.errors import Conflict, KquotaError, Refused, Unknown, Unreachable
from kquota.reassign.port import Clock, MoveCluster, Runs
from kquota.reassign.run import (
    Run,
    changed_by_others,
    others_than,
    part_of,
    passing_on,
    repeat_changes,
    replacing,
    restore_changes,
    taking,
    without_values,
)
from kquota.reassign.throttle import Taken
from kquota.settings.change import Change, lists_first, needed
from kquota.settings.resource import Setting
from kquota.terms import SEEN_SECONDS, BrokerId, TopicPartition

_STEP: Final = 0.05
_ATTEMPTS: Final = 5
UNREAD: Final = "could not be read"

Wanted = Mapping[Setting, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The ports that a run uses. `others` are the other unfinished runs of the cluster, oldest first.

    `sizes` are the known sizes of partitions, for a run that limits the bytes in flight.
    """

    cluster: MoveCluster
    runs: Runs
    clock: Clock
    others: tuple[Run, ...] = ()
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """The changes that were made, the settings that are still pending with the reason, and notes for the operator."""

    restored: tuple[Change, ...] = ()
    pending: Mapping[Setting, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Unwitnessed(Unreachable):
    """The connection was lost while a throttle was written, so reads may not show the write yet."""


def wait_until(done: Callable[[], bool], clock: Clock, seconds: float = SEEN_SECONDS) -> bool:
    """Wait until `done` is true, for at most `seconds`, and return whether it is."""
    deadline = clock.monotonic() + seconds
    while not done():
        if clock.monotonic() >= deadline:
            return False
        clock.sleep(_STEP)
    return True


def read(cluster: MoveCluster, wanted: Wanted) -> dict[Setting, str | None]:
    """Return the value of every wanted setting. Raises Unreachable if a value cannot be read."""
    now = dict(cluster.values(list(wanted)))
    if missing := [setting for setting in wanted if setting not in now]:
        raise Unreachable(f"{missing[0]} could not be read. Check that the broker is running")
    return now


def enforce(world: World, run: Run, wanted: Wanted, now: Mapping[Setting, str | None]) -> Run:
    """Write `wanted` over `now`, and merge again if other clients write at the same time. Return the recorded run.

    Raises the error of the cluster or the record, Unwitnessed if the cluster did not answer a write, Unknown if a write
    did not become visible in time, and Conflict after `_ATTEMPTS` attempts.
    """
    for _ in range(_ATTEMPTS):
        changes = needed(wanted, now)
        others = _replaced(world, run, changes)
        try:
            errors = world.cluster.change(changes) if changes else {}
            unseen = _unseen(world, [c for c in changes if c.setting not in errors])
        except Unreachable as lost:
            raise Unwitnessed(str(lost)) from lost
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
        now = read(world.cluster, wanted)
        run = record(world, run, taking(run, wanted, now, others))
    raise Conflict(
        f"{next(iter(errors))}: another client changed the value {_ATTEMPTS} times in a row. Run the same command again"
    )


def _replaced(world: World, run: Run, changes: Sequence[Change]) -> tuple[Run, ...]:
    """Record the other open runs as they are after these changes, and return them."""
    others = others_than(run, world.runs.unfinished())
    after = replacing(run, changes, others)
    return tuple(record(world, before, other) for before, other in zip(others, after, strict=True))


def release(world: World, run: Run, *, close: bool = True, certain: bool = False) -> Released:
    """Restore every value that the run took, lists before rates, and close the run unless something is pending.

    A list without a rate throttles nothing, nor does a rate without a list. Lists come first, because they are usually
    fewer and take effect at once. Without `close`, the run stays open, and holds only what is pending. Without
    `certain`, kquota also writes current values again, because a read does not prove that the run's values are unset.
    Give `certain` only if this process wrote all values itself and read them back. If a late write of a kquota that
    lost the lock may still arrive, this function waits until none can, and restores again.
    """
    released = _restore(world, run, certain=certain)
    if world.runs.late_seconds > 0:
        world.clock.sleep(world.runs.late_seconds)
        again = _restore(world, run)
        released = replace(again, restored=tuple(dict.fromkeys((*released.restored, *again.restored))))
    if released.pending:
        # Record only pending values: a broker may be dead for a long time, and later moves may take restored settings.
        record(world, run, without_values(run, _restored(run, released)))
    else:
        # A closed record keeps the values that the run took, because operators read the record later.
        record(world, run, replace(run, finished=world.clock.now()) if close else without_values(run, run.taken))
    return released


def release_ended(world: World, run: Run, ended: Collection[TopicPartition]) -> tuple[Released, Run]:
    """Restore the list entries of partitions that have ended. Return the result, and the run without the restored
    entries.
    """
    part = part_of(run, ended)
    if not part.taken:
        return Released(restored=()), run
    released = _restore(world, part)
    return released, record(world, run, without_values(run, _restored(part, released)))


def _restored(part: Run, released: Released) -> dict[Setting, Taken]:
    return {setting: taken for setting, taken in part.taken.items() if setting not in released.pending}


def _restore(world: World, part: Run, *, certain: bool = False) -> Released:
    """Restore the values in `part`, and retry after a conflict. Values that cannot be restored now are pending."""
    others = others_than(part, world.runs.unfinished())
    done: list[Change] = []
    for _ in range(_ATTEMPTS):
        now = world.cluster.values(list(part.taken))
        pending = {s: UNREAD for s, taken in part.taken.items() if taken.ours and s not in now}
        heirs = tuple(passing_on(part, now, other) for other in others)
        for heir in heirs:
            _leave_to(world, part, heir)
        changes = restore_changes(part, now, others)
        everything = changes if certain else (*changes, *repeat_changes(part, now, others))
        errors = _written(world, everything)
        done += [change for change in changes if change.setting not in errors]
        pending |= {setting: str(error) for setting, error in errors.items()}
        if not any(isinstance(error, Conflict) for error in errors.values()):
            break
    # `overwrite` accepts only settings of dead brokers. An unread setting of a topic stays pending.
    unread = [setting for setting in pending if setting not in now and setting.kind == "broker"]
    overwritten = _overwritten(world, part, unread, heirs) if unread else Released()
    return Released(
        restored=(*done, *overwritten.restored),
        pending={**{s: why for s, why in pending.items() if s not in unread}, **overwritten.pending},
        notes=(*_left_alone(part, now, others), *overwritten.notes),
    )


def _leave_to(world: World, part: Run, other: Run) -> None:
    """Record that `other` restores the values that it shares with `part`, even if its record does not change.

    The journal of a process that lost the lock may say that `other` has ended. This end counts only if it follows the
    last recorded version. kquota therefore writes a new version here.
    """
    if any(taken.ours and setting in part.taken for setting, taken in other.taken.items()):
        world.runs.update(other)


def _overwritten(world: World, part: Run, unread: Collection[Setting], others: Sequence[Run]) -> Released:
    """Restore settings of dead brokers through the controllers.

    These settings cannot be read, so kquota assumes the last value of the run that differs from the prior value. A
    later value that equals the prior value does not count, because the broker may have died before this value was
    written. If another run holds a setting, that run restores it.
    """
    dead = replace(part, taken={setting: part.taken[setting] for setting in unread})
    assumed = {
        setting: next((value for value in reversed(taken.ours) if value != taken.prior), taken.prior)
        for setting, taken in dead.taken.items()
    }
    changes = restore_changes(dead, assumed, others)
    try:
        done = world.cluster.overwrite({change.setting: change.after for change in changes})
    except (Unreachable, Refused) as error:
        return Released(pending=dict.fromkeys(unread, f"{UNREAD}, and {error}"))
    for other in others:
        _leave_to(world, dead, passing_on(dead, assumed, other))
    accepted = tuple(change for change in changes if change.setting not in done.errors)
    return Released(
        restored=accepted,
        pending={setting: f"{UNREAD}, and {error}" for setting, error in done.errors.items()},
        notes=tuple(_unread_before(change, done.by) for change in accepted),
    )


def clear_dead(cluster: MoveCluster, brokers: Collection[BrokerId], keys: Collection[str]) -> Released:
    """Remove these settings of dead brokers through the controllers, whatever their values are.

    `restored` is empty in the result, because the previous values are unknown.
    """
    wanted = [Setting.of_broker(broker, key) for broker in brokers for key in keys]
    if not wanted:
        return Released()
    try:
        done = cluster.overwrite(dict.fromkeys(wanted))
    except (Unreachable, Refused) as error:
        return Released(pending=dict.fromkeys(wanted, f"{UNREAD}, and {error}"))
    failed = {setting.name for setting in done.errors}
    return Released(
        pending={setting: f"{UNREAD}, and {error}" for setting, error in done.errors.items()},
        notes=tuple(
            f"broker {broker} is dead: {done.by} accepted the change, so its rates are unset when the broker starts. "
            "The previous values are unknown"
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


def write(world: World, changes: Sequence[Change]) -> Released:
    """Make each change if the value is still its `before`, lists before rates, and wait until reads show the changes.

    A change that fails is not retried. A change that does not become visible within `SEEN_SECONDS` is pending.
    """
    errors = _written(world, changes)
    return Released(
        restored=tuple(change for change in changes if change.setting not in errors),
        pending={setting: str(error) for setting, error in errors.items()},
    )


def _written(world: World, changes: Sequence[Change]) -> dict[Setting, KquotaError]:
    """Write lists, then rates, and read them back. Return the errors of settings that were not written or did not
    become visible in time.
    """
    errors: dict[Setting, KquotaError] = {}
    for batch in filter(None, lists_first(changes)):
        errors |= world.cluster.change(batch)
        for change in _unseen(world, [c for c in batch if c.setting not in errors]):
            errors[change.setting] = Unknown(
                f"was written, but the cluster does not show it after {SEEN_SECONDS:.0f} s"
            )
    return errors


def _unseen(world: World, changes: Sequence[Change]) -> list[Change]:
    left = list(changes)

    def seen() -> bool:
        if left:
            now = world.cluster.values([change.setting for change in left])
            left[:] = [c for c in left if c.setting not in now or not c.seen_in(now[c.setting])]
        return not left

    wait_until(seen, world.clock)
    return left


def record(world: World, before: Run, after: Run) -> Run:
    """Record `after` if it differs from `before`, and return it."""
    if after != before:
        world.runs.update(after)
    return after


def on_record(world: World, run: Run) -> Run:
    """Return the open run as last recorded, because a failed step may have recorded more than its caller knows."""
    return next((latest for latest in world.runs.unfinished() if latest.id == run.id), run)


def _left_alone(run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[str, ...]:
    return tuple(
        f"{setting} is now {'unset' if now[setting] is None else now[setting]}, which run {run.id} did not set: "
        "kquota leaves it unchanged"
        for setting in changed_by_others(run, now, others)
    )
