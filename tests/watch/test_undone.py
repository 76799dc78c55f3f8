"""Runs that another host undoes or ends while they are watched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kquota.cli.watching.answer import answer
from kquota.reassign.plan import Plan
from kquota.reassign.recovery import backwards
from kquota.stores.record.runs import RecordedRuns
from kquota.terms import BrokerId
from kquota.watch.observation import MoveWatch
from kquota.watch.symptom import NotSubmitted
from tests.stores.record.hosts import RUN
from tests.watch.stage import MB, Watched, brokers, name

BACK = Plan(targets={name(number): brokers(1, 2) for number in range(2)})


@pytest.fixture
def stage(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def first_wave(stage: Watched, size: int = 100 * MB) -> MoveWatch:
    """Watches a run of two waves. Its first wave is running."""
    stage.topic(2, size=size)
    plan = Plan(targets={name(number): brokers(1, 3) for number in range(2)})
    stage.move({name(0): brokers(1, 3)}, throttle=5 * MB)
    stage.runs.begin(replace(RUN, plan=plan, rollback=BACK, handed_over=frozenset({name(0)})))
    return stage.watch(run=RUN.id)


def test_no_partition_of_an_ended_run_waits(stage: Watched) -> None:
    watch = first_wave(stage)
    assert stage.look(watch, 2).view.moves[0].waiting == 1
    stage.cluster.cancel(name(0))
    [run] = stage.runs.unfinished()
    stage.runs.update(replace(run, finished=stage.clock.now()))
    found = stage.look(watch, 40)
    [move] = found.view.moves
    assert (found.ended, move.waiting, move.elsewhere, move.destinations) == (True, 0, 2, ())


@pytest.mark.parametrize("seconds", [2, 40])
def test_no_partition_of_a_recreated_topic_waits(stage: Watched, seconds: int) -> None:
    """The next wide reading is 30 s later, but every reading notices the new topic."""
    watch = first_wave(stage)
    [run] = stage.runs.unfinished()
    stage.runs.update(replace(run, topic_ids={"orders": "orders"}))
    watch = stage.watch(run=RUN.id)
    assert stage.look(watch, 2).view.moves[0].waiting == 1
    stage.cluster.cancel(name(0))
    stage.cluster.topic_ids["orders"] = "another"
    found = stage.look(watch, seconds)
    [move] = found.view.moves
    assert (found.ended, move.waiting, move.elsewhere) == (True, 0, 2)
    assert not any(isinstance(symptom, NotSubmitted) for symptom in found.symptoms)
    assert stage.look(stage.watch(), 0).view.moves[0].waiting == 0


def test_a_run_whose_record_cannot_be_read_any_more_has_not_ended(
    stage: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = first_wave(stage)
    stage.look(watch, 2)
    monkeypatch.setattr(RecordedRuns, "unfinished", lambda _: ())
    monkeypatch.setattr(RecordedRuns, "unreadable", (RUN.id,))
    found = stage.look(watch, 40)
    [move] = found.view.moves
    assert (found.ended, move.open, move.waiting) == (False, True, 1)


def test_a_cancelled_copy_is_no_copy_of_the_undo(stage: Watched) -> None:
    watch = first_wave(stage)
    stage.look(watch, 2)
    stage.cluster.cancel(name(0))
    [run] = stage.runs.unfinished()
    stage.runs.update(replace(backwards(run), handed_over=frozenset(BACK.targets)))
    found = stage.look(watch, 40)
    [move] = found.view.moves
    assert (found.ended, move.done, move.copied, move.destinations) == (True, 2, 0, ())


def test_the_drift_of_an_undo_is_not_measured_from_the_end_of_the_move(stage: Watched) -> None:
    watch = first_wave(stage, size=600 * MB)
    stage.cluster.finish(name(0))
    del stage.cluster.sizes[name(0), BrokerId(2)]
    stage.move({name(1): brokers(1, 3)}, throttle=5 * MB)
    [run] = stage.runs.unfinished()
    stage.runs.update(replace(run, handed_over=frozenset(BACK.targets)))
    assert stage.look(watch, 60).view.moves[0].drift == pytest.approx(0, abs=5)
    stage.cluster.cancel(name(1))
    stage.move({name(0): brokers(1, 2)}, throttle=5 * MB)
    [run] = stage.runs.unfinished()
    stage.runs.update(replace(backwards(run), handed_over=frozenset(BACK.targets)))
    [move] = stage.look(watch, 40).view.moves
    assert move.moving == 1
    assert move.drift == pytest.approx(0, abs=5)


@pytest.mark.parametrize("began", ["after the first run", "during the first run"])
def test_a_later_run_of_the_same_partitions_counts_their_copies_alone(stage: Watched, began: str) -> None:
    first_wave(stage, size=1000 * MB)
    watch = stage.watch()
    stage.look(watch, 2)
    stage.cluster.cancel(name(0))
    [run] = stage.runs.unfinished()
    if began == "during the first run":  # with --force
        stage.runs.begin(replace(run, id="20260301T124000Z-0123456789ab"))
        stage.look(watch, 40)
    stage.runs.update(replace(run, finished=stage.clock.now()))
    stage.look(watch, 40)
    stage.move({name(0): brokers(1, 3)}, throttle=5 * MB)
    if began == "after the first run":
        stage.runs.begin(replace(run, id="20260301T124000Z-0123456789ab"))
    stage.look(watch, 60)
    found = stage.look(watch, 60)
    old, new = found.view.moves
    assert (old.moving, old.destinations, new.moving, old.ended) == (0, (), 1, True)
    [leader, _] = found.view.brokers
    assert leader.sent == pytest.approx(5 * MB, rel=0.05)
    shown = answer(found, None)
    assert [move.run for move in shown.moves] == [new.run]
    assert run.id not in "\n".join(shown.text())
