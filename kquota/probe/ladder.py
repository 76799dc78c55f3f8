"""The limit of a controller (KIP-599, "How to define the quota"): rising rates, the rule for stopping, and the
suggestion.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from kquota.errors import Invalid, Parameter

RATES: Final = (5, 10, 20, 50, 100, 200, 500, 1_000)
"""The mutations per second of the rungs, in order."""
SIZES: Final = (1, 10, 50)
"""The numbers of partitions per topic. The ladder tries several, because many small topics and few large topics have
different costs for a controller.
"""
SECONDS: Final = 3.0
"""The default duration of each operation of a rung, in seconds. Deleting takes twice as long, because the topics have
grown.
"""
LATENCY: Final = 1.0
"""The maximum 95th percentile of the response times, in seconds. A controller that keeps up answers within tens of
milliseconds.
"""
LAG: Final = 2.0
"""The maximum number of seconds after the last answer until all brokers show the result."""
KEEPS_UP: Final = 0.9
"""The minimum fraction of a requested rate that the controller must reach to sustain this rate."""
SPARE: Final = 0.8
"""The suggested fraction of a rate that held. It leaves a reserve for other work of the cluster."""
MOST_PARTITIONS: Final = 1_000
"""The default for the maximum number of partitions that exist at the same time."""
PARTITIONS: Final = range(10, 10_001)
"""The range in which a caller can set the maximum number of partitions."""
_SHARES: Final = 4
"""A rung lasts this many times the duration of one operation: once to create partitions, once to add the same number,
and twice to delete all of them.
"""


class Operation(enum.Enum):
    """An operation on topics."""

    CREATE = "create"
    GROW = "grow"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operation at one rate, on topics that are created with `size` partitions. Times are in seconds.

    `rate` is the requested rate, and `reached` is the measured rate. Both are in mutations per second.
    `latency` is the 95th percentile of the response times, and `lag` is the time from the last answer until every
    broker showed the result.
    """

    operation: Operation
    size: int
    rate: float
    reached: float
    latency: float
    lag: float

    @property
    def why_not(self) -> str | None:
        """The reason why the controller does not sustain this rate, or None if it does."""
        if self.reached < KEEPS_UP * self.rate:
            return f"reached only {self.reached:.3g}/s"
        if self.latency > LATENCY:
            return f"answers took {self.latency:.2g} s"
        if self.lag > LAG:
            return f"brokers took {self.lag:.2g} s to show the result"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderRung:
    """One rung: kquota creates `topics` topics of `size` partitions, doubles their partitions and deletes the topics.

    `rate` is in mutations per second.
    """

    size: int
    rate: int
    topics: int

    @property
    def alive(self) -> int:
        """The maximum number of partitions that exist at the same time."""
        return 2 * self.topics * self.size


def rungs(size: int, seconds: float, most_partitions: int) -> list[LadderRung]:
    """Return the rungs for topics of `size` partitions, lowest rate first.

    `seconds` is the duration of one operation. A rate is left out if its rung would have no topic, or more than
    `most_partitions` partitions.

    >>> [(one.rate, one.topics) for one in rungs(10, 3, 1_000)]
    [(5, 1), (10, 3), (20, 6), (50, 15), (100, 30)]
    """
    found = [LadderRung(size=size, rate=rate, topics=int(rate * seconds / size)) for rate in RATES]
    return [one for one in found if one.topics and one.alive <= most_partitions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The rungs of each size of topic, one size after another. `seconds` is the duration of one operation of a rung."""

    rungs: tuple[tuple[LadderRung, ...], ...]
    seconds: float
    replication_factor: int

    @property
    def lasting(self) -> float:
        """The total duration in seconds, if all rates hold."""
        return sum(_SHARES * self.seconds * len(of_size) for of_size in self.rungs)

    @property
    def alive(self) -> int:
        """The maximum number of partitions that exist at the same time."""
        return max(rung.alive for of_size in self.rungs for rung in of_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The highest rate that held for every operation on one size of topic.

    `rate` is None if even the lowest rate did not hold. `stopped` is the first step that did not hold, or None if all
    steps held.
    """

    size: int
    rate: float | None
    stopped: Step | None


def _held(size: int, steps: Sequence[Step]) -> Held:
    stopped = next((step for step in steps if step.why_not is not None), None)
    good = [step.rate for step in steps if stopped is None or step.rate < stopped.rate]
    return Held(size=size, rate=max(good, default=None), stopped=stopped)


def must_divide(tenants: int, overcommit: float) -> None:
    """Raise Invalid if `tenants` or `overcommit` is less than 1, or if `overcommit` is not finite."""
    if tenants < 1:
        raise Invalid(Parameter("tenants"), f" {tenants}: must be 1 or more")
    if not math.isfinite(overcommit):
        raise Invalid(Parameter("overcommit"), f" {overcommit:g}: must be finite")
    if overcommit < 1:
        raise Invalid(Parameter("overcommit"), f" {overcommit:g}: must be 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The steps that were measured on a controller, and the suggestion. Rates are in mutations per second."""

    steps: tuple[Step, ...]
    tenants: int
    overcommit: float

    @property
    def held(self) -> tuple[Held, ...]:
        """One result for each size of topic, in the order of the steps."""
        sizes = dict.fromkeys(step.size for step in self.steps)
        return tuple(_held(size, [step for step in self.steps if step.size == size]) for size in sizes)

    @property
    def suggested(self) -> float | None:
        """A `controller_mutation_rate` for all clients together: the lowest rate in `held`, less a reserve, rounded
        down to two significant figures. None if any result in `held` has no rate, or if nothing was measured.
        """
        rates = [one.rate for one in self.held]
        if not rates or None in rates:
            return None
        return _two_figures(SPARE * min(rate for rate in rates if rate is not None))

    @property
    def suggested_per_tenant(self) -> float | None:
        """A `controller_mutation_rate` for each tenant: `suggested` x `overcommit` / `tenants`, also rounded down. None
        without a suggestion.

        KIP-599 recommends overcommitting, because the tenants do not all work at the same time.
        """
        rate = self.suggested
        return None if rate is None else _two_figures(rate * self.overcommit / self.tenants)


def _two_figures(rate: float) -> float:
    """Round down to two significant figures, so that the parts never exceed the whole.

    >>> _two_figures(13.33), _two_figures(164.8), _two_figures(0.048)
    (13.0, 160.0, 0.048)
    """
    step = Decimal(1).scaleb(Decimal(rate).adjusted() - 1)
    # Add a billionth, because 0.8 x 0.35 is 0.27999999999999997 in floating point, and must not round down to 0.27.
    return float((Decimal(rate * (1 + 1e-9)) // step) * step)
