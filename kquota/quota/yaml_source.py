"""The subset of YAML that kquota reads: mappings, lists and text, each with its line and column.

Plain text is used as it is written: `007` and `yes` are names, like `alice`. Other features of YAML, for example
anchors and tags, are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import yaml

from kquota.errors import Invalid

LARGEST: Final = 16 * 2**20
"""The maximum number of characters in a file. A file with 10,000 entities has less than a tenth of this number."""

_DEEPEST: Final = 50
_MOST_VALUES: Final = 100_000
"""The maximum number of values in memory at once, which take 20 MB."""
SPLIT: Final = (
    "Split it. If it has `owns`, give each part an `owns` that covers none of the entities of the other parts"
)
"""The next step for a document that is too large. If the `owns` of one part covered entities of another part, `apply
--prune` of the first part would remove their limits.
"""
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_YAML: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PAIR: Final = re.compile(r"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})")
_NOTHING: Final = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar as text, with its position (counted from 1). `plain` is false for a quoted or block scalar."""

    text: str
    line: int
    column: int
    plain: bool


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A scalar, a list or a mapping of a document, with its position (counted from 1)."""

    content: str | list[YamlNode] | dict[str, YamlNode]
    line: int
    column: int
    empty: bool = False
    """True for null. `content` then has no meaning."""


def _joined(text: str) -> str:
    """In a JSON document, replace each pair of escapes that represents one character above U+FFFF with that character,
    because YAML refuses these pairs. Any other text is returned unchanged.
    """
    if not _PAIR.search(text):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _PAIR.sub(lambda pair: pair[1] + json.loads(f'"{pair[2]}"'), text)


class _Pieces:
    """Text as a stream. The parser would otherwise copy the whole text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self, size: int = 0, /) -> str:
        piece = self._text[self._at : self._at + size]
        self._at += len(piece)
        return piece


class Source:
    """A file that is read from start to end. Every error is Invalid. Its message begins with `name`, then the line and
    the column if they are known.

    Every method that reads raises Invalid for text that is not YAML, and for anchors, aliases and tags. The argument
    `what` names a value in messages.
    """

    def __init__(self, text: str, name: str) -> None:
        """Raise Invalid for a character that YAML does not allow, and for text longer than `LARGEST`."""
        self._name = name
        if len(text) > LARGEST:
            raise Invalid(
                f"{name}: has more than {LARGEST // 2**20} MiB, which is too large for a document of quotas. {SPLIT}"
            )
        if found := _NOT_YAML.search(text):
            before = text[: found.start()]
            line, column = before.count("\n") + 1, found.start() - before.rfind("\n")
            self.refuse(line, column, f"the character {found[0]!r} must be written as an escape in double quotes")
        self._events: Iterator[Any] = yaml.parse(_Pieces(_joined(text)), Loader=_LOADER)
        self._values = 0

    def refuse(self, line: int, column: int, why: str) -> NoReturn:
        """Raise Invalid for this position."""
        raise Invalid(f"{self._name}:{line}:{column}: {why}")

    @contextmanager
    def at(self, place: Scalar | YamlNode, prefix: str = "") -> Iterator[None]:
        """Add this position and `prefix` to the message of each Invalid that the block raises."""
        try:
            yield
        except Invalid as error:
            self.refuse(place.line, place.column, f"{prefix}{error}")

    def begin(self) -> None:
        """Go to the content of the first document. Raises Invalid if there is none."""
        self._next()
        if isinstance(event := self._next(), yaml.StreamEndEvent):
            self._refuse(event, "the document is empty. It needs at least the line `version: 1`")

    def end(self) -> None:
        """Go to the end of the file. Raises Invalid for a second document."""
        self._next()
        if not isinstance(event := self._next(), yaml.StreamEndEvent):
            self._refuse(event, "a second document begins here, but a file can contain only one document")

    def documents(self, listed: str, each: Callable[[YamlNode], None]) -> Iterator[YamlNode]:
        """Yield every document with content, in order. Raises Invalid if the file has none, for a key that is repeated
        or not text, and for a document with too many levels or values.

        If a document is a mapping with a list under the key `listed`, `each` receives the items of the list one by one,
        before the document is yielded. The list of the document is then empty, because a whole list would take 50 times
        as much memory as its text.
        """
        self._next()
        any_content = False
        while not isinstance(event := self._next(), yaml.StreamEndEvent):
            self._values = 0
            node = self._node(self._next(), 0, listed, each)
            if not node.empty:
                any_content = True
                yield node
            self._next()
        if not any_content:
            self._refuse(event, "the document is empty")

    def _node(
        self, event: Any, depth: int, listed: str | None = None, each: Callable[[YamlNode], None] | None = None
    ) -> YamlNode:
        """Return the value that begins with this event. `each` receives the items below the key `listed`."""
        if depth > _DEEPEST:
            self._refuse(event, f"the document has more than {_DEEPEST} levels of nesting")
        self._values += 1
        if self._values > _MOST_VALUES:
            self._refuse(event, f"one resource or document has more than {_MOST_VALUES:,} values")
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if isinstance(event, yaml.MappingStartEvent):
            keys: dict[str, YamlNode] = {}
            while not isinstance(event := self._next(), yaml.MappingEndEvent):
                key = self._scalar(event, "a key must be text").text
                if key in keys:
                    self._refuse(event, f"{key!r} is listed twice")
                keys[key] = self._node(self._next(), depth + 1, None, each if key == listed else None)
            return YamlNode(keys, line, column)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[YamlNode] = []
            before = self._values
            while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                item = self._node(event, depth + 1)
                if each is None or listed is not None:
                    items.append(item)
                else:
                    each(item)
                    self._values = before
            return YamlNode(items, line, column)
        return YamlNode(event.value, line, column, _is_nothing(event))

    def keys(self, node: YamlNode, what: str) -> dict[str, YamlNode]:
        """Return the values of a mapping by key. Raises Invalid for anything else."""
        if not isinstance(node.content, dict):
            self.refuse(node.line, node.column, f"{what}: must be a mapping (key: value)")
        return node.content

    def items(self, node: YamlNode, what: str) -> list[YamlNode]:
        """Return the items of a list. Raises Invalid for anything else."""
        if not isinstance(node.content, list):
            self.refuse(node.line, node.column, f"{what}: must be a list")
        return node.content

    def text(self, node: YamlNode, what: str) -> str:
        """Return a scalar as text. A plain `007` stays `007`. Raises Invalid for anything else, and for null."""
        if not isinstance(node.content, str) or node.empty:
            self.refuse(node.line, node.column, f"{what}: must be a single value")
        return node.content

    def mapping(self, what: str, *, unique: bool = True) -> Iterator[Scalar]:
        """Yield the keys of a mapping. The caller must read the value of each key before the next key.

        Raises Invalid for anything else, for a key that is not text, for a merge key (`<<`), and for a repeated key if
        `unique` is set. Without `unique`, the caller must find repeated keys and call `refuse_repeated`, so that the
        keys of a long mapping are in memory only once.
        """
        event = self._next()
        if not isinstance(event, yaml.MappingStartEvent):
            hint = ". For an empty mapping, write {}" if _is_nothing(event) else ""
            self._refuse(event, f"{what}: must be a mapping (key: value){hint}")
        lines: dict[str, int] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._scalar(event, f"{what}: a key must be text")
            if key.plain and key.text == "<<":
                self._refuse(event, "merge keys are not supported. Write out the keys and values")
            if key.text in lines:
                self.refuse_repeated(what, key, lines[key.text])
            if unique:
                lines[key.text] = key.line
            yield key

    def refuse_repeated(self, what: str, key: Scalar, first: int) -> NoReturn:
        """Raise Invalid for a key that the mapping `what` already has. `first` is the line of the first occurrence."""
        self.refuse(key.line, key.column, f"{what}: {key.text!r} is listed twice, first on line {first}")

    def sequence(self, what: str) -> Iterator[Scalar]:
        """Yield the items of a list of scalars. Raises Invalid for anything else."""
        event = self._next()
        if not isinstance(event, yaml.SequenceStartEvent):
            self._refuse(event, f"{what}: must be a list, for example [a, b]")
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            yield self._scalar(event, f"{what}: each item must be text")

    def scalar(self, what: str) -> Scalar:
        """Read one scalar. Raises Invalid for anything else, and for an empty value or null."""
        event = self._next()
        if _is_nothing(event):
            self._refuse(event, f"{what} has no value. To unset a quota or a throttle, leave out its line")
        return self._scalar(event, f"{what}: must be a single value")

    def _scalar(self, event: Any, wanted: str) -> Scalar:
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse(event, wanted)
        mark: Any = event.start_mark
        return Scalar(event.value, mark.line + 1, mark.column + 1, bool(event.implicit[0]))

    def _next(self) -> Any:
        try:
            event = next(self._events)
        except (yaml.YAMLError, UnicodeError) as error:
            why = f"not YAML: {getattr(error, 'problem', None) or ' '.join(str(error).split())}"
            mark: Any = getattr(error, "problem_mark", None)
            if mark is not None:
                self.refuse(mark.line + 1, mark.column + 1, why)
            raise Invalid(f"{self._name}: {why}") from error
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            self._refuse(event, "anchors and aliases are not supported. Write out the values")
        if getattr(event, "tag", None) is not None:
            self._refuse(
                event,
                f"the tag {event.tag!r} is not supported, because kquota reads text as it is written. Remove the tag",
            )
        return event

    def _refuse(self, event: Any, why: str) -> NoReturn:
        self.refuse(event.start_mark.line + 1, event.start_mark.column + 1, why)


def _is_nothing(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value in _NOTHING


_SAFE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./@-]*|[0-9]{1,3}(\.[0-9]{1,3}){3}")
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def quoted(text: str) -> str:
    """Return text as a YAML scalar that every parser of YAML 1.1 and 1.2 reads as the same text."""
    if _SAFE.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
