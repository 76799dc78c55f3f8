"""The time of copies between the log dirs of a broker, against real moves, and its laws."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.pace.enforcement import AS_SHIPPED, Enforcement
from kquota.pace.log_dir_copy import LogDirPace, LogDirWork, log_dir_enforcement, log_dir_throttle
from kquota.terms import LOG_DIR_RATE

MB = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A real move on Kafka 4.3.1 with an empty quota window, without writes: replicas of `size` bytes, seconds."""

    copies: int
    size: int
    throttle: int
    seconds: float


MEASURED = [
    Measured(copies=1, size=30 * MB, throttle=5 * MB, seconds=7.37),
    Measured(copies=4, size=20 * MB, throttle=5 * MB, seconds=17.81),
    Measured(copies=4, size=60 * MB, throttle=10 * MB, seconds=27.84),
    Measured(copies=1, size=40 * MB, throttle=2 * MB, seconds=23.29),
    Measured(copies=20, size=2 * MB, throttle=2 * MB, seconds=21.29),
]


@pytest.mark.parametrize("real", MEASURED, ids=lambda real: f"{real.copies} x {real.size // MB} MB")
def test_real_moves_took_the_expected_time(real: Measured) -> None:
    work = LogDirWork(broker=1, copies=real.copies, bytes=real.copies * real.size, writes=0.0)
    pace = LogDirPace(work=work, throttle=real.throttle)
    assert pace.seconds == pytest.approx(real.seconds, rel=0.08)


def pace(size: int, throttle: int | None, writes: float | None) -> LogDirPace:
    return LogDirPace(work=LogDirWork(broker=1, copies=1, bytes=size, writes=writes), throttle=throttle)


CASES = {
    "unknown writes": (pace(100 * MB, MB, None), None, None, True),
    "no throttle": (pace(100 * MB, None, 5.0), True, None, False),
    "slower than its writes": (pace(100 * MB, MB, 2.0 * MB), False, None, True),
    "as fast as its writes": (pace(100 * MB, 12 * MB, 11.0 * MB), False, None, True),
    "writes slow it down": (pace(101 * MB, 12 * MB, 1.0 * MB), True, 2.0 + 89 / 10, True),
    "a throttle of 0": (pace(100 * MB, 0, 0.0), None, None, False),
    "a throttle of 0 and unknown writes": (pace(100 * MB, 0, None), None, None, False),
    "a few bytes": (pace(1, MB, 0.0), True, 2.0, True),
}


@pytest.mark.parametrize(("given_pace", "feasible", "seconds", "known"), CASES.values(), ids=CASES)
def test_the_time(given_pace: LogDirPace, feasible: bool | None, seconds: float | None, known: bool) -> None:
    assert given_pace.feasible is feasible
    assert given_pace.seconds == (None if seconds is None else pytest.approx(seconds))
    assert (given_pace.seconds_without_writes is not None) == known


@given(st.integers(0, 10**12), st.integers(1, 10**9), st.floats(0, 10**9), st.integers(1, 100), st.floats(0, 10))
def test_the_time_is_never_below_the_lower_bound_and_grows_with_writes(
    size: int, throttle: int, writes: float, window: int, backoff: float
) -> None:
    enforcement = Enforcement(window_num=window, fetch_backoff=backoff)
    work = LogDirWork(broker=1, copies=1, bytes=size, writes=writes)
    found = LogDirPace(work=work, throttle=throttle, enforcement=enforcement)
    least, quiet = found.least_seconds, found.seconds_without_writes
    assert least is not None
    assert quiet is not None
    assert quiet >= least
    assert found.feasible == (found.seconds is not None)
    assert found.seconds is None or found.seconds >= quiet


SETTINGS = {
    "as shipped": ("9223372036854775807", None),
    "limited": ("1000", 1000),
    "not reported": (None, None),
    "not a number": ("-1", None),
}


@pytest.mark.parametrize(("value", "rate"), SETTINGS.values(), ids=SETTINGS)
def test_the_throttle_of_a_broker(value: str | None, rate: int | None) -> None:
    assert log_dir_throttle({LOG_DIR_RATE: value}) == rate
    assert log_dir_throttle({}) is None


def test_the_window_of_log_dirs_is_not_that_of_replication() -> None:
    told = {
        "alter.log.dirs.replication.quota.window.num": "5",
        "alter.log.dirs.replication.quota.window.size.seconds": "2",
        "replication.quota.window.num": "11",
        "replica.fetch.backoff.ms": "500",
    }
    found = log_dir_enforcement(told)
    assert (found.window, found.fetch_backoff, found.of_brokers) == (10, 0.5, True)
    assert log_dir_enforcement({"replica.fetch.backoff.ms": "500"}) is AS_SHIPPED
