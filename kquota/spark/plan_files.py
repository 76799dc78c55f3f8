"""Finds the file format of a plan before Spark starts, from the contents of local files or the names of other paths."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kquota.errors import Invalid
from kquota.reassign import plan as plans
from kquota.reassign.plan import Plan
from kquota.spark import files
from kquota.spark.files import Files, is_elsewhere
from kquota.text_file import is_folder, looking_at

_PARQUET: Final = b"PAR1"
_FIRST_LINE: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFiles:
    """A plan that Spark reads: Parquet if `parquet` is true, otherwise JSON lines. `name` is the operator's name for
    the plan.
    """

    name: str
    parquet: bool
    files: Files


def opened(name: str, scratch: Path) -> Plan | PlanFiles:
    """Return the plan in a JSON file of kafka-reassign-partitions, or the files of a plan in JSON lines or Parquet.
    Local files of such a plan are linked in a new folder in `scratch`.

    A folder must contain files of one kind. A path that Spark opens (`s3a://`, `hdfs://`) is JSON lines if its name
    ends with `.jsonl`, `.ndjson` or `.json`, with or without `.gz`, otherwise Parquet. Raises Invalid for files that
    cannot be read, for a folder without files or with several kinds, and for an invalid plan in a JSON file.
    """
    if is_elsewhere(name):
        lines = name.removesuffix(".gz").endswith((".jsonl", ".ndjson", ".json"))
        return PlanFiles(name=name, parquet=not lines, files=Files(folder=scratch, names={}, elsewhere=(name,)))
    path = Path(name)
    folder = is_folder(path)
    parts = _parts(path) if folder else [path]
    kinds = {_is_parquet(part) for part in parts if part.is_file()}
    if len(kinds) > 1:
        raise Invalid(f"{name}: the folder contains Parquet and other files. Keep only one kind")
    if True in kinds:
        return PlanFiles(name=name, parquet=True, files=files.laid_out(parts, scratch / "plan-files", ".parquet"))
    if folder or _is_lines(path):
        return PlanFiles(name=name, parquet=False, files=files.laid_out(parts, scratch / "plan-files", ".json"))
    return plans.read(path)


def _parts(folder: Path) -> list[Path]:
    # Spark and other programs add `_SUCCESS` and checksums to their files.
    with looking_at(folder):
        found = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(("_", ".")))
    if not found:
        raise Invalid(f"{folder}: the folder contains no file of a plan. Choose another folder")
    return found


def _is_parquet(path: Path) -> bool:
    with looking_at(path), path.open("rb") as file:
        return file.read(len(_PARQUET)) == _PARQUET


def _is_lines(path: Path) -> bool:
    """Return True if the first line with text is a complete entry. Also return True for a gzipped file that is not
    empty, because Kafka's tools do not read gzip. Return False for a path that is not a regular file, such as a
    pipe.
    """
    if not path.is_file():
        return False
    with files.unpacked(path, str(path)) as file:
        if files.is_packed(path):
            return bool(file.read(1))
        first = next(
            (line for line in itertools.islice(iter(lambda: file.readline(_FIRST_LINE), b""), 9) if line.strip()), b""
        )
    try:
        return "replicas" in json.loads(first)
    except (ValueError, TypeError, RecursionError):
        return False
