"""Formats list entries and broker ids in a short form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import replica

_GROUPS: Final = 6


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
