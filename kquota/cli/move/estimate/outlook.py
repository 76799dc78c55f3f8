"""The outlook of `move estimate`: the uncertainty of the expected time, the room on the disks, and the waves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kquota.cli.amounts import size_or_unknown, time_or_unknown
from kquota.cli.formats import printable
from kquota.cli.table import aligned
from kquota.list_text import named_brokers
from kquota.measure import human_bytes, human_duration
from kquota.pace.disk_space import Volume, VolumeSpace, rooms
from kquota.pace.past_moves import ErrorBand
from kquota.pace.share import Pace
from kquota.pace.uncertainty import Band, band, stuck_at_peak, together
from kquota.pace.waves import Waves, in_waves
from kquota.sizes.bytes_in import BytesIn
from kquota.terms import BrokerId

if TYPE_CHECKING:
    from kquota.spark.estimate import Measured


_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The uncertainty of a move's expected time, the room on the disks, and the waves."""

    band: Band | None
    """The 90% band of the time, or None without an expected time."""
    at_peak: tuple[int, ...]
    """The ids of the leaders whose write rate, at its 99th percentile, could alone keep the move from finishing."""
    volumes: tuple[Volume, ...]
    """The disks before the move."""
    rooms: tuple[VolumeSpace, ...]
    """The disks that receive copies, at the end of the move."""
    waves: Waves | None
    """The waves, or None if the whole move starts at once."""

    @property
    def full(self) -> tuple[VolumeSpace, ...]:
        """The disks that have no room for their copies, however the log dirs are distributed over volumes."""
        return tuple(room for room in self.rooms if room.apart is not None and room.apart < 0)

    @property
    def checked(self) -> list[tuple[float, VolumeSpace]]:
        """The disks of known size, each with the bytes that are left when it is fullest. Writes count if their rate is
        known.
        """
        return [(room.least, room) for room in self.rooms if room.least is not None]

    @property
    def unchecked(self) -> frozenset[int]:
        """The ids of the brokers that receive copies on disks of unknown size."""
        return frozenset(room.broker for room in self.rooms if room.usable is None)


def outlook(
    move: Pace,
    measured: Measured,
    bytes_in: Mapping[BrokerId, BytesIn],
    volumes: Sequence[Volume],
    errors: ErrorBand,
) -> Outlook:
    """Return the outlook of `move`, from the sums of the Spark job (`measured`) and the write rates of each broker
    (`bytes_in`).

    `volumes` come from live brokers. If there are any, they replace those in `measured`, which are less complete.
    `errors` are the errors of past estimates, or the error of the model.
    """
    busy = {broker: rate for broker, rate in bytes_in.items() if rate.mean > 0}
    waves = in_waves(measured.waves, move) if measured.waves else None
    judged, paces = (waves, [pace for _, pace in waves.each]) if waves else (move, [move])
    known = volumes or measured.health.volumes
    calm = {int(broker): rate.low / rate.mean for broker, rate in busy.items() if rate.low is not None}
    high = {int(broker): rate.high / rate.mean for broker, rate in busy.items() if rate.high is not None}
    peak = {int(broker): rate.peak / rate.mean for broker, rate in busy.items() if rate.peak is not None}
    at_peak = {broker for pace in paces for broker in stuck_at_peak(pace, peak)} if judged.feasible else set()
    return Outlook(
        band=together(band(pace, calm, high, errors) for pace in paces),
        at_peak=tuple(sorted(at_peak)),
        volumes=tuple(known),
        rooms=rooms(known, measured.arrivals, judged.seconds),
        waves=waves,
    )


def band_line(found: Outlook) -> str | None:
    """Return the line with the 90% band of the time, or None without an expected time."""
    band = found.band
    if band is None:
        return None
    low, source = human_duration(band.low), band_source(band)
    if band.high is None:
        never = "At the 95th percentile of the write rates, the move never finishes"
        return f"90% band     at least {low}. {never} ({source})"
    return f"90% band     {low} to {human_duration(band.high)} ({source})"


def band_source(band: Band) -> str:
    """Return the errors and the write rates from which kquota calculated a band, as text."""
    error = f"errors of {band.past_moves} past moves of this cluster" if band.past_moves else "error of the model"
    why = (
        f"{error}, and write rates from their 5th to their 95th percentile"
        if band.writes
        else f"only the {error}, because the percentiles of the write rates are unknown"
    )
    if band.unused_quota:
        why += "; a throttle is already set on a broker, so copies may use its unused quota at the start"
    return why


def warnings(found: Outlook) -> Iterator[str]:
    """Yield warnings about leaders with high peaks and disks that may become too full."""
    for broker in found.at_peak:
        yield (
            f"warning: broker {broker}: at the peak of its write rate (p99), the copies that it sends cannot catch up, "
            "and the move does not finish while the peak lasts"
        )
    for room in found.rooms:
        if may_fit(room):
            yield f"warning: {if_one_volume(room)}"
        if room.worst is not None and room.worst < 0 <= (room.left or 0):
            # The log dir of an old replica is not known here, so the writes to all log dirs of the broker count.
            where = "" if room.log_dir is None else " to all log dirs of the broker"
            yield (
                f"warning: {_place(room)}: {human_bytes(room.arriving)} of copies fit ({human_bytes(room.usable or 0)} "
                f"usable), but not together with the {human_bytes(room.written or 0.0)} that producers write{where} "
                "until the end of the move, unless retention deletes as much"
            )


def why_full(found: Outlook) -> str:
    """Return the error for copies that do not fit. `Outlook.full` must not be empty."""
    places = [
        f"{_place(room)} gets {human_bytes(room.arriving)} ({human_bytes(room.usable or 0)} usable)"
        for room in found.full[:_NAMED]
    ]
    more = f"; and {len(found.full) - _NAMED:,} more" if len(found.full) > _NAMED else ""
    return (
        f"the copies do not fit: {'; '.join(places)}{more}. A disk holds old and new replicas until the end of "
        "the move. Free disk space, or move to other brokers"
    )


def disk_lines(found: Outlook) -> Iterator[str]:
    """Yield a line with the brokers whose disk sizes are unknown, then a table of the other disks that receive copies.
    The table shows the bytes that are left when a disk is fullest. The line and the table are left out if they would be
    empty.
    """
    if found.unchecked:
        brokers = named_brokers(found.unchecked)
        yield f"Disk         not checked on {brokers}, because the source of sizes has no disk sizes"
    if not found.checked:
        return
    yield "Disk         at the end of the move, with old and new replicas"
    heads = ("broker", "log dir", "usable", "copies", "written", "left")
    rows = [
        (
            room.broker,
            printable(room.log_dir or ""),
            human_bytes(room.usable or 0),
            human_bytes(room.arriving),
            size_or_unknown(room.written),
            _left(room, left),
        )
        for left, room in found.checked
    ]
    yield from aligned(rows, heads, left=[1])


def wave_lines(waves: Waves) -> Iterator[str]:
    """Yield the time of all waves together, then a table with the bytes and the time of each wave."""
    heads = ("wave", "first", "last", "partitions", "bytes", "time")
    rows = [
        (
            number,
            printable(wave.first),
            printable(wave.last),
            wave.partitions,
            human_bytes(wave.work.bytes),
            "never" if pace.feasible is False else time_or_unknown(pace.seconds),
        )
        for number, (wave, pace) in enumerate(waves.each, 1)
    ]
    how, together = (", one after the other", " together") if len(rows) > 1 else ("", "")
    yield f"Waves        {len(rows):,}{how}: {time_or_unknown(waves.seconds)}{together}"
    yield from aligned(rows, heads, left=[1, 2])


def _left(room: VolumeSpace, left: float) -> str:
    if left >= 0:
        return human_bytes(left)
    return f"{human_bytes(-left)} short{' if log dirs share a volume' if may_fit(room) else ''}"


def may_fit(room: VolumeSpace) -> bool:
    """Return True if the copies fit with one volume for each log dir, but not if log dirs of equal size share a
    volume.
    """
    return room.left is not None and room.apart is not None and room.left < 0 <= room.apart


def if_one_volume(room: VolumeSpace) -> str:
    """Return the warning for a room for which `may_fit` is true."""
    return (
        f"{_place(room)}: {human_bytes(room.arriving)} of copies do not fit if its log dirs with equal sizes are one "
        f"volume ({human_bytes(room.usable or 0)} usable). They fit if each log dir is a separate volume"
    )


def _place(room: VolumeSpace) -> str:
    return f"broker {room.broker}" if room.log_dir is None else f"{printable(room.log_dir)} of broker {room.broker}"
