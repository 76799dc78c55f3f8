"""What a probe asks for, and the bounds within which it can hurt nobody."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kquota.probe.refusals import RefusedArgument, TooManyBytes, TooManyMutations, WrongArgument
from kquota.terms import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    SAMPLE_MS,
    SAMPLES,
    BrokerId,
)


class Kind(enum.Enum):
    """What the client does."""

    PRODUCE = "produce"
    CONSUME = "consume"
    REQUESTS = "requests"
    CREATE_TOPICS = "create-topics"


KEYS: Final[Mapping[Kind, str]] = {
    Kind.PRODUCE: PRODUCER_BYTE_RATE,
    Kind.CONSUME: CONSUMER_BYTE_RATE,
    Kind.REQUESTS: REQUEST_PERCENTAGE,
    Kind.CREATE_TOPICS: CONTROLLER_MUTATION_RATE,
}
"""The quota that each load is to meet."""
BYTES: Final = (Kind.PRODUCE, Kind.CONSUME)

MOST_SECONDS: Final = 300.0
MOST_BYTES: Final = 2 * 10**9
"""What a probe writes at most, unless it is allowed more."""
MOST_RATE: Final = 100_000_000.0
"""Bytes per second in all for a load that nobody gave a rate."""
UNLIMITED_RATE: Final = 10_000_000.0
"""The same where no quota holds the client: there is nothing to push against."""
MOST_MUTATIONS: Final = 5_000
UNLIMITED_MUTATIONS: Final = 5.0
"""Per second, where no quota holds the client."""
_OVER: Final = 1.5
"""How much more than its quota a client reads, to be held back by it."""
_OVER_MUTATIONS: Final = 3.0
"""The same of mutations: a full bucket has to be emptied first."""
_WINDOWS: Final = 2
"""After so many windows nothing is left of the burst with which every quota begins."""
_PERCENT_A_CONNECTION: Final = 25.0
_MOST_CONNECTIONS: Final = 8
_BATCH_SECONDS: Final = 0.1
_LEAST_BATCH: Final = 4_000
_MOST_BATCH: Final = 500_000
_MUTATION_SECONDS: Final = 0.5
_MOST_PARTITIONS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A load on every broker of `leaders`, each the leader of one partition, for `warm` and then `seconds` more.

    `rate` is what is asked of each broker per second: bytes; mutations, of the controller; or, with requests, which
    nobody can ask for by the rate, connections. `limit` is the quota in its own unit, None without one.
    """

    kind: Kind
    topic: str
    leaders: Mapping[int, BrokerId]
    rate: float
    limit: float | None
    warm: float
    seconds: float
    most_bytes: int = MOST_BYTES

    @property
    def expected(self) -> float:
        """Per second, on each broker: what was asked for, or less where the quota lets less through."""
        return self.rate if self.limit is None else min(self.rate, self.limit)

    def due(self, elapsed: float) -> float:
        """What of it is to be there after so many seconds.

        At first only what the quota lets through. A quota begins with a burst, and whoever takes it is held back for a
        whole window and then has the next: over seconds that are no whole windows that would be measured as a rate.
        """
        quiet = min(elapsed, self.warm / _WINDOWS)
        return self.expected * quiet + self.rate * (elapsed - quiet)

    @property
    def lasting(self) -> float:
        """Seconds in all."""
        return self.warm + self.seconds

    @property
    def batch(self) -> int:
        """Bytes of one request: small beside the quota, or a single one would be throttled for seconds."""
        return int(min(_MOST_BATCH, max(_LEAST_BATCH, self.expected * _BATCH_SECONDS)))

    @property
    def partitions(self) -> int:
        """Of each topic that is created and deleted: so many mutations are half a second's worth of the quota."""
        return min(_MOST_PARTITIONS, max(1, math.ceil((self.limit or 0.0) * _MUTATION_SECONDS)))


def warm(window_seconds: int | None) -> float:
    """How long to wait for the steady state of a quota whose window is so long; None: as Kafka ships it."""
    return _WINDOWS * _window(window_seconds)


def seconds(given: float | None, otherwise: float) -> float:
    """How long to measure. Raises Invalid for less than 1 s and Refused for more than a probe should take."""
    found = otherwise if given is None else given
    if not found >= 1:
        raise WrongArgument("seconds", f" {found:g}: measure for 1 second or more")
    if found > MOST_SECONDS:
        problem = f" {found:g}: a probe measures for at most {MOST_SECONDS:g} s, because it is a load on the cluster"
        raise RefusedArgument("seconds", problem)
    return found


def whole(seconds: float, warm: float) -> float:
    """The same, up to whole windows of the quota whose steady state comes after `warm`, where a probe may last so long.

    A quota holds over a window and lets bursts through within it: over a part of one, one burst more is a tenth.
    """
    window = warm / _WINDOWS
    rounded = math.ceil(seconds / window) * window
    return rounded if rounded <= MOST_SECONDS else seconds


def pushing(limit: float | None, brokers: int) -> float:
    """What to read from each broker, in bytes per second: more than the quota, within bounds."""
    wanted = UNLIMITED_RATE / brokers if limit is None else _OVER * limit
    return min(wanted, MOST_RATE / brokers)


def connections(limit: float | None) -> int:
    """How many connections send requests, one after the other, to push against so many percent of a thread."""
    return 1 if limit is None else min(_MOST_CONNECTIONS, math.ceil(limit / _PERCENT_A_CONNECTION))


def mutating(limit: float | None) -> float:
    """How many mutations per second to ask for."""
    return UNLIMITED_MUTATIONS if limit is None else _OVER_MUTATIONS * limit


def bounded(load: Load) -> Load:
    """The same load. Raises Refused where it would write, or make the controller do, more than a probe should."""
    if load.kind is Kind.PRODUCE and (written := load.expected * load.lasting * len(load.leaders)) > load.most_bytes:
        raise TooManyBytes(written, load.most_bytes)
    if load.kind is Kind.CREATE_TOPICS and (made := math.ceil(_mutations(load))) > MOST_MUTATIONS:
        raise TooManyMutations(
            f"this would make the controller carry out {made:,} mutations (a full bucket, then the quota's"
            f" {load.limit:g} per second), and a probe makes at most {MOST_MUTATIONS:,}"
        )
    return load


def _mutations(load: Load) -> float:
    if load.limit is None:
        return load.rate * load.seconds
    # The bucket holds a window's worth, and while it is emptied, it is filled.
    emptied = load.warm / _WINDOWS / (_OVER_MUTATIONS - 1)
    return load.rate * emptied + load.limit * load.seconds


def _window(seconds: int | None) -> float:
    return SAMPLES * SAMPLE_MS / 1_000 if seconds is None else float(seconds)
