"""A plan whose entries do not fit into a topic's list at once is submitted in waves."""

from __future__ import annotations

from typing import NoReturn

import pytest

from kquota.errors import Incomplete, Refused, Unreachable
from kquota.measure import ByteRate
from kquota.reassign.execution import carry_out
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import MoveRequest, prepare
from kquota.reassign.progress import Progress
from kquota.reassign.wave import MoveLimits
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_REPLICAS, LEADER_REPLICAS, TopicPartition
from tests.reassign.fake import Ticks
from tests.reassign.stage import T0, U0, World, b

BIG = {TopicPartition("big", n): b(1, 2) for n in range(3000)}
BIG_PLAN = Plan(targets=dict.fromkeys(BIG, b(1, 3)))


def big(world: World) -> None:
    world.cluster.partitions = {n: PartitionReplicas(replicas=r, leader=r[0], isr=r) for n, r in BIG.items()}


def test_a_list_that_would_be_too_long_is_set_in_waves(world: World) -> None:
    """While --execute waits, each check finds that the previous wave has ended."""
    big(world)
    longest = 0

    def end_a_wave(seconds: float) -> None:
        nonlocal longest
        longest = max(longest, *(len(value) for setting, value in world.cluster.configs.items() if setting.is_list))
        for name, now in list(world.cluster.partitions.items()):
            if seconds >= 1 and now.moving:
                world.cluster.finish(name)

    world.clock = Ticks(end_a_wave)
    done = world.execute(BIG_PLAN)
    assert len(done.started) == len(BIG)
    assert 30_000 < longest <= 32_767
    end_a_wave(1)
    assert world.verify(BIG_PLAN).verdict is Progress.DONE
    assert world.cluster.configs == {}


def test_with_consent_the_whole_topic_is_throttled_at_once(world: World) -> None:
    big(world)
    followers = Setting.of_topic("big", FOLLOWER_REPLICAS)
    world.cluster.write(followers, "7:7")
    asked = MoveRequest(throttle=ByteRate(1000), whole_topics=True)
    done = carry_out(prepare(world.ports, BIG_PLAN, asked))
    assert len(done.started) == len(BIG)
    assert {value for setting, value in world.cluster.configs.items() if setting.is_list} == {"*"}
    for name in BIG:
        world.cluster.finish(name)
    world.verify(BIG_PLAN)
    assert world.cluster.configs == {followers: "7:7"}


def test_the_last_of_two_runs_removes_a_shared_wildcard(world: World) -> None:
    big(world)
    asked = MoveRequest(throttle=ByteRate(1000), whole_topics=True, additional=True)
    first = Plan(targets={n: b(1, 3) for n in BIG if n.partition < 2999})
    second = Plan(targets={TopicPartition("big", 2999): b(1, 3)})
    for plan in (first, second):
        carry_out(prepare(world.ports, plan, asked))
    for name in first.targets:
        world.cluster.finish(name)
    assert world.verify(first).verdict is Progress.DONE
    assert {v for s, v in world.cluster.configs.items() if s.is_list} == {"*"}, "the second still needs it"
    world.cluster.finish(TopicPartition("big", 2999))
    assert world.verify(second).verdict is Progress.DONE
    assert world.cluster.configs == {}


FULL = ",".join([*(f"{n}:900" for n in range(1_000, 4_640)), "9:9"])
"""Others' entries: no list takes another one beside them."""


def wait(world: World, seconds: float, instead: str | None = None) -> None:
    """The waves end, and another tool uses the free space."""
    for name, now in list(world.cluster.partitions.items()):
        if seconds >= 1 and now.moving:
            world.cluster.finish(name)
            if instead is not None:
                world.cluster.write(Setting.of_topic("big", LEADER_REPLICAS), instead)


def test_a_list_that_another_tool_fills_between_waves_ends_the_wait(world: World) -> None:
    big(world)
    world.clock = Ticks(lambda seconds: wait(world, seconds, FULL))
    with pytest.raises(
        Incomplete, match=r"no room for another entry.* partitions? (is|are) not submitted yet\. .* resu"
    ):
        world.execute(BIG_PLAN)
    (run,) = world.runs.unfinished()
    assert run.waiting
    world.cluster.write(Setting.of_topic("big", LEADER_REPLICAS), None)
    world.clock = Ticks(lambda seconds: wait(world, seconds))
    world.execute(BIG_PLAN)
    wait(world, 1)
    assert world.verify(BIG_PLAN).verdict is Progress.DONE
    assert world.cluster.configs == {}


def test_a_topic_that_is_created_again_between_waves_is_not_moved(world: World) -> None:
    plan = Plan(targets={T0: b(1, 3), U0: b(1, 3)})

    def meanwhile(seconds: float) -> None:
        if seconds >= 1:
            world.cluster.topic_ids["u"] = "another"
            world.cluster.finish(T0)

    world.clock = Ticks(meanwhile)
    asked = MoveRequest(throttle=ByteRate(1000), limits=MoveLimits(partitions=1))
    done = carry_out(prepare(world.ports, plan, asked))
    assert done.started == (T0,)
    assert world.cluster.partitions[U0].replicas == b(1, 2)
    world.verify(plan)
    assert (world.cluster.configs, world.open_runs()) == ({}, 0)


def test_each_wave_is_reported_once(world: World) -> None:
    big(world)
    looks = 0

    def end_at_the_fifth(seconds: float) -> None:
        nonlocal looks
        looks += seconds >= 1
        if looks % 5 == 0:
            wait(world, seconds)

    world.clock = Ticks(end_at_the_fifth)
    told: list[str] = []
    carry_out(prepare(world.ports, BIG_PLAN, MoveRequest(throttle=ByteRate(1000))), told.append)
    assert len(told) == len(set(told))
    assert looks >= 5 * len(told) > 0


def test_running_moves_stay_recorded_if_the_cluster_fails_between_waves(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    big(world)

    def nobody(_: object) -> NoReturn:
        raise Unreachable("no broker answers")

    def go(seconds: float) -> None:
        if seconds >= 1:
            monkeypatch.setattr(world.cluster, "snapshot", nobody)

    world.clock = Ticks(go)
    with pytest.raises(Incomplete, match=r"no broker answers\. .* are not submitted yet\. Run .* resuming"):
        world.execute(BIG_PLAN)


def test_the_error_names_the_full_list(world: World) -> None:
    world.cluster.configs = {Setting.of_topic("u", LEADER_REPLICAS): FULL}
    with pytest.raises(Refused, match=r"topic u leader.replication.throttled.replicas has no room"):
        world.execute(Plan(targets={U0: b(1, 3)}))
