"""What to set and what to restore, value by value: so that others' throttles outlive ours exactly as they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries, without
from kquota.terms import EVERY_REPLICA


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a run took: `prior` is what others had last set, `ours` the list entries, or rates, that the run wrote."""

    setting: Setting
    prior: str | None
    ours: tuple[str, ...]


def take(
    setting: Setting, now: str | None, wanted: tuple[str, ...], mine: Taken | None, others: Sequence[Taken]
) -> Taken:
    """What a run takes of a setting: only what is not already there by somebody else's hand.

    `mine` is what the same run took of it before, `others` what other unfinished runs hold, oldest first. An entry or
    rate that another run put there is taken, too, so that the last of them to end restores it; and `prior` is then
    theirs, so that nothing ever goes back to another run's value.
    """
    present = set(entries(now)) if setting.is_list else {now}
    held = {value for other in others for value in other.ours}
    own = mine.ours if mine else ()
    if EVERY_REPLICA in present and setting.is_list:
        # Another run's goes when the last run that needs it has ended; anybody else's stays for good.
        added: tuple[str, ...] = (EVERY_REPLICA,) if EVERY_REPLICA in held else ()
    else:
        added = tuple(value for value in wanted if value not in present or value in held)
    # A kquota that died while it restored a list may have left it empty, on the way to unset: that is nobody's value.
    emptied = setting.is_list and now == ""
    holders = [t for t in (*((mine,) if mine else ()), *others) if present & set(t.ours) or (emptied and t.ours)]
    prior = holders[0].prior if holders else now
    if holders and setting.is_list and EVERY_REPLICA not in present:
        # Others may have added entries, or taken some of theirs away, since the holder took the list.
        prior = without(now, held.union(own), prior)
    return Taken(setting=setting, prior=prior, ours=tuple(dict.fromkeys((*own, *added))))


def restored_value(taken: Taken, now: str | None, others: Sequence[Taken]) -> str | None:
    """The value to leave behind when a run ends; equal to `now` when there is nothing to do.

    A list loses the run's own entries that no other unfinished run holds. A rate goes back to `prior` if it is still
    one that the run set; a rate that somebody changed meanwhile, or that another unfinished run holds, stays.
    """
    if taken.setting.is_list and EVERY_REPLICA in taken.ours and EVERY_REPLICA in entries(now):
        return now if any(EVERY_REPLICA in other.ours for other in others) else taken.prior
    if taken.setting.is_list:
        held = {entry for other in others for entry in other.ours}
        gone = [entry for entry in taken.ours if entry not in held]
        touched = set(gone) & set(entries(now)) or (now == "" and taken.ours)
        return without(now, gone, taken.prior) if touched else now
    held_by_other = any(other.ours for other in others)
    return taken.prior if now in taken.ours and not held_by_other else now


def passed_on(taken: Taken, now: str | None, other: Taken) -> Taken:
    """What `other`, an unfinished run's hold on the same rate, becomes when the run of `taken` ends before it.

    It holds the ended run's values too, even where `now` is another one: a stale read does not show the last write.
    """
    if taken.setting.is_list:
        return other
    prior = taken.prior if now in taken.ours and now not in other.ours else other.prior
    return replace(other, prior=prior, ours=tuple(dict.fromkeys((*other.ours, *taken.ours))))


def maybe_unseen(taken: Taken, now: str | None, others: Sequence[Taken]) -> bool:
    """Whether a read that shows nothing of what the run wrote may be stale, so that others' value must be restated."""
    if not taken.setting.is_list:
        free = taken.ours and not any(other.ours for other in others)
        return bool(free) and now == taken.prior and now not in taken.ours
    shown = set(entries(now))
    gone = set(taken.ours) - {entry for other in others for entry in other.ours}
    return bool(gone) and not gone & shown and EVERY_REPLICA not in shown
