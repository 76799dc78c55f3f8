"""The exit code of --verify while moves of the run were never started."""

from __future__ import annotations

import pytest

from kquota.cli.contract import FAILED, NOT_YET
from kquota.cli.reassign_partitions import remarks
from kquota.cli.reassign_partitions.verification import verified
from kquota.measure import ByteRate
from kquota.reassign.execution import carry_out
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import Asked, prepare
from kquota.reassign.progress import Progress
from kquota.reassign.recovery import backwards
from kquota.reassign.wave import MoveLimits
from tests.reassign.fake import Ticks
from tests.reassign.stage import T0, T1, World, b

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
    asked = Asked(throttle=ByteRate(1000), limits=MoveLimits(partitions=1))
    with pytest.raises(KeyboardInterrupt):
        carry_out(prepare(world.cluster, world.runs, world.clock, plan, asked))
    found = world.verify(plan)
    assert found.waiting == (T1,)
    assert verified(found).code == NOT_YET
