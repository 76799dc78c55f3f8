"""The throttle and the limits for `move estimate`: a deadline, the network rate, and the move's share of this rate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from kquota.cli import rates
from kquota.errors import Invalid, Refused
from kquota.measure import ByteRate, byte_rate, duration, exact_percentage, human_duration, human_rate, percentage
from kquota.pace.deadline import throttle_within
from kquota.pace.enforcement import Enforcement
from kquota.pace.kip73 import Bound, Window, network_bound
from kquota.pace.share import Pace
from kquota.pace.waves import Waves
from kquota.pace.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateLimits:
    """The options as values, in bytes per second and seconds. None means that the option is not given."""

    throttle: ByteRate | None
    deadline: float | None
    network: ByteRate | None
    impact: Fraction | None
    """The largest share of `network` for the throttle."""


def limits(throttle: str | None, deadline: str | None, nic: str | None, max_impact: str | None) -> EstimateLimits:
    """Parse the limits, and print a warning if the throttle is probably too low.

    Raises Invalid for an invalid rate, time or percentage, and for a `--max-impact` of 0. Also raises Invalid if
    neither a throttle nor a deadline is given, or if `--max-impact` is given without `--nic`.
    """
    if throttle is None and deadline is None:
        raise Invalid("no throttle and no deadline is given. Give --throttle RATE or --deadline TIME")
    if max_impact is not None and nic is None:
        raise Invalid("--max-impact: the network bandwidth is missing. Give --nic RATE, for example --nic 10Gbit/s")
    impact = None if max_impact is None else percentage(max_impact, "--max-impact")
    if impact == 0:
        raise Invalid(f"--max-impact {max_impact}: a move cannot finish with this limit. Give more than 0%")
    return EstimateLimits(
        throttle=None if throttle is None else rates.throttle(throttle, "--throttle"),
        deadline=None if deadline is None else duration(deadline, "--deadline"),
        network=None if nic is None else byte_rate(nic, "--nic"),
        impact=impact,
    )


def chosen(asked: EstimateLimits, works: Iterable[Work], enforcement: Enforcement) -> tuple[ByteRate, ByteRate | None]:
    """Return the throttle of the move, and the smallest throttle that meets the deadline (None without a deadline, and
    if no throttle is known to meet it). The first is the given throttle, otherwise the second. The `works` run one
    after the other.

    Raises Refused if no throttle is given and none is known to meet the deadline.
    """
    in_time = None
    if asked.deadline is not None:
        try:
            in_time = throttle_within(works, asked.deadline, enforcement)
        except Refused:
            # With a given throttle, kquota can still estimate the move, and show that it misses the deadline.
            if asked.throttle is None:
                raise
    if asked.throttle is not None:
        return asked.throttle, in_time
    if in_time is None:
        raise Refused(
            "--deadline: the throttle that meets it is unknown, because the write rates are unknown. "
            "Give --bytes-in BROKER=RATE, --history PATH or --throttle RATE"
        )
    return in_time, in_time


def window(
    asked: EstimateLimits,
    judged: Pace | Waves,
    in_time: ByteRate | None,
    bytes_in: float | None,
    replication_factor: int,
) -> Window:
    """Return the window of the throttle (KIP-73), with the bounds of the copies and the operator's limits.

    Rates are in bytes per second. `in_time` is as in `chosen`. `bytes_in` is the highest write rate of one broker, or
    None if it is unknown. `replication_factor` is the smallest one in the plan.
    """
    above = [
        # IN is the write rate of the cluster's busiest broker. This broker may take no part in the move, so IN does not
        # bind. The next bound, which binds, covers only the brokers of the move.
        Bound(rate=bytes_in, why="IN, the highest write rate of one broker (KIP-73)", binds=False),
        Bound(rate=judged.least_throttle, why="follower traffic + writes to copies, on one broker"),
    ]
    if asked.deadline is not None and in_time is not None:
        if judged.seconds is not None and judged.seconds <= asked.deadline:
            # `in_time` is exact to a ten-thousandth, but a throttle that meets the deadline must not break this bound.
            in_time = min(in_time, judged.throttle)
        above.append(Bound(rate=in_time, why=f"the deadline, {human_duration(asked.deadline)}", closed=True))
    below = []
    if asked.network is not None:
        left = network_bound(asked.network, bytes_in, replication_factor)
        written = "unknown" if bytes_in is None else human_rate(bytes_in)
        terms = f"--nic {human_rate(asked.network)} - highest write rate {written} / replication factor"
        why = f"the bandwidth that clients leave = {terms} {replication_factor} (N - IN/R, KIP-73)"
        below.append(Bound(rate=left, why=why))
        if asked.impact is not None:
            why = f"--max-impact, {exact_percentage(asked.impact)} of --nic"
            below.append(Bound(rate=float(asked.impact * asked.network), why=why, closed=True))
    return Window(above=tuple(above), below=tuple(below))
