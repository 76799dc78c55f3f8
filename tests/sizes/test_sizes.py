"""A snapshot's lines contain the log dirs that brokers report. A write rate is never guessed."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kquota import durable
from kquota.errors import Incomplete, Invalid, Refused
from kquota.sizes.growth import write_rates
from kquota.sizes.replica import LogDir, Replica, hidden
from kquota.sizes.snapshot import lines, log_dirs
from kquota.stores.state.history import write_snapshot
from kquota.terms import BrokerId, TopicPartition

TIME = datetime(2026, 11, 21, 1, 2, 3, 999, tzinfo=UTC)
ONE, TWO = BrokerId(1), BrokerId(2)
T0, T10 = TopicPartition("t-x", 0), TopicPartition("t-x", 10)
DIRS = [
    LogDir(
        broker=TWO, rack=None, path="/b", error="KafkaStorage (56)", volume_total=None, volume_usable=None, replicas=()
    ),
    LogDir(
        broker=ONE,
        rack="r1",
        path="/a",
        error=None,
        volume_total=100,
        volume_usable=0,
        replicas=(
            Replica(partition=T10, size=7, offset_lag=0, future=True),
            Replica(
                partition=T0,
                size=5,
                offset_lag=1,
                future=False,
                start_offset=4,
                local_start_offset=6,
                end_offset=9,
                leader=True,
                in_sync=True,
            ),
        ),
    ),
]


def test_a_log_dir_that_its_broker_does_not_describe_is_reported() -> None:
    assert list(hidden(DIRS)) == [
        "broker 2 cannot read log dir /b (KafkaStorage (56)), so the replicas in it are unknown"
    ]


def test_a_snapshot_is_read_back_unchanged() -> None:
    """Except for data that its lines do not contain: offset lags, and log dirs without a replica."""
    written = lines("id", TIME, DIRS)
    (found,) = log_dirs(written, "a snapshot")
    assert (found.broker, found.rack, found.path, found.volume_total, found.volume_usable) == (ONE, "r1", "/a", 100, 0)
    assert [r._replace(offset_lag=0) for r in sorted(DIRS[1].replicas, key=lambda r: r.partition)] == list(
        found.replicas
    )


def test_a_snapshots_lines() -> None:
    first, second = map(json.loads, lines("c", TIME, DIRS))
    assert first == {
        "version": 2,
        "cluster": "c",
        "time": "2026-11-21T01:02:03Z",
        "broker": 1,
        "rack": "r1",
        "log_dir": "/a",
        "topic": "t-x",
        "partition": 0,
        "size": 5,
        "start_offset": 4,
        "local_start_offset": 6,
        "end_offset": 9,
        "future": False,
        "leader": True,
        "in_sync": True,
        "volume_total": 100,
        "volume_usable": 0,
    }
    assert (second["partition"], second["future"], second["leader"], second["end_offset"]) == (10, True, None, None)


@pytest.mark.parametrize("version", [1, 3])
def test_another_version_of_a_snapshot_is_refused(version: int) -> None:
    row = json.loads(next(iter(lines("c", TIME, DIRS))))
    with pytest.raises(
        Invalid, match=rf"a snapshot: unknown version {version}. Use the version of kquota that wrote the file"
    ):
        log_dirs([json.dumps(row | {"version": version})], "a snapshot")


class TestSnapshotFile:
    def test_a_snapshot_is_complete_and_named_by_cluster_and_time(self, tmp_path: Path) -> None:
        path = write_snapshot(tmp_path / "new" / "folder", "-a/b_C", TIME, ["1", "2"])
        assert path.name == "-a_b_C-20261121T010203Z.jsonl.gz"
        assert gzip.decompress(path.read_bytes()) == b"1\n2\n"
        assert [path] == list(path.parent.iterdir())

    def test_a_snapshot_is_not_written_twice(self, tmp_path: Path) -> None:
        path = write_snapshot(tmp_path, "c", TIME, ["1"])
        with pytest.raises(Refused, match="already exists"):
            write_snapshot(tmp_path, "c", TIME, ["2"])
        assert gzip.decompress(path.read_bytes()) == b"1\n"

    def test_a_failed_snapshot_leaves_no_file(self, tmp_path: Path) -> None:
        def broken() -> object:
            yield "1"
            raise OSError(28, "No space left on device")

        with pytest.raises(Refused, match="No space left"):
            write_snapshot(tmp_path, "c", TIME, broken())  # type: ignore[arg-type]
        assert list(tmp_path.iterdir()) == []

    def test_a_snapshot_that_may_not_survive_a_power_failure(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def sync(folder: Path) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(durable, "sync", sync)
        with pytest.raises(Incomplete, match=r"was saved, but .+ could not be synced \(Input/output error\)") as error:
            write_snapshot(tmp_path, "c", TIME, ["1"])
        assert error.value.done == tuple(map(str, tmp_path.iterdir()))

    def test_a_folder_that_cannot_be_created(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(Invalid, match="the folder cannot be created"):
            write_snapshot(tmp_path / "file" / "folder", "c", TIME, [])


def led(
    size: int, start: int, end: int, *, local: int | None = None, broker: BrokerId = ONE, in_sync: bool = True
) -> list[LogDir]:
    """A reading of t-x-0 on 1 and 2, led by `broker`. The other replica has the same log and does not report its start.

    The size is that of the offsets from `local`; None is the whole log. A future replica of the leader is next to it,
    and is not counted.
    """
    at = start if local is None else local
    log = Replica(partition=T0, size=size, offset_lag=0, future=False, local_start_offset=at, end_offset=end)
    leader = log._replace(start_offset=start, leader=True, in_sync=True)
    follower = log._replace(leader=False, in_sync=in_sync)
    future = leader._replace(size=1, future=True)
    return [
        replace(DIRS[1], broker=one, replicas=(leader, future) if one == broker else (follower,)) for one in (ONE, TWO)
    ]


def _without_local(log_dirs: list[LogDir]) -> list[LogDir]:
    return [
        replace(found, replicas=tuple(one._replace(local_start_offset=None) for one in found.replicas))
        for found in log_dirs
    ]


RATES: dict[str, tuple[list[LogDir], list[LogDir], float | None]] = {
    "grows by small records after big ones": (led(10_000, 0, 100), led(10_500, 0, 150), 250.0),
    "grows and is cut: the mean of what is there": (led(10_000, 0, 100), led(10_000, 50, 150), 2_500.0),
    "still": (led(10_000, 0, 100), led(10_000, 0, 100), 0.0),
    "was truncated": (led(10_000, 0, 100), led(5_000, 0, 50), None),
    "all was cut": (led(10_000, 0, 100), led(0, 150, 150), None),
    "another leads now, with the same log": (led(10_000, 0, 100), led(15_000, 0, 150, broker=TWO), 2_500.0),
    "one leads now that was catching up": (led(10, 0, 100, in_sync=False), led(15_000, 0, 150, broker=TWO), None),
    "made meanwhile": ([], led(15_000, 0, 150), None),
    "tiered, and local segments are deleted": (led(8_000, 0, 1_000, local=920), led(8_000, 0, 1_050, local=970), 2_500),
    "tiered, and remote ones, too": (led(8_000, 10, 1_000, local=920), led(8_000, 90, 1_050, local=970), 2_500),
    "tiered, only remote segments are deleted": (
        led(8_000, 10, 1_000, local=920),
        led(8_600, 90, 1_050, local=920),
        300,
    ),
    "unknown start of the local log": (led(10, 0, 1), _without_local(led(1_000, 0, 100)), None),
}


@pytest.mark.parametrize(("first", "second", "rate"), RATES.values(), ids=RATES)
def test_a_write_rate(first: list[LogDir], second: list[LogDir], rate: float | None) -> None:
    assert write_rates(first, second, 2.0) == {T0: rate}


def test_no_rate_without_a_leader() -> None:
    assert write_rates(led(10, 0, 1), [], 2.0) == {}
