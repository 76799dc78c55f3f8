"""Changes of configs: the keys that an operator sets or deletes, and conditional writes of one value."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kquota.entity_types import BROKER_LOGGERS
from kquota.errors import Conflict, Invalid
from kquota.settings.resource import Entry, Resource, Setting
from kquota.settings.throttled_lists import entries, merge
from kquota.terms import EVERY_REPLICA


def must_change(add: Collection[str], delete: Collection[str]) -> None:
    """Raise Invalid if both `add` and `delete` are empty, or if a key is in both."""
    if not add and not delete:
        raise Invalid("nothing to change: no key is set and none is deleted. Give a key to set or delete")
    if both := sorted(set(add) & set(delete)):
        raise Invalid(f"{', '.join(both)}: both added and deleted. Either add or delete each key")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """Keys to set and to delete on one resource. Raises Invalid if there is no key, or if a key is in both `add` and
    `delete`.
    """

    resource: Resource
    add: Mapping[str, str] = field(default_factory=dict)
    """The new value of each key to set."""
    delete: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        must_change(self.add, self.delete)

    def seen(self, before: Iterable[Entry], after: Iterable[Entry]) -> bool:
        """Return True if `after` shows this change. Other keys are ignored.

        A broker reports a value as it parsed it (`500` for ` 0500`), and reports only that a password is set. A value
        therefore counts as visible if it is a password, has the same meaning, or has changed since `before`. The
        deletion of a logger's level always counts as visible, because the broker then reports the level that the logger
        inherits.
        """
        stood = {entry.key: entry for entry in before if entry.dynamic}
        now = {entry.key: entry for entry in after if entry.dynamic}
        deleted = () if self.resource.kind == BROKER_LOGGERS else self.delete
        return not set(deleted) & now.keys() and all(
            key in now
            and (now[key].sensitive or meaning(now[key].value or "") == meaning(asked) or now[key] != stood.get(key))
            for key, asked in self.add.items()
        )


def meaning(text: str) -> object:
    """Return a value as a broker understands it: a number, or lower-case list items without blanks around them.

    >>> meaning(" 0500") == meaning("500"), meaning("compact, DELETE") == meaning("compact,delete")
    (True, True)
    """
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return [item.strip().lower() for item in text.split(",")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One conditional write: `after` replaces `before`. None means unset, which differs from ""."""

    setting: Setting
    before: str | None
    after: str | None

    def conflict(self, now: str | None) -> Conflict:
        """Return the error for a setting whose value is `now`, and no longer `before`."""
        is_now, was = ("not set" if value is None else repr(value) for value in (now, self.before))
        return Conflict(f"{self.setting} is now {is_now}, but was {was} a moment ago")

    def seen_in(self, value: str | None) -> bool:
        """Return True if `value`, read after the write, shows this change.

        Other entries of a list are ignored, because other clients may change the same list. An empty list does not show
        that a list was unset.
        """
        if not self.setting.is_list:
            return value == self.after
        before, after, now = (set(entries(text)) for text in (self.before, self.after, value))
        if value is not None and not now and self.after is None:
            return False
        if EVERY_REPLICA in now:
            # `*` names every replica, so a list with `*` shows every change, except one that removes `*`.
            return EVERY_REPLICA not in before - after
        return after - before <= now and not (before - after) & now


def lists_first(changes: Iterable[Change]) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Return two tuples: the changes of lists, and the changes of rates.

    Lists are written first, because they are usually fewer and take effect at once.
    """
    every = tuple(changes)
    return tuple(c for c in every if c.setting.is_list), tuple(c for c in every if not c.setting.is_list)


def needed(wanted: Mapping[Setting, tuple[str, ...]], now: Mapping[Setting, str | None]) -> tuple[Change, ...]:
    """Return the changes that add the wanted list entries and set the wanted rates, in the order of `wanted`.

    Settings that already have the wanted rate, the wanted entries or `*` need no change. Other entries of a list stay,
    unless the wanted entry is `*`. `now` has the current value of each setting, or None if the setting is unset. Raises
    Refused for a list that would be longer than a broker can store.
    """
    changes = []
    for setting, values in wanted.items():
        before = now[setting]
        if setting.is_list:
            complete = set(values) <= set(entries(before)) or EVERY_REPLICA in entries(before)
            after = before if complete else merge(before, values, str(setting))
        else:
            after = values[0]
        if after != before:
            changes.append(Change(setting=setting, before=before, after=after))
    return tuple(changes)
