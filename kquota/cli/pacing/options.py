"""The options of a throttle that changes as its move proceeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceOptions:
    """The rule that the throttle follows, and the bounds of the throttle. At most one of `deadline`, `between` and
    `protect` may be given.
    """

    deadline: Annotated[
        str | None,
        typer.Option(
            "--deadline",
            metavar="TIME",
            help="Change the throttle so that the move ends after this duration (for example 2h) or at this time (for "
            "example 2026-11-24T06:00:00+01:00).",
        ),
    ] = None
    min_rate: Annotated[
        str | None,
        typer.Option("--min-rate", metavar="RATE", help="With --deadline or --protect: the lowest throttle."),
    ] = None
    max_rate: Annotated[
        str | None,
        typer.Option("--max-rate", metavar="RATE", help="With --deadline or --protect: the highest throttle."),
    ] = None
    between: Annotated[
        str | None,
        typer.Option(
            "--between",
            metavar="SPANS",
            help="Throttles by the local time of this host, for example 22:00-06:00=200MB/s,else=40MB/s.",
        ),
    ] = None
    protect: Annotated[
        bool,
        typer.Option(
            "--protect",
            help="Raise the throttle while kquota's own writes to a scratch topic are fast, and lower it when they "
            "become slow, or when partitions lose in-sync replicas.",
        ),
    ] = False
    max_latency: Annotated[
        str | None,
        typer.Option(
            "--max-latency",
            metavar="TIME",
            help="With --protect: the latency above which a write is slow, for example 20ms. Without it, the limit is "
            "1.5 times the usual latency, which kquota measures under the lowest throttle.",
        ),
    ] = None
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="URL,…",
            help="With --protect: also react to the produce times and request throttle times that these Prometheus JMX "
            "exporters of the brokers report. [env: KQUOTA_METRICS]",
        ),
    ] = None

    @property
    def ways(self) -> dict[str, bool]:
        """The options that change the throttle over time, and whether each is given."""
        return {
            "--deadline": self.deadline is not None,
            "--between": self.between is not None,
            "--protect": self.protect,
        }
