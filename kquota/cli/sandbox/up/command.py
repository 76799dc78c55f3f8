"""`kquota sandbox up`: start real servers on loopback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

import typer

from kquota.cli.options import Output, OutputFormat

EPILOG: Final = """The first start of a Kafka release downloads it (40 MB), except with --zookeeper-only.

Examples:
  kquota sandbox up
  kquota sandbox up zk --zookeeper-only"""

Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Name of the sandbox.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """Start real servers on loopback. They run until `sandbox down`."""

    name: Name = "default"
    kafka: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="4.3.1 (KRaft), 3.9.1 or 2.8.2 (on ZooKeeper).  [default: 4.3.1]"),
    ] = None
    brokers: Annotated[int | None, typer.Option(metavar="N", help="Number of brokers, 1 to 9.  [default: 3]")] = None
    zookeeper_only: Annotated[
        bool, typer.Option("--zookeeper-only", help="Start only ZooKeeper, without a download.")
    ] = False
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="KEY=VALUE", help="Setting of every broker. Repeatable."),
    ] = None
    output: OutputFormat = Output.text
