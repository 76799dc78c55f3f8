"""A run as lines of a journal. The first line has the whole run, and each later line has the fields that changed.

A line has the CRC-32 of a JSON document as eight hexadecimal digits, a space, the document, and a newline. A truncated
or damaged last line counts as not written. Each line has a stamp: its version, its writer, its time, and the shared
record that it was sent to.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kquota import bounded
from kquota.errors import NextStep, Refused
from kquota.reassign.plan import UnknownKeys
from kquota.reassign.run import Owner, Run, Stamp
from kquota.stores.state import run_fields

VERSION: Final = 4
"""The version of the format. kquota refuses every other version."""
_BY_HAND: Final = (". Move this file to another folder. Then show the throttles with ", NextStep.SHOW_THROTTLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledRun:
    """A run from a journal."""

    run: Run
    shared: Mapping[str, Mapping[int, Owner | None]]
    """For each shared record by its id: the versions that were sent to it, each with its writer (None if unknown)."""


def line(document: Mapping[str, Any]) -> bytes:
    """Return a document as one line of a journal."""
    text = json.dumps(document, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def lines(data: bytes, where: str) -> tuple[list[dict[str, Any]], int]:
    """Return the documents of a journal, and the number of bytes in their lines. A truncated or damaged last line is
    left out. `where` is the name of the journal in messages.

    Raises Refused if a line before the last one is damaged, or if a line has no JSON object.
    """
    documents: list[dict[str, Any]] = []
    whole = 0
    view = memoryview(data)  # avoids copies: a line with a long plan takes as much memory as the plan
    while whole < len(data):
        end = data.find(b"\n", whole) + 1
        if not end or data[whole : whole + 8] != b"%08x" % zlib.crc32(view[whole + 9 : end - 1]):
            if end and end < len(data):
                raise Refused(f"{where}: line {len(documents) + 1} is damaged", *_BY_HAND)
            break
        documents.append(_object(view[whole + 9 : end], f"{where}: line {len(documents) + 1}"))
        whole = end
    return documents, whole


def first(run: Run, stamp: Stamp) -> dict[str, Any]:
    """Return the document for the first line of a run's journal on this host."""
    return {"version": VERSION, **run_fields.STAMP.written(stamp), **run_fields.written(run)}


def change(before: Run, after: Run, stamp: Stamp) -> dict[str, Any]:
    """Return the document of the line that records the change from `before` to `after` (of the same run)."""
    return {**run_fields.STAMP.written(stamp), **run_fields.changed(before, after)}


def replay(documents: Sequence[Mapping[str, Any]], where: str) -> JournaledRun:
    """Return the run that the lines describe. `where` is the name of the journal in messages.

    Raises Refused if this kquota does not read the version of the journal, or if the lines are not valid.
    """
    try:
        version = documents[0]["version"]
        if version != VERSION:
            raise Refused(
                f"{where}: the journal has version {version!s:.40}, and this kquota reads {VERSION}. "
                "Use the version of kquota that wrote it"
            )
        stamps = run_fields.STAMP.all_of(documents)
        return JournaledRun(run=run_fields.run_of(documents, stamps[-1]), shared=_shared(stamps))
    except UnknownKeys as error:
        raise Refused(f"{where}: {error}") from error
    except run_fields.NOT_A_RUN as error:
        wrong = f"{where} is not a valid journal ({type(error).__name__}: {error!s:.200})"
        raise Refused(wrong, *_BY_HAND) from error


def _shared(stamps: Sequence[Stamp]) -> dict[str, dict[int, Owner | None]]:
    found: dict[str, dict[int, Owner | None]] = {}
    for stamp in stamps:
        if stamp.record is not None:
            sent = found.setdefault(stamp.record, {})
            while sent and next(reversed(sent)) >= stamp.version:
                sent.popitem()  # never stored in the record: this host continued from a version of another host
            sent[stamp.version] = stamp.by
    return found


def _object(text: memoryview, where: str) -> dict[str, Any]:
    try:
        return bounded.json_object(str(text, "utf-8"), run_fields.decoder())
    except ValueError as error:
        raise Refused(f"{where} is not a JSON object", *_BY_HAND) from error
