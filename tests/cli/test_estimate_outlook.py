"""The text and the JSON of `move estimate` about uncertainty, disks and waves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kquota.cli.move.estimate.answer import ahead
from kquota.cli.move.estimate.outlook import Outlook, band_line, disk_lines, warnings, wave_lines, why_full
from kquota.measure import ByteRate
from kquota.pace.disk_space import VolumeSpace
from kquota.pace.share import pace
from kquota.pace.uncertainty import Band
from kquota.pace.waves import Wave, in_waves
from kquota.pace.work import Link, work

GB = 10**9
NOTHING = Outlook(band=None, at_peak=(), volumes=(), rooms=(), waves=None)


def room(
    usable: int | None,
    written: float | None = 0.0,
    *,
    broker: int = 3,
    log_dir: str | None = None,
    apart: int | None = None,
) -> VolumeSpace:
    """100 GB arrive. `apart` is the usable space if log dirs with the same figures are separate volumes."""
    all_told = usable if apart is None else apart
    return VolumeSpace(
        broker=broker,
        log_dir=log_dir,
        usable=usable,
        arriving=100 * GB,
        written=written,
        apart=None if all_told is None else all_told - 100 * GB,
    )


def outlook_with(*rooms: VolumeSpace) -> Outlook:
    return replace(NOTHING, rooms=rooms)


BANDS: dict[str, tuple[Band | None, str | None]] = {
    "no time expected": (None, None),
    "the model's own": (
        Band(low=90, high=110, writes=False),
        "90% band     90 s to 110 s (only the error of the model, because the percentiles of the write rates are "
        "unknown)",
    ),
    "with traffic": (
        Band(low=3600, high=7200, writes=True),
        "90% band     1 h 00 min to 2 h 00 min (error of the model, and write rates from their 5th to their 95th "
        "percentile)",
    ),
    "open": (
        Band(low=3600, high=None, writes=True),
        "90% band     at least 1 h 00 min. At the 95th percentile of the write rates, the move never finishes (error "
        "of the model, and write rates from their 5th to their 95th percentile)",
    ),
    "of past moves": (
        Band(low=90, high=110, writes=True, past_moves=7),
        "90% band     90 s to 110 s (errors of 7 past moves of this cluster, and write rates from their 5th to their "
        "95th percentile)",
    ),
    "with unused quota": (
        Band(low=0.5, high=110, writes=False, past_moves=5, unused_quota=True),
        "90% band     0.5 s to 110 s (only the errors of 5 past moves of this cluster, because the percentiles of the "
        "write rates are unknown; a throttle is already set on a broker, so copies may use its unused quota at the "
        "start)",
    ),
}


@pytest.mark.parametrize(("band", "line"), BANDS.values(), ids=BANDS)
def test_the_band(band: Band | None, line: str | None) -> None:
    assert band_line(replace(NOTHING, band=band)) == line


DISKS: dict[str, tuple[Sequence[VolumeSpace], str]] = {
    "nothing arrives": ((), ""),
    "unknown": (
        (room(None), room(None, broker=4)),
        "Disk         not checked on brokers 3,4, because the source of sizes has no disk sizes",
    ),
    "told": (
        (room(150 * GB, 20e9), room(110 * GB, 20e9, broker=4, log_dir="/d1"), room(90 * GB, None, broker=5)),
        "Disk         at the end of the move, with old and new replicas\n"
        "  broker  log dir      usable    copies    written      left\n"
        "       3           150 GB  100 GB    20 GB             30 GB\n"
        "       4  /d1      110 GB  100 GB    20 GB  10 GB short\n"
        "       5            90 GB  100 GB  unknown  10 GB short",
    ),
}


@pytest.mark.parametrize(("rooms", "text"), DISKS.values(), ids=DISKS)
def test_the_disks(rooms: Sequence[VolumeSpace], text: str) -> None:
    found = "\n".join(disk_lines(outlook_with(*rooms)))
    assert [line.split() for line in found.splitlines()] == [line.split() for line in text.splitlines()]


def test_only_copies_that_cannot_fit_are_refused() -> None:
    tight, short, fine = room(110 * GB, 20e9), room(90 * GB, broker=4, log_dir="/d1"), room(150 * GB, broker=5)
    found = outlook_with(tight, short, fine, replace(tight, log_dir="/d1"))
    assert found.full == (short,)
    assert why_full(found) == (
        "the copies do not fit: /d1 of broker 4 gets 100 GB (90 GB usable). A disk holds old and new replicas until "
        "the end of the move. Free disk space, or move to other brokers"
    )
    assert list(warnings(found)) == [
        "warning: broker 3: 100 GB of copies fit (110 GB usable), but not together with the 20 GB that producers write "
        "until the end of the move, unless retention deletes as much",
        "warning: /d1 of broker 3: 100 GB of copies fit (110 GB usable), but not together with the 20 GB that "
        "producers write to all log dirs of the broker until the end of the move, unless retention deletes as much",
    ]


def test_log_dirs_that_may_be_one_volume_are_a_warning() -> None:
    found = outlook_with(room(60 * GB, apart=120 * GB))
    assert found.full == ()
    assert list(warnings(found)) == [
        "warning: broker 3: 100 GB of copies do not fit if its log dirs with equal sizes are one volume (60 GB "
        "usable). They fit if each log dir is a separate volume"
    ]
    assert "40 GB short if log dirs share a volume" in "\n".join(disk_lines(found))
    assert outlook_with(room(60 * GB, apart=90 * GB)).full


def test_a_leader_whose_peak_exceeds_the_throttle_is_a_warning() -> None:
    assert list(warnings(replace(NOTHING, at_peak=(7,)))) == [
        "warning: broker 7: at the peak of its write rate (p99), the copies that it sends cannot catch up, and "
        "the move does not finish while the peak lasts"
    ]


def test_the_waves() -> None:
    part = work([Link(leader=1, destination=2, copies=5, bytes=GB, writes=0.0)], {})
    whole = pace(part, ByteRate(20_000_000))
    found = in_waves([Wave(first="t-0", last="t-4", partitions=5, work=part)] * 2, whole)
    assert "\n".join(wave_lines(found)) == (
        "Waves        2, one after the other: 113 s together\n"
        "  wave  first    last      partitions    bytes    time\n"
        "     1  t-0      t-4                5     1 GB    56 s\n"
        "     2  t-0      t-4                5     1 GB    56 s"
    )
    document = ahead(replace(NOTHING, waves=found))
    assert document["waves_seconds"] == found.seconds
    assert isinstance(document["waves"], list)
    assert document["waves"][0] == {
        "first": "t-0",
        "last": "t-4",
        "partitions": 5,
        "bytes": GB,
        "expected_seconds": whole.seconds,
        "feasible": True,
    }


def test_unknown_is_null_in_json() -> None:
    assert ahead(outlook_with(room(None, None))) == {
        "band": None,
        "never_at_peak_of": [],
        "disk": [
            {
                "broker": 3,
                "log_dir": None,
                "usable": None,
                "arriving": 100 * GB,
                "written": None,
                "left": None,
                "left_at_worst": None,
                "left_if_volumes_differ": None,
            }
        ],
        "waves": [],
        "waves_seconds": None,
    }
