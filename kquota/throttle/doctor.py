"""The rules of `doctor`, in the order of their findings. They find throttles that are left over, have no effect or are
wrong.

The module also selects the values that `doctor --fix` can remove, and determines when each was first seen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from kquota.measure import counted
from kquota.reassign.recovery import not_submitted
from kquota.reassign.run import Purpose
from kquota.settings.change import Change, lists_first
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import without
from kquota.throttle import doctor_lists, doctor_rates
from kquota.throttle.cluster_throttles import ClusterThrottles, Finding, Remedy, order

DoctorRule: TypeAlias = Callable[[ClusterThrottles], Iterator[Finding]]
Values: TypeAlias = Mapping[Setting, tuple[str, ...]]
"""Rates and list entries, by setting."""


def ended_runs(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report open runs without running moves: all moves have ended, or some partitions are not submitted. Like `move
    status`, the rule ignores partitions that can never be submitted.

    Runs of `throttle set`, which have no moves, are ignored. Runs of hidden topics are also ignored, because their
    state is unknown.
    """
    hidden = set(throttles.hidden_topics)
    for run in throttles.runs:
        if not hidden.isdisjoint(run.plan.topics):
            continue
        if run.purpose is not Purpose.MOVE or any(name in throttles.snapshot.running for name in run.plan.targets):
            continue
        waiting, every = len(not_submitted(run, throttles.snapshot)), counted(len(run.goal.targets), "partition")
        places = {(setting.kind, setting.name) for setting in run.held}
        kinds = sorted(Counter(kind for kind, _ in places).items(), reverse=True)
        yield Finding(
            rule="run-ended",
            where=f"run {run.id}",
            what=f"{waiting:,} of its {every} {'is' if waiting == 1 else 'are'} not submitted yet"
            if waiting
            else "all of its moves have ended, but the run is still open",
            effect=f"its throttle is still set on {' and '.join(counted(count, kind) for kind, count in kinds)}"
            if places
            else "no throttle is left to restore",
            remedy=Remedy.RESUME_RUN if waiting else Remedy.END_RUN,
        )


RULES: Final[tuple[DoctorRule, ...]] = (
    ended_runs,
    doctor_rates.without_lists,
    doctor_lists.without_rates,
    doctor_lists.stale,
    doctor_lists.caught_up,
    doctor_lists.without_move,
    doctor_lists.empty,
    doctor_lists.on_brokers,
    doctor_rates.differ_between_brokers,
    doctor_rates.differ_between_sides,
    doctor_rates.not_in_force,
    doctor_lists.malformed,
    doctor_lists.too_long,
    doctor_lists.wildcard,
)


def findings(throttles: ClusterThrottles) -> tuple[Finding, ...]:
    """Return every finding, in the order of `RULES`."""
    return tuple(finding for rule in RULES for finding in rule(throttles))


def removable(
    throttles: ClusterThrottles, allowed: Callable[[Setting, str], bool] = lambda _setting, _value: True
) -> Values:
    """Return every leftover that `allowed` accepts, in display order.

    This includes rates that become leftovers when their lists are removed. It excludes values that a recorded run holds
    or a running move can use. After all leftovers are removed, no fixable and allowed finding remains.
    """
    cleared: dict[Setting, tuple[str, ...]] = {}
    while True:
        more: defaultdict[Setting, list[str]] = defaultdict(list)
        for finding in findings(throttles.after(changes(throttles, cleared))):
            if finding.fixable:
                for setting, values in finding.values.items():
                    more[setting] += [value for value in values if allowed(setting, value)]
        if not any(more.values()):
            return {setting: cleared[setting] for setting in sorted(cleared, key=order)}
        for setting, fresh in more.items():
            if fresh:
                cleared[setting] = tuple(dict.fromkeys((*cleared.get(setting, ()), *fresh)))


def changes(throttles: ClusterThrottles, cleared: Values) -> tuple[Change, ...]:
    """Return the changes that remove these values. Lists come first, because they are usually fewer and take effect at
    once.
    """
    now = throttles.values
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
    """The leftovers that the last check saw, with their times."""

    at: datetime
    """The time of the last check."""
    first: Mapping[Setting, Mapping[str, datetime]] = field(default_factory=dict)
    """The time of the first check that saw each leftover, by setting and value. Every later check also saw the
    leftover.
    """

    def old(self, setting: Setting, value: str, seconds: float) -> bool:
        """Return whether this leftover was first seen at least `seconds` before the last check. A leftover that the
        last check did not see is not old.
        """
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
