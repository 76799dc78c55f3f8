"""Mutations of a valid example: of its bytes, and of one value in its JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

LONGEST: Final = 20_000
"""The largest size in bytes of a mutated example. Large inputs have a test of their own."""
_TOKENS: Final = (
    *(
        b"\x00",
        b"\xff",
        b"\xc3\x28",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\r",
        b"\n",
        b"\t",
        b"\\",
        b"\\u",
        b"\\ud800",
    ),
    *(
        b"%",
        b"%zz",
        b"%C3",
        b"*",
        b",",
        b";",
        b"=",
        b":",
        b"'",
        b'"',
        b"[",
        b"]",
        b"{",
        b"}",
        b"&a ",
        b"*a",
        b"!!int ",
        b"<<: ",
        b"? ",
        b"- ",
    ),
    *(
        b"null",
        b"true",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"1e308",
        b"-1",
        b"0",
        b"00",
        b"1_0",
        b"9" * 30,
        b"9" * 5_000,
        b"2147483648",
        b"0.5",
    ),
    *(
        "\u0663".encode(),
        "\u202e".encode(),
        "\u2028".encode(),
        "\u0130".encode(),
        "\x9b".encode(),
        "\U0001f600".encode(),
    ),
    *(b"[" * 2_000, b'{"a":' * 2_000, b"a" * 3_000, b"a.b." * 150, b"\\\n" * 50, b"/*", b"//", b"#", b"12:3", b"1MB/s"),
)
_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, 0.5, 1e308, -0.0, "", "x", "\ud800", "\u202e", "0", "1e999"),
    *(
        "1e308",
        "9" * 5_000,
        "2026-03-01T12:30:00+00:00",
        "0001-01-01T00:00:00+00:00",
        "9999-12-31T23:59:59-23:59",
        "*",
        "0:1",
    ),
    *([], {}, [[]], [{}], [None], {"part": "0" * 32}, {"a": 1}, [1, "a"], ["x"] * 5_000),
)


def mutated(random: Random, examples: Sequence[bytes]) -> bytes:
    """Return a mutation of one of the examples, of at most LONGEST bytes."""
    data = random.choice(examples)
    if random.random() < 0.4 and (changed := _in_json(random, data)) is not None:
        data = changed
        if random.random() < 0.7:
            return data[:LONGEST]
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        data = random.choice(_BYTES)(random, data, examples)[:LONGEST]
    return data


def _flip(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]


def _insert(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(_TOKENS) + data[at:]


def _replace(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _span(random, data)
    return data[:start] + random.choice(_TOKENS) + data[end:]


def _cut(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _span(random, data)
    return data[:start] + data[end:]


def _repeat(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _span(random, data)
    return data[:start] + data[start:end] * random.choice((2, 3, 10, 300)) + data[end:]


def _truncate(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _splice(random: Random, data: bytes, examples: Sequence[bytes]) -> bytes:
    other = random.choice(examples)
    return data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]


def _span(random: Random, data: bytes) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.choice((0, 1, 2, 5, 20, len(data))))


_BYTES: Final[tuple[Callable[[Random, bytes, Sequence[bytes]], bytes], ...]] = (
    *(_flip, _insert, _replace, _cut, _repeat, _truncate, _splice),
)


def _in_json(random: Random, data: bytes) -> bytes | None:
    """Return JSON of which one value has changed, or is missing, or has another key. None if the data is not JSON."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    places: list[tuple[Any, Any]] = []
    left = [document]
    while left:
        found = left.pop()
        keys = list(found) if isinstance(found, dict) else list(range(len(found))) if isinstance(found, list) else []
        places += [(found, key) for key in keys]
        left += [found[key] for key in keys]
    if not places:
        return json.dumps(random.choice(_VALUES)).encode()
    above, key = random.choice(places)
    kind = random.randrange(8)
    if kind == 0:
        del above[key]
    elif kind == 1 and isinstance(above, dict):
        above[str(random.choice(_VALUES))] = above.pop(key)
    elif kind == 2 and isinstance(above, list):
        above.extend([above[key]] * random.choice((1, 2, 1_000)))
    elif kind == 3:
        return json.dumps(above[key]).encode()
    else:
        above[key] = random.choice(_VALUES)
    return json.dumps(document, ensure_ascii=random.random() < 0.9).encode(errors="surrogatepass")
