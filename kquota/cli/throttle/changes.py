"""Changes of throttles as text for people, with list entries and broker ids in a short form.

Settings that could not be changed yet are shown as warnings and as JSON.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kquota.cli.contract import worded
from kquota.cli.output import JsonObject, plain
from kquota.errors import KquotaError
from kquota.reassign.throttle_writes import Restoration
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries, replica
from kquota.terms import BrokerId
from kquota.throttle.cluster_throttles import order, written

_GROUPS: Final = 6


def pending(why: Mapping[Setting, KquotaError]) -> list[JsonObject]:
    """Return the JSON of the settings that could not be written, sorted, with their reasons."""
    return [{**plain(setting), "why": worded(error)} for setting, error in sorted(why.items())]


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


def remaining(found: Restoration, done: str = "restored", again: str = "Run the same command again") -> Iterator[str]:
    """Yield the notes of `found`, and a warning for each pending setting.

    `done` is the word in the warning for the action that is pending, and `again` is the next step.
    """
    yield from found.notes
    for setting, why in sorted(found.pending.items()):
        yield f"warning: {setting} is not {done} yet ({worded(why)}). {again}"


def cleared_of(brokers: Iterable[BrokerId], found: Restoration) -> tuple[BrokerId, ...]:
    """Return the dead `brokers` without pending settings: the controllers have accepted the removal of their rates."""
    left = {setting.name for setting in found.pending}
    return tuple(broker for broker in brokers if str(broker) not in left)


def compact(setting: Setting, values: Sequence[str]) -> str:
    """Return entries in a short form: `0-4:1,2` means ten entries. At most six groups are shown.

    >>> compact(Setting.of_topic("t", "leader.replication.throttled.replicas"), ["0:1", "0:2", "1:1", "1:2", "7:3"])
    '0-1:1,2 7:3'
    """
    by_partition: defaultdict[int, set[int]] = defaultdict(set)
    odd = []
    for value in values:
        named = replica(setting, value)
        if named is None:
            odd.append(value)
        else:
            by_partition[named[0].partition].add(named[1])
    together: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for number in sorted(by_partition):
        together[tuple(sorted(by_partition[number]))].append(number)
    groups = sorted(
        (row[0], f"{f'{row[0]}-{row[-1]}' if len(row) > 1 else row[0]}:{','.join(map(str, of))}")
        for of, numbers in together.items()
        for row in _rows(numbers)
    )
    words = [*odd, *(words for _, words in groups)]
    more = f" and more, {len(values):,} entries in total" if len(words) > _GROUPS else ""
    return (" ".join(words[:_GROUPS]) or "(empty)") + more


def spans(numbers: Iterable[int]) -> str:
    """Return the numbers as text, in ascending order. Three or more consecutive numbers become a span.

    >>> spans([1, 2, 3, 5, 6])
    '1-3,5,6'
    """
    rows = _rows(sorted(numbers))
    return ",".join(f"{row[0]}-{row[-1]}" if len(row) > 2 else ",".join(map(str, row)) for row in rows)


def _rows(numbers: Iterable[int]) -> list[list[int]]:
    """Group sorted numbers into ranges of consecutive numbers."""
    rows: list[list[int]] = []
    for number in numbers:
        if rows and rows[-1][-1] == number - 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    return rows
