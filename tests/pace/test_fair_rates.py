"""Properties of streams that share ports, and of a throttled move that consists of them, for all numbers."""

from __future__ import annotations

import math
from collections import defaultdict
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.pace.fair_rates import MOST_STREAMS, Port, Stream, StreamEnds, busiest, rates, run

amounts = st.floats(0, 10**12, allow_subnormal=False)
routes = st.lists(st.tuples(st.integers(0, 5), st.integers(6, 11)), min_size=1, max_size=12, unique=True)
capacities = st.fixed_dictionaries({port: st.floats(1, 10**9) for port in range(12)})


@st.composite
def streams(draw: st.DrawFn) -> list[Stream]:
    return [Stream(amount=draw(amounts), ports=ports) for ports in draw(routes)]


def flow(flowing: list[Stream], capacity: dict[Port, float], at_once: float = 0.0) -> StreamEnds:
    return run(flowing, capacity, {port: rate * at_once for port, rate in capacity.items()})


@given(streams(), capacities, st.floats(0, 5))
def test_a_move_is_never_faster_than_its_busiest_port(
    flowing: list[Stream], capacity: dict[Port, float], at_once: float
) -> None:
    bounds = busiest(flowing, capacity, {port: rate * at_once for port, rate in capacity.items()})
    assert flow(flowing, capacity, at_once).end >= max(bounds.values()) * (1 - 1e-9)


def test_a_blocked_port_delays_only_its_own_streams() -> None:
    flowing = [Stream(amount=10, ports=(0, 6)), Stream(amount=10, ports=(1, 7)), Stream(amount=0, ports=(0, 6))]
    at_once: dict[Port, float] = {0: 0.0, 6: 4.0, 1: 4.0, 7: 4.0}
    assert run(flowing, dict.fromkeys(at_once, 1.0), at_once).ends == (10.0, 6.0, 0.0)


@given(st.lists(amounts, min_size=1, max_size=12), st.floats(1, 10**9), st.floats(0, 5))
def test_one_narrow_port_alone_determines_the_time(sizes: list[float], narrow: float, at_once: float) -> None:
    flowing = [Stream(amount=size, ports=("narrow", n)) for n, size in enumerate(sizes)]
    capacity: dict[Port, float] = {"narrow": narrow, **dict.fromkeys(range(len(sizes)), 10 * narrow)}
    alone = max(0.0, math.fsum(sizes) - narrow * at_once) / narrow
    assert flow(flowing, capacity, at_once).end == pytest.approx(alone, rel=1e-6, abs=1e-6)


@given(routes, capacities)
def test_no_port_is_overloaded_and_every_stream_uses_a_full_port(
    paths: list[tuple[int, int]], capacity: dict[Port, float]
) -> None:
    found = rates(dict(enumerate(paths)), capacity)
    through: defaultdict[int, float] = defaultdict(float)
    for n, ports in enumerate(paths):
        for port in ports:
            through[port] += found[n]
    assert all(rate <= capacity[port] * (1 + 1e-9) for port, rate in through.items())
    assert all(
        any(
            through[port] >= capacity[port] * (1 - 1e-9)
            and found[n] >= max(found[m] for m, others in enumerate(paths) if port in others) * (1 - 1e-9)
            for port in ports
        )
        for n, ports in enumerate(paths)
    )


@given(streams(), capacities)
def test_the_copied_bytes_equal_the_work(flowing: list[Stream], capacity: dict[Port, float]) -> None:
    """Checked step by step: the total of each port is the sum of its streams."""
    left = {n: stream.amount for n, stream in enumerate(flowing)}
    ends, now = flow(flowing, capacity).ends, 0.0
    moved: defaultdict[int, float] = defaultdict(float)
    for moment in sorted(set(ends)):
        running = {n: flowing[n].ports for n in left if ends[n] > now}
        for n, rate in rates(running, capacity).items():
            moved[n] += rate * (moment - now)
        now = moment
    for n, stream in enumerate(flowing):
        assert moved[n] == pytest.approx(stream.amount, rel=1e-6, abs=1e-3)


@given(streams(), capacities, st.randoms())
def test_the_order_does_not_matter(flowing: list[Stream], capacity: dict[Port, float], random: Random) -> None:
    shuffled = list(flowing)
    random.shuffle(shuffled)
    assert flow(shuffled, capacity).end == pytest.approx(flow(flowing, capacity).end)


@given(streams(), capacities, st.floats(1, 10))
def test_twice_as_wide_is_twice_as_fast(flowing: list[Stream], capacity: dict[Port, float], factor: float) -> None:
    wide = {port: rate * factor for port, rate in capacity.items()}
    assert flow(flowing, wide).end * factor == pytest.approx(flow(flowing, capacity).end)


def test_when_a_stream_ends_the_others_get_its_share() -> None:
    # 1 and 2 share port "in"; 2 also waits for "out", which 3 shares. By hand: 1 and 2 at 5 until 2 s, then 2 at 5 ...
    flowing = [
        Stream(amount=10, ports=("a", "in")),
        Stream(amount=40, ports=("b", "in")),
        Stream(amount=15, ports=("b", "out")),
    ]
    capacity: dict[Port, float] = {"a": 10, "b": 10, "in": 10, "out": 10}
    assert flow(flowing, capacity).ends == pytest.approx((2.0, 5.5, 3.0))


def test_many_streams_are_not_simulated() -> None:
    flowing = [Stream(amount=1, ports=(("out", n // 20), ("in", n % 20))) for n in range(MOST_STREAMS + 1)]
    capacity: dict[Port, float] = {port: 1.0 for stream in flowing for port in stream.ports}
    found = flow(flowing, capacity)
    assert (found.exact, found.end) == (False, 21)
