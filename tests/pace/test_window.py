"""KIP-73's window IN < T < N - IN/R, with additional limits of an operator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.pace.kip73 import Bound, Window, network_bound

MB = 1_000_000.0


def above(*rates: float | None) -> tuple[Bound, ...]:
    return tuple(Bound(rate=rate, why=f"above {rate}") for rate in rates)


def below(*rates: float | None) -> tuple[Bound, ...]:
    return tuple(Bound(rate=rate, why=f"below {rate}") for rate in rates)


WINDOWS = {
    # lower limits, upper limits: the two that bind, and whether the window is empty
    "KIP-73's": ((12 * MB,), (1_246 * MB,), 12 * MB, 1_246 * MB, False),
    "the tightest bind": ((12 * MB, 33 * MB), (1_246 * MB, 375 * MB), 33 * MB, 375 * MB, False),
    "unknown bounds bind nothing": ((None, 5 * MB), (None,), 5 * MB, None, False),
    "nothing is known": ((None,), (), None, None, False),
    "a deadline too near": ((12 * MB, 400 * MB), (375 * MB,), 400 * MB, 375 * MB, True),
    "an interval of one point is open, and so empty": ((10 * MB,), (10 * MB,), 10 * MB, 10 * MB, True),
    "a network that is full without a move": ((), (-1 * MB,), None, -1 * MB, True),
}


@pytest.mark.parametrize(("low", "high", "least", "most", "empty"), WINDOWS.values(), ids=WINDOWS.keys())
def test_the_window(
    low: tuple[float | None, ...], high: tuple[float | None, ...], least: float | None, most: float | None, empty: bool
) -> None:
    window = Window(above=above(*low), below=below(*high))
    assert (window.least.rate if window.least else None) == least
    assert (window.most.rate if window.most else None) == most
    assert window.empty is empty


def test_a_deadline_and_an_impact_may_be_met_exactly() -> None:
    deadline, impact = (Bound(rate=10 * MB, why=why, closed=True) for why in ("deadline", "impact"))
    assert not Window(above=(deadline,), below=(impact,)).empty
    assert Window(above=(deadline,), below=(impact,)).broken(10 * MB) == ()
    needed = Bound(rate=10 * MB, why="needed")
    both = Window(above=(deadline, needed), below=(impact,))
    assert (both.least, both.empty, both.broken(10 * MB)) == (needed, True, (needed,))


def test_a_limit_that_does_not_bind_is_reported_and_has_no_effect() -> None:
    told = Bound(rate=12 * MB, why="IN", binds=False)
    window = Window(above=(told, *above(3 * MB)), below=below(10 * MB))
    assert (window.least, window.empty, window.broken(8 * MB)) == (window.above[1], False, ())
    assert told.kept(8 * MB, above=True) is False


def test_the_bandwidth_that_the_network_leaves() -> None:
    assert network_bound(1_250 * MB, 12 * MB, 3) == 1_246 * MB
    assert network_bound(1_250 * MB, None, 3) is None


bounds = st.lists(
    st.builds(Bound, rate=st.none() | st.sampled_from([1.0, 2.0, 3.0]), why=st.just(""), closed=st.booleans()),
    max_size=4,
)


@given(low=bounds, high=bounds, throttle=st.floats(0.5, 3.5))
def test_a_throttle_satisfies_all_limits_only_if_the_window_is_not_empty(
    low: list[Bound], high: list[Bound], throttle: float
) -> None:
    window = Window(above=tuple(low), below=tuple(high))
    if not window.broken(throttle):
        assert not window.empty
    elif window.empty:
        assert window.broken(throttle)
