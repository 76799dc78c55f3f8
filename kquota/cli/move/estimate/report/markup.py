"""HTML as values: text becomes markup only here, and is escaped as it does."""

from __future__ import annotations

import html
from typing import Final

from kquota.cli.contract import printable

_VOID: Final = {"meta", "br"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *inside: str, **attributes: str | int | float | None) -> Markup:
    """An element around `inside`; text in it, and in `attributes`, is escaped, with control characters made visible.

    `_` ends an attribute's name that is Python's word (`class_`) and stands for its dashes; None leaves one out.

    >>> tag("td", "a < b", class_="rate")
    '<td class="rate">a &lt; b</td>'
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    opened = "<" + " ".join((name, *(f'{key}="{_escaped(str(value))}"' for key, value in given.items()))) + ">"
    return Markup(opened if name in _VOID else f"{opened}{joined(*inside)}</{name}>")


def joined(*parts: str) -> Markup:
    """The parts one after the other, text among them escaped."""
    return Markup("".join(part if isinstance(part, Markup) else _escaped(part) for part in parts))


def _escaped(text: str) -> str:
    return html.escape(printable(text))
