"""A trace: the requests of clients over time, one per row, as CSV with a header or as JSON lines."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kquota.errors import Invalid
from kquota.simulate.answer import Flow, flow
from kquota.simulate.load import Quotas, Request

COLUMNS: Final = ("ms", "bytes", "thread_ms", "mutations", "broker", "user", "client_id")
"""The columns of a trace. A CSV header must have `ms` and at least one of the next three columns. A JSON row needs only
`ms`. All other columns are optional.
"""
WHOLE: Final = "[0-9]{1,15}"
DECIMAL: Final = r"[0-9]{1,12}(\.[0-9]{1,9})?"
_WHOLE: Final = re.compile(WHOLE)
_DECIMAL: Final = re.compile(DECIMAL)


class TraceStream(NamedTuple):
    """One connection of one client to one broker. The quotas apply to each stream separately. "" means unknown."""

    broker: str
    user: str
    client_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The result of one stream of a trace."""

    stream: TraceStream
    flow: Flow


def header(line: str, where: str) -> tuple[str, ...]:
    """Return the names of the columns in the first line of a CSV file.

    Raises Invalid if the line is not a header. The message begins with `where`.
    """
    try:
        names = tuple(name.strip(" ") for name in next(csv.reader([line]), []))
    except csv.Error:
        names = ()
    if "ms" not in names or not {"bytes", "thread_ms", "mutations"} & set(names) or len(set(names)) < len(names):
        raise Invalid(
            f"{where}: the first line must name the column ms and at least one of bytes, thread_ms and mutations. "
            "Name each column only once. Optional columns: broker, user, client_id"
        )
    return names


def of_csv(line: str, names: Sequence[str]) -> Mapping[str, str | None] | None:
    """Return the cells of a line by column. None if the line is not CSV, or has the wrong number of columns."""
    try:
        cells = next(csv.reader([line], strict=True), [])
    except csv.Error:
        return None
    return dict(zip(names, cells, strict=True)) if len(cells) == len(names) else None


def of_json(line: str) -> Mapping[str, str | None] | None:
    """Return the values of a JSON object by name, with numbers as they are written. None if the line is not an object,
    or if a column is not text, a number or null.
    """
    try:
        found = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and all(isinstance(found.get(n), str | None) for n in COLUMNS) else None


def request(row: Mapping[str, str | None]) -> tuple[TraceStream, Request] | None:
    """Return the connection and the request of a row, or None if the row is not valid.

    A row is not valid if `ms` is missing, if a number is invalid or negative, or if the row has both bytes and
    mutations. All other missing numbers count as 0.
    """
    cells = {name: (row.get(name) or "").strip(" ") for name in COLUMNS}
    ms, size, mutations, cost = cells["ms"], cells["bytes"] or "0", cells["mutations"] or "0", cells["thread_ms"] or "0"
    if not all(map(_WHOLE.fullmatch, (ms, size, mutations))) or not _DECIMAL.fullmatch(cost):
        return None
    found = Request(int(ms), int(size), float(cost), int(mutations))
    if found.bytes and found.mutations:
        return None
    return TraceStream(cells["broker"], cells["user"], cells["client_id"]), found


def answered(rows: Iterable[tuple[TraceStream, Request]], quotas: Quotas, *, closed_loop: bool) -> list[Answered]:
    """Return the result of each stream, sorted by stream. The requests of a stream are sorted by time, then by size."""
    streams: dict[TraceStream, list[Request]] = {}
    for stream, one in rows:
        streams.setdefault(stream, []).append(one)
    return [
        Answered(stream=stream, flow=flow(sorted(streams[stream]), quotas, closed_loop=closed_loop))
        for stream in sorted(streams)
    ]
