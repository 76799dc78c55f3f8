"""The field `handed_over` of a run, as JSON values: the partitions that need no further submission.

A partition is written as its position among the sorted partitions of the plan and the rollback plan. Positions are
written as ranges, for example "0-4999,5002". A run can have as many versions as partitions. To keep the record small,
the JSON of a later version usually has only the partitions that were added since the previous version.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kquota.reassign.run import Run
from kquota.terms import TopicPartition

_WHOLE: Final = "handed_over"
_ADDED: Final = "also_handed_over"
_RANGE: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_RANGES: Final = re.compile(rf"(?:{_RANGE.pattern}(?:,(?!\Z)|\Z))*+")


def written(run: Run) -> dict[str, str]:
    """Return the JSON field with all partitions of the run that were handed over."""
    return {_WHOLE: _ranges(run.handed_over, run)}


def changed(before: Run, after: Run) -> dict[str, str]:
    """Return the JSON field with the partitions that were added from `before` to `after`, two versions of the same run.

    The result is {} if no partition was added. It has all partitions, like `written`, if a partition was removed. It
    also has all partitions if a plan has changed, because the positions in a changed plan differ.
    """
    if (before.plan, before.rollback) != (after.plan, after.rollback) or before.handed_over - after.handed_over:
        return written(after)
    added = after.handed_over - before.handed_over
    return {_ADDED: _ranges(added, after)} if added else {}


def latest(documents: Sequence[Mapping[str, Any]], run: Run) -> frozenset[TopicPartition]:
    """Return the handed over partitions: those of the last document of `written`, and those that later documents of
    `changed` add. `run` must have the plans of the last document.

    Raises ValueError, KeyError, TypeError or AttributeError for an invalid document. No partition may be added twice,
    so the time is proportional to the length of the documents and the plans.
    """
    last = max(number for number, document in enumerate(documents) if _WHOLE in document)
    partitions = _partitions(run)
    found: set[TopicPartition] = set()
    _add(found, documents[last][_WHOLE], partitions)
    for document in documents[last:]:
        _add(found, document.get(_ADDED, ""), partitions)
    return frozenset(found)


def _partitions(run: Run) -> list[TopicPartition]:
    return sorted(run.plan.targets.keys() | run.rollback.targets.keys())


def _ranges(names: Collection[TopicPartition], run: Run) -> str:
    ranges: list[list[int]] = []
    for position, name in enumerate(_partitions(run) if names else ()):
        if name not in names:
            continue
        if ranges and ranges[-1][1] == position - 1:
            ranges[-1][1] = position
        else:
            ranges.append([position, position])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _add(found: set[TopicPartition], text: Any, partitions: Sequence[TopicPartition]) -> None:
    if not isinstance(text, str) or not _RANGES.fullmatch(text):
        raise ValueError(f"{str(text)[:40]!r} is not a list of ranges, for example 0-9,11")
    for match in _RANGE.finditer(text):
        first, end = int(match[1]), int(match[2] or match[1]) + 1
        known = len(found)
        found.update(partitions[first:end])
        if len(found) - known != max(end - first, 1):
            raise ValueError(f"{match[0]}: positions must ascend, be below {len(partitions)} and be listed only once")
