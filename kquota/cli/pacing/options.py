"""The options of a throttle that changes as its move proceeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kquota.cli.options import flag, value


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceOptions:
    """The rule that the throttle follows, and the bounds of the throttle. At most one of `deadline`, `between` and
    `protect` may be given.
    """

    deadline: Annotated[
        str | None,
        value(
            "deadline",
            "TIME",
            "Change the throttle so that the move ends after this duration (for example 2h) or at this time (for "
            "example 2026-11-24T06:00:00+01:00).",
        ),
    ] = None
    min_rate: Annotated[
        str | None,
        value(
            "min-rate",
            "RATE",
            "With --deadline or --protect: the lowest throttle.  [default: no minimum with --deadline; a tenth of the "
            "highest throttle with --protect]",
        ),
    ] = None
    max_rate: Annotated[
        str | None,
        value(
            "max-rate",
            "RATE",
            "With --deadline or --protect: the highest throttle.  [default: no maximum with --deadline; with "
            "--protect, --throttle (`move run`) or the current throttle (`move adjust`)]",
        ),
    ] = None
    between: Annotated[
        str | None,
        value(
            "between", "SPANS", "Throttles by the local time of this host, for example 22:00-06:00=200MB/s,else=40MB/s."
        ),
    ] = None
    protect: Annotated[
        bool,
        flag(
            "protect",
            "Raise the throttle while kquota's own writes to a scratch topic are fast. Lower it when they "
            "become slow, when partitions lose in-sync replicas, when the lag of a consumer group grows, or when "
            "metrics of brokers show slow clients (--metrics).",
        ),
    ] = False
    max_latency: Annotated[
        str | None,
        value(
            "max-latency",
            "TIME",
            "With --protect: the latency above which a write is slow, for example 20ms. Without it, kquota "
            "measures the usual latency under the lowest throttle, and the limit is 1.5 times this latency, but at "
            "least 5 ms above it.",
        ),
    ] = None
    metrics: Annotated[
        str | None,
        value(
            "metrics",
            "URL,…",
            "With --protect: also react to the produce times and request throttle times that these Prometheus JMX "
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
