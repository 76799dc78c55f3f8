"""Past moves: two bounds of each actual time, and the band that an estimate calculates from them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.measure import ByteRate
from kquota.pace.past_moves import ENOUGH, MOST_KEPT, MOST_USED, ExpectedMove, PastMove, PastMoves, _quantile, learned

BEGAN = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def under_way(run: str = "a", expected: float = 100.0) -> ExpectedMove:
    return ExpectedMove(run=run, started=BEGAN, throttle=ByteRate(5), expected=expected, seen_moving=BEGAN)


def past(at_least: float, at_most: float | None = None, expected: float = 100.0) -> PastMove:
    most = at_least if at_most is None else at_most
    return PastMove(run="a", started=BEGAN, throttle=ByteRate(5), expected=expected, at_least=at_least, at_most=most)


def test_the_end_of_a_move_is_between_two_looks() -> None:
    moves = PastMoves().with_start(under_way()).with_start(under_way("b"))
    moves = moves.seen_moving("a", at(60)).seen_moving("a", at(90)).seen_ended("a", at(95))
    assert moves.under_way == (under_way("b"),)
    assert moves.ended == (past(90, 95),)
    assert moves.certain == moves.ended


def test_a_move_that_was_never_seen_moving_has_no_lower_bound_and_is_not_used() -> None:
    moves = PastMoves().with_start(under_way()).seen_ended("a", at(4000))
    assert moves.ended == (past(0, 4000),)
    assert moves.certain == ()


FORGOTTEN = {
    "its throttle changed": lambda moves: moves.without("a"),
    "the clock went back before its start": lambda moves: moves.seen_ended("a", at(-5)),
    "the clock went back before a look": lambda moves: moves.seen_moving("a", at(50)).seen_ended("a", at(40)),
}


@pytest.mark.parametrize("what", FORGOTTEN)
def test_a_move_without_a_certain_time_is_forgotten(what: str) -> None:
    assert FORGOTTEN[what](PastMoves().with_start(under_way())) == PastMoves()


def test_the_end_of_another_run_changes_nothing() -> None:
    moves = PastMoves().with_start(under_way())
    assert moves.seen_ended("b", at(9)) == moves.seen_moving("b", at(9)) == moves.without("b") == moves


def test_the_number_of_moves_is_bounded() -> None:
    moves = PastMoves()
    for number in range(MOST_KEPT + 10):
        moves = moves.with_start(under_way(str(number)))
    assert [move.run for move in moves.under_way] == [str(n) for n in range(10, MOST_KEPT + 10)]
    for number in range(MOST_KEPT + 10):
        moves = (
            moves.with_start(under_way(str(number))).seen_moving(str(number), at(99)).seen_ended(str(number), at(99))
        )
    assert [move.run for move in moves.ended] == [str(n) for n in range(10, MOST_KEPT + 10)]
    assert moves.certain == moves.ended[-MOST_USED:]


@given(st.lists(st.floats(0.1, 500), min_size=1, max_size=8))
def test_the_bounds_of_the_actual_time_are_looks(looks: list[float]) -> None:
    """In any order of the looks, the actual time is between the latest look that saw it moving and the end."""
    moves = PastMoves().with_start(under_way())
    for look in looks:
        moves = moves.seen_moving("a", at(look))
    (ended,) = moves.seen_ended("a", at(501)).ended
    assert ended.at_least == pytest.approx(max(looks), abs=1e-5)
    assert ended.at_most == 501


def test_fewer_than_five_moves_are_not_enough() -> None:
    assert learned([past(100)] * (ENOUGH - 1)) is None
    assert learned([past(100)] * ENOUGH) is not None


# The 95th percentile of Student's t distribution, by degrees of freedom.
PERCENTILES = {4: 2.132, 5: 2.015, 9: 1.833, 14: 1.761, 29: 1.699}


@pytest.mark.parametrize(("freedom", "percentile"), PERCENTILES.items())
def test_the_percentile_is_accurate_to_two_hundredths(freedom: int, percentile: float) -> None:
    assert _quantile(freedom) == pytest.approx(percentile, abs=0.02)


factors = st.lists(st.floats(0.2, 5), min_size=ENOUGH, max_size=30)


@given(factors, st.randoms(use_true_random=False))
def test_the_order_of_past_moves_does_not_matter(found: list[float], chance: random.Random) -> None:
    mixed = [*found]
    chance.shuffle(mixed)
    one, other = learned([past(100 * f) for f in found]), learned([past(100 * f) for f in mixed])
    assert one is not None
    assert other is not None
    assert (one.low, one.high) == pytest.approx((other.low, other.high))


@given(factors, st.floats(0.01, 1000))
def test_the_length_of_moves_does_not_matter(found: list[float], scale: float) -> None:
    one = learned([past(100 * f) for f in found])
    other = learned([past(100 * f * scale, expected=100 * scale) for f in found])
    assert one is not None
    assert other is not None
    assert (one.low, one.high) == pytest.approx((other.low, other.high))


@given(factors, st.floats(0, 0.1))
def test_the_band_contains_the_expected_time_and_the_median(found: list[float], apart: float) -> None:
    band = learned([past(100 * f * (1 - apart), 100 * f) for f in found])
    assert band is not None
    assert band.moves == len(found)
    middle = sorted(found)[len(found) // 2]
    assert band.low <= 1 <= band.high
    assert band.low <= middle * (1 + 1e-9)
    assert band.high >= sorted(found)[(len(found) - 1) // 2] * (1 - 1e-9)


@given(factors, st.floats(0, 0.1))
def test_bounds_that_are_apart_never_make_the_band_narrower(found: list[float], apart: float) -> None:
    exact = learned([past(100 * f) for f in found])
    wide = learned([past(100 * f * (1 - apart), 100 * f * (1 + apart)) for f in found])
    assert exact is not None
    assert wide is not None
    assert wide.low <= exact.low * (1 + 1e-9)
    assert wide.high >= exact.high * (1 - 1e-9)


@given(st.lists(st.floats(0.97, 1.03), min_size=ENOUGH, max_size=30), st.floats(1.1, 1e6))
def test_one_disturbed_move_does_not_open_the_band(found: list[float], disturbed: float) -> None:
    band = learned([past(100 * f) for f in [*found, 100 * disturbed]])
    assert band is not None
    assert band.low > 0.7
    assert band.high < 1.4


def test_moves_that_always_take_longer_move_the_band_and_keep_the_expected_time_in_it() -> None:
    band = learned([past(130 + n) for n in range(6)])
    assert band is not None
    assert band.low == 1
    assert 1.35 < band.high < 1.5


@pytest.mark.parametrize("deviation", [0.03, 0.1, 0.3])
@pytest.mark.parametrize("moves", [5, 10, 50])
def test_the_band_holds_nine_of_ten_next_moves(moves: int, deviation: float) -> None:
    chance = random.Random(f"{moves} {deviation}")

    def errors(count: int) -> Sequence[float]:
        return [math.exp(chance.gauss(0, deviation)) for _ in range(count)]

    held = 0
    for _ in range(2000):
        band = learned([past(100 * error) for error in errors(moves)])
        assert band is not None
        held += band.low <= errors(1)[0] <= band.high
    assert 0.86 <= held / 2000 <= 0.97


def test_only_certain_moves_count() -> None:
    moves = PastMoves(ended=(past(100), past(80, 100), replace(past(100), run="b"), past(90, 100)))
    assert [move.at_least for move in moves.certain] == [100, 100, 90]
