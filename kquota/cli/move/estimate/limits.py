"""What `move estimate` is to keep to: a deadline, the network, and the most of it that a move may take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from kquota.cli.rates import throttle as understood
from kquota.errors import Invalid, Refused
from kquota.measure import ByteRate, byte_rate, duration, human_duration, human_rate, percentage
from kquota.pace.deadline import throttle_within
from kquota.pace.enforcement import AS_SHIPPED, Enforcement
from kquota.pace.share import Pace
from kquota.pace.waves import Waves
from kquota.pace.window import Bound, Window, network_bound
from kquota.pace.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """As given: `throttle` and `network` in bytes per second, `deadline` in seconds, `impact` as a share of one."""

    throttle: ByteRate | None
    deadline: float | None
    network: ByteRate | None
    impact: Fraction | None


def limits(throttle: str | None, deadline: str | None, nic: str | None, max_impact: str | None) -> Limits:
    """Raises Invalid for what is no rate, time or percentage, and where neither a throttle nor a deadline is given."""
    if throttle is None and deadline is None:
        raise Invalid("how fast? Give --throttle RATE or --deadline TIME")
    if max_impact is not None and nic is None:
        raise Invalid("--max-impact is a share of the network: give --nic RATE, as 10Gbit/s")
    impact = None if max_impact is None else percentage(max_impact, "--max-impact")
    if impact == 0:
        raise Invalid(f"--max-impact {max_impact}: a move that may take nothing never ends")
    return Limits(
        throttle=None if throttle is None else understood(throttle, "--throttle"),
        deadline=None if deadline is None else duration(deadline, "--deadline"),
        network=None if nic is None else byte_rate(nic, "--nic"),
        impact=impact,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The throttle, and the smallest `within` the deadline: None without one, and where none is known to meet it."""

    throttle: ByteRate
    within: ByteRate | None


def chosen(asked: Limits, works: Iterable[Work], enforcement: Enforcement = AS_SHIPPED) -> Chosen:
    """The throttle as given, else the smallest that meets the deadline, for works that come one after the other.

    Raises Refused where there is no throttle to reckon with.
    """
    within = None
    if asked.deadline is not None:
        try:
            within = throttle_within(works, asked.deadline, enforcement)
        except Refused:
            # With a throttle there is an estimate, which says that it is late.
            if asked.throttle is None:
                raise
    if asked.throttle is not None:
        return Chosen(throttle=asked.throttle, within=within)
    if within is None:
        raise Refused(
            "which throttle meets the deadline is not known, since the write rates are not: give --bytes-in BROKER=RATE"
        )
    return Chosen(throttle=within, within=within)


def window(
    asked: Limits, judged: Pace | Waves, within: ByteRate | None, bytes_in: float | None, replication_factor: int
) -> Window:
    """KIP-73's window with what the copies need and what the operator wants. Rates in bytes per second."""
    above = [
        # Of the cluster's busiest broker, whether it moves or not: what is written to what moves is the next bound.
        Bound(rate=bytes_in, why="IN, the most that is written to one broker (KIP-73)", binds=False),
        Bound(rate=judged.least_throttle, why="what keep-up and writes spend of one broker's throttle"),
    ]
    if asked.deadline is not None and within is not None:
        if judged.seconds is not None and judged.seconds <= asked.deadline:
            # It is searched for to a ten-thousandth: a throttle that meets the deadline is not below what does.
            within = min(within, judged.throttle)
        above.append(Bound(rate=within, why=f"the deadline, {human_duration(asked.deadline)}", closed=True))
    below = []
    if asked.network is not None:
        left = network_bound(asked.network, bytes_in, replication_factor)
        below.append(Bound(rate=left, why=f"N - IN/R, N {human_rate(asked.network)}, R {replication_factor} (KIP-73)"))
        if asked.impact is not None:
            why = f"--max-impact, {float(asked.impact):.4g} of N"
            below.append(Bound(rate=float(asked.impact * asked.network), why=why, closed=True))
    return Window(above=tuple(above), below=tuple(below))
