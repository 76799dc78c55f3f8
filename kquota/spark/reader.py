"""The files of a job as DataFrames.

A local engine opens local files itself. A cluster or a Spark Connect server cannot see the local folders, so kquota
sends it the lines or rows of these files.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota.errors import Invalid, Parameter, Refused
from kquota.measure import human_bytes
from kquota.spark.failure import answered, cause
from kquota.spark.files import Files, is_elsewhere, unpacked

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_MOST_SENT: Final = 100_000_000
"""kquota sends a local history only if its Parquet files have at most this many bytes, because client and driver hold
several copies of the rows.
"""
_SCHEMA: Final = "file string, value string"
_CHUNK: Final = 8_000_000
"""The lines in one statement have at most this many characters in total. A longer line gets its own statement."""
_ROWS: Final = f"SELECT inline(from_json(:rows, 'array<struct<{_SCHEMA}>>'))"
CORRUPT: Final = "corrupt"
"""The column with the text of a line that is not valid."""

_Row = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Makes DataFrames from files and rows."""

    spark: SparkSession
    scratch: Path
    uploads: bool = False
    """True if the engine cannot read local files, so that kquota must send their contents."""

    def lines(self, files: Files) -> DataFrame:
        """Return every line of text files, gzipped or not, as `value`. `file` is the name of a link in `Files.names`,
        or the path of a file elsewhere.

        Raises the errors of `uploaded` if local files must be sent.
        """
        sent = [uploaded(self.spark, files)] if self.uploads and files.names else []
        # Without the selection, a partitioned folder elsewhere would add its columns.
        return _union(
            frame.select("file", "value") for frame in (*sent, *_frames(self.spark.read.text, files, local=not sent))
        )

    def json_lines(self, files: Files, schema: str) -> DataFrame:
        """Return the columns of `schema` from JSON lines, `corrupt` as in `parsed`, and `file` as in `lines`.

        Blank lines are left out. Raises the same errors as `lines`.
        """
        from pyspark.sql import functions as F

        if self.uploads:
            lines = self.lines(files).where(F.trim("value") != "")
            return lines.select("file", parsed(schema)).select("file", "parsed.*")
        # Read the JSON directly, because `from_json` creates a decoder of 8 kB for each line.
        reading = self.spark.read.schema(f"{schema}, {CORRUPT} string").option("columnNameOfCorruptRecord", CORRUPT)
        return _union(_frames(reading.json, files, local=True))

    def parquet(self, files: Files, name: str) -> DataFrame:
        """Return the rows of Parquet files with all their columns.

        Raises Invalid if the files cannot be read or the types of a column differ. Raises Refused if the files must be
        sent and pyarrow is missing. The message begins with `name`.
        """
        if self.uploads and files.names:
            return self._sent([str(files.folder / link) for link in files.names], (name,))
        try:
            paths = [str(files.folder)] if files.names else list(files.elsewhere)
            return self.spark.read.option("mergeSchema", len(files.names) != 1).parquet(*paths)
        except answered() as error:
            raise Invalid(f"{name}: cannot be read as Parquet: {cause(str(error))}") from error

    def batches(
        self, paths: Sequence[str], columns: Mapping[str, str], pattern: str, given_in: Parameter, *, elsewhere: bool
    ) -> DataFrame:
        """Return the `columns` of the Parquet files that match `pattern` in the batches of histories.

        A column that a file lacks is null. Local files are sent to a remote engine, which would otherwise fail or read
        its own folder of the same name. Raises Refused if files to send are too large or pyarrow is missing, and
        Invalid if they cannot be read or a path does not exist. The message begins with `given_in`. With `elsewhere`,
        the message of Refused also suggests a path that Spark itself can read.
        """
        from pyspark.errors import AnalysisException
        from pyspark.sql import functions as F

        def alike(frame: DataFrame) -> DataFrame:
            # The folder name of the batch is not a column of the table, and an older kquota wrote fewer columns.
            known = (F.col(name) if name in frame.columns else F.lit(None) for name in columns)
            kinds = columns.items()
            return frame.select(*(one.cast(kind).alias(name) for one, (name, kind) in zip(known, kinds, strict=True)))

        sent = [path for path in paths if self.uploads and not is_elsewhere(path)]
        frames = [alike(self._hive(Path(path), pattern, given_in, elsewhere=elsewhere)) for path in sent]
        if read := [path for path in paths if path not in sent]:
            files = self.spark.read.schema(schema_of(columns)).option("pathGlobFilter", pattern)
            try:
                frames.append(alike(files.parquet(*read)))
            except AnalysisException as error:
                why = cause(str(error))
                raise Invalid(given_in, f" {', '.join(read)}: cannot be read: {why}. Correct the path") from error
        return _union(frames)

    def _hive(self, folder: Path, pattern: str, given_in: Parameter, *, elsewhere: bool) -> DataFrame:
        files = sorted(folder.rglob(pattern))
        if sum(file.stat().st_size for file in files) > _MOST_SENT:
            copy = "Copy the history to a place that Spark can read, and give its path (s3a://BUCKET/history)"
            raise Refused(
                given_in,
                f" {folder}: contains more than {human_bytes(_MOST_SENT)} of Parquet, which kquota does not send to a "
                f"remote Spark. {f'{copy}, or leave out ' if elsewhere else 'Leave out '}",
                Parameter("spark_master"),
                " and ",
                Parameter("spark_remote"),
            )
        name = (given_in, f" {folder}")
        return self._sent(
            list(map(str, files)), name, base=folder, partitions=("batch", "cluster", "date"), elsewhere=elsewhere
        )

    def _sent(
        self,
        files: Sequence[str],
        name: tuple[str, ...],
        *,
        base: Path | None = None,
        partitions: Iterable[str] = (),
        elsewhere: bool = True,
    ) -> DataFrame:
        """Send local Parquet to Spark with pyarrow. Raises Invalid for unreadable files, and Refused without pyarrow,
        which only the client of Spark Connect installs.
        """
        try:
            import pyarrow
            from pyarrow import dataset, parquet
        except ImportError as error:
            place = ", or give a place that Spark can read (s3a://, hdfs://)" if elsewhere else ""
            raise Refused(
                *name,
                ": local Parquet is sent to Spark with pyarrow, which is not installed. Run pip install pyarrow",
                place,
            ) from error
        folder_columns = pyarrow.schema([(column, pyarrow.string()) for column in partitions])
        hive = dataset.partitioning(folder_columns, flavor="hive")
        try:
            # Files may have different columns. Without a schema, pyarrow uses only the columns of the first file.
            found = dataset.dataset(
                list(files),
                schema=pyarrow.unify_schemas([*map(parquet.read_schema, files), folder_columns]),
                format="parquet",
                partitioning=hive,
                partition_base_dir=None if base is None else str(base),
            ).to_table()
        except (pyarrow.ArrowException, OSError) as error:
            raise Invalid(*name, f": cannot be read as Parquet: {cause(str(error))}") from error
        return self.spark.createDataFrame(found)

    def table(self, name: str, rows: Iterable[Mapping[str, object]], schema: str) -> DataFrame:
        """Return a table from rows in memory.

        Each `name` can be used only once, because it names a new folder in `scratch`. Spark reads the rows as JSON
        lines, so the table can be large, and Spark runs no Python.
        """
        return self.objects(name, map(json.dumps, rows), schema)

    def objects(self, name: str, rows: Iterable[str], schema: str) -> DataFrame:
        """Return a table from rows that are already JSON objects. `name` is the same as in `table`."""
        from pyspark.sql import functions as F

        folder = self.scratch / name
        folder.mkdir()
        with (folder / "rows.json").open("w") as file:
            file.writelines(f"{row}\n" for row in rows)
        if not self.uploads:
            return self.spark.read.schema(schema).json(str(folder))
        found = self.lines(Files(folder=folder, names={"rows.json": name}))
        return found.select(F.from_json("value", schema).alias("row")).select("row.*")


def parsed(schema: str, *, csv: bool = False) -> Column:
    """Return the column `parsed`: the fields of `schema` from the JSON in the column `value`, or with `csv` from a row
    of CSV. The field `corrupt` has the text if it is not valid, and is otherwise null.
    """
    from pyspark.sql import functions as F

    whole, options = f"{schema}, {CORRUPT} string", {"columnNameOfCorruptRecord": CORRUPT}
    column = F.from_csv("value", whole, options | {"escape": '"'}) if csv else F.from_json("value", whole, options)
    return column.alias("parsed")


def schema_of(columns: Mapping[str, str]) -> str:
    """Return the schema of a table. Without a schema, Spark would read a cluster id of digits as a number."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def uploaded(spark: SparkSession, files: Files) -> DataFrame:
    """Return every line of the files as `value`, with the link of its file as `file`. No path is sent, and the engine
    runs no Python.

    Raises Invalid, which names the file, if a file is damaged or is not text.
    """
    from pyspark.sql.utils import is_remote

    rows = _rows(files)
    # The client of Spark Connect splits the rows into messages. With a local driver, a query contains its rows, so
    # kquota divides many rows among several queries.
    if is_remote():
        return spark.createDataFrame(list(rows), _SCHEMA)
    return _union(spark.sql(_ROWS, args={"rows": text}) for text in _texts(rows))


def _frames(read: Callable[[str], DataFrame], files: Files, *, local: bool) -> Iterator[DataFrame]:
    """Yield the rows of the local files, if `local` is set, and of each file elsewhere, with the column `file`."""
    from pyspark.sql import functions as F

    if local and files.names:
        yield read(str(files.folder)).select(F.col("_metadata.file_name").alias("file"), "*")
    for path in files.elsewhere:
        yield read(path).select(F.col("_metadata.file_path").alias("file"), "*")


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionAll(other), frames)


def _rows(files: Files) -> Iterator[_Row]:
    for link in files.names:
        with unpacked(files.folder / link, files.name(link)) as file:
            for line in io.TextIOWrapper(file, "utf-8-sig"):
                yield link, line.rstrip("\n")


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
