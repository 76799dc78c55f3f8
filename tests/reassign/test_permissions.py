"""A missing permission: a command refuses before its first write to the cluster or to the record."""

from __future__ import annotations

import pytest

from kquota.errors import Refused
from kquota.reassign.cancellation import cancellable
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import prepare_again
from kquota.reassign.recovery import backwards
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_REPLICAS
from tests.reassign.stage import FOLLOWERS, LEADERS, PLAN, T0, THROTTLE, U0, World, b, rate_of

BOTH = Plan(targets={T0: b(1, 3), U0: b(1, 3)})
OF_U = Setting.of_topic("u", FOLLOWER_REPLICAS)


@pytest.mark.parametrize("forbidden", [LEADERS, OF_U, rate_of(3)], ids=str)
def test_a_move_refuses_before_its_first_write(world: World, forbidden: Setting) -> None:
    world.cluster.forbidden = {forbidden}
    with pytest.raises(Refused, match="Nothing was written"):
        world.prepare(BOTH)
    assert (world.cluster.writes, world.runs.every()) == (0, ())


def test_a_move_needs_the_permission_for_lists_of_later_waves(world: World) -> None:
    """The plan moves one partition of each topic, and only the first one fits into the first wave."""
    world.cluster.largest_submission = 1
    world.cluster.forbidden = {OF_U}
    with pytest.raises(Refused, match=str(OF_U)):
        world.prepare(BOTH)


def test_a_value_that_stays_needs_no_permission(world: World) -> None:
    world.cluster.configs = {LEADERS: "*", FOLLOWERS: "0:3", **{s: v for s, v in THROTTLE.items() if not s.is_list}}
    world.cluster.forbidden = set(THROTTLE)
    assert world.prepare().changes == ()


def test_a_move_without_a_throttle_needs_no_permission_for_configs(world: World) -> None:
    world.cluster.forbidden = set(THROTTLE)
    assert world.prepare(rate=None).wave
    world.cluster.forbids_moves = True
    with pytest.raises(Refused):
        world.prepare(rate=None)


def test_a_running_move_can_be_resumed_without_permissions(world: World) -> None:
    run = world.execute().run
    assert run is not None
    world.cluster.forbidden, world.cluster.forbids_moves = set(THROTTLE), True
    assert prepare_again(world.ports, run).wave


@pytest.mark.parametrize("forbids_moves", [False, True])
def test_an_abort_and_a_cancellation_refuse_before_their_first_write(world: World, forbids_moves: bool) -> None:
    run = world.execute().run
    assert run is not None
    before, writes = world.runs.every(), world.cluster.writes
    world.cluster.forbidden, world.cluster.forbids_moves = (set() if forbids_moves else {FOLLOWERS}), forbids_moves
    with pytest.raises(Refused, match="Nothing was written"):
        prepare_again(world.ports, backwards(run))
    with pytest.raises(Refused, match="Nothing was written"):
        cancellable(world.ports, PLAN, force=False)
    assert (world.runs.every(), world.cluster.writes) == (before, writes)


def test_a_cancellation_that_keeps_the_throttle_needs_no_permission_for_configs(world: World) -> None:
    world.execute()
    world.cluster.forbidden = set(THROTTLE)
    assert cancellable(world.ports, PLAN, force=False, preserve=True).targets
