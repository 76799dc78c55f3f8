"""Changes of throttles as people read them, and what could not be changed yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kquota.cli.output import Part, spread
from kquota.cli.throttle.entries import compact
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.throttle.set_and_clear import GivenBack
from kquota.throttle.standing import order, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending(Part):
    """A setting that could not be written, and why."""

    setting: Setting = spread()
    why: str


def pending(why: Mapping[Setting, str]) -> tuple[Pending, ...]:
    """In the order of the settings."""
    return tuple(Pending(setting=setting, why=text) for setting, text in sorted(why.items()))


def difference(changes: Iterable[Change]) -> Iterator[str]:
    """Each setting as it is and as it will be."""
    for change in changes:
        yield f"{change.setting}: {value(change.setting, change.before)} -> {value(change.setting, change.after)}"


def lists_first(changes: Iterable[Change]) -> Iterator[str]:
    """The same in the order of the settings, lists before rates."""
    return difference(sorted(changes, key=lambda change: (not change.setting.is_list, order(change.setting))))


def value(setting: Setting, stored: str | None) -> str:
    """A stored value for people."""
    if stored is None:
        return "unset"
    return compact(setting, entries(stored)) if setting.is_list else written(stored)


def remaining(given: GivenBack) -> Iterator[str]:
    """For the person: what stays, and what is still to come."""
    yield from given.notes
    for setting, why in sorted(given.pending.items()):
        yield f"warning: {setting} is not restored yet ({why}). Run the same command again"
