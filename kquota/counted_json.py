"""Decodes a long JSON text that may be forged: part by part, with a limit for the memory of its values.

The values in a list of `"ab"` take 12 times as much memory as their text, and those in a list of `{}` take 30 times as
much. A decoder of the standard library has the whole value in memory before anything can refuse it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any, Final, TypeAlias

_SMALL: Final = 2**20
"""The length in characters up to which the memory of the values is not counted."""
_LONGEST_PART: Final = 512 * 2**10
"""The maximum length in characters of a part that is not a single string or number. A part is decoded before its memory
is counted. The limit is high enough for a series from Prometheus, which has at most 330,000 characters.
"""
_DEPTH: Final = 4
"""The maximum depth of a list or an object that is decoded as a whole. A series from Prometheus has a depth of 3: an
object with a list of lists.
"""
_SLOT: Final = 10
"""The bytes that an item adds to its list, rounded up: 8 for its pointer, and 1 for its share of the eighth that Python
allocates ahead.
"""
_PAIR: Final = 64 + _SLOT
"""The bytes that a key and its value take until their object is complete, in addition to the size of both."""

_SCALARS: Final = frozenset({str, int, float})

_Found: TypeAlias = tuple[Any, int]
"""A value, and the position after it."""


class TooMuchMemory(ValueError):
    """The error for values that need more memory than the limit."""


def decode(text: str, decoder: json.JSONDecoder, most: int) -> Any:
    """Return `decoder.decode(text)`. Raises the errors of the decoder, and TooMuchMemory if the values of a long text
    need more than `most` bytes.

    If a hook of the decoder replaces an object with a value that JSON does not have, neither the object nor that value
    counts.
    """
    return decoder.decode(text) if len(text) <= _SMALL else _Walk(text, decoder, most).document()


_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_OTHER: Final = r'[^"\[\]{}]*+'
_BLANK: Final = r"[ \t\n\r]*+"


def _container(depth: int) -> str:
    inner = f"|{_container(depth - 1)}" if depth > 1 else ""
    return rf"[\[{{]{_OTHER}(?:(?:{_STRING}{inner}){_OTHER})*+[\]}}]"


_CONTAINER: Final = re.compile(_container(_DEPTH), re.DOTALL)
_ITEMS: Final = re.compile(rf'(?:(?:{_container(_DEPTH)}|{_STRING}|[^"\[\]{{}},]++){_BLANK},{_BLANK})*+', re.DOTALL)
"""Matches items of a list, each with the comma after it."""
_BLANKS: Final = re.compile(_BLANK)


class _Walk:
    """Decodes a list or an object item by item if it is long or has many levels, and every other value as a whole."""

    def __init__(self, text: str, decoder: json.JSONDecoder, most: int) -> None:
        self._text = text
        attributes: Any = decoder  # typeshed lacks `scan_once`, and does not know that a hook can be None
        self._scan: Callable[[str, int], _Found] = attributes.scan_once
        hook = attributes.object_hook or (lambda value: value)
        self._of_pairs = attributes.object_pairs_hook or (lambda pairs: hook(dict(pairs)))
        self._used = 0
        self._most = most

    def document(self) -> Any:
        value, end = self._value(self._after_blanks(0))
        if (end := self._after_blanks(end)) != len(self._text):
            raise json.JSONDecodeError("Extra data", self._text, end)
        return value

    def _value(self, at: int) -> _Found:
        mark = self._text[at : at + 1]
        if mark in {"[", "{"} and not _CONTAINER.match(self._text, at, at + _LONGEST_PART):
            return self._list(at + 1) if mark == "[" else self._object(at + 1)
        try:
            value, end = self._scan(self._text, at)
        except StopIteration as error:
            raise json.JSONDecodeError("Expecting value", self._text, error.value) from None
        self._count(_size(value))
        return value, end

    def _list(self, at: int) -> _Found:
        items: list[Any] = []
        at = self._after_blanks(at)
        if self._text.startswith("]", at):
            return items, at + 1
        end = False
        while not end:
            some, at = self._items(at)
            items += some
            item, at = self._value(at)
            items.append(item)
            self._count(_SLOT * (len(some) + 1))
            end, at = self._separator(at, "]")
        return items, at

    def _items(self, at: int) -> tuple[list[Any], int]:
        """Return the next items of a list, but never its last item, and the position of the item after them."""
        found = _ITEMS.match(self._text, at, at + _LONGEST_PART)
        assert found is not None
        if not found[0]:
            return [], at
        try:
            items, _ = self._scan(f"[{found[0].rstrip()[:-1]}]", 0)
        except StopIteration as error:
            raise json.JSONDecodeError("Expecting value", self._text, at + error.value - 1) from None
        except json.JSONDecodeError as error:
            raise json.JSONDecodeError(error.msg, self._text, at + error.pos - 1) from None
        self._count(sum(map(_size, items)))
        return items, self._after_blanks(found.end())

    def _object(self, at: int) -> _Found:
        before = self._used
        pairs: list[tuple[str, Any]] = []
        at = self._after_blanks(at)
        while True:
            if not self._text.startswith('"', at):
                if not pairs and self._text.startswith("}", at):
                    return self._kept(pairs, before), at + 1
                raise json.JSONDecodeError("Expecting property name enclosed in double quotes", self._text, at)
            key, at = self._value(at)
            at = self._after_blanks(at)
            if not self._text.startswith(":", at):
                raise json.JSONDecodeError("Expecting ':' delimiter", self._text, at)
            value, at = self._value(self._after_blanks(at + 1))
            pairs.append((key, value))
            self._count(_PAIR)
            end, at = self._separator(at, "}")
            if end:
                return self._kept(pairs, before), at

    def _separator(self, at: int, end: str) -> tuple[bool, int]:
        """Return whether a list or an object ends here, and the position after the bracket or the comma."""
        at = self._after_blanks(at)
        if self._text.startswith(end, at):
            return True, at + 1
        if not self._text.startswith(",", at):
            raise json.JSONDecodeError("Expecting ',' delimiter", self._text, at)
        return False, self._after_blanks(at + 1)

    def _kept(self, pairs: list[tuple[str, Any]], before: int) -> Any:
        value = self._of_pairs(pairs)
        if isinstance(value, dict):
            self._count(sys.getsizeof(value))
        else:
            self._used = before
        return value

    def _after_blanks(self, at: int) -> int:
        found = _BLANKS.match(self._text, at)
        assert found is not None
        return found.end()

    def _count(self, size: int) -> None:
        self._used += size
        if self._used > self._most:
            raise TooMuchMemory(f"its values need more than {self._most:,} bytes of memory")


def _size(value: Any) -> int:
    """Return the bytes of memory that a value takes. `true`, `false`, `null` and values from a hook that JSON does not
    have count as 0.
    """
    if isinstance(value, list):
        return sys.getsizeof(value) + sum(map(_size, value))
    if isinstance(value, dict):
        return sys.getsizeof(value) + sum(map(_size, value)) + sum(map(_size, value.values()))
    return sys.getsizeof(value) if type(value) in _SCALARS else 0
