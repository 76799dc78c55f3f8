"""Snapshot files: gzipped JSON lines that are either whole or not there."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from kquota import durable
from kquota.errors import Invalid, Refused


def write(directory: Path, cluster_id: str, time: datetime, lines: Iterable[str]) -> Path:
    """Write one snapshot as `<cluster>-<UTC time>.jsonl.gz`; written, fsynced, then renamed. Returns its path.

    Raises Invalid where `directory` cannot be made, Refused where the disk says no, or that very snapshot exists.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Invalid(f"--snapshot: cannot make the folder {directory}: {error.strerror}") from error
    # A cluster's id is base64 and may begin with a dash; it must stay one plain file name.
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", cluster_id)
    path = directory / f"{safe}-{time.astimezone(UTC):%Y%m%dT%H%M%SZ}.jsonl.gz"
    if path.exists():
        raise Refused(f"--snapshot: {path} exists already: one snapshot a second is enough")
    try:
        with (
            durable.replacing(path) as raw,
            gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        ):
            for line in lines:
                packed.write(line.encode() + b"\n")
    except OSError as error:
        raise Refused(f"--snapshot: cannot write {path}: {error.strerror}; nothing was kept") from error
    return path
