"""What `move estimate` comes to: can the move finish, does it keep the operator's limits, and if not, why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kquota.cli.amounts import UNKNOWN, rate_or_unknown
from kquota.cli.move.estimate.outlook import Outlook, band_line, why_full
from kquota.cli.why_never import named_wave, why_never
from kquota.measure import ByteRate, exact_rate, human_bytes, human_duration, human_rate
from kquota.pace.enforcement import AT_ONCE_SECONDS, START_SECONDS
from kquota.pace.fair_rates import MOST_STREAMS
from kquota.pace.share import Pace, Share, Side
from kquota.pace.waves import Waves
from kquota.pace.window import Window

UNFOLLOWED: Final = (
    f"a lower bound: beyond {MOST_STREAMS} links from leader to destination only the busiest broker is looked at"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveVerdict:
    """A move and what the operator asks of it: `deadline` in seconds, `within` the smallest throttle that meets it.

    `judged` are the waves where the move has them, else the move at once. None: not asked for, or not known.
    """

    judged: Pace | Waves
    outlook: Outlook
    window: Window
    deadline: float | None
    within: ByteRate | None

    @property
    def late(self) -> bool | None:
        """Whether the deadline is missed; None without one, and while that is unknown."""
        if self.deadline is None:
            return None
        seconds = self.judged.seconds
        if seconds is not None:
            return seconds > self.deadline
        return self.judged.feasible is False or self.judged.least_seconds > self.deadline or None

    @property
    def refused(self) -> str | None:
        """Why the exit code is 1; None where nothing forbids the move."""
        if self.judged.feasible is False:
            return f"the move can never finish: {why_never(self.judged)}"
        return why_full(self.outlook) if self.outlook.full else self.outside

    @property
    def outside(self) -> str | None:
        """Which of the operator's own limits is not kept; None where all are, or are not known to be broken."""
        if self.window.empty:
            return why_empty(self.window)
        if self.late:
            return why_late(self)
        if broken := self.window.broken(self.judged.throttle):
            bounds = "; ".join(f"{bound.why}: {human_rate(bound.rate or 0.0)}" for bound in broken)
            return f"the throttle, {human_rate(self.judged.throttle)}, does not keep {bounds}"
        return None


def why_empty(window: Window) -> str:
    """Which two bounds leave nothing between them."""
    most, least = window.most, window.least
    assert most is not None
    over = "" if least is None else f" and above {human_rate(least.rate or 0.0)} ({least.why})"
    return f"no throttle is below {human_rate(most.rate or 0.0)} ({most.why}){over}"


def why_late(verdict: MoveVerdict) -> str:
    """By how much the deadline is missed, and what would meet it."""
    seconds, enough = verdict.judged.seconds, verdict.within
    found = f"expected are {human_duration(seconds)}" if seconds is not None else "it can never finish"
    if seconds is None and verdict.judged.feasible is not False:
        found = f"it takes at least {human_duration(verdict.judged.least_seconds)}"
    cure = "give it more time" if enough is None else f"it takes a --throttle of {exact_rate(enough)}"
    if enough is None and (start := START_SECONDS * len(verdict.judged.works)) >= (verdict.deadline or 0.0):
        cure = f"starting and ending alone take {human_duration(start)}, whatever the throttle"
    return f"the deadline, {human_duration(verdict.deadline or 0.0)}, is not met: {found}; {cure}"


def lines(verdict: MoveVerdict) -> Iterator[str]:
    """The verdict for people: the bottleneck, the time and what it is made of."""
    judged = verdict.judged
    share = judged.bottleneck
    if share is None:
        return
    if judged.feasible is False:
        yield f"Never finishes: {why_never(judged)}"
        return
    verb = "sends" if share.side is Side.LEADER else "receives"
    where = f"in {named_wave(judged)} " if isinstance(judged, Waves) else ""
    carried = f"{where}broker {share.broker}, which {verb} {human_bytes(share.bytes)}"
    if judged.seconds is None:
        yield f"Bottleneck   {carried} (if nothing is written)"
        yield f"Expected     {UNKNOWN}, feasibility not checked: the write rates are unknown"
        yield f"             about {human_duration(judged.seconds_without_writes)} if nothing is written meanwhile"
    else:
        yield f"Bottleneck   {carried}"
        left, writes = rate_or_unknown(share.left), rate_or_unknown(share.writes)
        yield f"               at {left} left for copies - {writes} written meanwhile"
        yield f"Expected     about {human_duration(judged.seconds)} = {_terms(judged, share)}"
        band = band_line(verdict.outlook)
        if band is not None:
            yield band
    if judged.followed is False:
        yield f"             {UNFOLLOWED}"
    how = "bytes / throttle" + (", wave by wave" if isinstance(judged, Waves) else "")
    yield f"At least     {human_duration(judged.least_seconds)} = {how}"
    if verdict.deadline is not None:
        met = {True: "not met", False: "met", None: "not checked"}[verdict.late]
        yield f"Deadline     {human_duration(verdict.deadline)}: {met}"


def _terms(judged: Pace | Waves, share: Share) -> str:
    """What the expected time is made of."""
    if isinstance(judged, Waves):
        return f"the sum of {len(judged.each)} waves, each of them {START_SECONDS:g} s to start and end + its copies"
    assert judged.run is not None
    assert share.seconds is not None
    copying, alone = judged.run.end, share.seconds
    words = f"{START_SECONDS:g} s to start and end + {human_duration(copying)} to copy"
    if copying > 1.01 * alone:
        words += f" ({human_duration(alone)} were it alone; other brokers hold it up)"
    return f"{words}, {AT_ONCE_SECONDS:g} s of the throttle at once and then {share.flows / share.throttle:.0%} of it"
