"""Limits on the moves that run at the same time: no wave exceeds them, and every plan ends."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Refused
from kquota.measure import ByteRate
from kquota.reassign.execution import Execution, carry_out
from kquota.reassign.moves import Move, PartitionReplicas, Replicas
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import MoveRequest, prepare, prepare_again
from kquota.reassign.progress import Progress
from kquota.reassign.recovery import backwards
from kquota.reassign.run import Run, at_rate
from kquota.reassign.wave import MoveLimits, MoveLoad, wave
from kquota.stores.record.runs import RecordedRuns
from kquota.terms import REPLICATION_RATES, BrokerId, TopicPartition
from kquota.throttle import set_and_clear
from tests.reassign.dirs_fake import MemoryDirs
from tests.reassign.fake import Ticks
from tests.reassign.stage import World, b, rate_of

pytestmark = pytest.mark.unit

MOVES = st.lists(
    st.tuples(st.sets(st.integers(4, 6), max_size=2), st.none() | st.integers(0, 100), st.booleans()), max_size=12
)
LIMIT = st.none() | st.integers(1, 5)


def moves_of(drawn: list[tuple[set[int], int | None, bool]]) -> tuple[list[Move], dict[TopicPartition, int]]:
    moving, sizes = [], {}
    for number, (destinations, size, submitted) in enumerate(drawn):
        name = TopicPartition("t", number)
        new = tuple(map(BrokerId, sorted(destinations)))
        moving.append(Move(name, b(1, 2), new, (*new, BrokerId(1)), submitted))
        if size is not None:
            sizes[name] = size
    return moving, sizes


@given(drawn=MOVES, partitions=LIMIT, per_broker=LIMIT, in_flight=st.none() | st.integers(1, 200))
def test_a_wave_stays_within_the_limits_unless_it_is_one_large_partition(
    drawn: list[tuple[set[int], int | None, bool]],
    partitions: int | None,
    per_broker: int | None,
    in_flight: int | None,
) -> None:
    moving, sizes = moves_of(drawn)
    limits = MoveLimits(partitions=partitions, per_broker=per_broker, in_flight=in_flight)
    chosen = wave(moving, {}, None, limits, sizes)
    running = [move for move in moving if move.submitted]
    fresh = [move for move in chosen if not move.submitted]
    assert [move for move in chosen if move.submitted] == running
    if not fresh:
        assert running or not moving
        return
    assert partitions is None or len(chosen) <= partitions
    copies = Counter(broker for move in chosen for broker in move.destinations)
    gaining = {broker for move in fresh for broker in move.destinations}
    assert per_broker is None or all(copies[broker] <= per_broker for broker in gaining)
    copying = [move for move in chosen if move.destinations]
    if in_flight is not None and any(move.destinations for move in fresh):
        known = [sizes.get(move.partition) for move in copying]
        loads = [None if size is None else size * len(m.destinations) for size, m in zip(known, copying, strict=True)]
        heavy = [load for load in loads if load != 0]
        if len(heavy) > 1:
            assert None not in heavy
            assert sum(load for load in heavy if load is not None) <= in_flight


@given(drawn=MOVES)
def test_without_limits_everything_is_submitted_at_once(drawn: list[tuple[set[int], int | None, bool]]) -> None:
    moving, sizes = moves_of(drawn)
    assert list(wave(moving, {}, None, MoveLimits(), sizes)) == moving


NAMES = [TopicPartition("many", n) for n in range(10)]
PLAN = Plan(targets=dict.fromkeys(NAMES, b(1, 3)))


def crowd(world: World) -> None:
    """Ten partitions, and a clock that ends every running move within a wait between waves."""
    world.cluster.partitions = {n: PartitionReplicas(replicas=b(1, 2), leader=BrokerId(1), isr=b(1, 2)) for n in NAMES}


def ending(world: World, seen: list[int]) -> Ticks:
    def wait(seconds: float) -> None:
        moving = [name for name, now in world.cluster.partitions.items() if now.moving]
        if seconds >= 1 and moving:
            seen.append(len(moving))
            world.cluster.finish(moving[0])

    return Ticks(wait)


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (MoveLimits(partitions=3), 3),
        (MoveLimits(per_broker=2), 2),
        (MoveLimits(in_flight=250), 2),
        (MoveLimits(in_flight=99), 1),
        (MoveLimits(partitions=5, per_broker=4, in_flight=350), 3),
    ],
)
@pytest.mark.parametrize("throttle", [None, ByteRate(1000)])
def test_a_wave_is_refilled_as_moves_end(
    world: World, limits: MoveLimits, most: int, throttle: ByteRate | None
) -> None:
    crowd(world)
    seen: list[int] = []
    world.clock = ending(world, seen)
    asked = MoveRequest(throttle=throttle, limits=limits, sizes=dict.fromkeys(NAMES, 100))
    done = carry_out(prepare(world.ports, PLAN, asked))
    assert sorted(done.started) == NAMES
    assert max(seen) == most
    assert seen.count(most) >= len(NAMES) - most
    for name in NAMES:
        if world.cluster.partitions[name].moving:
            world.cluster.finish(name)
    assert world.verify(PLAN).verdict is Progress.DONE
    assert world.cluster.configs == {}


def test_no_wave_starts_while_it_is_held_back(world: World) -> None:
    crowd(world)
    seen: list[int] = []
    world.clock = ending(world, seen)
    reasons = iter([None, "a broker is down", "a broker is down", "a broker is down"])
    told: list[str] = []
    asked = MoveRequest(limits=MoveLimits(partitions=2))
    prepared = prepare(world.ports, PLAN, asked)
    carry_out(prepared, told.append, hold_back=lambda: next(reasons, None))
    assert seen[:5] == [2, 2, 1, 2, 2], "two moves ended without a new one"
    assert [line for line in told if "still to submit" not in line] == [
        "no further wave starts: a broker is down",
        "the next wave may start: the cluster is as healthy as before",
    ]


@contextmanager
def then(world: World, change: Callable[[Run], Run]) -> Iterator[None]:
    """Another kquota changes or ends the run during the wait for the next wave."""
    yield
    for run in world.runs.unfinished():
        after = change(run)
        if after.finished or after.aborting:
            world.runs.update(after)
        else:
            set_and_clear.adjust(world.ports, run, after)


def in_waves(world: World, change: Callable[[Run], Run]) -> Execution:
    crowd(world)
    world.clock = ending(world, [])
    asked = MoveRequest(throttle=ByteRate(1000), limits=MoveLimits(partitions=2))
    prepared = prepare(world.ports, PLAN, asked)
    return carry_out(prepared, between=lambda: then(world, change))


def test_a_rate_that_changes_between_two_waves_stays(world: World) -> None:
    done = in_waves(world, lambda run: at_rate(run, ByteRate(7)))
    assert sorted(done.started) == NAMES
    (run,) = world.runs.unfinished()
    assert run.rate == 7
    assert {value for setting, value in world.cluster.configs.items() if not setting.is_list} == {"7"}


def test_every_wave_is_throttled_although_verify_restores_the_rates_between_two_waves(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No move runs while --verify looks, because each move ends before the next wave."""
    crowd(world)
    before = {rate_of(1): "55"}
    world.cluster.configs.update(before)
    world.clock = ending(world, [])
    looks, submitted, submit = 0, [], world.cluster.submit

    @contextmanager
    def verified() -> Iterator[None]:
        nonlocal looks
        yield
        looks += 1
        world.verify(PLAN)

    def throttled(targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
        submitted.append([world.cluster.configs.get(rate_of(n, key)) for n in (1, 2, 3) for key in REPLICATION_RATES])
        return submit(targets)

    monkeypatch.setattr(world.cluster, "submit", throttled)
    asked = MoveRequest(throttle=ByteRate(1000), limits=MoveLimits(partitions=1))
    done = carry_out(prepare(world.ports, PLAN, asked), between=verified)
    assert sorted(done.started) == NAMES
    assert submitted == [["1000"] * 6] * len(NAMES)
    assert looks >= len(NAMES) - 1
    world.cluster.finish(NAMES[-1])
    assert world.verify(PLAN).verdict is Progress.DONE
    assert (world.cluster.configs, world.open_runs()) == (before, 0)


def test_no_wave_starts_after_another_kquota_undoes_the_run(world: World) -> None:
    with pytest.raises(Refused, match="another kquota is undoing this run"):
        in_waves(world, backwards)
    assert len(world.runs.unfinished()) == 1


def test_no_wave_starts_after_another_kquota_ended_the_run(world: World) -> None:
    assert len(in_waves(world, lambda run: replace(run, finished=run.begun)).started) == 2


def test_no_wave_starts_while_the_record_of_the_run_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd(world)
    world.clock = ending(world, [])
    prepared = prepare(world.ports, PLAN, MoveRequest(limits=MoveLimits(partitions=2)))

    @contextmanager
    def overwritten() -> Iterator[None]:
        (run,) = world.runs.unfinished()
        monkeypatch.setattr(RecordedRuns, "unreadable", (run.id,))
        yield

    with pytest.raises(Refused, match="cannot be read any more, so no further wave starts"):
        carry_out(prepared, between=overwritten)


def test_no_log_dir_is_requested_after_another_kquota_ended_the_run(world: World) -> None:
    """--cancel or `move abort` has undone the plan."""
    crowd(world)
    world.clock = ending(world, [])
    dirs = MemoryDirs(log_dirs={broker: {"/a": None, "/b": None} for broker in b(1, 2, 3)})
    plan = replace(PLAN, log_dirs=dict.fromkeys([(name, BrokerId(3)) for name in NAMES], "/b"))
    prepared = prepare(replace(world.ports, dirs=dirs), plan, MoveRequest(limits=MoveLimits(partitions=2)))
    announced: list[int] = []

    @contextmanager
    def ended() -> Iterator[None]:
        announced.append(len(dirs.wishes))
        with then(world, lambda run: replace(run, finished=run.begun)):
            yield

    reported: list[str] = []
    dirs.wishes.clear()
    carry_out(prepared, reported.append, between=ended)
    assert len(dirs.wishes) == announced[0], "only what was announced before the first wave"
    assert reported[-1].startswith("another kquota ended run ")
    assert reported[-1].endswith(", so no further move starts")


def test_a_killed_run_continues_under_its_own_limits(world: World) -> None:
    crowd(world)

    def die(_: float) -> None:
        raise KeyboardInterrupt

    world.clock = Ticks(die)
    asked = MoveRequest(throttle=ByteRate(1000), limits=MoveLimits(partitions=2, in_flight=10**6))
    with pytest.raises(KeyboardInterrupt):
        carry_out(prepare(world.ports, PLAN, asked))
    (run,) = world.runs.unfinished()
    assert run.limits == asked.limits
    seen: list[int] = []
    world.clock = ending(world, seen)
    sizes = dict.fromkeys(NAMES, 100)
    carry_out(prepare_again(world.ports, run, sizes=sizes))
    assert max(seen) == 2


def test_a_move_of_unknown_size_that_has_ended_does_not_count_any_more() -> None:
    load = MoveLoad(limits=MoveLimits(in_flight=100))
    load.take(b(1), math.inf)
    assert not load.holds(b(2), 10)
    load.leave(b(1), math.inf)
    load.take(b(1), 90)
    assert load.holds(b(2), 10)
    assert not load.holds(b(2), 11)
