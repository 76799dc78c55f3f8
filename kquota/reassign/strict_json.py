"""JSON that operators hand over; every complaint names the place."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias, TypeVar, cast

from kquota.errors import Invalid
from kquota.terms import HIGHEST_ID
from kquota.text_file import place

Shorten: TypeAlias = Callable[[dict[str, object]], object]
_T = TypeVar("_T")
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
_LONGEST_NUMBER: Final = 4000
_SMALL: Final = 1_000_000
_SHORTEST_OBJECT: Final = 10
_LONGEST_OBJECT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value that knows where it stands, and an example of the document that it should be part of."""

    value: object
    where: str
    example: str
    path: str = ""

    def wrong(self, what: str) -> Invalid:
        """The error to raise."""
        return Invalid(f"{self.where}: {self.path or 'the document'}: {what}")

    def fields(self) -> dict[str, object]:
        """Of an object, by name. Raises Invalid for another kind of value, and for a name that stands twice."""
        if not isinstance(self.value, dict):
            raise self.wrong(f"must be an object, but is {_kind(self.value)}; write for example {self.example}")
        if isinstance(self.value, _Ambiguous):
            raise self.wrong(f"key {brief(self.value.key)} occurs twice in one object; keep one of them")
        return self.value

    def field(self, name: str, default: object = None) -> Value:
        """One field; `default` where it is missing. Raises Invalid when there is neither."""
        fields = self.fields()
        if name not in fields and default is None:
            raise self.wrong(f"field {name!r} is missing; write for example {self.example}")
        path = f"{self.path}.{name}" if self.path else name
        return Value(fields.get(name, default), self.where, self.example, path)

    def list(self) -> list[object]:
        """The bare items. Raises Invalid for what is no list."""
        if not isinstance(self.value, list):
            raise self.wrong(f"must be a list, but is {_kind(self.value)}")
        return self.value

    def item(self, n: int) -> Value:
        """The n-th item of a list, from 0."""
        return Value(self.list()[n], self.where, self.example, f"{self.path}[{n}]")

    def items(self) -> Iterator[Value]:
        """The items of a list."""
        return (self.item(n) for n in range(len(self.list())))

    def number(self) -> int:
        """A whole number that a partition or a broker may have, 0 to HIGHEST_ID. Raises Invalid for anything else."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong(f"must be a whole number, but is {_kind(self.value)}")
        if not 0 <= self.value <= HIGHEST_ID:
            raise self.wrong(f"must be from 0 to {HIGHEST_ID}, but is {brief(self.value)}")
        return self.value

    def numbers(self) -> Sequence[int]:
        """The items of a list of such numbers."""
        found = self.list()
        for n, item in enumerate(found):
            if type(item) is not int or not 0 <= item <= HIGHEST_ID:
                self.item(n).number()
        return cast(Sequence[int], found)

    def text(self) -> str:
        """A string. Raises Invalid for anything else."""
        if not isinstance(self.value, str):
            raise self.wrong(f"must be a string, but is {_kind(self.value)}")
        return self.value


def load(text: str, where: str, example: str, shorten: Shorten = lambda found: found) -> Value:
    """The JSON document in a text. Raises Invalid beginning with `where`, then line and column.

    `shorten` is given every object, inner ones first, and answers what is to stand in its place, so that a long
    document need not be held as it is written.
    """
    if not text.strip():
        raise Invalid(f"{where}: is empty; write for example {example}")
    if len(text) > _SMALL and not _is_many_objects(text):
        raise Invalid(f"{where}: is long, but is not a list of many objects; write for example {example}")

    def no_constant(name: str) -> NoReturn:
        raise Invalid(f"{where}: {_token(name, text)}: {name} is not JSON; write a whole number")

    def object_(pairs: list[tuple[str, object]]) -> object:
        found = dict(pairs)
        return shorten(found) if len(found) == len(pairs) else _Ambiguous(found, repeated(key for key, _ in pairs)[0])

    try:
        value = cast(object, json.loads(text, object_pairs_hook=object_, parse_constant=no_constant))
    except json.JSONDecodeError as error:
        raise Invalid(f"{where}: {place(text, error.pos)}: {_not_json(text, error)}") from error
    except RecursionError as error:
        raise Invalid(f"{where}: is nested too deeply; write for example {example}") from error
    except ValueError as error:
        # Python refuses to convert very long digit strings.
        where_it_is = _token(rf"-?\d{{{_LONGEST_NUMBER},}}", text)
        raise Invalid(f"{where}: {where_it_is}: the number is too long for a broker or partition id") from error
    return Value(value, where, example)


def _is_many_objects(text: str) -> bool:
    """Whether a long text may be what is read here; of [[],[],…] each byte would become 30 in memory."""
    objects, lists = text.count("{"), text.count("[")
    return len(text) / _LONGEST_OBJECT <= objects <= objects + lists <= len(text) / _SHORTEST_OBJECT


def _not_json(text: str, error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "there is more text after the end of the JSON; keep only one document"
    object_ = re.search(r"^[ \t]*\{", text, re.MULTILINE)
    if object_ and not text[: error.pos].strip() and text[error.pos] not in '{["':
        return f"is text, not JSON. The JSON begins in {place(text, object_.start())}; keep nothing else"
    return f"is not JSON: {error.msg}"


class _Ambiguous(dict[str, object]):
    """An object with a key that stands twice: whoever opens it knows its place, and complains."""

    def __init__(self, found: dict[str, object], key: str) -> None:
        super().__init__(found)
        self.key = key


def repeated(items: Iterable[_T]) -> list[_T]:
    """Those that stand there more than once."""
    counts = Counter(items)
    return [item for item, count in counts.items() if count > 1]


def brief(value: object) -> str:
    """A value to be shown, cut to 60 characters: a string as JSON writes it."""
    return cut(json.dumps(value) if isinstance(value, str) else str(value))


def cut(shown: str) -> str:
    """At most 60 characters."""
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


def _token(pattern: str, text: str) -> str:
    """Where the pattern stands first outside of a string."""
    found = next(found for found in re.finditer(f"{_STRING}|({pattern})", text) if found[1])
    return place(text, found.start())


def _kind(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a fraction"}
    return "null" if value is None else names.get(type(value), "an object")
