"""A plan meets other moves: those that another open run still has to submit, and the own moves of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kquota.cli.move.run.checks import must_be_the_only_move
from kquota.errors import Refused, StepFor
from kquota.measure import ByteRate
from kquota.reassign.execution import carry_out
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.port import Snapshot
from kquota.reassign.preparation import MoveRequest, prepare, prepare_again
from kquota.reassign.recovery import RunState, backwards, recover, state
from kquota.reassign.run import Run
from kquota.reassign.wave import MoveLimits
from kquota.terms import TopicPartition
from tests.reassign.fake import Ticks
from tests.reassign.stage import PLAN, T0, T1, U0, World, b

pytestmark = pytest.mark.unit
FIRST = Plan(targets={T0: b(1, 3), T1: b(1, 3), U0: b(1, 3)})


class Killed(BaseException):
    """The end of the process."""


def interrupted(world: World) -> Run:
    """A run of three partitions. kquota dies after the first wave of one partition, and this move ends."""

    def die(_: float) -> None:
        raise Killed

    asked = MoveRequest(throttle=ByteRate(1000), limits=MoveLimits(partitions=1))
    with pytest.raises(Killed):
        carry_out(prepare(replace(world.ports, clock=Ticks(on_sleep=die)), FIRST, asked))
    world.cluster.finish(T0)
    (run,) = world.runs.unfinished()
    assert run.waiting == (T1, U0)
    return run


class Hashed(TopicPartition):
    """A partition that counts how often its hash is calculated."""

    times = 0

    def __hash__(self) -> int:
        Hashed.times += 1
        return super().__hash__()


def test_the_work_for_the_state_of_a_run_grows_with_its_partitions_not_with_their_square(world: World) -> None:
    names = [Hashed("t", number) for number in range(100)]
    plan, back = (Plan(targets=dict.fromkeys(names, b(1, broker))) for broker in (3, 2))
    run = replace(interrupted(world), plan=plan, rollback=back, handed_over=frozenset(names[:1]))
    found = Snapshot(racks={}, partitions=dict.fromkeys(names, PartitionReplicas(replicas=b(1, 2))), running={})
    Hashed.times = 0
    assert state(run, found) is RunState.WAITING
    assert Hashed.times < 10 * len(names)


def test_partitions_of_a_recreated_topic_do_not_wait(world: World) -> None:
    run = interrupted(world)
    world.cluster.topic_ids |= {"t": "another", "u": "another"}
    assert state(run, world.cluster.snapshot(None)) is RunState.ENDED


@pytest.mark.parametrize("gone", ["recreated", "deleted"])
def test_a_run_without_submitted_partitions_is_not_under_way_after_a_topic_is_gone(world: World, gone: str) -> None:
    run = replace(interrupted(world), handed_over=frozenset())
    world.cluster.cancel(T0)
    if gone == "recreated":
        world.cluster.topic_ids["u"] = "another"
    else:
        del world.cluster.partitions[U0]
    assert state(run, world.cluster.snapshot(None)) is RunState.NOT_SUBMITTED


def undo(world: World, run: Run) -> None:
    back = backwards(run)
    prepared = prepare_again(world.ports, back)
    recover(back, prepared, lambda _: None)


@pytest.mark.parametrize("additional", [False, True])
@pytest.mark.parametrize(
    ("names", "met"), [((T1,), r"1 move .* submitted it yet \(t-1\)"), ((T1, U0), r"2 moves .* them yet \(t-1, u-0\)")]
)
def test_a_run_does_not_move_partitions_that_another_run_still_has_to_submit(
    world: World, names: Sequence[TopicPartition], met: str, additional: bool
) -> None:
    """The first run would later submit its moves over those of the second one."""
    first = interrupted(world)
    second = Plan(targets=dict.fromkeys(names, b(1, 4)))
    writes = world.cluster.writes
    with pytest.raises(Refused, match=rf"run {first.id}: {met}") as raised:
        world.execute(second, additional=additional)
    steps = [str(part) for part in raised.value.args if isinstance(part, StepFor)]
    assert steps == [f"resuming run {first.id}", f"aborting run {first.id}"]
    assert (world.cluster.writes, world.open_runs()) == (writes, 1)
    forced = MoveRequest(throttle=ByteRate(1000), force=True, additional=True)
    assert carry_out(prepare(world.ports, second, forced)).started == tuple(names)


@pytest.mark.parametrize("plan", [PLAN, Plan(targets={T1: b(1, 3)}), FIRST], ids=["moved", "same replicas", "own"])
def test_other_partitions_and_equal_replicas_are_no_conflict(world: World, plan: Plan) -> None:
    interrupted(world)
    prepare(world.ports, plan, MoveRequest())


def test_an_interrupted_run_can_still_be_undone(world: World) -> None:
    undo(world, interrupted(world))
    assert world.cluster.partitions[T0].target == b(1, 2)


def test_own_rollback_moves_need_no_force(world: World) -> None:
    """The operator requests the plan again while the run copies its replicas back."""
    world.execute()
    world.cluster.finish(T0)
    undo(world, world.runs.unfinished()[0])
    assert world.cluster.partitions[T0].moving
    world.execute()
    assert world.cluster.partitions[T0].target == b(1, 3)


def test_own_moves_need_no_force_when_they_are_undone(world: World) -> None:
    world.execute()
    undo(world, world.runs.unfinished()[0])
    assert world.cluster.partitions[T0].target == b(1, 2)


def test_move_run_names_the_moves_that_are_already_running(world: World) -> None:
    world.cluster.submit({U0: b(3)})
    asked = MoveRequest(throttle=ByteRate(1000), additional=True)
    prepared = prepare(world.ports, PLAN, asked)
    with pytest.raises(Refused, match=r"1 other move is running \(u-0\)\..*`kquota move watch .*--once`.*--force"):
        must_be_the_only_move(prepared)
    world.cluster.finish(U0)
    must_be_the_only_move(prepare(world.ports, PLAN, asked))


def test_move_run_continues_its_own_moves_beside_others(world: World) -> None:
    world.execute()
    world.cluster.submit({U0: b(3)})
    asked = MoveRequest(throttle=ByteRate(1000), additional=True)
    must_be_the_only_move(prepare(world.ports, PLAN, asked))
