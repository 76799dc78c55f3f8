"""The answer of `move estimate`: the value from which its text, its JSON document and its report are written.

Units are bytes, bytes per second and seconds. Only keys that end in `.ms` are in milliseconds. null never means 0. It
means that a value is unknown or does not exist, for example the time of a move that never finishes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kquota.cli.amounts import time_or_unknown
from kquota.cli.move.cordons import cordons_shown
from kquota.cli.move.estimate import text, verdict
from kquota.cli.move.estimate.inputs import RateSource
from kquota.cli.move.estimate.outlook import Outlook, disk_lines, wave_lines
from kquota.cli.move.estimate.running import running_document, running_lines
from kquota.cli.move.estimate.verdict import MoveVerdict
from kquota.cli.move.log_dir_time import time_line, time_shown
from kquota.cli.output import Answer, JsonObject, Part, each, hidden, key, spread
from kquota.measure import ByteRate, bytes_per_second, counted, human_bytes, human_rate
from kquota.pace.enforcement import Enforcement
from kquota.pace.kip73 import Bound, Fetch, MoveTime
from kquota.pace.log_dir_copy import LogDirPace
from kquota.pace.share import Pace, Share, Side
from kquota.pace.waves import Waves
from kquota.reassign.running_copies import MoveUnderWay
from kquota.sizes.replica import Cordon
from kquota.terms import BrokerId

if TYPE_CHECKING:
    from kquota.spark.estimate import Measured
    from kquota.spark.partitions import Health


def _health(health: Health) -> JsonObject:
    return {
        "cluster": health.cluster,
        "time": health.time,
        "brokers": health.brokers,
        "left_out": {"bad": health.bad, "duplicate": health.duplicate, "future": health.future},
        "log_dirs_offline": health.offline,
    }


def _sources(rates: Sequence[RateSource]) -> JsonObject:
    kinds = dict.fromkeys(rate.kind for rate in rates)
    sources = [{"kind": rate.kind, "name": rate.name, "brokers": rate.brokers} for rate in rates]
    return {"source": "+".join(kinds) or None, "sources": sources}


def _kip(kip: MoveTime) -> JsonObject:
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


def _carried(pace: Pace) -> JsonObject:
    shares = [_share(share, pace.ends) for share in pace.shares]
    return {"copies": pace.work.copies, "bytes_to_copy": pace.work.bytes, "shares": shares}


def _share(share: Share, ends: Mapping[tuple[int, Side], float]) -> JsonObject:
    return {
        "broker": share.broker,
        "side": share.side.value,
        "copies": share.copies,
        "bytes": share.bytes,
        "keep_up": share.keep_up,
        "left_for_copies": share.left,
        "writes": share.writes,
        "finishes": share.finishes,
        "flows": share.flows,
        "seconds": share.seconds,
        "ends_after_seconds": ends.get((share.broker, share.side)),
        "least_seconds": share.least_seconds,
    }


def _verdict(found: MoveVerdict) -> JsonObject:
    judged, worst = found.judged, found.judged.bottleneck
    return {
        "bottleneck": None if worst is None else {"broker": worst.broker, "side": worst.side.value},
        "bottleneck_wave": judged.worst + 1 if isinstance(judged, Waves) else None,
        "feasible": judged.feasible,
        "throttle_must_exceed": judged.least_throttle,
        "expected_seconds": judged.seconds,
        "expected_seconds_without_writes": judged.seconds_without_writes,
        "least_seconds": judged.least_seconds,
        "followed": judged.followed,
        "deadline": None
        if found.deadline is None
        else {"seconds": found.deadline, "met": None if found.late is None else not found.late},
        "refused": found.refused,
        "window": {
            "above": list(map(_bound, found.window.above)),
            "below": list(map(_bound, found.window.below)),
            "empty": found.window.empty,
            "broken": [bound.why for bound in found.window.broken(judged.throttle)],
        },
    }


def _bound(bound: Bound) -> JsonObject:
    return {"rate": bound.rate, "inclusive": bound.closed, "binds": bound.binds, "why": bound.why}


def _fetch(fetch: Fetch) -> JsonObject:
    return {
        "brokers": fetch.brokers,
        "response_max_bytes": fetch.response_max_bytes,
        "window_seconds": fetch.window_seconds,
        "network": fetch.network,
        "seconds": fetch.seconds,
        "holds": fetch.holds,
        "largest_response_max_bytes": fetch.largest,
    }


def _enforcement(found: Enforcement) -> JsonObject:
    return {
        "told": found.of_brokers,
        "throttled": found.throttled,
        "replication.quota.window.num": found.window_num,
        "replication.quota.window.size.seconds": found.window_seconds,
        "replica.fetch.backoff.ms": found.fetch_backoff * 1000,
        "replica.fetch.wait.max.ms": found.fetch_wait * 1000,
        "replica.fetch.max.bytes": found.fetch_bytes,
        "replica.fetch.response.max.bytes": found.response_bytes,
    }


def _throttles(others: Sequence[Pace | Waves]) -> list[JsonObject]:
    return [
        {"throttle": other.throttle, "expected_seconds": other.seconds, "feasible": other.feasible} for other in others
    ]


def ahead(found: Outlook) -> JsonObject:
    """Return the JSON keys of an outlook. `waves_seconds` is null without waves, if the time of a wave is unknown, and
    if a wave never finishes. `high_seconds` is null if the move may never finish.
    """
    band, waves = found.band, found.waves
    return {
        "band": None
        if band is None
        else {
            "low_seconds": band.low,
            "high_seconds": band.high,
            "of_write_rates": band.writes,
            "of_past_moves": band.past_moves,
            "of_unused_quota": band.unused_quota,
        },
        "never_at_peak_of": list(found.at_peak),
        "disk": [
            {
                "broker": room.broker,
                "log_dir": room.log_dir,
                "usable": room.usable,
                "arriving": room.arriving,
                "written": room.written,
                "left": room.left,
                "left_at_worst": room.worst,
                "left_if_volumes_differ": room.apart,
            }
            for room in found.rooms
        ],
        "waves": []
        if waves is None
        else [
            {
                "first": wave.first,
                "last": wave.last,
                "partitions": wave.partitions,
                "bytes": wave.work.bytes,
                "expected_seconds": pace.seconds,
                "feasible": pace.feasible,
            }
            for wave, pace in waves.each
        ],
        "waves_seconds": None if waves is None else waves.seconds,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SizesUsed(Part):
    """The source of the sizes."""

    source: str
    """The kind of the source: `log-dirs`, `history` or `cluster`."""
    names: tuple[str, ...]
    """The given files and folders of the source. Empty for a live cluster."""
    health: Health = spread(_health)
    """The cluster, time and brokers of the sizes, and the numbers of left-out rows and of offline log dirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRates(Part):
    """The sources of the write rates. For each broker or partition, the first source with a rate is used."""

    sources: tuple[RateSource, ...] = spread(_sources)
    brokers_without_partitions: tuple[BrokerId, ...]
    """Brokers with a given rate that kquota could not assign to partitions, because they lead none."""


def assumed(measured: Measured, *, live: bool) -> JsonObject:
    """Return the JSON of the assumptions. `leaders` and `in_sync` are the numbers of moving partitions with an assumed
    leader and with assumed in-sync replicas. `sizes` is the number of the plan's partitions with an assumed size.

    `sizes_named` has the first partitions with an assumed size. `empty_brokers` are the brokers that kquota assumes to
    be empty. On a `live` cluster, this list is empty, because each live broker reports its replicas.
    """
    return {
        "leaders": measured.leaders_assumed,
        "in_sync": measured.in_sync_assumed,
        "sizes": measured.assumed.partitions,
        "sizes_named": measured.assumed.named,
        "empty_brokers": () if live else measured.unseen,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Answer):
    """The estimate of one move."""

    ASCII = True

    throttle: ByteRate
    sizes: SizesUsed
    write_rates: WriteRates
    assumed: JsonObject
    """The assumptions, in the form of the function `assumed`."""
    followers_out_of_sync: int
    """The number of out-of-sync followers of the moving partitions."""
    running: MoveUnderWay | None = key(form=running_document)
    """The running moves, or None if kquota does not know which moves are running."""
    kip: MoveTime = key("kip73", _kip)
    """The estimate with the formula of KIP-73."""
    pace: Pace = spread(_carried)
    """The pace of the whole move between brokers, without waves."""
    verdict: MoveVerdict = spread(_verdict)
    fetch: Fetch = key(form=_fetch)
    """The condition of KIP-73 on the size of a fetch."""
    enforcement: Enforcement = key(form=_enforcement)
    throttles: tuple[Pace | Waves, ...] = key(form=_throttles)
    """The same move under several throttles, in ascending order."""
    outlook: Outlook = spread(ahead)
    log_dir_moves: tuple[LogDirPace, ...] = key(form=each(time_shown))
    """The pace of the copies between log dirs of one broker, for each such broker."""
    cordoned: tuple[Cordon, ...] = key(form=cordons_shown)
    for_deadline: bool = hidden()
    """True if kquota calculated the throttle from a deadline."""
    measured: Measured = hidden()

    def text(self) -> Iterator[str]:
        yield from running_lines(self.running)
        if not self.pace.shares:
            yield self.nothing
            yield ""
        for pace in self.log_dir_moves:
            yield f"Log dirs     {time_line(pace)}"
        yield from verdict.answer_lines(self.verdict)
        found = ", the smallest that meets the deadline" if self.for_deadline else ""
        yield f"Throttle     {human_rate(self.throttle)} ({bytes_per_second(self.throttle)}) on each broker{found}"
        yield ""
        yield from text.kip_lines(self.kip)
        yield ""
        yield f"Sizes        {', '.join((self.sizes.source, *self.sizes.names))}"
        yield f"Write rates  {text.writes_from(self.write_rates.sources)}"
        if self.pace.shares:
            yield from self._details()

    @property
    def nothing(self) -> str:
        """The reason why there is nothing to copy between brokers."""
        if self.running is not None and self.running.partitions:
            return "Nothing to copy: the running move only removes replicas."
        if self.log_dir_moves:
            return "Nothing to move between brokers: replicas only change their log dirs."
        if self.measured.behind:
            return "Nothing to move: every replica of the plan exists, but some are out of sync."
        return "Nothing to copy: every replica of the plan is where it should be."

    def _details(self) -> Iterator[str]:
        pace, judged = self.pace, self.verdict.judged
        yield f"To copy      {human_bytes(pace.work.bytes)} in {counted(pace.work.copies, 'copy')}"
        yield ""
        yield from text.share_lines(pace)
        yield "  (followers: fetches of in-sync followers of the moving partitions, counted but never delayed)"
        if self.outlook.waves:
            yield "  (calculated as if all waves ran at the same time)"
        yield ""
        yield from verdict.time_lines(judged)
        yield from text.window_lines(self.verdict.window, self.throttle)
        yield text.fetch_line(self.fetch, pace.enforcement)
        yield ""
        if self.outlook.rooms:
            yield from disk_lines(self.outlook)
            yield ""
        if self.outlook.waves:
            yield from wave_lines(self.outlook.waves)
            yield ""
        yield f"Other throttles{' (if nothing is written)' if judged.feasible is None else ''}"
        for other in self.throttles:
            seconds = other.seconds_without_writes if other.feasible is None else other.seconds
            time = "never" if other.feasible is False else time_or_unknown(seconds)
            yield f"  {human_rate(other.throttle):>10}  {time}"
