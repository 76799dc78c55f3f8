"""Changes of throttles as text for people, and settings that could not be changed yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kquota.cli.output import Part, spread
from kquota.cli.throttle.entries import compact
from kquota.reassign.throttle_writes import Released
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.terms import BrokerId
from kquota.throttle.standing import order, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending(Part):
    """A setting that could not be written, and the reason."""

    setting: Setting = spread()
    why: str


def pending(why: Mapping[Setting, str]) -> tuple[Pending, ...]:
    """Return the pending settings, sorted, with their reasons."""
    return tuple(Pending(setting=setting, why=text) for setting, text in sorted(why.items()))


def difference(changes: Iterable[Change]) -> Iterator[str]:
    """Yield a line for each change: the setting, and its value before and after."""
    for change in changes:
        yield f"{change.setting}: {value(change.setting, change.before)} -> {value(change.setting, change.after)}"


def lists_first(changes: Iterable[Change]) -> Iterator[str]:
    """Yield the lines of `difference` in the order of the settings, lists before rates."""
    return difference(sorted(changes, key=lambda change: (not change.setting.is_list, order(change.setting))))


def value(setting: Setting, stored: str | None) -> str:
    """Return a stored value as text for people, or `unset` for None."""
    if stored is None:
        return "unset"
    return compact(setting, entries(stored)) if setting.is_list else written(stored)


def remaining(released: Released, done: str = "restored") -> Iterator[str]:
    """Yield notes about settings that kquota left unchanged or could not read, and warnings about pending settings,
    which are not yet `done`.
    """
    yield from released.notes
    for setting, why in sorted(released.pending.items()):
        yield f"warning: {setting} is not {done} yet ({why}). Run the same command again"


def cleared_of(brokers: Iterable[BrokerId], released: Released) -> tuple[BrokerId, ...]:
    """Return the dead `brokers` without pending settings: the controllers have accepted the removal of their rates."""
    left = {setting.name for setting in released.pending}
    return tuple(broker for broker in brokers if str(broker) not in left)
