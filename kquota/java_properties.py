"""Reads and writes Java properties files, with the syntax of java.util.Properties."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kquota import bounded
from kquota.errors import Invalid

_BLANK: Final = " \t\f"
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def entries(path: Path, option: str) -> list[tuple[str, str]]:
    """Return all keys and values of a file or a pipe, in order. A repeated key is in the list several times.

    Raises Invalid for an unreadable or invalid file. The error names the option but no value, because these files
    contain secrets.
    """
    try:
        # Kafka's tools pass the bytes to Properties.load, which reads them as Latin-1. A byte order mark is removed,
        # because it would hide the first key. If that key were `security.protocol`, kquota would connect without TLS.
        data = bounded.file_bytes(path, bounded.SETTINGS, pipe=True)
        text = data.removeprefix(codecs.BOM_UTF8).decode("latin-1")
    except OSError as error:
        # A user who mistakes the option for another writes k=v here, and v may be a password.
        what = "the given file" if "=" in str(path) else path
        raise Invalid(
            f"{option}: cannot read {what}: {error.strerror or error}. Check its path and permissions"
        ) from None
    try:
        return [(_unescaped(key), _unescaped(value)) for key, value in _pairs(text)]
    except ValueError as error:
        raise Invalid(f"{option}: {path}: {error}") from None


def text_of(properties: Mapping[str, object]) -> str:
    """Return the text of a file with these keys and values. It is ASCII, because Java reads it as Latin-1 or as UTF-8.

    Blanks at the start of a value are lost, because readers of the file skip them.
    """
    return "".join(f"{_escaped(key, ' =:#!')}={_escaped(str(value))}\n" for key, value in properties.items())


def _escaped(text: str, special: str = "") -> str:
    data = text.encode("utf-16-be", "surrogatepass")
    units = (chr(int.from_bytes(data[n : n + 2], "big")) for n in range(0, len(data), 2))
    return "".join(c if " " <= c <= "~" and c not in f"\\{special}" else f"\\u{ord(c):04x}" for c in units)


def _unescaped(text: str) -> str:
    """Return the text with its escapes replaced. Raises ValueError for a broken escape. The message does not contain
    the text, which may be a secret.
    """
    if "\\" not in text:
        return text
    if re.search(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})", text):
        raise ValueError(r"a \u is not followed by four hexadecimal digits. Write a backslash as \\")
    plain = re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda match: chr(int(match[1], 16)) if match[1] else _CONTROLS.get(match[2], match[2]),
        text,
        flags=re.DOTALL,
    )
    try:
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError(r"a \u escape is only half of a surrogate pair. Write both halves") from None


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in _logical_lines(text):
        key = re.match(r"(?:[^\\=: \t\f]|\\.)*", line, re.DOTALL)
        assert key is not None
        rest = line[key.end() :].lstrip(_BLANK)
        if rest.startswith(("=", ":")):
            rest = rest[1:].lstrip(_BLANK)
        yield key[0], rest


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the lines except comments and blank lines. A line that ends with an unescaped backslash continues on the
    next line.
    """
    pieces: list[str] = []
    continued = False
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(_BLANK)
        if not continued and (not line or line[0] in "#!"):
            continue
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        pieces.append(line[:-1] if continued else line)
        if not continued:
            yield "".join(pieces)
            pieces.clear()
    if any(pieces):
        yield "".join(pieces)
