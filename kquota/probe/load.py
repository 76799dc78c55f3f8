"""The load of a probe: the requests of its client, and the bounds of a load."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kquota.errors import Invalid, Parameter, Refused
from kquota.measure import size_in_full
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
    """The kind of load that the client sends."""

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
"""The quota key that each load tests."""
BYTES: Final = (Kind.PRODUCE, Kind.CONSUME)

MOST_SECONDS: Final = 300.0
"""The maximum time of one measurement, in seconds."""
MOST_BYTES: Final = 2 * 10**9
"""The default for the maximum number of bytes that a probe writes."""
MOST_RATE: Final = 100_000_000.0
"""The maximum bytes per second, over all brokers, of a client that reads."""
UNLIMITED_RATE: Final = 10_000_000.0
"""The bytes per second to read, over all brokers, if no quota applies to the client. A higher rate is not necessary,
because there is no quota to test.
"""
MOST_MUTATIONS: Final = 5_000
UNLIMITED_MUTATIONS: Final = 5.0
"""The mutations per second to request if no quota applies to the client."""
_OVER: Final = 1.5
"""The factor by which a client exceeds its quota when it reads, so that it is throttled."""
_OVER_MUTATIONS: Final = 3.0
"""A client exceeds its mutation quota by this factor, because it must first empty a full bucket."""
_WINDOWS: Final = 2
"""The number of quota windows until a load no longer benefits from the burst at the start of every quota."""
_PERCENT_A_CONNECTION: Final = 25.0
_MOST_CONNECTIONS: Final = 8
_BATCH_SECONDS: Final = 0.1
_LEAST_BATCH: Final = 4_000
_MOST_BATCH: Final = 500_000
_MUTATION_SECONDS: Final = 0.5
_MOST_PARTITIONS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A load on every broker in `leaders`, or on the controller."""

    kind: Kind
    topic: str
    leaders: Mapping[int, BrokerId]
    """The leader of each partition."""
    rate: float
    """The requested rate per second: bytes on each broker, or mutations of the controller. For requests, which have no
    rate, this is the number of connections.
    """
    limit: float | None
    """The quota, in the unit of its key. None if no quota applies."""
    warm: float
    """The seconds before the measurement."""
    seconds: float
    """The seconds of the measurement."""
    most_bytes: int = MOST_BYTES

    @property
    def expected(self) -> float:
        """The expected rate per second on each broker, or on the controller: the requested rate, or the quota if it is
        lower.

        It has no meaning for `Kind.REQUESTS`.
        """
        return self.rate if self.limit is None else min(self.rate, self.limit)

    def due(self, elapsed: float) -> float:
        """Return the amount that is due after this many seconds.

        In the first quota window, it is at most the amount that the quota allows, because a quota begins with a burst.
        A client that uses this burst is throttled for a whole window and then gets the next burst. These bursts would
        distort a rate over a time that is not a whole number of windows.
        """
        quiet = min(elapsed, self.warm / _WINDOWS)
        return self.expected * quiet + self.rate * (elapsed - quiet)

    @property
    def lasting(self) -> float:
        """The total duration in seconds, including the warm-up."""
        return self.warm + self.seconds

    @property
    def longest(self) -> float:
        """The maximum duration in seconds.

        A load that creates topics waits for the first rejection: at most `lasting` seconds under a quota, and at most
        `seconds` without one. After a rejection, it measures for `seconds`.
        """
        if self.kind is not Kind.CREATE_TOPICS:
            return self.lasting
        return (self.seconds if self.limit is None else self.lasting) + self.seconds

    @property
    def batch(self) -> int:
        """The size of one request in bytes: a tenth of the expected bytes per second, but at least 4,000.

        It is at most 500,000, because a larger request would be throttled for seconds.
        """
        return int(min(_MOST_BATCH, max(_LEAST_BATCH, self.expected * _BATCH_SECONDS)))

    @property
    def partitions(self) -> int:
        """The number of partitions of each created topic: as many as the quota allows in half a second, but at least 1
        and at most 50. It is 1 without a quota.
        """
        return min(_MOST_PARTITIONS, max(1, math.ceil((self.limit or 0.0) * _MUTATION_SECONDS)))


def warm(window_seconds: int | None) -> float:
    """Return the seconds until a quota with this window is in its steady state. None means Kafka's default window."""
    return _WINDOWS * (SAMPLES * SAMPLE_MS / 1_000 if window_seconds is None else float(window_seconds))


def seconds(given: float | None, otherwise: float) -> float:
    """Return `given`, or `otherwise` if it is None. Raises Invalid below 1 s, and Refused above `MOST_SECONDS`."""
    found = otherwise if given is None else given
    if not found >= 1:
        raise Invalid(Parameter("seconds"), f" {found:g}: must be at least 1 (seconds)")
    if found > MOST_SECONDS:
        problem = f" {found:g}: a probe measures for at most {MOST_SECONDS:g} s, because it is a load on the cluster"
        raise Refused(Parameter("seconds"), problem)
    return found


def whole_windows(seconds: float, warm: float) -> float:
    """Round the seconds up to whole windows of the quota with this `warm` time. Return them unchanged if the result
    would exceed `MOST_SECONDS`.

    A quota allows bursts within a window. If the time is not a whole number of windows, one additional burst can change
    the measured rate by a tenth.
    """
    window = warm / _WINDOWS
    rounded = math.ceil(seconds / window) * window
    return rounded if rounded <= MOST_SECONDS else seconds


def read_rate(limit: float | None, brokers: int) -> float:
    """Return the rate to read from each broker, in bytes per second: more than `limit`, the quota on each broker, but
    at most `MOST_RATE` over all brokers.

    Without a quota (None), the rates of all brokers add up to `UNLIMITED_RATE`.
    """
    wanted = UNLIMITED_RATE / brokers if limit is None else _OVER * limit
    return min(wanted, MOST_RATE / brokers)


def connections(limit: float | None) -> int:
    """Return how many connections are needed to exceed `limit` percent of a thread, at most `_MOST_CONNECTIONS`.

    Each connection sends one request at a time. Without a quota, one connection is enough.
    """
    return 1 if limit is None else min(_MOST_CONNECTIONS, math.floor(limit / _PERCENT_A_CONNECTION) + 1)


def mutation_rate(limit: float | None) -> float:
    """Return the mutations per second to request: more than the quota, so that the controller rejects some of them.

    Without a quota, it is `UNLIMITED_MUTATIONS`.
    """
    return UNLIMITED_MUTATIONS if limit is None else _OVER_MUTATIONS * limit


def bounded(load: Load) -> Load:
    """Return the same load. Raises Refused if it would write more bytes or request more mutations than a probe may."""
    if load.kind is Kind.PRODUCE and (written := load.expected * load.lasting * len(load.leaders)) > load.most_bytes:
        raise Refused(
            f"the probe would write {size_in_full(written)}, and ",
            Parameter("most_bytes"),
            f" allows {size_in_full(load.most_bytes)}. Give a lower rate, fewer ",
            Parameter("seconds"),
            " or brokers, or a higher ",
            Parameter("most_bytes"),
        )
    if load.kind is Kind.CREATE_TOPICS and (made := _mutations(load)) > MOST_MUTATIONS:
        # The number is infinite for a quota near the largest double.
        amount = f"{math.ceil(made):,}" if math.isfinite(made) else "too many"
        raise Refused(
            f"the probe would request {amount} mutations (a full bucket, then the quota's"
            f" {load.limit:g} per second), but a probe requests at most {MOST_MUTATIONS:,}. Give fewer ",
            Parameter("seconds"),
            ", or the ",
            Parameter("client_id"),
            " of a client with a lower quota",
        )
    return load


def _mutations(load: Load) -> float:
    if load.limit is None:
        return load.rate * load.seconds
    # The bucket holds the quota of one window, and gets new tokens while the probe empties it.
    emptied = load.warm / _WINDOWS / (_OVER_MUTATIONS - 1)
    return load.rate * emptied + load.limit * load.seconds
