"""What `move estimate` prints for people: the sums of a move as text for a tired operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kquota.cli.contract import printable
from kquota.cli.estimate_outlook import band_line, disk_lines, wave_lines
from kquota.measure import ByteRate, human_bytes, human_duration, human_rate
from kquota.pace.enforcement import AT_ONCE_SECONDS, START_SECONDS, Enforcement
from kquota.pace.fetch import Fetch
from kquota.pace.ratio import MoveTime
from kquota.pace.share import Pace, Share, Side
from kquota.pace.window import Window

if TYPE_CHECKING:
    from kquota.cli.estimate_inputs import Source
    from kquota.cli.estimate_outlook import Outlook
    from kquota.spark.estimate import Measured

_QUARTERS: Final = (2, 3, 4, 6, 8, 20)
_UNKNOWN: Final = "unknown"
_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One answer of `move estimate`, with where its numbers came from; the throttle may be the one for a deadline.

    `source` is log-dirs, history or cluster, `names` its files; `rates` are who tells the write rates, the first wins.
    """

    throttle: ByteRate
    for_deadline: bool
    source: str
    names: tuple[str, ...]
    rates: tuple[Source, ...]
    measured: Measured
    kip: MoveTime
    pace: Pace
    window: Window
    fetch: Fetch
    outlook: Outlook


def writes_from(rates: Sequence[Source]) -> str:
    """Who tells the write rates, in words; the first that knows a broker or a partition counts."""
    if not rates:
        return _UNKNOWN
    mixed = len(rates) > 1
    told = []
    for rate in rates:
        name = "" if rate.name is None else f" {printable(rate.name)}"
        of = f" for {_brokers(rate.brokers)}" if mixed and rate.brokers is not None else ""
        words = {
            "bytes-in": f"--bytes-in{name}",
            "history": f"the history{name}",
            "sample": "sampled on the live cluster",
        }
        told.append(f"{words[rate.kind]}{of}")
    kinds = {rate.kind for rate in rates}
    how = ""
    if "bytes-in" in kinds:
        how = "; a broker's rate goes to the partitions it leads, "
        how += "by their size" if len(kinds) == 1 else "by their own rates where all are known, else by size"
    return f"{', else '.join(told)}{how}"


def _brokers(brokers: Sequence[int]) -> str:
    shown = ", ".join(map(str, brokers[:_NAMED]))
    more = f" and {len(brokers) - _NAMED} more" if len(brokers) > _NAMED else ""
    return f"broker{'' if len(brokers) == 1 else 's'} {shown}{more}"


def others(pace: Pace) -> list[Pace]:
    """The same move under other throttles, from half of this one to five times it."""
    throttles = {ByteRate(max(1, pace.throttle * n // 4)) for n in _QUARTERS} if pace.shares else set()
    return [pace.under(throttle) for throttle in sorted(throttles)]


def text(answer: Estimate) -> str:
    """The estimate for people: KIP-73's two lines with each term, each broker's share, the bottleneck, the time."""
    return "\n".join(_lines(answer))


def _lines(answer: Estimate) -> Iterator[str]:
    pace = answer.pace
    yield f"Sizes        {printable(', '.join((answer.source, *answer.names)))}"
    found = ", the smallest that meets the deadline" if answer.for_deadline else ""
    yield f"Throttle     {human_rate(answer.throttle)} ({answer.throttle} bytes per second) on each broker{found}"
    yield f"Write rates  {writes_from(answer.rates)}"
    yield ""
    yield from _kip_lines(answer.kip)
    yield ""
    if not pace.shares:
        yield "Nothing to move: every replica of the plan is where it should be."
        return
    copies = pace.work.copies
    yield f"To copy      {human_bytes(pace.work.bytes)} in {copies} {'copy' if copies == 1 else 'copies'}"
    yield ""
    yield _table(pace)
    yield "  (keep-up: in-sync followers of moving partitions, which spend the leader's throttle undelayed)"
    yield ""
    yield from _verdict(answer)
    yield ""
    yield from _window_lines(answer.window, answer.throttle)
    yield _fetch_line(answer.fetch, pace.enforcement)
    yield ""
    yield from _outlook_lines(answer.outlook)
    yield f"Other throttles{' (if nothing is written)' if pace.feasible is None else ''}"
    for other in others(pace):
        seconds = other.seconds_without_writes if other.feasible is None else other.seconds
        time = "never" if other.feasible is False else _time(seconds)
        yield f"  {human_rate(other.throttle):>10}  {time}"


def _window_lines(window: Window, throttle: ByteRate) -> Iterator[str]:
    broken = window.broken(throttle)
    bounds = [*(("above", b) for b in window.above), *(("below", b) for b in window.below)]
    for n, (side, bound) in enumerate(bounds):
        rate, note = _rate(bound.rate), ": NOT KEPT" if bound in broken else ""
        word = f"at {'least' if side == 'above' else 'most'}" if bound.closed else side
        yield f"{'Window' if n == 0 else '':<12} T {word:<8} {rate:>10}  {bound.why}{note}"
    if window.empty:
        yield "             empty: no throttle keeps them all"


def _outlook_lines(found: Outlook) -> Iterator[str]:
    if found.rooms:
        yield from disk_lines(found)
        yield ""
    if found.waves:
        yield from wave_lines(found.waves)
        yield ""


def _fetch_line(fetch: Fetch, enforcement: Enforcement) -> str:
    verdict = "holds" if fetch.holds else f"does not hold, keep the setting below {human_bytes(fetch.largest)}"
    return (
        f"Fetch size   {fetch.brokers} brokers x {human_bytes(fetch.response_max_bytes)} / {human_rate(fetch.rate)}"
        f" = {human_duration(fetch.seconds)} < {human_duration(fetch.window_seconds)} window: {verdict}"
        f" (KIP-73; both {'as the brokers are set' if enforcement.told else 'as Kafka ships them'})"
    )


def _kip_lines(kip: MoveTime) -> Iterator[str]:
    bytes_in, quota = _rate(kip.max_bytes_in), human_rate(kip.replication_quota)
    time = "never" if kip.in_below_throttle is False else _time(kip.seconds)
    yield (
        f"MoveRatio    {kip.move_ratio:.3g} = {kip.partitions_to_be_moved} partitions to be moved"
        f" / {kip.total_partition_count} partitions"
    )
    yield f"MoveTime     {time} = {kip.move_ratio:.3g} MoveRatio"
    yield f"               x {human_bytes(kip.log_size_per_broker)} TotalLogSizePerBroker x {kip.brokers} brokers"
    yield f"               / ({quota} replication-quota - {bytes_in} max BytesInPerSec)"
    verdict = {True: "holds", False: "does not hold", None: "not checked"}[kip.in_below_throttle]
    yield f"IN < T       {bytes_in} < {quota}: {verdict} (KIP-73: necessary, not sufficient)"


def _table(pace: Pace) -> str:
    from tabulate import tabulate

    heads = ("broker", "", "copies", "bytes", "keep-up", "for copies", "writes", "time")
    rows = [
        (
            share.broker,
            "out" if share.side is Side.LEADER else "in",
            share.copies,
            human_bytes(share.bytes),
            _rate(share.keep_up) if share.side is Side.LEADER else "",
            _rate(share.left),
            _rate(share.writes),
            "never" if share.finishes is False else _time(share.seconds),
        )
        for share in pace.shares
    ]
    align = ("right", "left", *["right"] * 6)
    return str(tabulate(rows, heads, tablefmt="plain", disable_numparse=True, colalign=align))


def _verdict(answer: Estimate) -> Iterator[str]:
    pace = answer.pace
    share = pace.bottleneck
    if share is None:
        return
    if pace.feasible is False:
        yield f"Never finishes: {why_never(pace)}"
        return
    verb = "sends" if share.side is Side.LEADER else "receives"
    if share.left is None or share.writes is None:
        yield f"Bottleneck   broker {share.broker}, which {verb} {human_bytes(share.bytes)} (if nothing is written)"
        yield f"Expected     {_UNKNOWN}, feasibility not checked: the write rates are unknown"
        yield f"             about {human_duration(pace.seconds_without_writes)} if nothing is written meanwhile"
    else:
        yield f"Bottleneck   broker {share.broker}, which {verb} {human_bytes(share.bytes)}"
        yield f"               at {_rate(share.left)} left for copies - {_rate(share.writes)} written meanwhile"
        yield f"Expected     about {_time(pace.seconds)} = {_terms(pace, share)}"
        band = band_line(answer.outlook)
        if band is not None:
            yield band
    yield f"At least     {human_duration(pace.least_seconds)} = bytes / throttle"


def _terms(pace: Pace, share: Share) -> str:
    """What the expected time is made of."""
    assert pace.run is not None
    assert share.seconds is not None
    copying, alone = pace.run.end, share.seconds
    words = f"{START_SECONDS:g} s to start and end + {_time(copying)} to copy"
    if copying > 1.01 * alone:
        words += f" ({_time(alone)} were it alone; other brokers hold it up)"
    return f"{words}, {AT_ONCE_SECONDS:g} s of the throttle at once and then {share.flows / share.throttle:.0%} of it"


def why_never(pace: Pace) -> str:
    """Which broker's copies can never catch up, with its numbers, and the throttle that would do."""
    share = pace.bottleneck
    assert share is not None
    if share.side is Side.LEADER:
        left = (
            f"broker {share.broker} has {_rate(share.left)} left for the copies it sends ({human_rate(share.throttle)}"
        )
        left += f" throttle - {_rate(share.keep_up)} for in-sync followers)"
    else:
        left = f"broker {share.broker} may receive {human_rate(share.throttle)}"
    least = pace.least_throttle
    enough = f"above {human_rate(least)}" if least is not None else f"well above {_rate(share.needed)}"
    return f"{left}, but its copies are written to at {_rate(share.writes)}; it can finish with a --throttle {enough}"


def _rate(rate: float | None) -> str:
    return _UNKNOWN if rate is None else human_rate(rate)


def _time(seconds: float | None) -> str:
    return _UNKNOWN if seconds is None else human_duration(seconds)
