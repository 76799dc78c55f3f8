"""The contents of a report that the answer of `move estimate` does not have: plots, and sorted rows of tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from kquota.cli.move.estimate.answer import Estimate
from kquota.cli.move.estimate.report import plots
from kquota.cli.move.estimate.report.curve import ThrottleCurve, curve
from kquota.cli.move.estimate.report.plots import Plot
from kquota.measure import counted
from kquota.pace.disk_space import disks
from kquota.pace.share import Share, Side

_NAMES: Final = 10
"""The maximum number of file names that are listed, because a history can have thousands of files."""
_MOST: Final = 60
"""The maximum number of brokers in a plot. In the plot of the throttles, each side of a broker counts."""
_FAR: Final = 5
"""The largest ratio of disk size to stored bytes in a plot. Larger disks would make the bars invisible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A requested page."""

    path: Path
    plan: str
    """The name of the plan in the commands of the page."""
    cluster: tuple[str, ...]
    """The options with the address of the cluster, as `commands.cluster` returns them."""
    runnable: bool = True
    """True if the plan is Kafka's JSON, the only format that reassign-partitions accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The contents of a page."""

    wanted: Wanted
    answer: Estimate
    remarks: tuple[str, ...]
    """The notes and warnings about the inputs."""
    made: datetime
    """The time of the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The bytes on brokers before and after the move."""

    plot: Plot
    """The plot of at most `_MOST` brokers, those whose bytes change most."""
    shown: int
    """The number of brokers in the plot."""
    brokers: int
    """The number of brokers that have replicas before or after the move."""
    least_disk: int | None
    """The smallest total disk size of a broker in bytes, or None if no size is known."""
    disks_outside: bool
    """True if the disks are too large for the plot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerTraffic:
    """The bytes that brokers send and receive, and the use of their throttles."""

    bytes: Plot
    spent: Plot | None
    """The use of the throttles, without the sides of brokers whose rates are unknown. None if kquota does not know
    whether the move can finish.
    """
    unknown: int
    """The number of sides that `spent` leaves out because a rate is unknown."""
    slowest: tuple[tuple[Share, float | None], ...]
    """Each side of a broker, and the seconds until the side finishes (None without an expected time). The bottleneck is
    first, then the others from slow to fast.
    """


def stored(answer: Estimate) -> Stored | None:
    """Return the plot of the stored bytes, and the values that describe it (see `Stored`), or None without bytes."""
    assert answer.measured.moved is not None
    held, known = answer.measured.moved.held, disks(answer.outlook.volumes)
    if not held:
        return None
    shown = sorted(sorted(held, key=lambda h: -abs(h.after - h.before))[:_MOST], key=lambda h: h.broker)
    most = max(max(h.before, h.after) for h in shown)
    least = min(known.values(), default=None)
    outside = least is not None and least > _FAR * most
    return Stored(
        plot=plots.stored(shown, {} if outside else known),
        shown=len(shown),
        brokers=len(held),
        least_disk=least,
        disks_outside=outside,
    )


def carried(answer: Estimate) -> BrokerTraffic:
    """Return the plots of the copies, and the sides of all brokers with their times (see `BrokerTraffic`)."""
    pace = answer.pace

    def done(share: Share) -> float | None:
        return pace.ends.get((share.broker, share.side))

    def takes(share: Share) -> tuple[bool, float, int]:
        """Return the sort key of a side. A side without an expected time counts with its least time, and a side that
        never finishes with an infinite time.
        """
        seconds = share.least_seconds if (end := done(share)) is None else end
        return share == pace.bottleneck, math.inf if share.finishes is False else seconds, -share.broker

    slowest = sorted(pace.shares, key=takes, reverse=True)
    brokers = list(dict.fromkeys(share.broker for share in slowest))[:_MOST]
    drawn = sorted(slowest[:_MOST], key=lambda share: (share.broker, share.side is Side.DESTINATION))
    known = [share for share in drawn if share.needed is not None]
    return BrokerTraffic(
        bytes=plots.carried([share for share in pace.shares if share.broker in brokers]),
        spent=None if pace.feasible is None else plots.spent(known),
        unknown=len(drawn) - len(known),
        slowest=tuple((share, done(share)) for share in slowest),
    )


def times(answer: Estimate) -> tuple[Plot, ThrottleCurve]:
    """Return the plot and the curve of the expected time under other throttles."""
    found = curve(answer.verdict.judged, answer.verdict.deadline, answer.verdict.window)
    return plots.time(found, answer.outlook.band), found


def sources(answer: Estimate) -> list[str]:
    """Return the source of the sizes: its kind, the names of the first files, and the number of other files, if any."""
    more = len(answer.sizes.names) - _NAMES
    return [answer.sizes.source, *answer.sizes.names[:_NAMES], *([counted(more, "more file")] if more > 0 else [])]
