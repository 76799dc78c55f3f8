"""A recorded run that cannot be read may hold any throttle, so --verify does not report that no run holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kquota.cli.contract import NOT_YET
from kquota.cli.reassign_partitions import remarks
from kquota.cli.reassign_partitions.verification import verified
from kquota.reassign.verification import Verification, unless_it_writes, verify
from kquota.stores.record.runs import RecordedRuns
from kquota.stores.record.shared import Unshared
from kquota.stores.state.runs import RunFiles
from tests.reassign.stage import PLAN, T0, World, rate_of

pytestmark = pytest.mark.unit
RUN = "20260301T123000Z-ba9876543210"


class Damaged(Unshared):
    """A shared record in which one run cannot be read."""

    identity: Any = "record"
    unreadable: Mapping[str, str] = {RUN: "it has format 9"}


@pytest.fixture
def runs(tmp_path: Path) -> RecordedRuns:
    return RecordedRuns(RunFiles(tmp_path, "cluster"), Damaged())


def found(world: World, runs: RecordedRuns) -> Verification:
    """Both ways to verify find the same, and write nothing."""
    before = dict(world.cluster.configs)
    ports = replace(world.ports, runs=runs)
    idle = unless_it_writes(ports, PLAN)
    assert idle == verify(ports, PLAN)
    assert idle is not None
    assert world.cluster.configs == before
    return idle


def test_a_throttle_that_stays_is_unknown(world: World, runs: RecordedRuns) -> None:
    world.cluster.submit(PLAN.targets)
    world.cluster.finish(T0)
    world.cluster.write(rate_of(3), "1000")
    done = found(world, runs)
    assert verified(done).code == NOT_YET
    assert dict(done.unknown) == {rate_of(3): "1000"}
    (line,) = remarks.of_verification(done)
    assert line.startswith("error: a throttle is still set, and its run is unknown: leader.replication.throttled.rate")
    assert f"Recorded run {RUN} cannot be read, and may have set the throttle. See" in line


def test_without_a_throttle_the_plan_is_done(world: World, runs: RecordedRuns) -> None:
    world.cluster.submit(PLAN.targets)
    world.cluster.finish(T0)
    assert verified(found(world, runs)).code == 0
