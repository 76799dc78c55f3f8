"""How a report writes its values: for people, with the exact one beside it for machines; unknown stays unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kquota.cli.move.estimate.report.markup import Markup, joined, tag
from kquota.measure import human_bytes, human_duration, human_rate

_SHORT: Final = 12
"""Rows of a table that a printed page does not break."""


def number(value: int) -> Markup:
    """A count."""
    return _data(value, "{:,}".format)


def size(value: float | None) -> Markup:
    """Bytes."""
    return _data(value, human_bytes)


def rate(value: float | None) -> Markup:
    """Bytes per second."""
    return _data(value, human_rate)


def time(value: float | None) -> Markup:
    """Seconds."""
    return _data(value, human_duration)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, last: Sequence[str] = (), marked: int = -1) -> Markup:
    """A table whose heads that end with `#` stand over numbers; a foot `last`, and one row that is `marked`."""
    kinds = ["number" if head.endswith("#") else "name" for head in heads]

    def cells(row: Sequence[str], name: str) -> Markup:
        return joined(*(tag(name, cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)))

    rows = list(rows)
    head = joined(*(tag("th", h.removesuffix("#"), class_=k, scope="col") for h, k in zip(heads, kinds, strict=True)))
    body = [tag("tr", cells(row, "td"), class_="bottleneck" if n == marked else None) for n, row in enumerate(rows)]
    foot = tag("tfoot", tag("tr", cells(last, "td"))) if last else Markup()
    kind = "short" if len(rows) <= _SHORT else None
    inside = tag("table", tag("thead", tag("tr", head)), tag("tbody", *body), foot, class_=kind)
    return tag("div", inside, class_="wide")


def note(text: str) -> Markup:
    """A remark in small letters."""
    return tag("p", text, class_="note")


def _data(value: float | None, words: Callable[..., str]) -> Markup:
    if value is None:
        return tag("span", "unknown", class_="untold")
    return tag("data", words(value), value=value)
