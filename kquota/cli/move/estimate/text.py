"""Parts of an estimate's text: write rates, brokers, the window of the throttle, and KIP-73's terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kquota.cli.amounts import UNKNOWN, rate_or_unknown, rates_or_unknown, time_or_unknown
from kquota.cli.move.estimate.inputs import BYTES_IN, HISTORY, SAMPLE, RateSource
from kquota.cli.table import aligned
from kquota.list_text import named_brokers
from kquota.measure import ByteRate, counted, human_bytes, human_duration, human_rate
from kquota.pace.enforcement import Enforcement
from kquota.pace.kip73 import Bound, Fetch, MoveTime, Window
from kquota.pace.share import Pace, Side

_NAMED: Final = 5


def writes_from(rates: Sequence[RateSource]) -> str:
    """Return the sources of the write rates as text, or `unknown` without a source."""
    if not rates:
        return UNKNOWN
    mixed = len(rates) > 1
    sources = []
    for rate in rates:
        name = "" if rate.name is None else f" {rate.name}"
        of = f" for {named_brokers(rate.brokers, _NAMED)}" if mixed and rate.brokers is not None else ""
        words = {
            BYTES_IN: f"--bytes-in{name}",
            HISTORY: f"the history{name}",
            SAMPLE: "measured on the live cluster",
        }
        sources.append(f"{words[rate.kind]}{of}")
    kinds = {rate.kind for rate in rates}
    how = ""
    if BYTES_IN in kinds:
        how = "; a broker's rate is divided among the partitions that it leads, "
        how += "by size" if len(kinds) == 1 else "by their own rates if all are known, otherwise by size"
    return f"{', otherwise '.join(sources)}{how}"


def window_lines(window: Window, throttle: ByteRate) -> Iterator[str]:
    """Yield the bounds of the throttle, the lower bounds first. Each bound that the throttle breaks has a note. If no
    throttle meets all bounds, the last line says so.
    """
    bounds = [*(("above", b) for b in window.above), *(("below", b) for b in window.below)]
    for n, (side, bound) in enumerate(bounds):
        rate, note = rate_or_unknown(bound.rate), _note(bound, throttle, above=side == "above")
        word = f"at {'least' if side == 'above' else 'most'}" if bound.closed else side
        yield f"{'Window' if n == 0 else '':<12} T {word:<8} {rate:>10}  {bound.why}{note}"
    if window.empty:
        yield "             empty: no throttle meets all bounds"


def _note(bound: Bound, throttle: ByteRate, *, above: bool) -> str:
    if bound.kept(throttle, above=above) is not False:
        return ""
    return ": NOT MET" if bound.binds else "; not met, but the next line is the bound for the brokers of this move"


def fetch_line(fetch: Fetch, enforcement: Enforcement) -> str:
    """Return KIP-73's condition on the size of a fetch, and whether it holds."""
    largest = human_bytes(fetch.largest)
    kept = "holds" if fetch.holds else f"does not hold; set replica.fetch.response.max.bytes below {largest}"
    settings = "the brokers' settings" if enforcement.of_brokers else "Kafka's defaults"
    return (
        f"Fetch size   {counted(fetch.brokers, 'broker')} x {human_bytes(fetch.response_max_bytes)}"
        f" / {human_rate(fetch.rate)} = {human_duration(fetch.seconds)} < {human_duration(fetch.window_seconds)}"
        f" window: {kept} (KIP-73, with {settings})"
    )


def kip_lines(kip: MoveTime) -> Iterator[str]:
    """Yield KIP-73's own estimate with its terms."""
    bytes_in, quota = rates_or_unknown(kip.max_bytes_in, kip.replication_quota)
    time = "none" if kip.in_below_throttle is False else time_or_unknown(kip.seconds)
    yield (
        f"MoveRatio    {kip.move_ratio:.3g} = {counted(kip.partitions_to_be_moved, 'partition')} to be moved"
        f" / {counted(kip.total_partition_count, 'partition')}"
    )
    yield f"MoveTime     {time} = {kip.move_ratio:.3g} MoveRatio"
    size, brokers = human_bytes(kip.log_size_per_broker), counted(kip.brokers, "broker")
    yield f"               x {size} TotalLogSizePerBroker x {brokers}"
    yield f"               / ({quota} replication-quota - {bytes_in} max BytesInPerSec) (KIP-73, one copy at a time)"
    kept = {True: "holds", False: "does not hold", None: "not checked"}[kip.in_below_throttle]
    yield f"IN < T       {bytes_in} < {quota}: {kept} (KIP-73, for the whole cluster; for this move see Window)"


def share_lines(pace: Pace) -> list[str]:
    """Return the lines of a table with the bytes, the rates and the time of the copies that each broker sends or
    receives.
    """
    heads = ("broker", "", "copies", "bytes", "followers", "for copies", "writes", "time")
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
