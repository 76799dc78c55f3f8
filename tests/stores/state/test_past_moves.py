"""The file of past moves and the file of estimates: kept as a whole, private, bounded, and never in the way."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Refused
from kquota.measure import ByteRate
from kquota.pace.past_moves import ExpectedMove, KeptEstimate, PastMove, PastMoves
from kquota.stores.state.past_moves import PastMovesFile, past_moves
from kquota.stores.state.runs import RunFiles

BEGAN = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
ESTIMATE = KeptEstimate(plan="0123456789ab", throttle=ByteRate(5_000_000), expected=61.5, at=BEGAN)
seconds = st.floats(1e-3, 1e9)
moments = st.integers(0, 10**9).map(lambda n: BEGAN + timedelta(milliseconds=n))
rates = st.integers(1, 2**62).map(ByteRate)
MOVING = st.builds(
    ExpectedMove, run=st.text(max_size=5), started=moments, throttle=rates, expected=seconds, seen_moving=moments
)
ENDED = st.builds(
    PastMove,
    run=st.text(max_size=5),
    started=moments,
    throttle=rates,
    expected=seconds,
    at_least=st.floats(0, 1e9),
    at_most=seconds,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@given(st.builds(PastMoves, under_way=st.lists(MOVING).map(tuple), ended=st.lists(ENDED).map(tuple)))
def test_moves_are_read_as_they_were_written(folder: Path, moves: PastMoves) -> None:
    PastMovesFile(folder, "cluster").keep(moves)
    assert PastMovesFile(folder, "cluster").recall() == moves
    assert (folder / "cluster" / "past_moves.json").stat().st_mode & 0o777 == 0o600


def test_the_newest_estimate_of_a_plan_and_a_throttle_stays(tmp_path: Path) -> None:
    file = PastMovesFile(tmp_path, "cluster")
    others = [KeptEstimate(plan=f"{n:012x}", throttle=ByteRate(1), expected=1.0, at=BEGAN) for n in range(60)]
    for each in (ESTIMATE, *others):
        file.keep_estimate(each)
    assert file.estimates() == tuple(others[-50:])
    file.keep_estimate(ESTIMATE)
    newer = KeptEstimate(plan=ESTIMATE.plan, throttle=ESTIMATE.throttle, expected=70.0, at=BEGAN)
    faster = KeptEstimate(plan=ESTIMATE.plan, throttle=ByteRate(6_000_000), expected=50.0, at=BEGAN)
    file.keep_estimate(newer)
    file.keep_estimate(faster)
    assert file.estimates() == (*others[-48:], newer, faster)


MOVE = {"run": "a", "started": "2026-03-01T12:30:00+00:00", "throttle": 5, "expected_seconds": 1.5}
LOOKS = {"at_least_seconds": 1.0, "at_most_seconds": 2.0}
DAMAGED = {
    "empty": "",
    "truncated": '{"version": 1, "ended": [',
    "not an object": "[]",
    "newer": json.dumps({"version": 2, "ended": [{**MOVE, **LOOKS}]}),
    "no list": '{"version": 1, "ended": 7}',
    "a text as an item": '{"version": 1, "ended": ["a"]}',
    "a missing key": json.dumps({"version": 1, "ended": [MOVE]}),
    "a time of 0": json.dumps({"version": 1, "ended": [{**MOVE, **LOOKS, "expected_seconds": 0}]}),
    "a negative time": json.dumps({"version": 1, "ended": [{**MOVE, **LOOKS, "at_least_seconds": -1}]}),
    "a text as a time": json.dumps({"version": 1, "ended": [{**MOVE, **LOOKS, "at_most_seconds": "2"}]}),
    "not a number": '{"version": 1, "ended": [' + json.dumps({**MOVE, **LOOKS}).replace("2.0", "NaN") + "]}",
    "no time zone": json.dumps({"version": 1, "ended": [{**MOVE, **LOOKS, "started": "2026-03-01T12:30:00"}]}),
}


def test_an_undamaged_file_has_a_move(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "past_moves.json").write_text(json.dumps({"version": 1, "ended": [{**MOVE, **LOOKS}]}))
    assert len(PastMovesFile(tmp_path, "cluster").recall().ended) == 1


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_counts_as_empty(text: str, tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    for name in ("past_moves.json", "estimates.json"):
        (tmp_path / "cluster" / name).write_text(text)
    assert PastMovesFile(tmp_path, "cluster").recall() == PastMoves()
    assert PastMovesFile(tmp_path, "cluster").estimates() == ()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster").write_text("a file")
    with pytest.raises(Refused, match=r"past_moves\.json: cannot be written"):
        PastMovesFile(tmp_path, "cluster").keep(PastMoves())


@pytest.mark.parametrize("cluster_id", [None, "", "..", "a/b", "../x", ".a"])
def test_a_cluster_without_a_valid_id_has_no_past(cluster_id: str | None, tmp_path: Path) -> None:
    assert past_moves(tmp_path, cluster_id) is None


@pytest.mark.parametrize("cluster_id", ["lkc_1-a", "a.b"])
def test_a_cluster_that_has_runs_has_a_past(cluster_id: str, tmp_path: Path) -> None:
    folder = RunFiles(tmp_path, cluster_id).folder
    PastMovesFile(tmp_path, cluster_id).keep_estimate(ESTIMATE)
    found = past_moves(tmp_path, cluster_id)
    assert found is not None
    assert found.estimates() == (ESTIMATE,)
    assert (folder / "estimates.json").is_file()
