"""Sends the lines of local files to an engine that cannot read these files.

No path is sent, and the engine runs no Python.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Final

from kquota.errors import Invalid
from kquota.spark.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA: Final = "file string, value string"
_CHUNK: Final = 8_000_000
"""The maximum number of characters in one statement, unless a single line is longer."""
_ROWS: Final = "SELECT inline(from_json(:rows, 'array<struct<file string, value string>>'))"

_Row = tuple[str, str]


def uploaded(spark: SparkSession, files: Files) -> DataFrame:
    """Return every line of the files as `value`, and its link as `file`. Raises Invalid for a file that is damaged or
    not text, and names the file.
    """
    from pyspark.sql.utils import is_remote

    rows = _rows(files)
    # The client of Spark Connect splits the rows into messages. With a local driver, a query contains its rows, so
    # kquota divides many rows among several queries.
    if is_remote():
        return spark.createDataFrame(list(rows), SCHEMA)
    frames = (spark.sql(_ROWS, args={"rows": text}) for text in _texts(rows))
    return reduce(lambda one, other: one.unionAll(other), frames)


def _rows(files: Files) -> Iterator[_Row]:
    for link in files.names:
        path = files.folder / link
        packed = path.suffix == ".gz"
        try:
            with gzip.open(path, "rt", encoding="utf-8-sig") if packed else path.open(encoding="utf-8-sig") as file:
                for line in file:
                    yield link, line.rstrip("\n")
        # Unpacking and decoding raise four kinds of errors.
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise Invalid(f"{files.name(link)}: cannot be read: {error}") from error


def _texts(rows: Iterable[_Row]) -> Iterator[str]:
    """Yield the rows as JSON arrays. There is at least one array, which may be empty."""
    chunk: list[dict[str, str]] = []
    size = 0
    for link, line in rows:
        if chunk and size + len(line) > _CHUNK:
            yield json.dumps(chunk)
            chunk, size = [], 0
        chunk.append({"file": link, "value": line})
        size += len(line)
    yield json.dumps(chunk)
