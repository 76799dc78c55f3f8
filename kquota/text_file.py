"""Reads text that operators pass in a file, a pipe or stdin, exactly once."""

from __future__ import annotations

import codecs
import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from kquota import bounded
from kquota.errors import Invalid

LARGEST: Final = 100_000_000
"""The maximum size of a file in bytes. It is enough for a plan of a million partitions with three replicas, as Kafka's
tools write it.
"""
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read(path: Path, what: str, *, empty: str = "is empty") -> tuple[str, str]:
    """Return the text of a file, and the name of the file in messages. `path` can also be a pipe, or `-` for stdin.

    Removes a byte order mark. `what` describes the file, for example "a reassignment JSON file". `empty` is the problem
    that the message about an empty file states. Raises Invalid for a file that is unreadable, empty, larger than
    `LARGEST` or not UTF-8.
    """
    piped = str(path) == "-"
    name = "stdin" if piped else str(path)
    try:
        with contextlib.nullcontext(sys.stdin.buffer) if piped else path.open("rb") as file:
            data = _bytes(file, name)
    except OSError as error:
        raise Invalid(f"{name}: cannot be read: {error.strerror}. Give {what}") from error
    if not data.strip(b"\0 \t\r\n"):
        # A power failure may leave a file that contains only zero bytes.
        raise Invalid(f"{name}: {empty}. Give {what}")
    if data.startswith(_WIDE) or b"\0" in data[:2]:
        raise Invalid(f"{name}: is UTF-16, not UTF-8. Save it as UTF-8")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode(), name
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        raise Invalid(f"{name}: {place(before, len(before))}: is not UTF-8. Save the file as UTF-8") from error


@contextlib.contextmanager
def looking_at(path: Path) -> Iterator[None]:
    """Translate an OSError of the block into Invalid, with `path` in the message."""
    try:
        yield
    except OSError as error:
        problem = f"{path}: cannot be read: {error.strerror or error}"
        raise Invalid(f"{problem}. Check the path and its permissions") from error


def is_folder(path: Path) -> bool | None:
    """Return True for a folder, False for another file, and None if the path does not exist. Raises Invalid if the path
    cannot be accessed.

    The function does not use `Path.exists`, because versions of Python differ in the errors that it raises.
    """
    with looking_at(path):
        try:
            return stat.S_ISDIR(path.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None


def place(text: str, at: int) -> str:
    """Return the line and the column of the character at index `at`, for messages.

    >>> place("one\\ntwo", 5)
    'line 2 column 2'
    """
    return f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"


def _bytes(file: BinaryIO, name: str) -> bytes:
    found = os.fstat(file.fileno())
    known = stat.S_ISREG(found.st_mode) and found.st_size > LARGEST
    data = b"" if known else bounded.within(file, LARGEST)
    if known or len(data) > LARGEST:
        size = f"{found.st_size:,}" if known else f"more than {LARGEST:,}"
        raise Invalid(f"{name}: is {size} bytes long, and kquota reads at most {LARGEST:,}. Split it")
    return data
