"""The verdict of `move estimate`: whether the move can finish, and whether it stays within the operator's limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kquota.cli.amounts import UNKNOWN, rates_or_unknown
from kquota.cli.keeping_up import named_wave, never_because, rates_of, throttle_needed, why_never
from kquota.cli.move.estimate.outlook import Outlook, band_line, why_full
from kquota.measure import ByteRate, counted, exact_rate, human_bytes, human_duration, human_rates
from kquota.pace.deadline import shortest
from kquota.pace.enforcement import START_SECONDS, TURNOVER_SECONDS
from kquota.pace.fair_rates import MOST_STREAMS
from kquota.pace.kip73 import Bound, Window
from kquota.pace.share import Pace, Share, Side
from kquota.pace.waves import Waves

UNFOLLOWED: Final = (
    f"a lower bound: beyond {MOST_STREAMS} links from leader to destination, only the busiest broker is simulated"
)
"""The remark on an expected time whose simulation does not cover all brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveVerdict:
    """A move and the limits of the operator."""

    judged: Pace | Waves
    """The move in waves if it has waves, otherwise the whole move."""
    outlook: Outlook
    window: Window
    deadline: float | None
    """The deadline in seconds, or None without a deadline."""
    in_time: ByteRate | None
    """The smallest throttle that meets the deadline, as in `limits.chosen`."""

    @property
    def late(self) -> bool | None:
        """True if the move misses the deadline. None without a deadline, and if kquota does not know whether the move
        meets the deadline.
        """
        if self.deadline is None:
            return None
        seconds = self.judged.seconds
        if seconds is not None:
            return seconds > self.deadline
        return self.judged.feasible is False or self.judged.least_seconds > self.deadline or None

    @property
    def refused(self) -> str | None:
        """The reason for exit code 1, or None if nothing known prevents the move between brokers and no known limit is
        broken. Copies between log dirs can cause the same exit code (`log_dir_time.never`).
        """
        if self.judged.feasible is False:
            return f"the move can never finish: {why_never(self.judged)}"
        return why_full(self.outlook) if self.outlook.full else self.outside

    @property
    def error(self) -> str | None:
        """The error message for exit code 1: like `refused`, but without the explanation that the text already has."""
        if self.judged.feasible is False:
            throttle, needed = rates_of(self.judged)[0], throttle_needed(self.judged)
            wave = f", because {named_wave(self.judged)} never ends" if isinstance(self.judged, Waves) else ""
            return f"the move can never finish (throttle {throttle}){wave}. Give a --throttle {needed}"
        return self.refused

    @property
    def outside(self) -> str | None:
        """The message about a limit that the throttle or the time breaks. None if no known limit is broken."""
        if self.window.empty:
            return _why_empty(self.window)
        if self.late:
            return _why_late(self)
        if broken := self.window.broken(self.judged.throttle):
            low = broken[0] in self.window.above
            throttle, *rates = human_rates(self.judged.throttle, *(bound.rate or 0.0 for bound in broken))
            bounds = " and ".join(_bounded(bound, rate, above=low) for bound, rate in zip(broken, rates, strict=True))
            return (
                f"the throttle is {throttle}, but it must be {bounds}. Give a {'higher' if low else 'lower'} --throttle"
            )
        return None


def _why_empty(window: Window) -> str:
    most, least = window.most, window.least
    assert most is not None
    highest, lowest = rates_or_unknown(most.rate, None if least is None else least.rate)
    over = "" if least is None else f" and {_bounded(least, lowest, above=True)}"
    below = _bounded(most, highest, above=False)
    return f"no throttle is within the limits: the throttle must be {below}{over}. Change a limit"


def _bounded(bound: Bound, rate: str, *, above: bool) -> str:
    """Return a known bound of the throttle as text, for example `at most 7 MB/s (--max-impact, 14% of --nic)`."""
    word = ("at least" if above else "at most") if bound.closed else ("above" if above else "below")
    return f"{word} {rate} ({bound.why})"


def _why_late(verdict: MoveVerdict) -> str:
    seconds, enough = verdict.judged.seconds, verdict.in_time
    found = f"the expected time is {human_duration(seconds)}" if seconds is not None else "the move can never finish"
    if seconds is None and verdict.judged.feasible is not False:
        found = f"the move takes at least {human_duration(verdict.judged.least_seconds)}"
    cure = "Give a higher --throttle or a later --deadline"
    if enough is not None:
        cure = f"Give a --throttle of at least {exact_rate(enough)}"
    elif (start := shortest(len(verdict.judged.works))) >= (verdict.deadline or 0.0):
        alone = f"The start and the end of the move alone take {human_duration(start)} with any throttle"
        cure = f"{alone}. Give a later --deadline"
    return f"the deadline, {human_duration(verdict.deadline or 0.0)}, is missed: {found}. {cure}"


def answer_lines(verdict: MoveVerdict) -> Iterator[str]:
    """Yield the lines with the expected time, the verdict, the bottleneck and the deadline. Yield nothing if the move
    copies nothing.
    """
    judged, share = verdict.judged, verdict.judged.bottleneck
    if share is None:
        return
    yield f"Expected     {_expected(judged)}"
    if judged.followed is False:
        yield f"             {UNFOLLOWED}"
    if (band := band_line(verdict.outlook)) is not None:
        yield band
    yield f"Can finish   {_can_finish(verdict)}"
    verb = "sends" if share.side is Side.LEADER else "receives"
    where = f"in {named_wave(judged)}: " if isinstance(judged, Waves) else ""
    silent = " (if nothing is written)" if judged.feasible is None else ""
    yield f"Bottleneck   {where}broker {share.broker}, which {verb} {human_bytes(share.bytes)}{silent}"
    if verdict.deadline is not None:
        met = {True: "missed", False: "met", None: "not checked"}[verdict.late]
        yield f"Deadline     {human_duration(verdict.deadline)}: {met}"


def _expected(judged: Pace | Waves) -> str:
    if judged.feasible is False:
        return "never"
    if judged.seconds is None:
        return f"{UNKNOWN}; about {human_duration(judged.seconds_without_writes)} if nothing is written meanwhile"
    return f"about {human_duration(judged.seconds)}"


def _can_finish(verdict: MoveVerdict) -> str:
    judged = verdict.judged
    if judged.feasible is False:
        return f"no: {never_because(judged)}"
    if verdict.outlook.full:
        return "no: the copies do not fit on the disks; see Disk"
    if judged.feasible is None:
        return "not checked, because the write rates are unknown"
    if verdict.window.empty:
        return "yes, but no throttle is within all limits; see Window"
    if verdict.late:
        return "yes, but after the deadline"
    if verdict.window.broken(judged.throttle):
        return "yes, but the throttle is not within its limits; see Window"
    return "yes"


def time_lines(judged: Pace | Waves) -> Iterator[str]:
    """Yield the terms of the expected time, and its lower bound. Yield nothing if the move copies nothing or never
    finishes.
    """
    share = judged.bottleneck
    if share is None or judged.feasible is False:
        return
    if judged.seconds is not None:
        yield f"Time         {human_duration(judged.seconds)} = {_terms(judged, share)}"
        left, writes = rates_or_unknown(share.left, share.writes)
        yield f"               broker {share.broker}: {left} left for copies, minus {writes} written meanwhile"
    how = "(bytes - bytes at once) / throttle" + (", wave by wave" if isinstance(judged, Waves) else "")
    yield f"At least     {human_duration(judged.least_seconds)} = {how}"
    yield ""


def _terms(judged: Pace | Waves, share: Share) -> str:
    if isinstance(judged, Waves):
        waves = counted(len(judged.each), "wave")
        most = START_SECONDS + TURNOVER_SECONDS
        return f"the sum of {waves}: for each wave, up to {most:g} s to start and end + the time to copy"
    assert judged.run is not None
    assert share.seconds is not None
    copying, alone = judged.run.end, share.seconds
    other = judged.enforcement.seconds(copying) - copying
    words = f"{other:.2g} s to start and end + {human_duration(copying)} to copy"
    if copying > 1.01 * alone:
        words += f" ({human_duration(alone)} if no other broker slows down broker {share.broker})"
    flows = f"{share.flows / share.throttle:.0%}"
    return f"{words}: {human_bytes(share.at_once)} at once, then the rest at {flows} of the throttle"
