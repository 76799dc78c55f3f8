"""The values of `--add-config`, `--add-config-file` and `--delete-config`, parsed for all entity types as in
kafka-configs.

No error in this module repeats a value, because it may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from kquota.errors import Invalid
from kquota.java_properties import entries

_JAVA_TRIMS: Final = "".join(map(chr, range(33)))
_KEY: Final = re.compile(r"[$a-zA-Z0-9._-]+")
_FORMAT: Final = (
    "Invalid entity config: all configs to be added must be in the format "
    '"key=val" or "key=[val1,val2]" to group values which contain commas'
)


def pairs(text: str) -> Mapping[str, str]:
    """Parse the value of --add-config. Brackets protect `,` and `=`, and are removed. `k=` sets an empty value.

    >>> pairs("a=1,b=[x,y=z],c=")
    {'a': '1', 'b': 'x,y=z', 'c': ''}

    Raises Invalid, in Kafka's words where Kafka has them, for text that is not a list of pairs, and for an empty,
    invalid or repeated key.
    """
    found: dict[str, str] = {}
    for number, pair in enumerate(_without_trailing_blanks(_split(text, ",")), 1):
        sides = _split(pair, "=")
        if len(sides) != 2:
            raise Invalid(f"--add-config: {_FORMAT}. Pair {number} does not match")
        key, value = (side.strip(_JAVA_TRIMS) for side in sides)
        _must_be_a_key(key, "--add-config")
        if key in found:
            raise Invalid(f"--add-config: {key} is given twice. Give each key once")
        found[key] = value.replace("[", "").replace("]", "").strip(_JAVA_TRIMS)
    if not found:
        raise Invalid(f"--add-config: {_FORMAT}. The list is empty")
    return found


def pairs_in(path: Path) -> Mapping[str, str]:
    """Return the pairs in a Java properties file, in the order of the file.

    Raises Invalid for a file that is unreadable, not valid or without configs, and for an invalid or repeated key.
    """
    found: dict[str, str] = {}
    for key, value in entries(path, "--add-config-file"):
        _must_be_a_key(key, "--add-config-file")
        if key in found:
            raise Invalid(f"--add-config-file: {path}: {key} is given twice. Give each key once")
        found[key] = value
    if not found:
        raise Invalid(f"--add-config-file: {path} contains no config. Write each config as KEY=VALUE")
    return found


def keys(texts: Iterable[str]) -> tuple[str, ...]:
    """Parse the values of `--delete-config`, for example `a,b`. Raises Invalid for an empty, invalid or repeated
    key.
    """
    found: list[str] = []
    for text in texts:
        named = [key.strip(_JAVA_TRIMS) for key in _without_trailing_blanks(text.split(","))]
        if not named or "" in named:
            raise Invalid("--delete-config: a key is empty. Write the keys to remove as k1,k2")
        for key in named:
            _must_be_a_key(key, "--delete-config")
            if key in found:
                raise Invalid(f"--delete-config: {key} is given twice. Give each key once")
            found.append(key)
    return tuple(found)


def _split(text: str, separator: str) -> list[str]:
    """Split the text at each separator outside brackets. As in Kafka, a separator is inside brackets if the next
    bracket after it is a closing bracket.
    """
    parts: list[str] = []
    end, closes = len(text), False
    for at in range(len(text) - 1, -1, -1):
        if text[at] in "[]":
            closes = text[at] == "]"
        elif text[at] == separator and not closes:
            parts.append(text[at + 1 : end])
            end = at
    return [text[:end], *reversed(parts)]


def _without_trailing_blanks(parts: Sequence[str]) -> Sequence[str]:
    """Drop trailing empty parts, as Java's String.split does. Therefore `a=1,` has one part."""
    last = max((at for at, part in enumerate(parts, 1) if part), default=0)
    return parts[:last]


def _must_be_a_key(key: str, option: str) -> None:
    if not key:
        raise Invalid(f"{option}: {_FORMAT}. A key is empty")
    if not _KEY.fullmatch(key):
        raise Invalid(f"{option}: Invalid character found for config key: {key}")
