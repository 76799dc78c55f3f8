"""What `move estimate` prints: the sums of a move as a JSON document, or as text for a tired operator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kquota.cli.contract import printable
from kquota.measure import ByteRate, human_bytes, human_duration, human_rate
from kquota.pace.enforcement import START_SECONDS
from kquota.pace.fetch import Fetch
from kquota.pace.ratio import MoveTime
from kquota.pace.share import Pace, Share, Side
from kquota.pace.window import Bound, Window

if TYPE_CHECKING:
    from kquota.spark.estimate import Measured

VERSION: Final = 1
_QUARTERS: Final = (2, 3, 4, 6, 8, 20)
_UNKNOWN: Final = "unknown"
WRITES_FROM: Final = {
    "bytes-in": "--bytes-in; a broker's rate goes to the partitions it leads, by their size",
    "sample": "sampled on the live cluster",
    None: _UNKNOWN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One answer of `move estimate`, with where its numbers came from; the throttle may be the one for a deadline.

    `source` is log-dirs, history or cluster, `names` its files; `writes_from` is bytes-in, sample, or None: unknown.
    """

    throttle: ByteRate
    for_deadline: bool
    source: str
    names: tuple[str, ...]
    writes_from: str | None
    measured: Measured
    kip: MoveTime
    pace: Pace
    window: Window
    fetch: Fetch


def document(answer: Estimate) -> str:
    """The whole estimate as one line of JSON: bytes, bytes per second, seconds; null is unknown, never 0."""
    measured, pace = answer.measured, answer.pace
    health = measured.health
    worst = pace.bottleneck
    return json.dumps(
        {
            "version": VERSION,
            "throttle": answer.throttle,
            "sizes": {
                "source": answer.source,
                "names": list(answer.names),
                "cluster": health.cluster,
                "time": health.time,
                "brokers": list(health.brokers),
                "left_out": {"bad": health.bad, "duplicate": health.duplicate, "future": health.future},
                "log_dirs_offline": health.offline,
            },
            "write_rates": {"source": answer.writes_from, "brokers_without_partitions": list(measured.unallotted)},
            "assumed": {"leaders": measured.leaders_assumed, "in_sync": measured.in_sync_assumed},
            "followers_out_of_sync": measured.lagging,
            "kip73": _kip(answer.kip),
            "copies": pace.work.copies,
            "bytes_to_copy": pace.work.bytes,
            "shares": [_share(share) for share in pace.shares],
            "bottleneck": None if worst is None else {"broker": worst.broker, "side": worst.side.value},
            "feasible": pace.feasible,
            "throttle_must_exceed": pace.least_throttle,
            "expected_seconds": pace.seconds,
            "expected_seconds_without_writes": pace.seconds_without_writes,
            "least_seconds": pace.least_seconds,
            "window": _window(answer.window, answer.throttle),
            "fetch": _fetch(answer.fetch),
            "throttles": [
                {"throttle": other.throttle, "expected_seconds": other.seconds, "feasible": other.feasible}
                for other in others(pace)
            ],
        }
    )


def _window(window: Window, throttle: ByteRate) -> dict[str, object]:
    def told(bounds: tuple[Bound, ...]) -> list[dict[str, object]]:
        return [{"rate": bound.rate, "inclusive": bound.closed, "why": bound.why} for bound in bounds]

    return {
        "above": told(window.above),
        "below": told(window.below),
        "empty": window.empty,
        "broken": [bound.why for bound in window.broken(throttle)],
    }


def _fetch(fetch: Fetch) -> dict[str, object]:
    return {
        "brokers": fetch.brokers,
        "response_max_bytes": fetch.response_max_bytes,
        "window_seconds": fetch.window_seconds,
        "network": fetch.network,
        "seconds": fetch.seconds,
        "holds": fetch.holds,
        "largest_response_max_bytes": fetch.largest,
    }


def others(pace: Pace) -> list[Pace]:
    """The same move under other throttles, from half of this one to five times it."""
    throttles = {ByteRate(max(1, pace.throttle * n // 4)) for n in _QUARTERS} if pace.shares else set()
    return [pace.under(throttle) for throttle in sorted(throttles)]


def _kip(kip: MoveTime) -> dict[str, object]:
    return {
        "move_ratio": kip.move_ratio,
        "partitions_to_be_moved": kip.partitions_to_be_moved,
        "total_partition_count": kip.total_partition_count,
        "total_log_size_per_broker": kip.log_size_per_broker,
        "brokers": kip.brokers,
        "replication_quota": kip.replication_quota,
        "max_bytes_in_per_sec": kip.max_bytes_in,
        "in_below_throttle": kip.in_below_throttle,
        "move_time_seconds": kip.seconds,
    }


def _share(share: Share) -> dict[str, object]:
    return {
        "broker": share.broker,
        "side": share.side.value,
        "copies": share.copies,
        "bytes": share.bytes,
        "keep_up": share.keep_up,
        "left_for_copies": share.left,
        "writes": share.writes,
        "finishes": share.finishes,
        "seconds": share.seconds,
        "least_seconds": share.least_seconds,
    }


def text(answer: Estimate) -> str:
    """The estimate for people: KIP-73's two lines with each term, each broker's share, the bottleneck, the time."""
    return "\n".join(_lines(answer))


def _lines(answer: Estimate) -> Iterator[str]:
    pace = answer.pace
    yield f"Sizes        {printable(', '.join((answer.source, *answer.names)))}"
    found = ", the smallest that meets the deadline" if answer.for_deadline else ""
    yield f"Throttle     {human_rate(answer.throttle)} ({answer.throttle} bytes per second) on each broker{found}"
    yield f"Write rates  {WRITES_FROM[answer.writes_from]}"
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
    yield from _verdict(pace)
    yield ""
    yield from _window_lines(answer.window, answer.throttle)
    yield _fetch_line(answer.fetch)
    yield ""
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


def _fetch_line(fetch: Fetch) -> str:
    verdict = "holds" if fetch.holds else f"does not hold, keep the setting below {human_bytes(fetch.largest)}"
    return (
        f"Fetch size   {fetch.brokers} brokers x {human_bytes(fetch.response_max_bytes)} / {human_rate(fetch.rate)}"
        f" = {human_duration(fetch.seconds)} < {human_duration(fetch.window_seconds)} window: {verdict}"
        " (KIP-73; both as Kafka ships them)"
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


def _verdict(pace: Pace) -> Iterator[str]:
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
        copying = None if pace.run is None else pace.run.end
        yield (
            f"Expected     about {_time(pace.seconds)} = {START_SECONDS:g} s to start and end"
            f" + {_time(copying)} to copy"
        )
    yield f"At least     {human_duration(pace.least_seconds)} = bytes / throttle"


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
