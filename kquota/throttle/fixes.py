"""The values that `doctor --fix` can remove, and when they were first seen."""

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
    """Allow the removal of every leftover."""
    return True


def removable(standing: Standing, allowed: Callable[[Setting, str], bool] = anything) -> Values:
    """Return every leftover that `allowed` accepts, in display order.

    This includes rates that become leftovers when their lists are removed. It excludes values that a recorded run holds
    or a running move can use. After all leftovers are removed, no fixable and allowed finding remains.
    """
    cleared: dict[Setting, tuple[str, ...]] = {}
    while True:
        more: defaultdict[Setting, list[str]] = defaultdict(list)
        for finding in findings(standing.after(changes(standing, cleared))):
            if finding.fixable:
                for setting, values in finding.values.items():
                    more[setting] += [value for value in values if allowed(setting, value)]
        if not any(more.values()):
            return {setting: cleared[setting] for setting in sorted(cleared, key=order)}
        for setting, fresh in more.items():
            if fresh:
                cleared[setting] = tuple(dict.fromkeys((*cleared.get(setting, ()), *fresh)))


def changes(standing: Standing, cleared: Values) -> tuple[Change, ...]:
    """Return the changes that remove these values. Lists come first, because they are usually fewer and take effect at
    once.
    """
    now = standing.values
    lists, rates = lists_first(
        Change(
            setting=setting,
            before=now[setting],
            after=without(now[setting], values, None) if setting.is_list else None,
        )
        for setting, values in cleared.items()
    )
    return (*lists, *rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """The time of the last check (`at`), and for each leftover the time of the first check that saw it (`first`). Every
    later check also saw the leftover.
    """

    at: datetime
    first: Mapping[Setting, Mapping[str, datetime]] = field(default_factory=dict)

    def old(self, setting: Setting, value: str, seconds: float) -> bool:
        """Return whether this leftover was first seen at least `seconds` ago, and by every check since."""
        first = self.first.get(setting, {}).get(value)
        return first is not None and self.at - first >= timedelta(seconds=seconds)


def seen(before: Sightings | None, leftovers: Values, now: datetime) -> Sightings:
    """Return the sightings to keep after a check at `now`.

    A leftover that the previous check did not see, or saw in use, starts with a new time. If the clock went back, every
    leftover starts with a new time, because a wrong clock must not make a leftover old.
    """
    known = before.first if before is not None and before.at <= now else {}
    first = {
        setting: {value: known.get(setting, {}).get(value, now) for value in values}
        for setting, values in leftovers.items()
    }
    return Sightings(at=now, first=first)
