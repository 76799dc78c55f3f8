"""A load is steady before it is measured, tries to exceed its quota, and has limits."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid, KquotaError, Refused
from kquota.probe import load, scratch
from kquota.probe.load import Kind, Load
from kquota.probe.preparation import prepared
from kquota.probe.verdict import Meter
from kquota.quota.capacity import Capacity
from kquota.quota.entity import Entity
from kquota.quota.explain import explain
from kquota.quota.precedence import Client
from kquota.quota_keys import Model
from kquota.simulate.delay import throughput
from kquota.terms import BrokerId

ONE = BrokerId(1)


def a_load(kind: Kind = Kind.PRODUCE, rate: float = 3e6, limit: float | None = 1e6, seconds: float = 22.0) -> Load:
    leaders = {0: ONE}
    return Load(kind=kind, topic="t", leaders=leaders, rate=rate, limit=limit, warm=load.warm(None), seconds=seconds)


BROKERS: dict[str, tuple[list[int] | None, type[KquotaError] | None, str]] = {
    "all that are alive": (None, None, ""),
    "some": ([2], None, ""),
    "none": ([], Invalid, "the list of brokers is empty. Give at least one broker"),
    "one twice": ([1, 2, 1], Invalid, "broker 1 is listed twice. List each broker once"),
    "a dead one": ([3], Refused, r"broker 3 is dead \(live brokers: 1,2\)\. Start it or leave it out"),
}


@pytest.mark.parametrize(("wanted", "kind", "complaint"), BROKERS.values(), ids=BROKERS)
def test_the_brokers_of_a_load(wanted: list[int] | None, kind: type[KquotaError] | None, complaint: str) -> None:
    alive = [BrokerId(1), BrokerId(2)]
    explained = explain({}, Capacity(brokers=None), client=Client(user="alice", client_id="billing"))
    brokers = None if wanted is None else list(map(BrokerId, wanted))
    if kind is None:
        found = prepared(Kind.PRODUCE, explained, alive, rate=1e6, brokers=brokers)
        assert list(found.leaders.values()) == (brokers or alive)
        return
    with pytest.raises(kind, match=f"^{complaint}$"):
        prepared(Kind.PRODUCE, explained, alive, rate=1e6, brokers=brokers)


LONGEST = {
    "bytes": (Kind.PRODUCE, 1e6, 22 + 22),
    "mutations until the first rejection, and then measured": (Kind.CREATE_TOPICS, 5.0, 22 + 22 + 22),
    "mutations without a quota": (Kind.CREATE_TOPICS, None, 22 + 22),
}


@pytest.mark.parametrize(("kind", "limit", "seconds"), LONGEST.values(), ids=LONGEST)
def test_the_topic_of_a_load_names_its_end(kind: Kind, limit: float | None, seconds: int) -> None:
    who = Client(user="alice", client_id="billing")
    quotas = {} if limit is None else {Entity(user="alice"): {load.KEYS[kind]: limit}}
    began = datetime.now(UTC).replace(microsecond=0)
    found = prepared(kind, explain(quotas, Capacity(brokers=None), client=who), [ONE], rate=1e6)
    assert found.longest == seconds
    ends = scratch.ends(found.topic)
    assert ends is not None
    assert ends - scratch.MARGIN - timedelta(seconds=seconds) >= began


def measured(load: Load) -> float:
    """The measured rate of a client that follows the load, by the broker's own arithmetic, in ms of one connection."""
    assert load.limit is not None
    quota, now, sent = throughput(Model.RATE, load.limit), 0, 0
    meter = Meter(starts=load.warm, ends=load.lasting)
    while now < load.lasting * 1_000:
        if sent > load.due(now / 1_000):
            now += 1
            continue
        wait = quota.record(load.batch, now)
        sent += load.batch
        meter.got(ONE, load.batch, now / 1_000)
        now += max(1, wait)
    return meter.readings([ONE])[0].rate


@given(st.floats(2e4, 1e8), st.floats(1.2, 20), st.floats(5, 60))
def test_the_rate_of_any_quota_is_measured_under_any_load(limit: float, over: float, seconds: float) -> None:
    """Without the quiet start 20 s would contain two bursts in 1.8 windows, and measure 10% more."""
    assert measured(a_load(rate=over * limit, limit=limit, seconds=seconds)) == pytest.approx(limit, rel=0.04)


@given(st.floats(1e3, 1e9), st.one_of(st.none(), st.floats(1e3, 1e9)), st.floats(0, 100), st.floats(0, 100))
def test_the_due_bytes_never_decrease_and_never_exceed_the_rate(
    rate: float, limit: float | None, one: float, other: float
) -> None:
    asked = a_load(rate=rate, limit=limit)
    early, late = sorted((one, other))
    assert 0 <= asked.due(early) <= asked.due(late) <= rate * late * (1 + 1e-9)


BOUNDS: dict[str, tuple[Load, str]] = {
    "too many bytes": (
        a_load(rate=1e9, limit=None),
        r"write 44 GB \(44000000000 bytes\), and most_bytes allows 2 GB \(2000000000 bytes\)",
    ),
    "a few bytes too many": (
        replace(a_load(rate=1e9, limit=None), most_bytes=43_999_999_999),
        r"write 44 GB \(44000000000 bytes\), and most_bytes allows 44 GB \(43999999999 bytes\)",
    ),
    "too many mutations": (a_load(Kind.CREATE_TOPICS, rate=600.0, limit=200.0), r"request 7,700 mutations .* 5,000"),
    "a quota without end": (
        a_load(Kind.CREATE_TOPICS, rate=3e308, limit=1e308),
        r"request too many mutations .* 5,000",
    ),
}


@pytest.mark.parametrize(("wanted", "why"), BOUNDS.values(), ids=BOUNDS)
def test_a_harmful_load_is_refused(wanted: Load, why: str) -> None:
    with pytest.raises(Refused, match=why):
        load.bounded(wanted)


def test_a_quota_limits_the_written_bytes() -> None:
    assert load.bounded(a_load(rate=1e9, limit=1e6))


TIMES: dict[str, tuple[float | None, float | type[KquotaError]]] = {
    "as long as it takes": (None, 22.0),
    "as given": (5.0, 5.0),
    "too short": (0.5, Invalid),
    "no time": (float("nan"), Invalid),
    "too long": (301.0, Refused),
}


@pytest.mark.parametrize(("given_", "expected"), TIMES.values(), ids=TIMES)
def test_the_duration_of_the_measurement(given_: float | None, expected: float | type[KquotaError]) -> None:
    if isinstance(expected, float):
        assert load.seconds(given_, load.warm(None)) == expected
    else:
        with pytest.raises(expected):
            load.seconds(given_, load.warm(None))


WHOLE = {"less than a window": (1, 11), "two": (22, 22), "a little more": (22.5, 33), "no more fit": (298, 298)}


@pytest.mark.parametrize(("asked", "measured_"), WHOLE.values(), ids=WHOLE)
def test_a_byte_rate_is_measured_over_whole_windows(asked: float, measured_: float) -> None:
    assert load.whole_windows(asked, load.warm(None)) == measured_


def test_the_default_rate_is_above_the_quota_and_limited() -> None:
    assert load.read_rate(1e6, 3) == 1.5e6
    assert load.read_rate(None, 2) * 2 == load.UNLIMITED_RATE
    assert load.read_rate(1e12, 4) * 4 == load.MOST_RATE
    assert [load.connections(limit) for limit in (None, 0.1, 24.9, 25, 26, 50, 1e6)] == [1, 1, 1, 2, 2, 3, 8]
