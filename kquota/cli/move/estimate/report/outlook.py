"""A report beyond one expected time: how sure it is, whether the disks hold the copies, the waves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kquota.cli.move.estimate.outlook import Outlook, may_fit, warnings, why_full
from kquota.cli.move.estimate.report.markup import Markup, joined, tag
from kquota.cli.move.estimate.report.words import note, number, size, table, time
from kquota.measure import counted
from kquota.pace.band import Band
from kquota.pace.waves import Waves
from kquota.several import named_brokers

_ROWS: Final = 20


def sure(band: Band | None) -> Markup:
    """How sure the expected time is; nothing where none is expected."""
    if band is None:
        return Markup()
    high = joined("never, when producers are busiest") if band.high is None else time(band.high)
    why = "the write rates' 5th to 95th percentile, and the model's own error"
    only = "the model's own error alone, since the write rates' percentiles are not known"
    return tag("p", "Nine times of ten it takes ", time(band.low), " to ", high, f" ({why if band.writes else only}).")


def told(found: Outlook) -> Iterator[Markup]:
    """What forbids the move, and what may well go wrong."""
    if found.full:
        yield tag("p", f"Do not run it: {why_full(found)}.", class_="broken")
    if found.waves:
        yield tag(
            "p", f"In {counted(len(found.waves.each), 'wave')}, one after the other: ", time(found.waves.seconds), "."
        )
    for warning in warnings(found):
        yield tag("p", f"{warning[:1].upper()}{warning[1:]}.")


def disks(found: Outlook) -> Iterator[Markup]:
    """Each volume that something comes to at the worst moment, the fullest first."""
    known = sorted(((room.least, room) for room in found.rooms if room.least is not None), key=lambda each: each[0])
    if untold := {room.broker for room in found.rooms if room.usable is None}:
        yield note(f"Disks not checked, since the sizes do not tell of them: on {named_brokers(untold, _ROWS)}.")
    if not known:
        return
    rows = [
        (
            str(room.broker),
            "any" if room.log_dir is None else room.log_dir,
            size(room.usable),
            size(room.arriving),
            size(room.written),
            joined("lacks ", size(-left), " if one volume" if may_fit(room) else "") if left < 0 else size(left),
        )
        for left, room in known[:_ROWS]
    ]
    yield tag("p", "At the end of the move, when old and new copies lie side by side and nothing was deleted:")
    yield table(("broker#", "log dir", "usable now#", "copies#", "written#", "left#"), rows)
    if len(known) > _ROWS:
        yield note(f"The {_ROWS} fullest of {len(known)}.")


def waves(found: Waves) -> Iterator[Markup]:
    """Each wave, what it carries and how long it takes, and all of them one after the other."""
    rows = [
        (
            str(n),
            wave.first,
            wave.last,
            number(wave.partitions),
            size(wave.work.bytes),
            "never" if pace.feasible is False else time(pace.seconds),
        )
        for n, (wave, pace) in enumerate(found.each, 1)
    ]
    partitions, carried = (
        sum(sums) for sums in zip(*((w.partitions, w.work.bytes) for w, _ in found.each), strict=True)
    )
    last = ("", "Sum", "", number(partitions), size(carried), time(found.seconds))
    yield table(("wave#", "first", "last", "partitions#", "bytes#", "time#"), rows[:_ROWS], last=last)
    if len(rows) > _ROWS:
        yield note(f"The first {_ROWS} of {len(rows)} waves; the sum is of all.")
