"""What to set and what to give back, value by value: so that others' throttles outlive ours exactly as they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kquota.errors import Refused
from kquota.terms import EVERY_REPLICA, LONGEST_VALUE, THROTTLE_LISTS, BrokerId, TopicPartition, listed_replica


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """One dynamic config key of one topic or one broker."""

    kind: Literal["broker", "topic"]
    name: str
    key: str

    @classmethod
    def of_topic(cls, topic: str, key: str) -> Setting:
        """The config `key` of a topic."""
        return cls("topic", topic, key)

    @classmethod
    def of_broker(cls, broker: BrokerId, key: str) -> Setting:
        """The dynamic config `key` of one broker."""
        return cls("broker", str(broker), key)

    @property
    def is_list(self) -> bool:
        """Whether it lists throttled replicas (KIP-73), so that only entries of it are ours; else the value is one."""
        return self.key in THROTTLE_LISTS

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value to write: `after` in place of `before`, and only then; None is unset, which is not the same as ""."""

    setting: Setting
    before: str | None
    after: str | None

    def seen_in(self, value: str | None) -> bool:
        """Whether a value read back shows this change, whoever else changed the same list in between."""
        if not self.setting.is_list:
            return value == self.after
        before, after, now = (set(entries(text)) for text in (self.before, self.after, value))
        if value is not None and not now and self.after is None:
            return False
        if EVERY_REPLICA in now:  # somebody's, in the place of every entry, unless it is the very thing to go
            return EVERY_REPLICA not in before - after
        return after - before <= now and not (before - after) & now


def lists_first(changes: Iterable[Change]) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Changes of lists, then those of rates, as they are written: lists are fewer, and in force at once."""
    every = tuple(changes)
    return tuple(c for c in every if c.setting.is_list), tuple(c for c in every if not c.setting.is_list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a run took: `prior` is what others had last set, `ours` the list entries, or rates, that the run wrote."""

    setting: Setting
    prior: str | None
    ours: tuple[str, ...]


def entries(text: str | None) -> tuple[str, ...]:
    """The entries of a stored list, each once, in their order; none for unset and "".

    >>> entries(",0:1, 0:2,0:1")
    ('0:1', '0:2')
    """
    return tuple(dict.fromkeys(filter(None, (entry.strip() for entry in (text or "").split(",")))))


def entry_partition(setting: Setting, entry: str) -> TopicPartition | None:
    """The partition that an entry of a topic's list speaks of; None where it speaks of all (`*`) or is malformed."""
    found = listed_replica(entry)
    return None if found is None else TopicPartition(setting.name, found[0])


def merge(current: str | None, ours: Sequence[str]) -> str:
    """The list with ours added: others' entries first and in order, no duplicates, no leading comma; `*` stays.

    `*` among ours takes the place of every entry. Raises Refused when it is longer than a broker can hold.
    """
    present = entries(current)
    if EVERY_REPLICA in present:
        return current or ""
    if EVERY_REPLICA in ours:
        return EVERY_REPLICA
    merged = ",".join(dict.fromkeys((*present, *ours)))
    if len(merged.encode()) > LONGEST_VALUE:
        raise Refused(
            f"a throttled-replica list would be {len(merged.encode()):,} bytes long, a broker holds {LONGEST_VALUE:,}; "
            "split the plan into smaller ones"
        )
    return merged


def without(current: str | None, ours: Iterable[str], prior: str | None) -> str | None:
    """The list with ours taken away: `prior` to the letter when just its entries are left, unset if it was unset."""
    gone = set(ours)
    left = tuple(entry for entry in entries(current) if entry not in gone)
    if current is None or set(left) == set(entries(prior)):
        return prior if current is not None else None
    return ",".join(left)


def needed(wanted: Mapping[Setting, tuple[str, ...]], now: Mapping[Setting, str | None]) -> tuple[Change, ...]:
    """The changes that bring the wanted list entries and rates into force; none where they already are.

    Raises Refused for a list that would be too long.
    """
    changes = []
    for setting, values in wanted.items():
        before = now[setting]
        if setting.is_list:
            complete = set(values) <= set(entries(before)) or EVERY_REPLICA in entries(before)
            after = before if complete else merge(before, values)
        else:
            after = values[0]
        if after != before:
            changes.append(Change(setting=setting, before=before, after=after))
    return tuple(changes)


def take(
    setting: Setting, now: str | None, wanted: tuple[str, ...], mine: Taken | None, others: Sequence[Taken]
) -> Taken:
    """What a run takes of a setting: only what is not already there by somebody else's hand.

    `mine` is what the same run took of it before, `others` what other unfinished runs hold, oldest first. An entry or
    rate that another run put there is taken, too, so that the last of them to end gives it back; and `prior` is then
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
    # A kquota that died while it gave a list back may have left it empty, on the way to unset: that is nobody's value.
    holders = [t for t in (*((mine,) if mine else ()), *others) if present & set(t.ours) or (now == "" and t.ours)]
    return Taken(setting=setting, prior=holders[0].prior if holders else now, ours=tuple(dict.fromkeys((*own, *added))))


def given_back(taken: Taken, now: str | None, others: Sequence[Taken]) -> str | None:
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


def handed_over(taken: Taken, now: str | None, other: Taken) -> Taken:
    """What `other`, an unfinished run's hold on the same rate, becomes when the run of `taken` ends before it."""
    if taken.setting.is_list or now not in taken.ours:
        return other
    prior = other.prior if now in other.ours else taken.prior
    return replace(other, prior=prior, ours=tuple(dict.fromkeys((*other.ours, *taken.ours))))
