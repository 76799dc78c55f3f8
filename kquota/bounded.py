"""Reads files, JSON and gzip with limits, because a file or a record may be damaged or from another program.

No function here raises Invalid or Refused, because only the caller knows whether bad input is an error.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from kquota import counted_json

SETTINGS: Final = 256 * 2**10
"""The largest size, in bytes, of a file with the settings of a login or a cluster: properties, JAAS, `config.toml` or a
token.
"""
STORE: Final = 8 * 2**20
"""The largest size in bytes of a key store or a trust store. The certificates of all public authorities take 0.2 MB."""
STATE: Final = 16 * 2**20
"""The largest size in bytes of a file that kquota keeps for itself, except for journals and snapshots."""
JOURNAL: Final = 512 * 2**20
"""The largest size in bytes of a journal. The plan and the rollback plan of a million partitions take 200 MB."""
LINE: Final = 100_000
"""The largest size of a line: in bytes in a snapshot or in metrics, and in characters in a trace. A row of a snapshot
takes less than 2,000 bytes.
"""
_EXPANSION: Final = 200
"""The maximum number of expanded bytes for each byte of gzip, in addition to `_SMALL`. A plan expands to 10 to 60 times
its size, and a bomb to 1,000 times.
"""
_SMALL: Final = 2**20
"""The number of bytes that is always allowed for the values of a JSON text, and for expanded gzip."""
_VALUES: Final = 6
"""The maximum number of bytes of memory, in addition to `_SMALL`, that JSON values may take for each byte of the text.
"""
_PIECE: Final = 2**18
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F])|.)", re.DOTALL
)
"""A JSON escape. The group matches an unpaired surrogate."""


def file_bytes(path: Path, largest: int, *, pipe: bool = False) -> bytes:
    """Return the bytes of a regular file. With `pipe`, the file may also be a pipe or a device.

    Raises OSError if the file cannot be read or has more than `largest` bytes, and for a folder. Without `pipe`, raises
    OSError for every file that is not regular, because a read could block.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "its name has a null character")
    # Without O_NONBLOCK, opening a FIFO waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if pipe else os.O_NONBLOCK))
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not pipe and not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if stat.S_ISREG(found.st_mode) and found.st_size > largest:
            raise OSError(errno.EFBIG, f"it has {found.st_size:,} bytes, and kquota reads at most {largest:,}")
        data = within(file, largest)
    if len(data) > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest:,} bytes, the most that kquota reads")
    return data


def within(file: BinaryIO, largest: int) -> bytes:
    """Return the bytes of an open file, which can be a pipe or a terminal. If there are more than `largest` bytes,
    return the first `largest` + 1. Raises OSError if the file cannot be read.

    The function reads in pieces, because one read of `largest` bytes would reserve memory for all of them.
    """
    pieces: list[bytes] = []
    left = largest + 1
    while left and (piece := file.read(min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def file_text(path: Path, largest: int, *, pipe: bool = False) -> str:
    """Return the text of a file. Raises OSError as `file_bytes` does, and UnicodeDecodeError if it is not UTF-8."""
    return file_bytes(path, largest, pipe=pipe).decode()


def json_value(data: str | bytes, decoder: json.JSONDecoder | None = None, *, per_byte: int = _VALUES) -> Any:
    """Parse JSON text, or its bytes in UTF-8, UTF-16 or UTF-32, and return its value. `decoder` is from
    `json_decoder`.

    Raises ValueError for text that is not valid JSON, for example with NaN or infinity. Also raises ValueError for an
    unpaired surrogate escape, because UTF-8 cannot encode it, and for a value that is nested too deeply for Python's
    parser (about 1,000 levels). For long text, also raises ValueError if the values need more memory than about
    `per_byte` times the size of the text.
    """
    try:
        text = data if isinstance(data, str) else data.decode(json.detect_encoding(data))
        if _HALF.search(text) and any(found[1] for found in _ESCAPE.finditer(text)):
            raise ValueError("half of a pair of \\u escapes is missing")
        return counted_json.decode(text, decoder or _JSON, _SMALL + per_byte * len(data))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def json_object(data: str | bytes, decoder: json.JSONDecoder | None = None) -> dict[str, Any]:
    """Parse a JSON text and return its object. Raises ValueError as `json_value` does, and for a value that is not an
    object.
    """
    found = json_value(data, decoder)
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")
    return found


def expanded(data: bytes, largest: int) -> bytes:
    """Return the expanded bytes of the first gzip member in `data`. Ignores the bytes after this member.

    Raises ValueError if the member is damaged or truncated, expands to more than `largest` bytes, or is a decompression
    bomb. The function takes memory in proportion to its result.
    """
    most = min(largest, _SMALL + _EXPANSION * len(data))
    stream = zlib.decompressobj(wbits=31)
    pieces: list[bytes] = []
    length, left = 0, data
    while not stream.eof:
        try:
            piece = stream.decompress(left, _PIECE)
        except zlib.error as error:
            raise ValueError(f"is damaged ({error})") from error
        length += len(piece)
        if length > most:
            raise ValueError(f"expands to more than {most:,} bytes")
        if not piece and not stream.unconsumed_tail and not stream.eof:
            raise ValueError("is truncated")
        pieces.append(piece)
        left = stream.unconsumed_tail
    return b"".join(pieces)


def lines(file: BinaryIO, longest: int = LINE) -> Iterator[bytes]:
    """Yield the lines of a file, with their newlines. Raises ValueError for a line of more than `longest` bytes."""
    number = 0
    while line := file.readline(longest + 1):
        number += 1
        if len(line) > longest:
            raise ValueError(f"line {number} has more than {longest:,} bytes")
        yield line


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def json_decoder(replaced: Callable[[dict[str, Any]], object] | None = None) -> json.JSONDecoder:
    """Return a decoder that raises ValueError for NaN and infinity.

    The decoder calls `replaced` with each object as soon as the end of the object is read, and keeps only the result.
    The objects of the whole text are therefore never in memory together. Without `replaced`, objects stay dicts.
    """
    return json.JSONDecoder(parse_constant=_no_constant, object_hook=replaced)


_JSON: Final = json_decoder()
"""The default decoder. It is made only once, because `json.loads` with a `parse_constant` makes a new one for each
call.
"""
