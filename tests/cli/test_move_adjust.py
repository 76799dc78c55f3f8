"""`move adjust` on real brokers: each throttle is in force and recorded, and the end of the run restores the first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.run import Ran, kquota
from tests.cli.test_reassign_partitions import FAST, LASTING, SLOW, Desk, rates
from tests.stores.moves_stage import OtherHand, until

pytestmark = pytest.mark.kafka
FAST_BYTES = "50000000"


@pytest.fixture(params=["4.3.1 Admin API"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(hand: OtherHand, connection: tuple[str, str], tmp_path: Path) -> Desk:
    return Desk(hand, connection, tmp_path)


def move(desk: Desk, *words: str) -> Ran:
    return kquota("move", *words, *desk.connection, "--state-dir", str(desk.folder / "state"))


@pytest.mark.parametrize(
    "words",
    [(FAST, "--reason", "night"), ("--deadline", "5s", "--min-rate", FAST, "--interval", "1s", "--reason", "night")],
    ids=["a rate", "a deadline"],
)
def test_a_running_move_gets_another_throttle(desk: Desk, words: tuple[str, ...]) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
    plan = desk.plan({(topic, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", SLOW).code == 0
    until(lambda: rates(SLOW).items() <= desk.standing(topic).items(), "the throttle stands")
    adjusted = move(desk, "adjust", *words)
    # With a deadline, the command has ended with the move, whose throttle is still set.
    assert adjusted.code == (8 if "--deadline" in words else 0), adjusted
    assert rates(FAST_BYTES).items() <= desk.standing(topic).items()
    desk.moved(topic, (1, 3))
    until(lambda: desk.run("--verify", plan).code == 0, "the run has ended")
    until(lambda: desk.standing(topic) == {}, "everything is restored")
    (run,) = json.loads(move(desk, "report", "--output", "json").out)["runs"]
    shown = json.loads(move(desk, "report", run["run"], "--output", "json").out)
    assert [(one["from"], one["to"], one["reason"]) for one in shown["changes"]] == [
        (int(SLOW), int(FAST_BYTES), "night")
    ]
