"""One run in the shared record: a small JSON sheet, and a separate part for each large field, named by its hash."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kquota import bounded
from kquota.errors import KquotaError, Refused
from kquota.reassign.course import Course
from kquota.reassign.run import Run
from kquota.stores.state import run_fields

FORMAT: Final = 2
"""The version of the format. A sheet of another version is unreadable."""
LARGE: Final = 20_000
"""A field with more bytes of JSON becomes a part, unless it is in `_WHOLE`. A part is written once, and not with every
version.
"""
LARGEST: Final = 100 * 2**20
"""The largest field, in bytes. A plan of a million partitions takes 90 MB, so a larger field is not valid."""
LARGEST_PARTS: Final = 4 * LARGEST
"""The largest total size, in bytes, of the parts of one run before compression."""
LARGEST_SHEET: Final = 900_000
PART_BYTES: Final = 700_000
"""The largest chunk of a part, in bytes. By default, a topic's batch and a ZooKeeper transaction hold at most 1 MB."""
_DIGEST: Final = re.compile("[0-9a-f]{32}")


NOTHING: Final = {
    "plan": {"partitions": []},
    "rollback": {"partitions": []},
    "taken": [],
    "topic_ids": {},
    "handed_over": "",
}
"""Empty values for the fields that are slow to read and, in an ended run, rarely needed."""


_WHOLE: Final = ("course",)
"""Fields that never become a part, because the list of ended runs needs them. Their size is bounded."""


class Unreadable(KquotaError):
    """This kquota cannot read a sheet, for the reason in the message. It still reads the other sheets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A run from the shared record, with its stamp. `parts` are the hashes of the parts that hold its large fields."""

    run: Run
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A run as it is stored: the sheet, and the parts (gzip) that are not stored yet, by their hash."""

    sheet: bytes
    parts: Mapping[str, bytes]


def encode(run: Run, cluster_id: str, known: Callable[[str], bool] = lambda _: False, *, whole: bool = True) -> Encoded:
    """Encode a run for the record. The run must have a stamp. Leaves out each part for whose hash `known` returns True,
    because it is already stored.

    Unless `whole`, the fields in `NOTHING` are empty. If the sheet of a later version is too large, the readings, the
    rate changes and the brokers of its course are left out. Otherwise, no command could end the run and restore its
    throttle.
    """
    assert run.stamp is not None
    parts: dict[str, bytes] = {}
    fields: dict[str, Any] = {}
    for name, value in (run_fields.written(run) | ({} if whole else NOTHING)).items():
        text = json.dumps(value, separators=(",", ":")).encode()
        if len(text) <= LARGE or name in _WHOLE:
            fields[name] = value
            continue
        digest = hashlib.sha256(text).hexdigest()[:32]
        fields[name] = {"part": digest}
        if not known(digest):
            parts[digest] = gzip.compress(text, compresslevel=6, mtime=0)
    document = {"format": FORMAT, "cluster": cluster_id, **run_fields.STAMP.written(run.stamp), "run": fields}
    encoded = Encoded(sheet=json.dumps(document, separators=(",", ":")).encode(), parts=parts)
    if len(encoded.sheet) > LARGEST_SHEET and run.stamp.version > 1:
        dropped = run.course.changes_dropped + len(run.course.changes)
        short = Course(expected=run.course.expected, changes_dropped=dropped, verdict=run.course.verdict)
        if short != run.course:
            return encode(replace(run, course=short), cluster_id, known, whole=whole)
    return encoded


def must_fit(run: Run, encoded: Encoded, place: str) -> None:
    """Raise Refused for a sheet that is too large for `decode`. `place` is the place of the record."""
    if len(encoded.sheet) > LARGEST_SHEET:
        sizes = f"{len(encoded.sheet):,} bytes, at most {LARGEST_SHEET:,}"
        raise Refused(f"run {run.id} is too large for the record in {place} ({sizes}). Split the plan")


def decode(
    data: bytes, run_id: str, cluster_id: str, part: Callable[[str], bytes | None], *, whole: bool = True
) -> Sheet:
    """Decode the sheet of the run `run_id`. Unless `whole`, the fields in `NOTHING` are empty for an ended run.

    `part` returns the bytes of a part for its hash, or None if the part is missing. Raises Unreadable, with the reason,
    if the sheet is not valid, or if a part that it needs is missing or not valid.
    """
    try:
        if len(data) > LARGEST_SHEET:
            raise Unreadable(f"it has {len(data):,} bytes, more than {LARGEST_SHEET:,}")
        document = bounded.json_object(data)
        if document["format"] != FORMAT:
            raise Unreadable(f"it has format {document['format']!s:.20}, and this kquota reads {FORMAT}")
        if document["cluster"] != cluster_id:
            raise Unreadable(f"it belongs to another cluster ({document['cluster']!s:.40})")
        fields = dict(document["run"])
        parts = {name: _digest(value["part"]) for name, value in fields.items() if _is_part(name, value)}
        if fields["finished"] is not None and not whole:
            fields |= NOTHING
        else:
            fields |= _joined(parts, part)
        run = run_fields.run_of([fields], run_fields.STAMP.of(document))
    except run_fields.NOT_A_RUN as error:
        raise Unreadable(f"{type(error).__name__}: {error!s:.200}") from error
    if run.id != run_id:
        raise Unreadable(f"it contains another run ({run.id})")
    return Sheet(run=run, parts=tuple(parts.values()))


def chunks(data: bytes) -> list[tuple[int, bytes]]:
    """Return the numbered chunks of a part in the order to write them. Chunk 0 is last, because it shows that the part
    is complete.
    """
    return [(start // PART_BYTES, data[start : start + PART_BYTES]) for start in range(0, len(data), PART_BYTES)][::-1]


def _is_part(name: str, value: Any) -> bool:
    """Return True for a reference to a part, but not for the topic ids of a run whose only topic is named `part`."""
    if not isinstance(value, dict) or value.keys() != {"part"}:
        return False
    return name != "topic_ids" or (isinstance(value["part"], str) and _DIGEST.fullmatch(value["part"]) is not None)


def _digest(value: Any) -> str:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise ValueError(f"{str(value)[:40]!r} is not the hash of a part")
    return value


def _joined(digests: Mapping[str, str], part: Callable[[str], bytes | None]) -> dict[str, Any]:
    """Return the large fields, read from their parts. The total size of the fields is bounded, because several fields
    can name the same part, and kquota decompresses the part for each of them.
    """
    found: dict[str, Any] = {}
    left = LARGEST_PARTS
    for name, digest in digests.items():
        text = _text(part(digest), digest, min(LARGEST, left))
        left -= len(text)
        found[name] = bounded.json_value(text, run_fields.decoder())
    return found


def _text(data: bytes | None, digest: str, largest: int) -> bytes:
    if data is None:
        raise ValueError(f"its part {digest[:8]} is missing")
    try:
        text = bounded.expanded(data, largest)
    except ValueError as error:
        raise ValueError(f"its part {digest[:8]} {error}") from error
    if hashlib.sha256(text).hexdigest()[:32] != digest:
        raise ValueError(f"its part {digest[:8]} does not match its hash")
    return text
