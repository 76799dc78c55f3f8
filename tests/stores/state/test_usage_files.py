"""The folder of usage snapshots: its days and files, and the time that each reading covers."""

from __future__ import annotations

import gzip
import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kquota.errors import Invalid, Refused
from kquota.quota.usage import BucketUse, QuotaBucket
from kquota.stores.state.usage_files import add, found
from kquota.terms import PRODUCER_BYTE_RATE

MIDNIGHT = datetime(2026, 11, 24, tzinfo=UTC)
BUCKET = QuotaBucket(key=PRODUCER_BYTE_RATE, user=None, client_id="a\nb")
READING = [
    (BUCKET, BucketUse(broker="1", used=1.5, throttle_ms=20.0)),
    (BUCKET, BucketUse(broker="2", used=None)),
]


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_a_reading_is_a_file_in_the_folder_of_its_day(tmp_path: Path) -> None:
    path, count = add(tmp_path / "new", "a/b", MIDNIGHT, READING)
    assert path is not None
    assert (path.relative_to(tmp_path).as_posix(), count) == ("new/date=2026-11-24/a_b-20261124T000000Z.jsonl.gz", 1)
    assert rows(path) == [
        {
            "version": 1,
            "cluster": "a/b",
            "time": "2026-11-24T00:00:00Z",
            "seconds": 10,
            "key": PRODUCER_BYTE_RATE,
            "user": None,
            "client_id": "a\nb",
            "broker": "1",
            "used": 1.5,
            "throttle_ms": 20.0,
            "tokens": None,
        }
    ]


GAPS = {"a minute": (60, 60), "over midnight": (-60, 60), "a gap": (7_200, 3_600)}


@pytest.mark.parametrize(("after", "seconds"), GAPS.values(), ids=GAPS)
def test_a_reading_covers_the_time_since_the_one_before(tmp_path: Path, after: float, seconds: int) -> None:
    first, second = sorted([MIDNIGHT, MIDNIGHT + timedelta(seconds=after)])
    add(tmp_path, "c", first, READING)
    add(tmp_path, "other", first + timedelta(seconds=abs(after) / 2), READING)
    (tmp_path / f"date={first:%Y-%m-%d}" / "c-not-a-time.jsonl.gz").touch()
    path, _ = add(tmp_path, "c", second, READING)
    assert path is not None
    assert rows(path)[0]["seconds"] == seconds


def test_the_partial_file_of_a_killed_reading_is_removed_on_the_next_day(tmp_path: Path) -> None:
    add(tmp_path, "c", MIDNIGHT, READING)
    partial = tmp_path / "date=2026-11-24" / ".0123456789abcdef.unfinished"
    partial.touch()
    add(tmp_path, "c", MIDNIGHT + timedelta(hours=23), READING)
    assert partial.exists(), "another process may still write it"
    os.utime(partial, (time.time() - 25 * 3600,) * 2)
    add(tmp_path, "c", MIDNIGHT + timedelta(hours=25), READING)
    assert not partial.exists()


def test_a_day_that_cannot_be_read_is_not_left_out(tmp_path: Path) -> None:
    add(tmp_path, "c", MIDNIGHT, READING)
    assert len(found([tmp_path]).waiting) == 1
    (tmp_path / "date=2026-11-25").touch()
    with pytest.raises(Invalid, match="date=2026-11-25: cannot be read: Not a directory"):
        found([tmp_path])


def test_a_reading_without_a_use_has_no_file(tmp_path: Path) -> None:
    assert add(tmp_path, "c", MIDNIGHT, READING[1:]) == (None, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_second_reading_in_one_second_is_refused(tmp_path: Path) -> None:
    add(tmp_path, "c", MIDNIGHT, READING)
    with pytest.raises(Refused, match="at most one snapshot per second"):
        add(tmp_path, "c", MIDNIGHT, READING)
