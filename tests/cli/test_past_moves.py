"""`--execute` keeps the expected time of a run, `--verify` its end, and the next estimate uses both.

The cluster is in memory, and so is the time. The files of past moves are real.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from kquota.cli.move.estimate.run import remember
from kquota.measure import ByteRate
from kquota.pace.past_moves import ErrorBand, KeptEstimate, PastMove, learned
from kquota.reassign.plan import plan_hash, read
from kquota.stores.state.past_moves import PastMovesFile
from kquota.terms import TopicPartition
from tests.cli.contracts.conftest import house as house
from tests.cli.contracts.in_memory import CLUSTER_ID, InMemory
from tests.cli.contracts.sessions import BROKER, Placement, plan
from tests.cli.pages import Case, ticket
from tests.cli.run import Ran, kquota_here

pytestmark = pytest.mark.unit
THERE: Placement = {("orders", 0): [1, 3]}
BACK: Placement = {("orders", 0): [1, 2]}
MOVED = TopicPartition("orders", 0)


@dataclass
class Moves:
    """Commands about one partition, which moves back and forth."""

    house: InMemory
    folder: Path

    @property
    def kept(self) -> PastMovesFile:
        return PastMovesFile(self.house.folder, CLUSTER_ID)

    def plan(self, where: Placement) -> str:
        return plan(self.folder, where)

    def reassign(self, where: Placement, more: str) -> Ran:
        file = self.plan(where)
        return kquota_here(*f"reassign-partitions {BROKER} --reassignment-json-file {file} {more}".split())

    def estimated(self, where: Placement, seconds: float, ago: float = 60.0) -> None:
        """The output of `move estimate` for this plan under 1 MB/s."""
        targets = plan_hash(read(Path(self.plan(where))))
        at = self.house.clock.now() - timedelta(seconds=ago)
        self.kept.keep_estimate(KeptEstimate(plan=targets, throttle=ByteRate(10**6), expected=seconds, at=at))

    def start(self, where: Placement, more: str = "--force") -> None:
        assert self.reassign(where, f"--execute --throttle 1MB/s {more}").code == 0

    def end(self, where: Placement, after: float, last_look: float) -> None:
        """The move ends after these seconds, `last_look` seconds after a look that saw it moving."""
        self.house.clock.sleep(after - last_look)
        assert self.reassign(where, "--verify").code == 8
        self.house.cluster.finish(MOVED)
        self.house.clock.sleep(last_look)
        assert self.reassign(where, "--verify").code == 0

    @property
    def ended(self) -> tuple[PastMove, ...]:
        return self.kept.recall().ended


@pytest.fixture
def moves(house: InMemory, tmp_path: Path) -> Moves:
    return Moves(house, tmp_path)


def test_five_moves_make_the_band_of_the_next_estimate(moves: Moves) -> None:
    for number, actual in enumerate((110, 115, 120, 112, 118)):
        where = (THERE, BACK)[number % 2]
        moves.estimated(where, seconds=100)
        moves.start(where)
        moves.end(where, after=actual, last_look=5)
    assert [move.expected for move in moves.ended] == [100] * 5
    assert all(move.at_least <= 120 and 110 <= move.at_most <= 125 for move in moves.ended)
    assert moves.kept.recall().under_way == ()
    band = learned(moves.kept.recall().certain)
    assert band is not None
    assert band.moves == 5
    assert 0.9 < band.low <= 1
    assert 1.15 < band.high < 1.5


def test_the_actual_time_is_between_the_two_looks(moves: Moves) -> None:
    moves.estimated(THERE, seconds=100)
    moves.start(THERE)
    moves.end(THERE, after=100, last_look=20)
    (move,) = moves.ended
    assert move.at_least <= 80 < 100 <= move.at_most
    assert not move.certain


def test_an_end_without_an_earlier_reading_has_no_lower_bound(moves: Moves) -> None:
    moves.estimated(THERE, seconds=100)
    moves.start(THERE)
    moves.house.clock.sleep(100)
    moves.house.cluster.finish(MOVED)
    moves.reassign(THERE, "--verify")
    (move,) = moves.ended
    assert move.at_least == 0
    assert move.at_most >= 100


def test_without_an_estimate_the_check_of_execute_gives_the_expected_time(moves: Moves) -> None:
    moves.start(THERE, more="")
    (move,) = moves.kept.recall().under_way
    assert move.expected > 0


def test_without_any_expected_time_nothing_is_kept(moves: Moves) -> None:
    moves.start(THERE)
    moves.end(THERE, after=100, last_look=5)
    assert not moves.kept.recall().under_way
    assert not moves.ended


def test_an_estimate_keeps_its_expected_time_for_the_next_start(moves: Moves) -> None:
    found = ticket(Case(throttle="1MB/s", writes=0.0)).answer.pace
    remember(moves.kept, read(Path(moves.plan(THERE))), found)
    (kept,) = moves.kept.estimates()
    assert (kept.throttle, kept.expected) == (10**6, found.seconds)
    assert kept.plan == plan_hash(read(Path(moves.plan(THERE))))


def test_an_estimate_of_a_move_that_never_ends_keeps_nothing(moves: Moves) -> None:
    remember(moves.kept, read(Path(moves.plan(THERE))), ticket(Case(throttle="1MB/s")).answer.pace)
    assert moves.kept.estimates() == ()


def test_the_band_of_an_estimate_is_that_of_past_moves() -> None:
    of_model = ticket(Case(writes=0.0)).answer
    past = ErrorBand(low=0.9, high=1.3, moves=6)
    answer = ticket(Case(writes=0.0), past).answer
    (before, after) = (told.outlook.band for told in (of_model, answer))
    assert before is not None
    assert after is not None
    assert (before.past_moves, after.past_moves) == (0, 6)
    assert answer.pace.seconds == of_model.pace.seconds
    assert after.high == pytest.approx((answer.pace.seconds or 0.0) * 1.3 + 1.5)


def test_an_old_estimate_and_one_of_another_plan_do_not_count(moves: Moves) -> None:
    moves.estimated(BACK, seconds=70)
    moves.estimated(THERE, seconds=100, ago=3700)
    moves.start(THERE)
    assert moves.kept.recall().under_way == ()


def test_a_continued_run_does_not_show_the_expected_time_of_its_start(moves: Moves) -> None:
    """With another throttle, that time no longer applies."""
    first = moves.reassign(THERE, "--execute --throttle 1MB/s")
    assert (first.code, first.err.count("expected time: about ")) == (0, 1)
    again = moves.reassign(THERE, "--execute --additional --throttle 2MB/s")
    assert (again.code, again.err.count("expected time")) == (0, 0)


DISTURBED: dict[str, Callable[[Moves], object]] = {
    "another throttle": lambda moves: moves.reassign(THERE, "--execute --additional --throttle 2MB/s --force"),
    "another run with the same brokers": lambda moves: moves.reassign(
        {("orders", 1): [2, 3]}, "--execute --additional --throttle 1MB/s --force"
    ),
    "cancelled": lambda moves: moves.reassign(THERE, "--cancel"),
}


@pytest.mark.parametrize("what", DISTURBED)
def test_a_move_that_was_changed_teaches_nothing(what: str, moves: Moves) -> None:
    moves.estimated(THERE, seconds=100)
    moves.start(THERE)
    moves.house.clock.sleep(50)
    assert DISTURBED[what](moves).code == 0  # type: ignore[attr-defined]
    moves.reassign(THERE, "--verify")
    moves.house.cluster.finish(MOVED)
    moves.house.clock.sleep(5)
    moves.reassign(THERE, "--verify")
    assert moves.ended == ()


def test_files_that_cannot_be_written_do_not_stop_the_move(moves: Moves) -> None:
    moves.estimated(THERE, seconds=100)
    (moves.house.folder / CLUSTER_ID / "past_moves.json").mkdir()
    ran = moves.reassign(THERE, "--execute --throttle 1MB/s --force")
    assert ran.code == 0
    assert "warning: later estimates do not use this move: " in ran.err
