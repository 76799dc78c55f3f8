"""What `move estimate` prints for people: the sums of a move as text for a tired operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kquota.cli.contract import printable
from kquota.cli.move.estimate import verdict
from kquota.cli.move.estimate.outlook import disk_lines, wave_lines
from kquota.cli.table import aligned
from kquota.cli.unknown import UNKNOWN, rate_or_unknown, time_or_unknown
from kquota.measure import ByteRate, counted, human_bytes, human_duration, human_rate
from kquota.pace.enforcement import Enforcement
from kquota.pace.fetch import Fetch
from kquota.pace.ratio import MoveTime
from kquota.pace.share import Pace, Side
from kquota.pace.waves import Waves
from kquota.pace.window import Bound, Window
from kquota.several import named_brokers

if TYPE_CHECKING:
    from kquota.cli.move.estimate.answer import Estimate
    from kquota.cli.move.estimate.inputs import Source
    from kquota.cli.move.estimate.outlook import Outlook

_QUARTERS: Final = (2, 3, 4, 6, 8, 20)
_NAMED: Final = 5


def writes_from(rates: Sequence[Source]) -> str:
    """Who tells the write rates, in words; the first that knows a broker or a partition counts."""
    if not rates:
        return UNKNOWN
    mixed = len(rates) > 1
    told = []
    for rate in rates:
        name = "" if rate.name is None else f" {printable(rate.name)}"
        of = f" for {named_brokers(rate.brokers, _NAMED)}" if mixed and rate.brokers is not None else ""
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


def others(judged: Pace | Waves) -> list[Pace | Waves]:
    """The same move under other throttles, from half of this one, or of the least that can end it, to five times it."""
    least = (judged.least_throttle or 0) if judged.feasible is False else 0
    about = max(judged.throttle, int(least))
    throttles = {ByteRate(max(1, about * n // 4)) for n in _QUARTERS} if judged.bottleneck else set()
    return [judged.under(throttle) for throttle in sorted(throttles)]


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
    yield f"To copy      {human_bytes(pace.work.bytes)} in {counted(pace.work.copies, 'copy')}"
    yield ""
    yield _table(pace)
    yield "  (keep-up: in-sync followers of moving partitions, which spend the leader's throttle undelayed)"
    if answer.outlook.waves:
        yield "  (all waves together, as if they went at once)"
    yield ""
    yield from verdict.lines(answer)
    yield ""
    yield from _window_lines(answer.window, answer.throttle)
    yield _fetch_line(answer.fetch, pace.enforcement)
    yield ""
    yield from _outlook_lines(answer.outlook)
    yield f"Other throttles{' (if nothing is written)' if answer.judged.feasible is None else ''}"
    for other in others(answer.judged):
        seconds = other.seconds_without_writes if other.feasible is None else other.seconds
        time = "never" if other.feasible is False else time_or_unknown(seconds)
        yield f"  {human_rate(other.throttle):>10}  {time}"


def _window_lines(window: Window, throttle: ByteRate) -> Iterator[str]:
    bounds = [*(("above", b) for b in window.above), *(("below", b) for b in window.below)]
    for n, (side, bound) in enumerate(bounds):
        rate, note = rate_or_unknown(bound.rate), _note(bound, throttle, above=side == "above")
        word = f"at {'least' if side == 'above' else 'most'}" if bound.closed else side
        yield f"{'Window' if n == 0 else '':<12} T {word:<8} {rate:>10}  {bound.why}{note}"
    if window.empty:
        yield "             empty: no throttle keeps them all"


def _note(bound: Bound, throttle: ByteRate, *, above: bool) -> str:
    if bound.kept(throttle, above=above) is not False:
        return ""
    return ": NOT KEPT" if bound.binds else "; not so here: it is the whole cluster's, the next line is of what moves"


def _outlook_lines(found: Outlook) -> Iterator[str]:
    if found.rooms:
        yield from disk_lines(found)
        yield ""
    if found.waves:
        yield from wave_lines(found.waves)
        yield ""


def _fetch_line(fetch: Fetch, enforcement: Enforcement) -> str:
    kept = "holds" if fetch.holds else f"does not hold, keep the setting below {human_bytes(fetch.largest)}"
    return (
        f"Fetch size   {fetch.brokers} brokers x {human_bytes(fetch.response_max_bytes)} / {human_rate(fetch.rate)}"
        f" = {human_duration(fetch.seconds)} < {human_duration(fetch.window_seconds)} window: {kept}"
        f" (KIP-73; both {'as the brokers are set' if enforcement.told else 'as Kafka ships them'})"
    )


def _kip_lines(kip: MoveTime) -> Iterator[str]:
    bytes_in, quota = rate_or_unknown(kip.max_bytes_in), human_rate(kip.replication_quota)
    time = "none" if kip.in_below_throttle is False else time_or_unknown(kip.seconds)
    yield (
        f"MoveRatio    {kip.move_ratio:.3g} = {kip.partitions_to_be_moved} partitions to be moved"
        f" / {kip.total_partition_count} partitions"
    )
    yield f"MoveTime     {time} = {kip.move_ratio:.3g} MoveRatio"
    yield f"               x {human_bytes(kip.log_size_per_broker)} TotalLogSizePerBroker x {kip.brokers} brokers"
    yield f"               / ({quota} replication-quota - {bytes_in} max BytesInPerSec)"
    kept = {True: "holds", False: "does not hold", None: "not checked"}[kip.in_below_throttle]
    yield f"IN < T       {bytes_in} < {quota}: {kept} (KIP-73's term, of the whole cluster; see Window)"


def _table(pace: Pace) -> str:
    heads = ("broker", "", "copies", "bytes", "keep-up", "for copies", "writes", "time")
    rows = [
        (
            share.broker,
            "out" if share.side is Side.LEADER else "in",
            share.copies,
            human_bytes(share.bytes),
            rate_or_unknown(share.keep_up) if share.side is Side.LEADER else "",
            rate_or_unknown(share.left),
            rate_or_unknown(share.writes),
            "never" if share.finishes is False else time_or_unknown(share.seconds),
        )
        for share in pace.shares
    ]
    return aligned(rows, heads, left=[1])
