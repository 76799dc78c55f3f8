"""A move of a later wave waits while the checks of the first wave would refuse it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from kquota.measure import ByteRate
from kquota.reassign.execution import Execution, carry_out
from kquota.reassign.moves import Replicas
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import MoveRequest, prepare
from kquota.reassign.progress import Progress
from kquota.reassign.wave import MoveLimits
from kquota.terms import BrokerId, TopicPartition
from tests.reassign.fake import MemoryCluster, Ticks
from tests.reassign.stage import T0, T1, U0, World, b

pytestmark = pytest.mark.unit
PLAN = Plan(targets={T0: b(1, 3), T1: b(1, 4)})
LOOKS = 5


def moves_elsewhere(world: World) -> None:
    MemoryCluster.submit(world.cluster, {T1: b(2, 3)})


def move_ends(world: World) -> None:
    world.cluster.finish(T1)


def dies(world: World) -> None:
    world.cluster.alive.remove(BrokerId(4))


def starts(world: World) -> None:
    world.cluster.alive.add(BrokerId(4))


def loses_its_leader(world: World) -> None:
    world.cluster.partitions[T1] = replace(world.cluster.partitions[T1], leader=None)


def has_a_leader(world: World) -> None:
    world.cluster.partitions[T1] = replace(world.cluster.partitions[T1], leader=BrokerId(2))


def executed(
    world: World,
    begins: Callable[[World], None],
    ends: Callable[[World], None],
    plan: Plan = PLAN,
    *,
    force: bool = False,
) -> tuple[Execution, list[str], list[int]]:
    """Execute in waves of one partition. The obstacle begins when the first wave ends, and ends some looks later.

    Return the execution, the reported obstacles, and the look before which each partition was submitted.
    """
    looks, told, submitted = 0, list[str](), list[int]()

    def look(seconds: float) -> None:
        nonlocal looks
        if seconds < 1:
            return
        looks += 1
        for name in plan.targets.keys() - {T1}:
            if world.cluster.partitions[name].moving:
                world.cluster.finish(name)
        if looks == 1:
            begins(world)
        if looks == LOOKS:
            ends(world)
        assert looks < 2 * LOOKS, "the run does not end"

    class Counted(MemoryCluster):
        """Notes the submissions of kquota. Another client uses `MemoryCluster.submit`."""

        def submit(self, targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
            submitted.append(looks)
            return super().submit(targets)

    world.clock = Ticks(look)
    asked = MoveRequest(throttle=ByteRate(1000), limits=MoveLimits(partitions=1), force=force)
    world.cluster = Counted(alive=world.cluster.alive, partitions=world.cluster.partitions)
    prepared = prepare(world.ports, plan, asked)
    done = carry_out(prepared, told.append)
    return done, [line for line in told if "still to submit" not in line], submitted


@pytest.mark.parametrize(
    ("begins", "ends", "why"),
    [
        (moves_elsewhere, move_ends, "another client has started a move to 2,3"),
        (dies, starts, "broker 4 is dead"),
        (loses_its_leader, has_a_leader, "there is no leader to copy from"),
    ],
)
def test_a_move_waits_until_its_obstacle_ends(
    world: World, begins: Callable[[World], None], ends: Callable[[World], None], why: str
) -> None:
    done, told, submitted = executed(world, begins, ends)
    assert told == [f"t-1: kquota starts this move later, because {why}"]
    assert submitted == [0, LOOKS]
    assert done.started == (T0, T1)
    world.cluster.finish(T1)
    assert world.verify(PLAN).verdict is Progress.DONE
    assert (world.cluster.configs, world.open_runs()) == ({}, 0)


def test_other_moves_do_not_wait(world: World) -> None:
    plan = Plan(targets={**PLAN.targets, U0: b(1, 3)})
    done, told, submitted = executed(world, dies, starts, plan)
    assert len(told) == 1
    assert done.started == (T0, U0, T1)
    assert submitted == [0, 1, LOOKS]


def test_with_force_a_move_overrides_another_one(world: World) -> None:
    done, told, submitted = executed(world, moves_elsewhere, lambda _: None, force=True)
    assert (done.started, told, submitted) == ((T0, T1), [], [0, 1])


def test_with_force_a_move_that_overrides_another_one_waits_for_a_dead_broker(world: World) -> None:
    def elsewhere_while_dead(world: World) -> None:
        moves_elsewhere(world)
        dies(world)

    done, told, submitted = executed(world, elsewhere_while_dead, starts, force=True)
    assert told == ["t-1: kquota starts this move later, because broker 4 is dead"]
    assert (done.started, submitted) == ((T0, T1), [0, LOOKS])


def test_a_move_to_the_same_replicas_is_no_obstacle(world: World) -> None:
    def moved(world: World) -> None:
        MemoryCluster.submit(world.cluster, {T1: b(1, 4)})

    done, told, _ = executed(world, moved, move_ends)
    assert (done.started, told) == ((T0,), [])
