"""The options that many commands share, declared once. Imports nothing heavy: every command's help reads this."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


class Output(StrEnum):
    """How the document on stdout is written."""

    text = "text"
    json = "json"


BootstrapServer: TypeAlias = Annotated[
    str | None,
    typer.Option("--bootstrap-server", metavar="HOST:PORT,…", help="Kafka brokers. [env: KQUOTA_BOOTSTRAP_SERVER]"),
]
ZooKeeper: TypeAlias = Annotated[
    str | None,
    typer.Option("--zookeeper", metavar="HOST:PORT,…[/CHROOT]", help="Kafka's ZooKeeper. [env: KQUOTA_ZOOKEEPER]"),
]
CommandConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option("--command-config", metavar="FILE", help="Java properties with the client's security settings."),
]
OutputFormat: TypeAlias = Annotated[Output, typer.Option("--output", help="How stdout is written.")]
