"""Options of commands with a Spark job, the engine that they select, and its session."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kquota.cli.contract import say
from kquota.cli.options import flag, value

if TYPE_CHECKING:
    from kquota.spark.engine import Engine
    from kquota.spark.files import Files
    from kquota.spark.reader import Reader
    from kquota.spark.session import Start


def _debug(value: bool) -> bool:
    if value:
        os.environ["KQUOTA_DEBUG"] = "1"
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """The options of a Spark job."""

    master: Annotated[
        str | None,
        value(
            "spark-master",
            "URL",
            "Spark cluster that runs the job: spark://HOST:PORT, yarn, k8s://URL, local[N]. [env: KQUOTA_SPARK_MASTER]",
        ),
    ] = None
    remote: Annotated[
        str | None,
        value("spark-remote", "sc://HOST:PORT", "Spark Connect server that runs the job. [env: KQUOTA_SPARK_REMOTE]"),
    ] = None
    conf: Annotated[list[str] | None, value("conf", "KEY=VALUE", "Spark setting. Repeatable.")] = None
    debug: Annotated[
        bool, flag("debug", "Show the traceback of an error, including Spark's frames.", callback=_debug, is_eager=True)
    ] = False


def engine(options: SparkOptions, environment: Mapping[str, str] = os.environ) -> Engine:
    """Return the engine that the options select, otherwise the engine that the environment selects. If neither selects
    one, the job runs in the JVM of this command. Raises Invalid for two engines, an invalid engine, and invalid
    settings.
    """
    from kquota.spark import archive
    from kquota.spark import engine as engines

    master, remote = options.master, options.remote
    if master is None and remote is None:
        master = environment.get("KQUOTA_SPARK_MASTER") or None
        remote = environment.get("KQUOTA_SPARK_REMOTE") or None
    found = engines.engine(master, remote, options.conf or ())
    builds_archive = archive.wanted(environment, terminal=sys.stderr.isatty())
    return replace(found, rehearsal=rehearsal() if builds_archive else ())


def rehearsal() -> tuple[str, ...]:
    """Return the arguments of the command with which `kquota.spark.archive` records the classes that Spark loads."""
    from kquota.spark import archive

    inputs = ("--history", archive.HISTORY, "--reassignment-json-file", archive.PLAN, "--bytes-in", "1=1MB/s")
    return ("move", "estimate", *inputs, "--throttle", "50MB/s")


@contextmanager
def spark_reader(scratch: Path, inputs: Files, engine: Engine, start: Start | None = None) -> Iterator[Reader]:
    """Yield a reader in a Spark session that ends with the block. `scratch` and `start` are as for `session`.

    Raises the errors of `session`.
    """
    from kquota.cli.progress import stages  # imported here, because --help imports this module
    from kquota.spark.session import session

    with stages() as on_stage, session(scratch, inputs, say, engine=engine, on_stage=on_stage, start=start) as spark:
        from kquota.spark.reader import Reader

        yield Reader(spark=spark, scratch=scratch, uploads=not engine.local)
