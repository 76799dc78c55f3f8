"""The exit code of --verify while moves of the run were never started."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kquota.cli.contract import FAILED, NOT_YET
from kquota.cli.reassign_partitions import remarks
from kquota.cli.reassign_partitions.verification import verified
from kquota.measure import ByteRate
from kquota.reassign.execution import carry_out
from kquota.reassign.log_dirs import LogDirState, LogDirStatus, ReplicaLogDirs
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import MoveRequest, prepare, prepare_again
from kquota.reassign.progress import Progress
from kquota.reassign.recovery import Recovery, backwards, recover
from kquota.reassign.wave import MoveLimits
from kquota.terms import THROTTLE_LISTS, BrokerId
from tests.reassign.fake import Ticks
from tests.reassign.stage import PLAN, T0, T1, World, b

pytestmark = pytest.mark.unit


def test_an_aborted_run_that_was_killed_before_it_submitted_has_failed(world: World) -> None:
    """The partition still has the replicas of the plan, but the run has to move it back."""
    world.execute()
    world.cluster.finish(T0)
    (run,) = world.runs.unfinished()
    world.runs.update(backwards(run))
    found = world.verify()
    assert (found.verdict, found.waiting) == (Progress.DONE, (T0,))
    assert any("1 move of run" in line and "has not started" in line for line in remarks.of_verification(found))
    assert verified(found).code == FAILED


def test_a_later_wave_that_waits_for_running_moves_has_not_failed(world: World) -> None:
    def die(_: float) -> None:
        raise KeyboardInterrupt

    plan = Plan(targets={T0: b(1, 3), T1: b(1, 3)})
    world.clock = Ticks(die)
    asked = MoveRequest(throttle=ByteRate(1000), limits=MoveLimits(partitions=1))
    with pytest.raises(KeyboardInterrupt):
        carry_out(prepare(world.ports, plan, asked))
    found = world.verify(plan)
    assert found.waiting == (T1,)
    assert verified(found).code == NOT_YET


def test_the_rollback_plan_of_an_abort_that_has_not_moved_back_is_not_undone(world: World) -> None:
    world.execute()
    world.cluster.finish(T0)
    (run,) = world.runs.unfinished()
    world.runs.update(backwards(run))
    found = world.verify(run.rollback)
    assert (found.verdict, found.undone) == (Progress.ELSEWHERE, None)


@pytest.mark.parametrize(("ours", "state"), [(False, "unknown"), (True, "not restored yet")])
def test_only_a_value_that_kquota_set_is_not_restored_yet(world: World, ours: bool, state: str) -> None:
    if ours:
        world.execute()
        world.cluster.finish(T0)
    world.cluster.undescribed.add("t")
    lines = list(remarks.of_verification(world.verify()))
    want = [f"warning: topic t {key} is {state} (could not be read). " for key in sorted(THROTTLE_LISTS)]
    assert [line.partition("Run ")[0] for line in lines if "could not be read" in line] == want


@pytest.mark.parametrize("undoing", [False, True], ids=["a move", "a rollback"])
def test_a_deleted_partition_has_nothing_left_to_move(world: World, undoing: bool) -> None:
    del world.cluster.partitions[T0]
    found = replace(world.verify(), unrecorded=False)
    (line,) = remarks.of_verification(found, undoing=undoing)
    ended = "rollback has ended, but 0 of 1 partition has the replicas from before the move"
    if not undoing:
        ended = "moves have ended, but 0 of 1 partition has the replicas of the plan"
    absent = "1 partition does not exist: t-0"
    assert line == f"error: the {ended} ({absent}). If you have deleted it, nothing is left to move"


def test_a_deleted_partition_does_not_hide_a_replica_in_the_wrong_log_dir(world: World) -> None:
    plan = Plan(targets={T0: b(1, 3), T1: world.cluster.partitions[T1].replicas})
    del world.cluster.partitions[T0]
    elsewhere = LogDirStatus(
        partition=T1,
        broker=BrokerId(1),
        state=LogDirState.CANCELLED,
        progress=Progress.ELSEWHERE,
        place=ReplicaLogDirs(current="/data/a", future=None),
        target="/data/b",
    )
    found = replace(world.verify(plan), unrecorded=False, log_dirs=(elsewhere,))
    (line,) = remarks.of_verification(found)
    assert line.endswith("does not exist: t-0). Remove the missing partitions from the plan, and execute it again")


def undone(world: World, plan: Plan) -> Recovery:
    """The whole plan is moved and taken back, and broker 2 leads its partitions since then."""
    world.execute(plan)
    for name in plan.targets:
        world.cluster.finish(name)
    (run,) = world.runs.unfinished()
    for _ in range(2):
        back = backwards(run)
        prepared = prepare_again(world.ports, back)
        done = recover(back, prepared, lambda _: None)
        for name in plan.targets:
            world.cluster.finish(name)
            world.cluster.partitions[name] = replace(world.cluster.partitions[name], leader=BrokerId(2))
    return done


def leaders_line(found: list[str]) -> str:
    return next((line for line in found if "not led by" in line), "")


def test_an_undone_run_names_the_command_that_elects_the_leaders_from_before(world: World) -> None:
    found = undone(world, PLAN).verification
    assert (found.verdict, found.led_by_others) == (Progress.DONE, (T0,))
    line = leaders_line(list(remarks.of_verification(found, undoing=True)))
    assert line.startswith("note: 1 partition is not led by its preferred leader (t-0). Elect the preferred leader: ")
    assert "`kquota leader-election " in line
    assert line.endswith(" --election-type preferred --topic t --partition 0`")
    assert leaders_line(list(remarks.of_verification(found))) == ""


def test_verify_of_the_plan_also_names_this_command(world: World) -> None:
    plan = Plan(targets={T0: b(1, 3), T1: b(1, 3)})
    undone(world, plan)
    found = world.verify(plan)
    assert found.undone is not None
    file, pipe = world.folder / "plan.json", world.folder / "pipe"
    file.touch()
    os.mkfifo(pipe)
    line = leaders_line(list(remarks.of_verification(found, plan=file)))
    assert line.endswith(f" --path-to-json-file {file} --batch 50`")
    for source in (None, Path("-"), pipe, Path("/dev/stdin")):
        line = leaders_line(list(remarks.of_verification(found, plan=source)))
        assert line.endswith(" --all-topic-partitions --batch 50`")


def test_a_preferred_leader_that_cannot_be_elected_is_not_named(world: World) -> None:
    undone(world, PLAN)
    world.cluster.alive.discard(BrokerId(1))
    assert world.verify().led_by_others == ()
    world.cluster.alive.add(BrokerId(1))
    world.cluster.partitions[T0] = replace(world.cluster.partitions[T0], isr=b(2))
    assert world.verify().led_by_others == ()
