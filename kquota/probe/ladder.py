"""How much a controller can take (KIP-599, "How to define the quota"): rising rates, when to stop, what to suggest."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from kquota.probe.refusals import WrongArgument

RATES: Final = (5, 10, 20, 50, 100, 200, 500, 1_000)
"""Mutations per second, one rung after the other."""
SIZES: Final = (1, 10, 50)
"""Partitions of each topic: many small ones and few large ones cost a controller differently."""
SECONDS: Final = 3.0
"""How long a rung lasts, for each operation."""
LATENCY: Final = 1.0
"""Seconds that 95 of 100 answers may take; a controller that is keeping up needs some tens of milliseconds."""
LAG: Final = 2.0
"""Seconds after the last answer in which all brokers are to show what was done."""
KEEPS_UP: Final = 0.9
"""The part of a rate that must be reached."""
SPARE: Final = 0.8
"""What is suggested of a rate that was seen to hold: what else runs on the cluster is to have its share."""
MOST_PARTITIONS: Final = 1_000
"""That exist at any one time, unless it is allowed more."""
PARTITIONS: Final = range(10, 10_001)
"""Between these it may be allowed."""
_SHARES: Final = 4
"""Of a rung: creating, growing as many, and deleting all of them, which counts twice as many."""


class Operation(enum.Enum):
    """What is done to topics, one of them at a time."""

    CREATE = "create"
    GROW = "grow"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operation at one rate: what was asked for and reached, in mutations per second; times in seconds.

    `latency` is the 95th percentile of the answers, `lag` from the last answer until every broker showed all of it.
    """

    operation: Operation
    size: int
    rate: float
    reached: float
    latency: float
    lag: float

    @property
    def why_not(self) -> str | None:
        """Why the controller does not hold this rate; None when it does."""
        if self.reached < KEEPS_UP * self.rate:
            return f"reached only {self.reached:.3g}/s"
        if self.latency > LATENCY:
            return f"answers took {self.latency:.2g} s"
        if self.lag > LAG:
            return f"brokers showed it only {self.lag:.2g} s later"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderRung:
    """So many topics of `size` partitions created, grown by as many again, and deleted, at one rate."""

    size: int
    rate: int
    topics: int

    @property
    def alive(self) -> int:
        """The most partitions that there are at any one time."""
        return 2 * self.topics * self.size


def rungs(size: int, seconds: float, most_partitions: int) -> list[LadderRung]:
    """The rungs for topics of this size, lowest first: as long as each holds a topic, and no more partitions than that.

    >>> [(one.rate, one.topics) for one in rungs(10, 3, 1_000)]
    [(5, 1), (10, 3), (20, 6), (50, 15), (100, 30)]
    """
    found = [LadderRung(size=size, rate=rate, topics=int(rate * seconds / size)) for rate in RATES]
    return [one for one in found if one.topics and one.alive <= most_partitions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The rungs of each size of topic, one size after the other; `seconds` is how long one operation of one lasts."""

    rungs: tuple[tuple[LadderRung, ...], ...]
    seconds: float
    replication_factor: int

    @property
    def lasting(self) -> float:
        """Seconds in all, where nothing gives way."""
        return sum(_SHARES * self.seconds * len(of_size) for of_size in self.rungs)

    @property
    def alive(self) -> int:
        """The most partitions that there are at any one time."""
        return max(rung.alive for of_size in self.rungs for rung in of_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Of one size of topic: the highest rate that every operation held, None where not even the lowest was.

    `stopped` is the step that did not hold; None where the bounds of the run ended it.
    """

    size: int
    rate: float | None
    stopped: Step | None


def held(steps: Iterable[Step]) -> tuple[Held, ...]:
    """One for each size, in the order of the steps."""
    found: dict[int, list[Step]] = {}
    for step in steps:
        found.setdefault(step.size, []).append(step)
    return tuple(_held(size, of_size) for size, of_size in found.items())


def _held(size: int, steps: Sequence[Step]) -> Held:
    stopped = next((step for step in steps if step.why_not is not None), None)
    good = [step.rate for step in steps if stopped is None or step.rate < stopped.rate]
    return Held(size=size, rate=max(good, default=None), stopped=stopped)


def suggested(found: Sequence[Held]) -> float | None:
    """The controller_mutation_rate for all clients together: the worst case, and something to spare.

    None where a size did not hold the lowest rate, or nothing was measured.
    """
    rates = [one.rate for one in found]
    if not rates or None in rates:
        return None
    return _two_figures(SPARE * min(rate for rate in rates if rate is not None))


def divided(rate: float, tenants: int, overcommit: float) -> float:
    """Each tenant's part of a rate, where they never all work at the same time: KIP-599 advises to give out more."""
    return _two_figures(rate * overcommit / tenants)


def must_divide(tenants: int, overcommit: float) -> None:
    """Raises Invalid for what a rate cannot be divided by."""
    if tenants < 1:
        raise WrongArgument("tenants", f" {tenants}: must be 1 or more")
    if not math.isfinite(overcommit):
        raise WrongArgument("overcommit", f" {overcommit:g}: must be finite")
    if overcommit < 1:
        raise WrongArgument("overcommit", f" {overcommit:g}: must be 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What a controller was seen to take, step by step, and what follows from it; rates in mutations per second."""

    steps: tuple[Step, ...]
    tenants: int
    overcommit: float

    @property
    def held(self) -> tuple[Held, ...]:
        """Of each size of topic, the highest rate that held."""
        return held(self.steps)

    @property
    def suggested(self) -> float | None:
        """A controller_mutation_rate for all clients together; None where there is none to suggest."""
        return suggested(self.held)

    @property
    def suggested_per_tenant(self) -> float | None:
        """The same for each of the tenants."""
        return None if self.suggested is None else divided(self.suggested, self.tenants, self.overcommit)


def _two_figures(rate: float) -> float:
    """Rounded down: what is given out is never more than there is.

    >>> _two_figures(13.33), _two_figures(164.8), _two_figures(0.048)
    (13.0, 160.0, 0.048)
    """
    step = Decimal(1).scaleb(Decimal(rate).adjusted() - 1)
    # A hair more, for 0.8 x 5 is not quite 4.
    return float((Decimal(rate * (1 + 1e-9)) // step) * step)


def percentile(values: Sequence[float], share: float = 0.95) -> float:
    """The value that so many of them do not exceed; 0 of nothing."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else 0.0
