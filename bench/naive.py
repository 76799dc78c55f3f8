"""`kquota ARGUMENTS…` with PySpark's default session: `SparkSession.builder.getOrCreate()`, then `stop`.

It does the same work as kquota, but starts Spark only after it has read and sampled the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kquota.cli.main import main
from kquota.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def _starting(*_: object, **__: object) -> Iterator[object]:
    yield object()


@contextmanager
def _session(*_: object, **__: object) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    yield spark
    spark.stop()


if __name__ == "__main__":
    session.starting, session.session = _starting, _session  # type: ignore[assignment]
    main()
