"""What `doctor --fix` may take away, and since when it has been there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from kquota.settings.change import Change, lists_first
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import without
from kquota.throttle.doctor import findings
from kquota.throttle.standing import Standing, order

Values: TypeAlias = Mapping[Setting, tuple[str, ...]]
"""Rates and list entries, by setting."""


def anything(_setting: Setting, _value: str) -> bool:
    """For a cure that may take away whatever is left over."""
    return True


def removable(standing: Standing, allowed: Callable[[Setting, str], bool] = anything) -> Values:
    """Every leftover that is `allowed` to go, also rates that become leftovers when their lists go; in order.

    Nothing that a run on record holds, nothing that a move which runs could use. Once it is all gone, nothing of what
    is then found is fixable and allowed.
    """
    gone: dict[Setting, tuple[str, ...]] = {}
    while True:
        more: defaultdict[Setting, list[str]] = defaultdict(list)
        for finding in findings(standing.after(changes(standing, gone))):
            if finding.fixable:
                for setting, values in finding.values.items():
                    more[setting] += [value for value in values if allowed(setting, value)]
        if not any(more.values()):
            return {setting: gone[setting] for setting in sorted(gone, key=order)}
        for setting, fresh in more.items():
            if fresh:
                gone[setting] = tuple(dict.fromkeys((*gone.get(setting, ()), *fresh)))


def changes(standing: Standing, gone: Values) -> tuple[Change, ...]:
    """What to write so that these values are gone: lists first, as fewer, and in force at once; then rates."""
    now = standing.values
    lists, rates = lists_first(
        Change(
            setting=setting,
            before=now[setting],
            after=without(now[setting], values, None) if setting.is_list else None,
        )
        for setting, values in gone.items()
    )
    return (*lists, *rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """When each leftover was first seen, every time since: what `doctor` remembers from one look to the next."""

    at: datetime
    first: Mapping[Setting, Mapping[str, datetime]] = field(default_factory=dict)

    def old(self, setting: Setting, value: str, seconds: float) -> bool:
        """Whether this leftover was there at every look for so long."""
        first = self.first.get(setting, {}).get(value)
        return first is not None and self.at - first >= timedelta(seconds=seconds)


def seen(before: Sightings | None, leftovers: Values, now: datetime) -> Sightings:
    """What to remember of a look at `now`.

    A leftover that was gone, or in use, at a look in between starts anew; and so does every one when the clock went
    back: nothing is ever old by a clock that cannot be trusted.
    """
    known = before.first if before is not None and before.at <= now else {}
    first = {
        setting: {value: known.get(setting, {}).get(value, now) for value in values}
        for setting, values in leftovers.items()
    }
    return Sightings(at=now, first=first)
