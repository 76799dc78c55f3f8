"""Replica sizes as one DataFrame, from the printed output of kafka-log-dirs or from snapshots.

The DataFrame has the columns of a snapshot's row (`ROW`) and three more: `file`, `problem` (why the whole file is
unusable, otherwise null) and `offline` (true if the broker could not read this log dir). A row with a
broker but without a topic and a size represents a broker or a log dir for which the input lists no replica.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kquota.sizes.snapshot import VERSION
from kquota.spark.files import Files
from kquota.spark.reader import CORRUPT, Reader, parsed, schema_of

FACTS: Final = {
    "broker": "int",
    "rack": "string",
    "log_dir": "string",
    "topic": "string",
    "partition": "int",
    "size": "bigint",
    "start_offset": "bigint",
    "local_start_offset": "bigint",
    "end_offset": "bigint",
    "future": "boolean",
    "leader": "boolean",
    "in_sync": "boolean",
    "volume_total": "bigint",
    "volume_usable": "bigint",
}
"""The columns that a snapshot reports for a replica. The replicas of a history also have them."""
_COLUMNS: Final = {"cluster": "string", "time": "string", **FACTS}
ROW: Final = tuple(_COLUMNS)
"""The columns of a replica, in order. null means unknown (for `rack`, also no rack), never zero. Sizes are in bytes."""

_SNAPSHOT: Final = schema_of({"version": "int", **_COLUMNS})
SNAPSHOT: Final = "is a snapshot of replica sizes"
_BROKEN: Final = "is not the expected JSON, or is truncated"
_PARTITION: Final = "struct<`partition`: string, size: bigint, offsetLag: bigint, isFuture: boolean>"
_LOG_DIR: Final = f"struct<logDir: string, error: string, partitions: array<{_PARTITION}>>"
_LOG_DIRS: Final = f"version int, brokers array<struct<broker: int, logDirs: array<{_LOG_DIR}>>>"


def from_snapshots(reader: Reader, files: Files) -> DataFrame:
    """Return the rows of snapshots from `kquota log-dirs`. Each JSON line is a flat object for one replica.

    Raises the same errors as `Reader.json_lines`.
    """
    problem = _problem_or_version(F.when(F.col(CORRUPT).isNotNull(), _BROKEN), F.col("version"), VERSION)
    rows = reader.json_lines(files, _SNAPSHOT)
    return rows.select(*ROW, "file", problem.alias("problem"), F.lit(False).alias("offline"))


def from_log_dirs(reader: Reader, files: Files) -> DataFrame:
    """Return the rows of the output of kafka-log-dirs. Lines that do not begin with `{` are skipped.

    Of the columns of `ROW`, the output reports only `broker`, `log_dir`, `topic`, `partition`, `size` and `future`
    (KIP-113), so the others are null. The name of a topic can contain dashes, so the partition is the number after the
    last dash. Raises the same errors as `Reader.lines`.
    """
    lines = reader.lines(files).where(F.ltrim("value").startswith("{"))
    no_brokers = F.col("parsed.brokers").isNull()
    problem = (
        F.when(no_brokers & F.get_json_object("value", "$.log_dir").isNotNull(), SNAPSHOT)
        .when(F.col(f"parsed.{CORRUPT}").isNotNull(), _BROKEN)
        .when(no_brokers, "contains no brokers")
    )
    brokers = lines.select("file", "value", parsed(_LOG_DIRS)).select(
        "file",
        _problem_or_version(problem, F.col("parsed.version"), 1).alias("problem"),
        F.explode_outer("parsed.brokers").alias("b"),
    )
    dirs = brokers.select("file", "problem", "b.broker", F.explode_outer("b.logDirs").alias("d"))
    offline = F.col("d.error").isNotNull().alias("offline")
    replicas = dirs.select("file", "problem", "broker", "d.logDir", offline, F.explode_outer("d.partitions").alias("p"))
    known = {
        "broker": F.col("broker"),
        "log_dir": F.col("logDir"),
        "topic": F.regexp_extract("p.partition", "^(.*)-([0-9]+)$", 1),
        "partition": F.regexp_extract("p.partition", "^(.*)-([0-9]+)$", 2),
        "size": F.col("p.size"),
        "future": F.col("p.isFuture"),
    }
    row = [known.get(name, F.lit(None)).try_cast(kind).alias(name) for name, kind in _COLUMNS.items()]
    return replicas.select(*row, "file", "problem", "offline")


READERS: Final[Mapping[str, Callable[[Reader, Files], DataFrame]]] = {"log-dirs": from_log_dirs}
"""The reader of each source in `files.SIZE_FILES`."""


def is_replica() -> Column:
    """Return the condition for a row that is a replica: it names its broker and partition, and has a valid size."""
    whole = F.col("broker").isNotNull() & (F.col("topic") != "") & (F.col("partition") >= 0) & (F.col("size") >= 0)
    return F.coalesce(whole, F.lit(False))


def _problem_or_version(problem: Column, version: Column, expected: int) -> Column:
    unknown = F.concat(F.lit("unknown version "), F.coalesce(version.cast("string"), F.lit("(none)")))
    return problem.when(~version.eqNullSafe(expected), unknown)
