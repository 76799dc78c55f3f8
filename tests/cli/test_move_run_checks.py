"""The checks of `move run` before it writes: partitions of the plan with too few replicas in sync, and disk space."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kquota.cli.move.run.checks import must_have_enough_in_sync, must_have_room
from kquota.errors import Refused
from kquota.measure import ByteRate
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import MoveRequest, Prepared, prepare
from kquota.sizes.replica import LogDir
from kquota.terms import BrokerId
from tests.reassign.stage import PLAN, T0, World, b

pytestmark = pytest.mark.unit


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


AWAY = Plan(targets={T0: b(3, 4)})
"""Both replicas move. With `PLAN`, only the one on broker 2 does."""


def prepared(world: World, minimum: int, isr: tuple[BrokerId, ...], plan: Plan = AWAY) -> Prepared:
    """A move of a partition with replicas on brokers 1 and 2."""
    world.cluster.least_in_sync = minimum
    world.cluster.partitions[T0] = replace(world.cluster.partitions[T0], isr=isr)
    return prepare(world.ports, plan, MoveRequest(throttle=ByteRate(1000)))


@pytest.mark.parametrize("dead", [False, True])
def test_a_partition_below_its_minimum_is_refused(world: World, dead: bool) -> None:
    if dead:
        world.cluster.alive.discard(BrokerId(2))
    found = prepared(world, 2, b(1, 2) if dead else b(1))
    with pytest.raises(Refused, match=r"t-0: too few replicas are in sync.* \(in sync: 1, on broker 1; required: 2\)"):
        must_have_enough_in_sync(world.cluster, found)


@pytest.mark.parametrize(
    ("minimum", "isr"), [(1, b(1)), (2, b(1, 2)), (3, b(1, 2))], ids=["enough", "all", "all, but fewer than required"]
)
def test_a_partition_that_accepts_writes_is_moved(world: World, minimum: int, isr: tuple[BrokerId, ...]) -> None:
    must_have_enough_in_sync(world.cluster, prepared(world, minimum, isr))


def test_a_move_that_is_already_running_is_not_checked(world: World) -> None:
    world.execute(AWAY)
    must_have_enough_in_sync(world.cluster, prepared(world, 2, b(1)))


def test_a_move_that_repairs_the_partition_is_not_refused(world: World) -> None:
    """It replaces the replica that is not in sync."""
    world.cluster.alive.discard(BrokerId(2))
    must_have_enough_in_sync(world.cluster, prepared(world, 2, b(1), PLAN))


def disk(path: str, usable: int, total: int = 100) -> LogDir:
    return LogDir(
        broker=BrokerId(3), rack=None, path=path, error=None, volume_total=total, volume_usable=usable, replicas=()
    )


NO_ROOM = {
    "one disk": ([disk("/a", 60)], 70, "10 B too much"),
    "two different disks": ([disk("/a", 60), disk("/b", 40)], 110, "10 B too much"),
    "two equal disks, or one": ([disk("/a", 60), disk("/b", 60)], 130, "10 B too much"),
}


@pytest.mark.parametrize(("disks", "size", "why"), NO_ROOM.values(), ids=NO_ROOM)
def test_copies_that_do_not_fit_are_refused(world: World, disks: list[LogDir], size: int, why: str) -> None:
    with pytest.raises(Refused, match=f"broker 3: the copies do not fit on its disks .*{why}"):
        must_have_room(disks, prepared(world, 1, b(1, 2)).moving, {T0: size})


ROOM = {
    "one disk": ([disk("/a", 60)], 60, ""),
    "two different disks": ([disk("/a", 60), disk("/b", 40)], 100, ""),
    "two equal disks, or one": (
        [disk("/a", 60), disk("/b", 60)],
        120,
        "kquota: warning: broker 3: 120 B of copies do not fit if its log dirs with equal sizes are one volume (60 B "
        "usable). They fit if each log dir is a separate volume\n",
    ),
    "unknown": ([replace(disk("/a", 1), volume_total=None, volume_usable=None)], 120, ""),
}


@pytest.mark.parametrize(("disks", "size", "warning"), ROOM.values(), ids=ROOM)
def test_copies_that_may_fit_are_not_refused(
    world: World, disks: list[LogDir], size: int, warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    must_have_room(disks, prepared(world, 1, b(1, 2)).moving, {T0: size})
    assert capsys.readouterr().err == warning
