"""A run as lines of a journal: one JSON document each, under a checksum; the first is the run, the others its changes.

A line is the CRC-32 of the rest as eight hexadecimal digits, a space, the document, a newline. A last line that was cut
short counts as never written. Each line carries its stamp: version, writer, time, and the shared record it went to.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kquota.errors import Invalid, NextStep, Refused
from kquota.reassign.run import Owner, Run, Stamp
from kquota.stores.state import run_fields

VERSION: Final = 3
"""1 was a document that was replaced as a whole; the lines of 2 have no stamps, and are read."""
_UNSTAMPED: Final = 2
_BY_HAND: Final = (". See what is set with ", NextStep.SHOW_THROTTLES, ", then move this file away")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A run as a journal tells it. `shared` has, for each shared record, who wrote each version that went to it."""

    run: Run
    shared: Mapping[str, Mapping[int, Owner | None]]


def line(document: Mapping[str, Any]) -> bytes:
    """One line of a journal."""
    text = json.dumps(document, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def lines(data: bytes, where: str) -> tuple[list[dict[str, Any]], int]:
    """The documents of a journal and how many bytes of it are whole. Raises Refused for damage before the last line."""
    documents: list[dict[str, Any]] = []
    whole = 0
    while whole < len(data):
        end = data.find(b"\n", whole) + 1
        text = data[whole:end]
        if not end or text[:8] != b"%08x" % zlib.crc32(text[9:-1]):
            if end and end < len(data):
                raise Refused(f"{where}: line {len(documents) + 1} is damaged", *_BY_HAND)
            break
        documents.append(_object(text[9:], f"{where}: line {len(documents) + 1}"))
        whole = end
    return documents, whole


def first(run: Run, stamp: Stamp) -> dict[str, Any]:
    """The line that begins a run's journal on this host."""
    return {"version": VERSION, **run_fields.stamp_written(stamp), **run_fields.written(run)}


def change(before: Run, after: Run, stamp: Stamp) -> dict[str, Any]:
    """The line that makes `after` of `before`, the same run."""
    return {**run_fields.stamp_written(stamp), **run_fields.changed(before, after)}


def replay(documents: Sequence[Mapping[str, Any]], where: str) -> Kept:
    """The run that the lines tell. Raises Refused, naming `where`, when a newer kquota wrote them, or none did."""
    try:
        version = documents[0]["version"]
        if version not in (_UNSTAMPED, VERSION):
            raise Refused(
                f"{where}: the journal has version {version!s:.40}, and this kquota reads {_UNSTAMPED} and {VERSION}. "
                "Use the kquota that wrote it"
            )
        stamps = [
            run_fields.stamp_of(document) if "v" in document else Stamp(version=number)
            for number, document in enumerate(documents, 1)
        ]
        return Kept(run=run_fields.run_of(documents, stamps[-1]), shared=_shared(stamps))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Invalid) as error:
        wrong = f"{where}: is not a journal of kquota ({type(error).__name__}: {error})"
        raise Refused(wrong, *_BY_HAND) from error


def _shared(stamps: Sequence[Stamp]) -> dict[str, dict[int, Owner | None]]:
    found: dict[str, dict[int, Owner | None]] = {}
    for stamp in stamps:
        if stamp.record is not None:
            sent = found.setdefault(stamp.record, {})
            while sent and next(reversed(sent)) >= stamp.version:
                sent.popitem()  # it never got there: this host went on from what another one had written
            sent[stamp.version] = stamp.by
    return found


def _object(text: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{where} is not JSON ({type(error).__name__})", *_BY_HAND) from error
    if not isinstance(found, dict):
        raise Refused(f"{where} is not a JSON object", *_BY_HAND)
    return found
