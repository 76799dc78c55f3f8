"""Options of commands with a Spark job: where the job runs, and whether errors show details."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

if TYPE_CHECKING:
    from kquota.spark.engine import Engine

_DEBUG: Final = "KQUOTA_DEBUG"


def _debug(value: bool) -> bool:
    if value:
        os.environ[_DEBUG] = "1"
    return value


SparkMaster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--spark-master",
        metavar="URL",
        help="Spark cluster that runs the job: spark://HOST:PORT, yarn, k8s://URL, local[N]. [env: "
        "KQUOTA_SPARK_MASTER]",
    ),
]
SparkRemote: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--spark-remote",
        metavar="sc://HOST:PORT",
        help="Spark Connect server that runs the job. [env: KQUOTA_SPARK_REMOTE]",
    ),
]
Conf: TypeAlias = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Spark setting. Repeatable.")
]
Debug: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--debug", help="Show the traceback of an error, including Spark's frames.", callback=_debug, is_eager=True
    ),
]


def engine(
    master: str | None, remote: str | None, conf: Sequence[str] | None, environment: Mapping[str, str] = os.environ
) -> Engine:
    """Return the engine that the options select, otherwise the engine that the environment selects. Raises Invalid for
    two engines and for invalid settings.
    """
    from kquota.spark import engine as engines

    if master is None and remote is None:
        master = environment.get("KQUOTA_SPARK_MASTER") or None
        remote = environment.get("KQUOTA_SPARK_REMOTE") or None
    return engines.engine(master, remote, conf or ())
