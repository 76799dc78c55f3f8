"""Execute and verify: in all cases the cluster ends with its previous throttles."""

from __future__ import annotations

import contextlib
import re
import resource
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Conflict, Incomplete, KquotaError, NextStep, Refused, Unknown, Unreachable
from kquota.reassign.cancellation import cancel, cancellable
from kquota.reassign.execution import carry_out
from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.plan import Plan
from kquota.reassign.port import Snapshot
from kquota.reassign.preparation import MoveRequest, prepare, prepare_again
from kquota.reassign.progress import Progress
from kquota.reassign.recovery import backwards, recover
from kquota.reassign.restoring import held_on, taking, without_values
from kquota.reassign.run import PAUSED_RATE
from kquota.reassign.verification import verify
from kquota.settings.resource import Setting
from kquota.stores.state.runs import RunFiles
from kquota.terms import FOLLOWER_RATE, BrokerId, TopicPartition
from kquota.throttle import wanted as throttle_wanted
from kquota.throttle.set_and_clear import adjust
from tests.reassign.fake import Ticks
from tests.reassign.records import alone
from tests.reassign.stage import FOLLOWERS, LEADERS, PLAN, T0, T1, THROTTLE, U0, World, b, rate_of


def test_a_throttled_move_from_start_to_end(world: World) -> None:
    prepared = world.prepare()
    done = carry_out(prepared)
    assert world.cluster.configs == THROTTLE
    assert world.cluster.partitions[T0].target == b(1, 3)
    assert (done.started, done.running, prepared.notes) == ((T0,), (), ())
    assert done.rollback == Plan(targets={T0: b(1, 2)})
    assert world.verify().verdict is Progress.IN_PROGRESS
    assert world.cluster.configs == THROTTLE
    world.cluster.finish(T0)
    found = world.verify()
    assert (found.verdict, found.pending, found.notes) == (Progress.DONE, {}, ())
    assert {change.setting for change in found.restored} == set(THROTTLE)
    assert world.cluster.configs == {}
    assert world.open_runs() == 0
    assert world.runs.every()[0].taken[LEADERS].prior is None


def _move_that_has_just_ended(world: World) -> None:
    """The controller reports T0 on 1 and 3, while brokers still show 1, 3 and 2."""
    world.cluster.stale_seconds, world.cluster.seconds = 0.5, world.clock.monotonic
    assert world.cluster.submit({T0: b(1, 3)}) == {}
    world.cluster.finish(T0)
    assert world.cluster.snapshot(["t"]).partitions[T0].replicas == b(1, 3, 2)


@pytest.mark.parametrize("target", [b(1, 4), b(1, 2), b(3, 1), b(3), b(1, 3, 2)])
def test_the_plan_back_uses_the_replicas_of_the_controller(world: World, target: tuple[BrokerId, ...]) -> None:
    """`move abort` moved the partition to old and new replicas together, so it kept three of them."""
    _move_that_has_just_ended(world)
    assert world.execute(Plan(targets={T0: target})).rollback == Plan(targets={T0: b(1, 3)})


def test_a_plan_that_has_just_finished_has_nothing_to_move(world: World) -> None:
    _move_that_has_just_ended(world)
    assert world.execute().run is None


def test_verify_does_not_take_a_stale_read_for_a_failure(world: World) -> None:
    _move_that_has_just_ended(world)
    assert world.verify().verdict is Progress.DONE


def test_verify_waits_for_a_slow_broker_if_the_run_submitted_the_move(world: World) -> None:
    """On a busy machine a broker showed the previous replicas for longer than `stale_seconds`."""
    world.cluster.stale_seconds, world.cluster.seconds = 0.5, world.clock.monotonic
    world.execute()
    world.cluster.finish(T0)
    until, union = world.cluster._union[T0]
    world.cluster._union[T0] = (until + 3, union)
    assert world.verify().verdict is Progress.DONE


def test_verify_does_not_wait_for_a_cancelled_partition_while_another_one_moves(world: World) -> None:
    """`move run` verifies every few seconds, with the lock."""
    other = TopicPartition("t", 1)
    world.cluster.partitions[other] = world.cluster.partitions[T0]
    world.cluster.stale_seconds, world.cluster.seconds = 0.5, world.clock.monotonic
    plan = Plan(targets={T0: b(1, 3), other: b(1, 3)})
    world.execute(plan)
    world.cluster.cancel(T0)
    before = world.clock.monotonic()
    assert world.verify(plan).verdict is Progress.IN_PROGRESS
    assert world.clock.monotonic() - before <= 0.5


def test_verify_soon_believes_that_another_client_cancelled_the_move(world: World) -> None:
    world.cluster.stale_seconds, world.cluster.seconds = 0.5, world.clock.monotonic
    world.execute()
    world.cluster.cancel(T0)
    before = world.clock.monotonic()
    assert world.verify().verdict is Progress.ELSEWHERE
    assert world.clock.monotonic() - before <= 5


def test_verify_keeps_the_throttle_of_a_move_that_begins_while_it_reads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller can begin a submission of ZooKeeper late: the running moves are from before, the replicas not."""
    world.execute(Plan(targets={T0: b(1, 2, 3)}))
    throttled = dict(world.cluster.configs)
    assert world.cluster.partitions[T0].isr == b(1, 2)
    snapshot = world.cluster.snapshot

    def during_the_begin(topics: Collection[str] | None) -> Snapshot:
        monkeypatch.undo()
        found = snapshot(topics)
        shown = {name: replace(now, adding=(), removing=()) for name, now in found.partitions.items()}
        return replace(found, partitions=shown, running={})

    monkeypatch.setattr(world.cluster, "snapshot", during_the_begin)
    assert world.verify(Plan(targets={T0: b(1, 2, 3)})).verdict is Progress.IN_PROGRESS
    assert world.cluster.configs == throttled


def test_replicas_that_change_with_each_read_are_refused(world: World) -> None:
    world.cluster.stale_seconds, world.cluster.seconds = 0.5, world.clock.monotonic

    def elsewhere(_: float) -> None:
        world.cluster._start(T0, b(1, 3) if world.cluster.partitions[T0].target == b(1, 4) else b(1, 4))
        world.cluster.finish(T0)

    restless = replace(world, clock=Ticks(on_sleep=elsewhere))
    with pytest.raises(Refused, match=r"t-0: the replicas changed while kquota read them\. Run the same command again"):
        restless.execute()
    assert (world.cluster.configs, world.open_runs()) == ({}, 0)


@given(
    st.dictionaries(
        st.sampled_from([LEADERS, FOLLOWERS]), st.sampled_from(["", "*", "9:9", "0:1", "0:3,0:1", ",7:7, 8:8"])
    ),
    st.dictionaries(st.sampled_from(sorted(set(THROTTLE) - {LEADERS, FOLLOWERS})), st.sampled_from(["1000", "7"])),
    st.booleans(),
)
def test_every_prior_value_is_restored(
    tmp_path_factory: pytest.TempPathFactory, lists: dict[Setting, str], rates: dict[Setting, str], cancelled: bool
) -> None:
    world = World(tmp_path_factory.mktemp("state"))
    prior = lists | rates
    world.cluster.configs = dict(prior)
    world.execute()
    (world.cluster.cancel if cancelled else world.cluster.finish)(T0)
    assert world.verify().verdict is (Progress.ELSEWHERE if cancelled else Progress.DONE)
    assert world.cluster.configs == prior


def test_executing_twice_changes_nothing_the_second_time(world: World) -> None:
    world.execute()
    writes = world.cluster.writes
    again = world.execute()
    assert (again.started, again.running) == ((), (T0,))
    assert world.cluster.writes == writes
    assert world.open_runs() == 1


def test_executing_a_plan_that_is_being_reverted_moves_it_forward_again(world: World) -> None:
    """The record contains the last request to the cluster; otherwise a resume would revert the move."""
    world.execute()
    world.cluster.finish(T0)
    (run,) = world.runs.unfinished()
    back = backwards(run)
    prepared = prepare_again(world.ports, back)
    recover(back, prepared, lambda _: None)
    assert world.cluster.partitions[T0].target == b(1, 2)
    world.cluster.finish(T0)
    world.execute()
    (run,) = world.runs.unfinished()
    assert (run.aborting, run.goal, run.rollback) == (False, PLAN, Plan(targets={T0: b(1, 2)}))
    assert world.cluster.partitions[T0].target == b(1, 3)
    prepared = prepare_again(world.ports, run)
    recover(run, prepared, lambda _: None)
    world.cluster.finish(T0)
    assert world.verify().verdict is Progress.DONE
    assert (world.cluster.configs, world.open_runs()) == ({}, 0)


def test_executing_the_rollback_plan_of_an_abort_keeps_the_plan_of_the_run(world: World) -> None:
    world.execute()
    (run,) = world.runs.unfinished()
    world.runs.update(backwards(run))
    world.execute(run.rollback)
    (back,) = world.runs.unfinished()
    assert (back.aborting, back.plan, back.rollback) == (True, PLAN, run.rollback)


def test_executing_a_plan_that_is_in_place_ends_its_abort(world: World) -> None:
    """The command that began to undo it was killed before it submitted a move."""
    world.execute()
    world.cluster.finish(T0)
    (run,) = world.runs.unfinished()
    world.runs.update(backwards(run))
    assert world.execute().run is None
    (run,) = world.runs.unfinished()
    assert (run.aborting, run.waiting) == (False, ())
    assert world.verify().verdict is Progress.DONE
    assert (world.cluster.configs, world.open_runs()) == ({}, 0)


def test_an_abort_of_a_paused_run_copies_back_at_the_rate_of_the_run(world: World) -> None:
    world.execute()
    world.cluster.finish(T0)
    (run,) = world.runs.unfinished()
    adjust(world.ports, run, replace(run, paused=True))
    assert world.cluster.configs[rate_of(1, FOLLOWER_RATE)] == str(PAUSED_RATE)
    (run,) = world.runs.unfinished()
    back = backwards(run)
    prepared = prepare_again(world.ports, back)
    recover(back, prepared, lambda _: None)
    assert world.cluster.partitions[T0].target == b(1, 2)
    assert {world.cluster.configs[rate_of(broker, FOLLOWER_RATE)] for broker in (1, 2)} == {str(run.rate)}


def test_executing_again_with_another_rate_changes_only_the_rates(world: World) -> None:
    world.execute()
    world.execute(rate=2000)
    assert {world.cluster.configs[rate_of(broker)] for broker in (1, 2, 3)} == {"2000"}
    world.cluster.finish(T0)
    world.verify()
    assert world.cluster.configs == {}


def test_a_plan_with_nothing_to_move_writes_nothing(world: World) -> None:
    done = world.execute(Plan(targets={T0: b(1, 2)}))
    assert (done.run, done.started) == (None, ())
    assert world.cluster.writes == 0
    assert world.runs.every() == ()


def test_without_a_throttle_only_the_plan_back_is_recorded(world: World) -> None:
    world.execute(rate=None)
    assert world.cluster.configs == {}
    assert world.runs.unfinished()[0].rollback == Plan(targets={T0: b(1, 2)})


REFUSED = {
    "unknown topic": (Plan(targets={TopicPartition("x", 0): b(1)}), "Topic x not found"),
    "unknown partition": (Plan(targets={TopicPartition("t", 9): b(1)}), "Unable to find partition: t-9"),
    "unknown broker": (Plan(targets={T0: b(1, 9)}), r"Unknown broker id 9 \(live brokers: 1,2,3,4\)"),
    "no leader": (Plan(targets={TopicPartition("dead", 0): b(3)}), "dead-0 has no leader"),
}


@pytest.mark.parametrize(("plan", "complaint"), REFUSED.values(), ids=REFUSED)
def test_an_impossible_move_is_refused_before_any_write(world: World, plan: Plan, complaint: str) -> None:
    led = PartitionReplicas(replicas=b(1, 2), leader=BrokerId(1))
    world.cluster.partitions |= {TopicPartition("big", n): led for n in range(5000)}
    world.cluster.partitions[TopicPartition("dead", 0)] = PartitionReplicas(replicas=b(1, 2))
    with pytest.raises(Refused, match=complaint):
        world.execute(plan)
    assert world.cluster.writes == 0
    assert world.runs.every() == ()


def test_a_change_of_replication_factors_is_refused_with_every_partition(world: World) -> None:
    """Kafka's tool sets the throttle first, and then names each partition (4.3.1)."""
    same = MoveRequest(same_replication_factor=True, additional=True, force=True)
    changed = Plan(targets={T0: b(3), T1: b(1, 2, 3), U0: b(2, 3)})
    with pytest.raises(Refused, match=r"of 2 partitions \(t-0 from 2 to 1, t-1 from 2 to 3\)"):
        prepare(world.ports, changed, same)


def test_the_target_of_a_running_move_has_the_replication_factor(world: World) -> None:
    """As in the controller of Kafka 4.3.1, which compares the plan with the target, and not with the old replicas."""
    same = MoveRequest(same_replication_factor=True, additional=True, force=True)
    world.cluster.submit({T0: b(1, 2, 4)})
    longer = prepare(world.ports, Plan(targets={T0: b(1, 3, 4)}), same)
    assert [move.partition for move in longer.moving] == [T0]
    with pytest.raises(Refused, match=r"of 1 partition \(t-0 from 3 to 2\)"):
        prepare(world.ports, PLAN, same)


RETURNS = {
    # replicas in sync of a move from 1,2 to 1,3, live brokers, min.insync.replicas, and whether kquota refuses
    "enough stay in sync": (b(1, 2, 3), b(1, 2, 3), 2, False),
    "only the new replica is in sync": (b(3), b(1, 2, 3), 1, True),
    "fewer than required stay": (b(1, 3), b(1, 2, 3), 2, True),
    "too few, but no fewer than now": (b(1), b(1, 2, 3), 2, False),
    "none are in sync": ((), b(1, 2, 3), 1, True),
    "a dead broker does not count": (b(2, 3), b(1, 3), 1, True),
    "required are at most the replicas": (b(1, 2, 3), b(1, 2, 3), 3, False),
}


@pytest.mark.parametrize(("isr", "alive", "minimum", "refused"), RETURNS.values(), ids=RETURNS)
def test_a_cancellation_must_leave_enough_replicas_in_sync(
    world: World, isr: Replicas, alive: Replicas, minimum: int, refused: bool
) -> None:
    """KAFKA-14424. An abort of a running move is also a cancellation."""
    world.cluster.least_in_sync = minimum
    world.execute()
    [run] = world.runs.unfinished()
    now = world.cluster.partitions[T0]
    world.cluster.partitions[T0] = replace(now, isr=isr, leader=isr[0] if isr else None)
    world.cluster.alive = set(alive)
    check = pytest.raises(Refused, match="too few replicas in sync") if refused else contextlib.nullcontext()
    with check:
        prepare_again(world.ports, backwards(run))
    with check:
        cancellable(world.ports, PLAN, force=False)
    assert cancellable(world.ports, PLAN, force=True).targets.keys() == {T0}


@pytest.mark.parametrize("crowded", [False, True])
def test_a_prior_rate_that_an_unrecorded_move_may_have_set_is_reported(world: World, crowded: bool) -> None:
    if crowded:
        world.cluster.submit({U0: b(3)})
    world.cluster.write(rate_of(1), "77")
    world.execute(additional=True)
    for name in (T0, U0):
        world.cluster.finish(name)
    assert world.verify().unknown == ({rate_of(1): "77"} if crowded else {})


def test_a_second_move_requires_additional(world: World) -> None:
    world.cluster.submit({U0: b(3)})
    with pytest.raises(Refused, match="Use --additional to override this"):
        world.execute()
    assert world.execute(additional=True).started == (T0,)


def test_a_dead_source_gets_no_rate_and_is_reported(world: World) -> None:
    world.cluster.alive.discard(BrokerId(2))
    prepared = world.prepare()
    assert prepared.notes[0].startswith("broker 2 is dead")
    carry_out(prepared)
    assert rate_of(2) not in world.cluster.configs
    assert world.cluster.configs[LEADERS] == "0:1,0:2"


def test_kquota_waits_for_reads_that_lag(world: World) -> None:
    world.cluster.lag = 3
    world.execute()
    world.cluster.finish(T0)
    assert world.verify().pending == {}
    assert world.cluster.configs == {}


def test_a_write_that_is_never_visible_is_unknown_and_starts_no_move(world: World) -> None:
    world.cluster.lag = 1000
    with pytest.raises(Unknown, match=r"aborting run \S+ undoes it"):
        world.execute()
    assert not world.cluster.partitions[T0].moving
    world.cluster.lag = 0
    world.cluster._stale_reads = 0
    assert world.verify().verdict is Progress.ELSEWHERE
    assert world.cluster.configs == {}


def test_a_concurrent_write_of_another_tool_is_merged(world: World) -> None:
    world.cluster.meanwhile = [(LEADERS, "9:9"), (rate_of(1), "77")]
    world.execute()
    assert world.cluster.configs[LEADERS] == "9:9,0:1,0:2"
    world.cluster.finish(T0)
    world.verify()
    assert world.cluster.configs == {LEADERS: "9:9", rate_of(1): "77"}


BROKEN = {
    "the list is refused": (LEADERS, Refused("policy says no"), Refused),
    "a rate is refused": (rate_of(2), Refused("policy says no"), Refused),
    "a broker goes away": (rate_of(3), Unreachable("broker 3 went away"), Unreachable),
    "another client writes without end": (rate_of(1), Conflict("changed"), Conflict),
}


@pytest.mark.parametrize(("setting", "error", "kind"), BROKEN.values(), ids=BROKEN)
def test_a_failed_step_reverts_earlier_writes(
    world: World, setting: Setting, error: KquotaError, kind: type[KquotaError]
) -> None:
    world.cluster.configs = {FOLLOWERS: "9:9"}
    world.cluster.broken = {setting: error}
    with pytest.raises(kind, match="kquota restored everything that it had written"):
        world.execute()
    assert world.cluster.configs == {FOLLOWERS: "9:9"}
    assert not world.cluster.partitions[T0].moving
    assert world.open_runs() == 0


def test_a_write_that_may_still_take_effect_keeps_the_run_open(world: World) -> None:
    """Another write of the same batch failed for sure, and comes first."""
    world.cluster.broken = {rate_of(1): Refused("policy says no"), rate_of(3): Unknown("broker 3 did not answer")}
    with pytest.raises(Unknown, match="broker 3 did not answer"):
        world.execute()
    assert world.open_runs() == 1


def test_throttles_are_restored_if_the_cluster_refuses_the_whole_move(world: World) -> None:
    world.cluster.refused = {T0: "no"}
    with pytest.raises(
        Refused, match=r"Error reassigning partition\(s\): t-0: no\. No move was started, .* restored everything"
    ):
        world.execute()
    assert world.cluster.configs == {}


def test_a_move_that_starts_in_part_keeps_its_throttle_until_it_ends(world: World) -> None:
    plan = Plan(targets={T0: b(1, 3), T1: b(1, 4)})
    world.cluster.refused = {T1: "no"}
    with pytest.raises(Incomplete, match=r"t-1: no\. Started: t-0") as raised:
        world.execute(plan)
    assert (raised.value.done, raised.value.undone) == (("t-0",), ("t-1",))
    assert world.verify(plan).verdict is Progress.IN_PROGRESS
    world.cluster.finish(T0)
    assert world.verify(plan).verdict is Progress.ELSEWHERE
    assert world.cluster.configs == {}


@contextlib.contextmanager
def _full_disk() -> Iterator[None]:
    """Forbid this process to write any byte to a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def _no_memory() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFiles, "write", Mock(side_effect=MemoryError))
        yield


@pytest.mark.parametrize(
    ("scarce", "why"),
    [(_full_disk, r"\.journal: cannot be written \(File too large\)"), (_no_memory, "^there is not enough memory")],
    ids=["disk", "memory"],
)
def test_one_line_says_what_is_set_if_the_record_cannot_be_written_after_a_submit(
    world: World, scarce: Callable[[], AbstractContextManager[None]], why: str
) -> None:
    submit = world.cluster.submit
    with contextlib.ExitStack() as stack:

        def submitted(targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
            refused = submit(targets)
            stack.enter_context(scarce())
            return refused

        with pytest.MonkeyPatch.context() as patch, pytest.raises(Incomplete, match=why) as raised:
            patch.setattr(world.cluster, "submit", submitted)
            world.execute()
    message = str(raised.value)
    assert re.search(
        r" has submitted 1 partition, and the throttle stays set\. resuming run \S+ continues the run, and "
        r"aborting run \S+ undoes it$",
        message,
    )
    assert "\n" not in message
    assert (raised.value.done, world.cluster.configs) == (("t-0",), THROTTLE)
    world.cluster.finish(T0)
    assert (world.verify().verdict, world.cluster.configs, world.open_runs()) == (Progress.DONE, {}, 0)


@pytest.mark.parametrize("work", ["verify", "move abort"])
def test_a_run_that_cannot_be_recorded_is_named_with_its_throttle(world: World, work: str) -> None:
    world.execute()
    (run,) = world.runs.unfinished()
    if work == "verify":
        world.cluster.finish(T0)
    before = dict(world.cluster.configs)
    prepared = prepare_again(world.ports, backwards(run))
    with _full_disk(), pytest.raises(Refused, match=r"\.journal: cannot be written") as raised:
        if work == "verify":
            world.verify()
        else:
            recover(backwards(run), prepared, print)
    assert str(raised.value).endswith(
        f". The throttle of run {run.id} may still be set (showing the throttles). After you have solved the problem, "
        "run the same command again"
    )
    assert work == "verify" or world.cluster.configs == before
    world.cluster.finish(T0)
    assert (world.verify().verdict, world.cluster.configs, world.open_runs()) == (Progress.DONE, {}, 0)


def test_a_lost_answer_is_settled_by_a_read(world: World) -> None:
    world.cluster.lose_answer = True
    assert world.execute().started == (T0,)


def test_a_dead_broker_is_pending_until_it_is_back(world: World) -> None:
    world.execute()
    world.cluster.finish(T0)
    world.cluster.alive.discard(BrokerId(2))
    found = world.verify()
    assert set(found.pending) == {rate_of(2), rate_of(2, FOLLOWER_RATE)}
    assert set(world.cluster.configs) == set(found.pending)
    world.cluster.alive.add(BrokerId(2))
    assert world.verify().pending == {}
    assert world.cluster.configs == {}


def test_the_controllers_restore_a_dead_broker(world: World) -> None:
    prior = {rate_of(2): "7"}
    world.cluster.configs = dict(prior)
    world.cluster.controllers = True
    world.execute()
    world.cluster.finish(T0)
    world.cluster.alive.discard(BrokerId(2))
    found = world.verify()
    assert (found.pending, world.open_runs(), world.cluster.configs) == ({}, 0, prior)
    assert {change.setting: change.after for change in found.restored if change.setting.name == "2"} == {
        rate_of(2): "7",
        rate_of(2, FOLLOWER_RATE): None,
    }
    assert [note.partition(" accepted the change, so ")[2] for note in found.notes] == [
        "follower.replication.throttled.rate is unset when the broker starts. The previous value could not be read",
        "leader.replication.throttled.rate is 7 when the broker starts. The previous value could not be read",
    ]


def test_the_controllers_restore_a_rate_whose_change_back_to_the_prior_one_was_not_written(world: World) -> None:
    world.cluster.configs = {rate_of(2): "1000"}
    world.cluster.controllers = True
    world.execute(rate=3000)
    (run,) = world.runs.unfinished()
    taken = replace(run.taken[rate_of(2)], ours=("3000", "1000"))
    world.runs.update(replace(run, taken={**run.taken, rate_of(2): taken}))
    world.cluster.finish(T0)
    world.cluster.alive.discard(BrokerId(2))
    assert (world.verify().pending, world.open_runs(), world.cluster.configs) == ({}, 0, {rate_of(2): "1000"})


@pytest.mark.parametrize("controllers", [True, False])
@pytest.mark.parametrize("dead", ["in the plan", "in another topic", "without replicas"])
def test_clear_all_removes_every_rate_of_a_dead_broker(world: World, dead: str, controllers: bool) -> None:
    broker = 2 if dead == "in the plan" else 9
    left = {rate_of(broker): "7", rate_of(broker, FOLLOWER_RATE): "8"}
    world.cluster.configs = {rate_of(1): "6", **left}
    world.cluster.controllers = controllers
    world.cluster.alive.discard(BrokerId(broker))
    if dead == "in another topic":
        other = TopicPartition("other", 0)
        world.cluster.partitions[other] = PartitionReplicas(replicas=b(1, 9), leader=BrokerId(1), isr=b(1))
    fenced = b(9) if dead == "without replicas" else ()
    plan = Plan(targets={T0: b(1, 2)})
    found = verify(world.ports, plan, clear_all=True, fenced=fenced)
    assert world.cluster.configs == ({} if controllers else left)
    assert ({setting.name for setting in found.pending}, found.unread) == (set() if controllers else {str(broker)}, ())


def test_clear_all_reports_the_rates_that_it_cannot_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    known = world.cluster.values
    monkeypatch.setattr(world.cluster, "values", lambda asked: known([s for s in asked if s.name != "1"]))
    found = verify(world.ports, Plan(targets={T0: b(1, 2)}), clear_all=True)
    assert {setting.name for setting in found.pending} == {"1"}


@pytest.mark.parametrize("clear_all", [False, True])
def test_without_a_record_lists_that_cannot_be_read_are_unknown(world: World, clear_all: bool) -> None:
    world.cluster.undescribed.add("t")
    found = verify(world.ports, Plan(targets={T0: b(1, 2)}), clear_all=clear_all)
    assert {(setting.name, str(why)) for setting, why in found.pending.items()} == {("t", "could not be read")}


def test_without_a_record_the_rates_of_a_dead_broker_are_unknown(world: World) -> None:
    world.cluster.alive.discard(BrokerId(2))
    found = world.verify(Plan(targets={T0: b(1, 2)}))
    assert (found.verdict, found.unread) == (Progress.DONE, b(2))


def test_the_last_of_two_runs_restores_a_dead_broker(world: World) -> None:
    world.cluster.controllers = True
    world.cluster.partitions[T1] = PartitionReplicas(replicas=b(1, 2), leader=BrokerId(1), isr=b(1, 2))
    later = Plan(targets={T1: b(1, 3)})
    world.execute()
    world.execute(later, additional=True)
    world.cluster.alive.discard(BrokerId(2))
    world.cluster.finish(T0)
    assert world.verify().pending == {}
    assert world.cluster.configs[rate_of(2)] == "1000", "the other move still needs it"
    world.cluster.finish(T1)
    assert world.verify(later).pending == {}
    assert (world.cluster.configs, world.open_runs()) == ({}, 0)


def test_restoring_a_dead_broker_does_not_change_the_values_that_another_run_must_restore(world: World) -> None:
    world.cluster.controllers = True
    world.cluster.partitions[T1] = PartitionReplicas(replicas=b(1, 2), leader=BrokerId(1), isr=b(1, 2))
    later = Plan(targets={T1: b(1, 3)})
    world.execute()
    world.execute(later, additional=True, rate=2000)
    world.cluster.alive.discard(BrokerId(2))
    world.cluster.finish(T1)
    assert world.verify(later).pending == {}
    assert world.cluster.configs[rate_of(1)] == "2000", "the first move still needs a rate"
    world.cluster.finish(T0)
    assert world.verify().pending == {}
    assert (world.cluster.configs, world.open_runs()) == ({}, 0)


def test_a_setting_that_the_controllers_refuse_is_pending(world: World) -> None:
    world.cluster.controllers = True
    world.execute()
    world.cluster.finish(T0)
    world.cluster.alive.discard(BrokerId(2))
    world.cluster.broken = {rate_of(2): Refused("not allowed")}
    found = world.verify()
    assert {setting: str(why) for setting, why in found.pending.items()} == {
        rate_of(2): "could not be read, and not allowed"
    }
    assert (set(world.cluster.configs), world.open_runs()) == ({rate_of(2)}, 1)


def test_values_pending_for_a_dead_broker_do_not_block_a_later_move(world: World) -> None:
    world.execute()
    world.cluster.finish(T0)
    world.cluster.alive.discard(BrokerId(2))
    world.cluster.partitions[T1] = PartitionReplicas(replicas=b(1, 4), leader=BrokerId(1), isr=b(1, 4))
    left = set(world.verify().pending)
    later = Plan(targets={T1: b(1, 3)})
    world.execute(later, rate=2000)
    world.cluster.finish(T1)
    assert world.verify(later).pending == {}
    assert set(world.cluster.configs) == left
    world.cluster.alive.add(BrokerId(2))
    assert world.verify().pending == {}
    assert world.cluster.configs == {}


def test_a_run_that_releases_a_dead_broker_ends(world: World) -> None:
    world.execute()
    world.cluster.finish(T0)
    world.cluster.alive.discard(BrokerId(2))
    left = set(world.verify().pending)
    (run,) = world.runs.unfinished()
    held = held_on(run, b(2, 7))
    assert set(held) == left
    world.runs.update(without_values(run, held))
    assert world.verify().pending == {}
    assert (world.runs.unfinished(), set(world.cluster.configs)) == ((), left)


@pytest.fixture
def leaderless(world: World) -> World:
    """Broker 3, the only source of two running moves, dies for good. One of them has ended."""
    for name in (T0, T1):
        world.cluster.partitions[name] = PartitionReplicas(replicas=b(3), leader=BrokerId(3), isr=b(3))
    world.execute(Plan(targets={T0: b(1), T1: b(1)}))
    world.cluster.finish(T1)
    world.cluster.partitions[T1] = replace(world.cluster.partitions[T1], leader=BrokerId(1))
    world.cluster.partitions[T0] = replace(world.cluster.partitions[T0], leader=None)
    world.cluster.alive.remove(BrokerId(3))
    return world


def test_a_run_with_a_submitted_move_without_a_leader_can_be_resumed(leaderless: World) -> None:
    """Nothing is left to submit. The move ends after the partition has a leader again."""
    world, gone = leaderless, b(3)
    (run,) = world.runs.unfinished()
    run = without_values(run, held_on(run, gone))
    prepared = prepare_again(world.ports, run)
    done = recover(run, prepared, lambda _: None)
    assert (done.execution.started, done.verification.verdict) == ((), Progress.IN_PROGRESS)
    assert (world.open_runs(), world.cluster.configs[FOLLOWERS]) == (1, "0:1"), "the entry of the ended move is removed"
    world.cluster.finish(T0)
    world.verify(run.plan)
    left = {setting for setting in world.cluster.configs if setting.name != "3"}
    assert (world.open_runs(), left) == (0, set())


def test_an_abort_names_the_partition_that_a_dead_broker_leaves_without_a_leader(leaderless: World) -> None:
    world = leaderless
    (run,) = world.runs.unfinished()
    with pytest.raises(Refused, match=r"Unknown broker id 3 .* Start broker 3, because the run cannot") as why:
        prepare_again(world.ports, backwards(run), force=True)
    assert "t-0 can only get a leader by an unclean election, which can lose data" in str(why.value)
    assert "use a plan" not in str(why.value)


def test_an_abort_that_needs_a_dead_broker_names_the_cancellation_of_the_running_moves(world: World) -> None:
    """The undo of T1, which has ended, needs broker 3. The move of T0 is still running."""
    world.cluster.partitions[T1] = PartitionReplicas(replicas=b(2, 3), leader=BrokerId(2), isr=b(2, 3))
    world.execute(Plan(targets={T0: b(1, 3), T1: b(2, 1)}))
    world.cluster.finish(T1)
    world.cluster.alive.remove(BrokerId(3))
    (run,) = world.runs.unfinished()
    with pytest.raises(Refused, match=r"because the run cannot be undone without this broker\. To cancel only") as why:
        prepare_again(world.ports, backwards(run))
    assert str(NextStep.CANCEL_MOVES) in str(why.value)
    what = cancellable(world.ports, run.plan, force=False)
    assert cancel(world.ports, what).cancelled == (T0,)


def test_a_rate_that_an_operator_changed_stays_and_is_reported(world: World) -> None:
    world.execute()
    world.cluster.write(rate_of(1), "5000")
    world.cluster.finish(T0)
    assert world.verify().notes[0].startswith("broker 1 leader.replication.throttled.rate is now 5000")
    assert world.cluster.configs == {rate_of(1): "5000"}


def test_a_throttle_of_another_tool_is_reported_and_left_unchanged(world: World) -> None:
    world.cluster.configs = {LEADERS: "0:1", rate_of(1): "7", rate_of(2): "7"}
    found = world.verify(Plan(targets={T0: b(1, 2)}))
    assert found.unknown == world.cluster.configs
    assert world.cluster.writes == 0


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["older first", "younger first"])
def test_the_last_of_two_runs_restores_everything(world: World, order: tuple[int, int]) -> None:
    world.cluster.configs = {rate_of(1): "7"}
    plans = [PLAN, Plan(targets={T1: b(1, 3)})]
    world.execute()
    world.execute(plans[1], rate=2000, additional=True)
    names = [T0, T1]
    first, last = order
    world.cluster.finish(names[first])
    (note,) = world.verify(plans[first]).notes
    assert "is open and also holds rates: " in note
    assert world.cluster.configs[rate_of(1)] == "2000"
    assert world.cluster.configs[FOLLOWERS] == f"{last}:3"
    world.cluster.finish(names[last])
    assert world.verify(plans[last]).notes == ()
    assert world.cluster.configs == {rate_of(1): "7"}


def test_verify_of_a_deleted_topic_restores_the_rates(world: World) -> None:
    world.execute()
    world.cluster.partitions.clear()
    for setting in (LEADERS, FOLLOWERS):
        world.cluster.write(setting, None)
    assert world.verify().verdict is Progress.ELSEWHERE
    assert world.cluster.configs == {}


def test_removed_parts_of_a_throttle_in_use_are_reported_and_set_again_on_request(world: World) -> None:
    world.execute()
    throttled = dict(world.cluster.configs)
    world.cluster.write(FOLLOWERS, None)
    world.cluster.write(rate_of(2), None)
    found = world.verify()
    assert found.verdict is Progress.IN_PROGRESS
    assert found.lost == (FOLLOWERS, rate_of(2))
    world.execute()
    assert world.cluster.configs == throttled
    world.cluster.finish(T0)
    world.verify()
    assert world.cluster.configs == {}


def test_entries_are_removed_with_their_partition_and_rates_with_the_last(world: World) -> None:
    world.execute(Plan(targets={T0: b(1, 3), T1: b(1, 3)}))
    world.cluster.finish(T1)
    found = world.verify(Plan(targets={T0: b(1, 3), T1: b(1, 3)}))
    assert found.verdict is Progress.IN_PROGRESS
    assert world.cluster.configs == THROTTLE
    world.cluster.finish(T0)
    assert world.verify(Plan(targets={T0: b(1, 3), T1: b(1, 3)})).verdict is Progress.DONE
    assert world.cluster.configs == {}
    assert world.open_runs() == 0


def test_a_recreated_topic_is_not_part_of_the_run(world: World) -> None:
    world.execute()
    world.cluster.topic_ids["t"] = "another"
    world.cluster.partitions[T0] = PartitionReplicas(replicas=b(2), leader=BrokerId(2), isr=b(2))
    found = world.verify()
    assert (found.verdict, found.notes) == (
        Progress.ELSEWHERE,
        ("topic t was deleted and created again after the run began. kquota leaves the new topic unchanged",),
    )
    assert {setting for setting in world.cluster.configs if setting.kind == "topic"} == {LEADERS, FOLLOWERS}
    assert world.open_runs() == 0


def test_executing_the_plan_again_moves_a_recreated_topic(world: World) -> None:
    world.execute()
    world.cluster.topic_ids["t"] = "another"
    world.cluster.partitions[T0] = PartitionReplicas(replicas=b(2, 4), leader=BrokerId(2), isr=b(2, 4))
    for setting in (LEADERS, FOLLOWERS):
        world.cluster.write(setting, None)
    done = world.execute()
    assert (done.started, done.rollback.targets) == ((T0,), {T0: b(2, 4)})
    world.cluster.finish(T0)
    assert world.verify().pending == {}
    assert (world.cluster.configs, world.open_runs()) == ({}, 0)


def test_a_host_without_the_record_removes_what_the_plan_proves(world: World, tmp_path: Path) -> None:
    world.cluster.write(LEADERS, "9:9,0:x")
    world.execute()
    world.cluster.finish(T0)
    elsewhere = replace(world.ports, runs=alone(tmp_path / "elsewhere"))
    found = verify(elsewhere, PLAN)
    assert {change.setting: change.after for change in found.restored} == {LEADERS: "9:9,0:x", FOLLOWERS: None}
    rates = {s: value for s, value in THROTTLE.items() if not s.is_list}
    assert found.unknown == {LEADERS: "9:9,0:x"} | rates, "another host may need them"
    cleared = verify(elsewhere, PLAN, clear_all=True)
    assert (cleared.verdict, cleared.unknown) == (Progress.DONE, {})
    assert world.cluster.configs == {}


def test_a_proven_entry_that_cannot_be_removed_is_pending(world: World, tmp_path: Path) -> None:
    world.execute()
    world.cluster.finish(T0)
    world.cluster.broken = {LEADERS: Refused("not allowed")}
    found = verify(replace(world.ports, runs=alone(tmp_path / "elsewhere")), PLAN)
    assert [change.setting for change in found.restored] == [FOLLOWERS]
    assert {setting: str(why) for setting, why in found.pending.items()} == {LEADERS: "not allowed"}


NOT_PROVEN = {
    "a whole topic's throttle names the same on both sides": ("0:1,0:3", "0:1,0:3"),
    "no follower": ("0:1,0:2", None),
    "no follower, and every replica of the plan is a leader": ("0:1,0:3", None),
    "a follower that is not in the plan": ("0:1,0:2", "0:4"),
    "a replica that stays is not the leader": ("0:2", "0:3"),
    "all of it": ("*", "0:3"),
}


@pytest.mark.parametrize(("leaders", "followers"), NOT_PROVEN.values(), ids=NOT_PROVEN)
def test_throttles_that_the_plan_does_not_prove_stay(world: World, leaders: str, followers: str | None) -> None:
    world.cluster.write(LEADERS, leaders)
    world.cluster.write(FOLLOWERS, followers)
    world.cluster.partitions[T0] = PartitionReplicas(replicas=b(1, 3), leader=BrokerId(1), isr=b(1, 3))
    before = dict(world.cluster.configs)
    assert world.verify().restored == ()
    assert world.cluster.configs == before


def test_entries_of_an_open_run_do_not_prove_that_entries_of_another_tool_are_of_the_plan(world: World) -> None:
    """`throttle set --recovering 3` adds 0:3 to the followers. With another tool's 0:1 it looks like a move to 3."""
    world.cluster.write(LEADERS, "0:1")
    world.cluster.partitions[T0] = PartitionReplicas(replicas=b(1, 3), leader=BrokerId(1), isr=b(1, 3))
    recovering = throttle_wanted.new(throttle_wanted.recovery(BrokerId(3)), None, world.clock.now(), world.runs.me)
    world.runs.begin(taking(recovering, {FOLLOWERS: ("0:3",)}, {FOLLOWERS: None}, ()))
    world.cluster.write(FOLLOWERS, "0:3")
    before = dict(world.cluster.configs)
    assert world.verify().restored == ()
    assert world.cluster.configs == before


FOREIGN = {
    # lists that another tool set for T0's move from 1,2 to 1,3, and the entries that a --cancel without a record leaves
    "just those of the move": ({LEADERS: "0:1,0:2", FOLLOWERS: "0:3"}, {}),
    "among others' entries": ({LEADERS: "0:1,0:2,7:7", FOLLOWERS: "0:3,7:8"}, {LEADERS: "7:7", FOLLOWERS: "7:8"}),
    "beside an entry that no broker can read": ({LEADERS: "0:1,0:2,0:x", FOLLOWERS: "0:3"}, {LEADERS: "0:x"}),
    "one more than the move's": ({LEADERS: "0:1,0:2,0:3", FOLLOWERS: "0:3"}, None),
    "one less": ({LEADERS: "0:1", FOLLOWERS: "0:3"}, None),
    "every replica": ({LEADERS: "*", FOLLOWERS: "0:3"}, None),
    "half of the lists": ({FOLLOWERS: "0:3"}, None),
}


@pytest.mark.parametrize(("lists", "left"), FOREIGN.values(), ids=FOREIGN.keys())
def test_entries_of_another_tool_are_removed_with_the_cancelled_move(
    world: World, lists: dict[Setting, str], left: dict[Setting, str] | None
) -> None:
    world.cluster.submit({T0: b(1, 3)})
    world.cluster.configs.update(lists)
    assert world.verify().restored == ()
    assert world.cluster.configs == lists, "the partition moves, so its throttle must stay"
    what = cancellable(world.ports, PLAN, force=False)
    cancel(world.ports, what)
    assert world.cluster.partitions[T0].replicas == b(1, 2)
    assert world.cluster.configs == (lists if left is None else left)


def test_a_cancellation_that_preserves_the_throttle_restores_nothing(world: World) -> None:
    world.execute()
    done = cancel(world.ports, cancellable(world.ports, PLAN, force=False), preserve=True)
    assert (done.cancelled, done.verification.restored) == ((T0,), ())
    assert (world.cluster.configs, world.open_runs()) == (THROTTLE, 1)


@pytest.mark.parametrize(
    ("error", "cancels", "listed", "waiting"),
    [
        pytest.param(Refused("no"), False, True, (T0,), id="refused"),
        pytest.param(Refused("no"), True, True, (), id="refused after the moves were cancelled"),
        pytest.param(Refused("no"), False, False, (), id="refused, and the running moves are unknown"),
        pytest.param(Unreachable("late"), False, True, (), id="unknown"),
    ],
)
def test_only_a_cancellation_that_is_refused_while_all_moves_run_lets_later_waves_start(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    error: KquotaError,
    cancels: bool,
    listed: bool,
    waiting: tuple[TopicPartition, ...],
) -> None:
    """If the moves may be cancelled, the run must not submit them again. Over brokers, the first of two requests can
    cancel the moves before the second is refused.
    """

    def unlisted(_: object) -> NoReturn:
        raise Unreachable("the controller went away")

    def fail(_: object) -> NoReturn:
        if cancels:
            world.cluster.cancel(T0)
        if not listed:
            monkeypatch.setattr(world.cluster, "snapshot", unlisted)
        raise error

    world.execute()
    [run] = world.runs.unfinished()
    world.runs.update(replace(run, handed_over=frozenset()))
    what = cancellable(world.ports, PLAN, force=False)
    monkeypatch.setattr(world.cluster, "submit", fail)
    with pytest.raises(KquotaError, match=str(error)):
        cancel(world.ports, what)
    [run] = world.runs.unfinished()
    assert run.waiting == waiting


def test_cancelling_a_partition_of_another_run_leaves_entries_that_were_set_before(world: World) -> None:
    world.cluster.configs[FOLLOWERS] = "0:3"
    world.execute()
    wider = Plan(targets={**PLAN.targets, T1: b(1, 2)})
    cancel(world.ports, cancellable(world.ports, wider, force=False))
    assert world.cluster.configs[FOLLOWERS] == "0:3"
    assert world.verify().pending == {}
    assert (world.cluster.configs, world.open_runs()) == ({FOLLOWERS: "0:3"}, 0)


def test_cancelling_a_partition_of_another_run_leaves_entries_that_look_like_those_of_its_move(world: World) -> None:
    """The run did not set them, so its record has no entry of this topic."""
    lists = {LEADERS: "0:1,0:2", FOLLOWERS: "0:3"}
    world.cluster.configs.update(lists)
    world.execute()
    wider = Plan(targets={**PLAN.targets, T1: b(1, 2)})
    cancel(world.ports, cancellable(world.ports, wider, force=False))
    assert {setting: world.cluster.configs.get(setting) for setting in lists} == lists
    assert world.verify().pending == {}
    assert (world.cluster.configs, world.open_runs()) == (lists, 0)


def test_a_cancelled_plan_with_a_deleted_topic_restores_its_throttle(world: World) -> None:
    plan = Plan(targets={T0: b(1, 3), U0: b(1, 3)})
    world.execute(plan)
    del world.cluster.partitions[U0]
    done = cancel(world.ports, cancellable(world.ports, plan, force=False))
    assert (done.cancelled, world.cluster.partitions[T0].target) == ((T0,), b(1, 2))
    assert {s for s in world.cluster.configs if s.name != "u"} == set()
    assert world.open_runs() == 0
