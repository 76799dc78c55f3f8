"""The values to set and to restore, so that a run leaves the throttles of other clients as it found them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries, merge, without
from kquota.terms import EVERY_REPLICA


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The last value of other clients (`prior`, None if unset), and the list entries or rates of the run (`ours`)."""

    setting: Setting
    prior: str | None
    ours: tuple[str, ...]


def take(
    setting: Setting, now: str | None, wanted: tuple[str, ...], mine: Taken | None, others: Sequence[Taken]
) -> Taken:
    """Return the values of a setting that a run takes. A run does not take values that another client has set.

    `mine` are the values that the run took before, or None, and `others` are the values that other unfinished runs
    hold, oldest first. The run also takes an entry or a rate that one of these runs set, so that the last of the runs
    restores it. `prior` is then the prior value of that run, so that no run restores a value that another run set.
    """
    present = set(entries(now)) if setting.is_list else {now}
    held = {value for other in others for value in other.ours}
    own = mine.ours if mine else ()
    if EVERY_REPLICA in present and setting.is_list:
        # The last run that needs the `*` of another run removes it. The `*` of another client stays.
        added: tuple[str, ...] = (EVERY_REPLICA,) if EVERY_REPLICA in held else ()
    else:
        added = tuple(value for value in wanted if value not in present or value in held)
    # A kquota that died while unsetting a list may have left the list empty. An empty list is not a prior value.
    emptied = setting.is_list and now == ""
    holders = [t for t in (*((mine,) if mine else ()), *others) if present & set(t.ours) or (emptied and t.ours)]
    prior = holders[0].prior if holders else now
    if holders and setting.is_list and EVERY_REPLICA not in present:
        # Other clients may have added or removed entries since the holder took the list.
        prior = without(now, held.union(own), prior)
    return Taken(setting=setting, prior=prior, ours=tuple(dict.fromkeys((*own, *added))))


def restored_value(taken: Taken, now: str | None, others: Sequence[Taken]) -> str | None:
    """Return the value to write when a run ends. It equals `now` if nothing needs to change.

    A list loses the entries of the run that no other unfinished run holds. A list with the run's `*` becomes `prior`
    with the entries of other unfinished runs, unless one of these runs holds the `*`. A rate becomes `prior` if it is
    still a rate that the run set. A rate that another client has changed, or that another unfinished run holds, does
    not change.
    """
    if taken.setting.is_list and EVERY_REPLICA in taken.ours and EVERY_REPLICA in entries(now):
        remaining = [entry for other in others for entry in other.ours]
        if EVERY_REPLICA in remaining:
            return now
        return merge(taken.prior, remaining) if remaining else taken.prior
    if taken.setting.is_list:
        held = {entry for other in others for entry in other.ours}
        removed = [entry for entry in taken.ours if entry not in held]
        touched = set(removed) & set(entries(now)) or (now == "" and taken.ours)
        return without(now, removed, taken.prior) if touched else now
    held_by_other = any(other.ours for other in others)
    return taken.prior if now in taken.ours and not held_by_other else now


def passed_on(taken: Taken, now: str | None, other: Taken) -> Taken:
    """Return the values that an unfinished run holds for a rate after the run of `taken` has ended.

    `other` are the values that the unfinished run held before. The result also includes the values of the ended run,
    even if `now` is another value, because a stale read does not show the last write. For a list, the result is
    `other`.
    """
    if taken.setting.is_list:
        return other
    prior = taken.prior if now in taken.ours and now not in other.ours else other.prior
    return replace(other, prior=prior, ours=tuple(dict.fromkeys((*other.ours, *taken.ours))))


def changed_by_another(taken: Taken, now: str | None, others: Sequence[Taken]) -> bool:
    """Return whether another client has given a rate a value that is neither the run's nor the prior value.

    The rate must then not be restored. Returns False for a list, and for a rate that another unfinished run holds.
    """
    if taken.setting.is_list or not taken.ours or any(other.ours for other in others):
        return False
    return now not in (*taken.ours, taken.prior)


def repeated(taken: Taken, now: str | None, others: Sequence[Taken]) -> Change | None:
    """Return a change that writes `now` again if `now` lacks the run's values and may be stale, otherwise None."""
    if not _maybe_unseen(taken, now, others) or restored_value(taken, now, others) != now:
        return None
    return Change(setting=taken.setting, before=now, after=now)


def _maybe_unseen(taken: Taken, now: str | None, others: Sequence[Taken]) -> bool:
    if not taken.setting.is_list:
        free = taken.ours and not any(other.ours for other in others)
        return bool(free) and now == taken.prior and now not in taken.ours
    shown = set(entries(now))
    remaining = set(taken.ours) - {entry for other in others for entry in other.ours}
    return bool(remaining) and not remaining & shown and EVERY_REPLICA not in shown
