"""JSON from operators. An error names its place in the document, unless it concerns the whole document."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias, TypeVar, cast

from kquota import counted_json
from kquota.errors import Invalid
from kquota.terms import HIGHEST_ID
from kquota.text_file import place

Shorten: TypeAlias = Callable[[dict[str, object]], object]
_T = TypeVar("_T")
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
_LONGEST_NUMBER: Final = 4000
_MEMORY: Final = 8
"""The maximum number of bytes of memory for each byte of a long document, including the text itself."""
_MOST_KEPT: Final = 100
"""The maximum number of objects that are kept although they could not be shortened. The error names the first invalid
one.
"""


class _Dropped:
    """The placeholder for an object that `load` drops to save memory."""


_DROPPED: Final = _Dropped()


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value with its place, and an example of a valid document. `where` names the document, and `path` is the
    JSON path of the value.
    """

    value: object
    where: str
    example: str
    path: str = ""

    def wrong(self, what: str) -> Invalid:
        """Return an error that names this place."""
        return Invalid(f"{self.where}: {self.path or 'the document'}: {what}")

    def fields(self) -> dict[str, object]:
        """Return the fields of an object by name. Raises Invalid for any other value, and for a repeated name."""
        if isinstance(self.value, _Dropped):
            raise self.wrong(f"is one of many objects in the document that are not valid. Example: {self.example}")
        if not isinstance(self.value, dict):
            raise self.wrong(f"must be an object, but is {_kind(self.value)}. Example: {self.example}")
        if isinstance(self.value, _Ambiguous):
            raise self.wrong(f"key {brief(self.value.key)} occurs twice in one object. Keep one of them")
        return self.value

    def field(self, name: str, default: object = None) -> Value:
        """Return one field, or `default` if the field is missing.

        Raises Invalid if the field is missing and `default` is None, and in the cases of `fields`.
        """
        fields = self.fields()
        if name not in fields and default is None:
            raise self.wrong(f"field {name!r} is missing. Example: {self.example}")
        path = f"{self.path}.{name}" if self.path else name
        return Value(fields.get(name, default), self.where, self.example, path)

    def list(self) -> list[object]:
        """Return the items without their places. Raises Invalid if the value is not a list."""
        if not isinstance(self.value, list):
            raise self.wrong(f"must be a list, but is {_kind(self.value)}")
        return self.value

    def item(self, n: int) -> Value:
        """Return the item of a list at this index, counted from 0. Raises Invalid if the value is not a list."""
        return Value(self.list()[n], self.where, self.example, f"{self.path}[{n}]")

    def number(self) -> int:
        """Return a whole number from 0 to `HIGHEST_ID`, for example a broker id. Raises Invalid for any other value."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong(f"must be a whole number, but is {_kind(self.value)}")
        if not 0 <= self.value <= HIGHEST_ID:
            raise self.wrong(f"must be from 0 to {HIGHEST_ID}, but is {brief(self.value)}")
        return self.value

    def numbers(self) -> Sequence[int]:
        """Return a list of numbers as in `number`. Raises Invalid for any other value or item."""
        found = self.list()
        for n, item in enumerate(found):
            if type(item) is not int or not 0 <= item <= HIGHEST_ID:
                self.item(n).number()
        return cast(Sequence[int], found)

    def text(self) -> str:
        """Return a string. Raises Invalid for any other value."""
        if not isinstance(self.value, str):
            raise self.wrong(f"must be a string, but is {_kind(self.value)}")
        return self.value


def load(text: str, where: str, example: str, shorten: Shorten, root: str) -> Value:
    """Parse a JSON document. Raises Invalid for text that is not a JSON document, for nesting that is too deep, for a
    number that is too long, for a single entry outside a list, and for values that need too much memory. The message
    begins with `where`, then line and column if the error has a position.

    `shorten` receives every object without repeated keys, inner objects first. It returns a tuple for a valid entry,
    because a tuple needs less memory, and returns any other object unchanged. The outermost object has the key `root`,
    and must stay unchanged. After 100 other unchanged objects, kquota drops further ones to save memory.
    """
    if not text.strip():
        raise Invalid(f"{where}: is empty. Example: {example}")

    def no_constant(name: str) -> NoReturn:
        raise Invalid(f"{where}: {_token(name, text)}: {name} is not JSON. Write a whole number")

    kept = Counter[bool]()

    def object_(pairs: list[tuple[str, object]]) -> object:
        found = dict(pairs)
        ambiguous = len(found) != len(pairs)
        short = _Ambiguous(found, repeated([key for key, _ in pairs])[0]) if ambiguous else shorten(found)
        if not isinstance(short, dict):
            return short
        kept[root in short] += 1
        return short if kept[root in short] <= _MOST_KEPT else _DROPPED

    try:
        decoder = json.JSONDecoder(object_pairs_hook=object_, parse_constant=no_constant)
        value = cast(object, counted_json.decode(text, decoder, _most_memory(text)))
    except counted_json.TooMuchMemory:
        wrong = "it has too many values that are not valid entries. Keep only valid entries"
        raise Invalid(f"{where}: {wrong}. Example: {example}") from None
    except json.JSONDecodeError as error:
        raise Invalid(f"{where}: {place(text, error.pos)}: {_not_json(text, error, example)}") from error
    except RecursionError as error:
        raise Invalid(f"{where}: is nested too deeply. Example: {example}") from error
    except ValueError as error:
        # Python refuses to convert very long digit strings.
        where_it_is = _token(rf"-?\d{{{_LONGEST_NUMBER},}}", text)
        wrong = "the number is too long for a broker or partition id. Correct the number"
        raise Invalid(f"{where}: {where_it_is}: {wrong}") from error
    if isinstance(value, tuple):
        raise Value(value, where, example).wrong(f"a single entry must be in a list. Example: {example}")
    return Value(value, where, example)


def _most_memory(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return _MEMORY * size - sys.getsizeof(text)


def _not_json(text: str, error: json.JSONDecodeError, example: str) -> str:
    if error.msg == "Extra data":
        return "there is more text after the end of the JSON. Keep only one document"
    object_ = re.search(r"^[ \t]*\{", text, re.MULTILINE)
    if object_ and not text[: error.pos].strip() and text[error.pos] not in '{["':
        return f"there is text before the JSON, which begins at {place(text, object_.start())}. Keep only the JSON"
    return f"is not JSON: {error.msg}. Example: {example}"


class _Ambiguous(dict[str, object]):
    """An object with a repeated key. The error is raised later, where the place of the object is known."""

    def __init__(self, found: dict[str, object], key: str) -> None:
        super().__init__(found)
        self.key = key


def repeated(items: Sequence[_T]) -> list[_T]:
    """Return each item that occurs more than once, in the order of the first occurrences."""
    if len(set(items)) == len(items):  # a Counter needs twice the memory
        return []
    counts = Counter(items)
    return [item for item, count in counts.items() if count > 1]


def brief(value: object) -> str:
    """Return a value for display, in at most 60 characters. Strings are written as in JSON."""
    try:
        return cut(json.dumps(value) if isinstance(value, str) else str(value))
    except RecursionError:
        return "a deeply nested value"


def cut(shown: str) -> str:
    """Return text for display, in at most 60 characters."""
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


def _token(pattern: str, text: str) -> str:
    """Return the first place where the pattern matches outside a string."""
    found = next(found for found in re.finditer(f"{_STRING}|({pattern})", text) if found[1])
    return place(text, found.start())


def _kind(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a fraction"}
    return "null" if value is None else names.get(type(value), "an object")
