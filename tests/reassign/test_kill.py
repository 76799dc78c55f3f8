"""Killed at any step, in any way: one more command completes or reverts the run, and restores every value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kquota.errors import KquotaError
from kquota.measure import ByteRate
from kquota.reassign.cancellation import cancel, cancellable
from kquota.reassign.execution import carry_out
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.port import MovePorts
from kquota.reassign.preparation import MoveRequest, prepare, prepare_again
from kquota.reassign.recovery import backwards, recover
from kquota.reassign.verification import verify
from kquota.settings.resource import Setting
from kquota.stores.record.runs import RecordedRuns
from kquota.terms import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, BrokerId, TopicPartition
from tests.reassign.fake import MemoryCluster, Ticks
from tests.reassign.mortal import Death, Fate, Killed, MortalCluster, MortalRuns
from tests.reassign.records import alone


def b(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
ORIGINAL = {T0: b(1, 2), T1: b(2, 1), U0: b(3)}
PLAN = Plan(targets={T0: b(1, 3), T1: b(3, 4), U0: b(3, 1)})
PRIOR = {
    Setting.of_topic("t", LEADER_REPLICAS): "0:1,9:9",  # an entry that the move needs, and an entry of another tool
    Setting.of_topic("u", FOLLOWER_REPLICAS): "",
    Setting.of_broker(BrokerId(1), LEADER_RATE): "1000",  # equal to kquota's
    Setting.of_broker(BrokerId(2), FOLLOWER_RATE): "77",
    Setting.of_topic("t", "retention.ms"): "5",
}
ASKED = MoveRequest(throttle=ByteRate(1000))

Command = Callable[["Stage", MovePorts], object]


class Stage:
    """One cluster, one state folder, and an operator."""

    def __init__(self, folder: Path, largest: int | None) -> None:
        self.folder = folder
        self.cluster = MemoryCluster(
            alive=set(b(1, 2, 3, 4)),
            partitions={name: PartitionReplicas(replicas=r, leader=r[0], isr=r) for name, r in ORIGINAL.items()},
            configs=dict(PRIOR),
            largest_submission=largest,
        )
        # Between two waves the moves of the first wave end.
        self.clock = Ticks(on_sleep=lambda seconds: self.finish() if seconds >= 1 else None)

    @property
    def runs(self) -> RecordedRuns:
        return alone(self.folder)

    @property
    def ports(self) -> MovePorts:
        return MovePorts(cluster=self.cluster, runs=self.runs, clock=self.clock)

    def finish(self) -> None:
        for name, now in self.cluster.partitions.items():
            if now.moving:
                self.cluster.finish(name)

    def execute(self, ports: MovePorts) -> None:
        carry_out(prepare(ports, PLAN, ASKED))

    def verify(self, ports: MovePorts) -> None:
        verify(ports, PLAN)

    def cancel(self, ports: MovePorts) -> None:
        cancel(ports, cancellable(ports, PLAN, force=False))

    def resume(self, ports: MovePorts) -> None:
        for run in ports.runs.unfinished():
            recover(run, prepare_again(ports, run), lambda _: None)

    def abort(self, ports: MovePorts) -> None:
        for run in ports.runs.unfinished():
            back = backwards(run)
            recover(back, prepare_again(ports, back), lambda _: None)

    def part(self) -> None:
        """One of the moves has ended, the others continue."""
        self.cluster.finish(T1)

    def where(self) -> dict[TopicPartition, tuple[BrokerId, ...]]:
        return {name: now.replicas for name, now in self.cluster.partitions.items()}

    def throttled(self) -> dict[Setting, str]:
        return {s: v for s, v in self.cluster.configs.items() if PRIOR.get(s) != v}


COMMANDS: dict[str, tuple[list[Command], Command]] = {
    "execute": ([], Stage.execute),
    "verify while it moves": ([Stage.execute, lambda stage, *_: stage.part()], Stage.verify),
    "verify at the end": ([Stage.execute, lambda stage, *_: stage.finish()], Stage.verify),
    "cancel": ([Stage.execute, lambda stage, *_: stage.part()], Stage.cancel),
    "abort": ([Stage.execute, lambda stage, *_: stage.part()], Stage.abort),
    "resume": ([Stage.execute, lambda stage, *_: stage.part()], Stage.resume),
}
WAYS = {f"{name}, at once": (name, None) for name in COMMANDS} | {
    # As over ZooKeeper: one submission at a time, and no cancel during a move.
    f"{name}, wave by wave": (name, 100)
    for name in ("execute", "verify while it moves", "verify at the end", "resume")
}


def killed(stage: Stage, command: Command, fate: Fate) -> bool:
    """True if the command died."""
    try:
        command(
            stage,
            MovePorts(
                cluster=MortalCluster(stage.cluster, fate), runs=MortalRuns(stage.folder, fate), clock=stage.clock
            ),
        )
    except (Killed, KquotaError):
        assert fate.reached
    return fate.reached


def fates(tmp_path: Path, name: str, largest: int | None, death: Death) -> list[Stage]:
    """Yield a stage for each n, in which the command died at step n."""
    before, command = COMMANDS[name]
    found: list[Stage] = []
    while True:
        stage = Stage(tmp_path / str(len(found)), largest)
        for earlier in before:
            earlier(stage, stage.ports)
        if not killed(stage, command, Fate(n=len(found) + 1, death=death)):
            assert found
            return found
        found.append(stage)


@pytest.mark.parametrize("death", Death, ids=lambda death: death.value)
@pytest.mark.parametrize(("name", "largest"), WAYS.values(), ids=WAYS)
class TestKilledAtEveryStep:
    def test_resume_has_the_same_result_as_an_uninterrupted_run(
        self, tmp_path: Path, name: str, largest: int | None, death: Death
    ) -> None:
        for n, stage in enumerate(fates(tmp_path, name, largest, death), 1):
            begun = bool(stage.runs.unfinished())
            aborting = begun and stage.runs.unfinished()[0].aborting
            cancelled = name == "cancel"
            stage.resume(stage.ports)
            if not begun and name == "execute":
                assert stage.throttled() == {}, f"step {n}: neither recorded nor restored"
                stage.clock.sleep(1)
                stage.execute(stage.ports)
            stage.finish()
            for _ in range(2):  # work that a dead kquota had not submitted is submitted, and then the run ends
                stage.resume(stage.ports)
                stage.finish()
            verify(stage.ports, PLAN)
            assert stage.cluster.configs == PRIOR, f"step {n}"
            assert stage.runs.unfinished() == (), f"step {n}"
            if not aborting and not (cancelled and not begun) and name != "abort":
                assert stage.where() == dict(PLAN.targets), f"step {n}"
            if aborting:
                assert stage.where() == ORIGINAL, f"step {n}"

    def test_abort_restores_the_initial_state(
        self, tmp_path: Path, name: str, largest: int | None, death: Death
    ) -> None:
        for n, stage in enumerate(fates(tmp_path, name, largest, death), 1):
            begun = bool(stage.runs.unfinished())
            if largest is not None:
                stage.finish()
            stage.abort(stage.ports)
            stage.finish()
            stage.abort(stage.ports)
            assert stage.cluster.configs == PRIOR, f"step {n}"
            assert stage.runs.unfinished() == (), f"step {n}"
            if begun or not stage.runs.every():
                assert stage.where() == ORIGINAL, f"step {n}"


def test_verify_after_a_kill_restores_all_throttles_once_nothing_moves(tmp_path: Path) -> None:
    """A cron job restores throttles although a kquota died, and the run can still be resumed or aborted."""
    for n, stage in enumerate(fates(tmp_path, "execute", None, Death.AFTER), 1):
        stage.finish()
        verify(stage.ports, PLAN)
        assert stage.cluster.configs == PRIOR, f"step {n}"
        stage.resume(stage.ports)
        stage.finish()
        stage.resume(stage.ports)
        assert stage.cluster.configs == PRIOR, f"step {n}"
        assert stage.runs.unfinished() == (), f"step {n}"


@pytest.mark.parametrize("back", [Stage.abort, Stage.resume], ids=["abort", "resume"])
@pytest.mark.parametrize("between", [[], [Stage.verify]], ids=["at once", "after a verify"])
def test_a_lagging_broker_does_not_lose_a_prior_value(tmp_path: Path, between: list[Command], back: Command) -> None:
    """KRaft: a lagging broker still shows the value before the last write of the kquota that died."""
    for n in range(1, 100):
        stage = Stage(tmp_path / str(n), None)
        stage.cluster.lag = 3
        if not killed(stage, Stage.execute, Fate(n=n, death=Death.AFTER)):
            return
        for command in (*between, back):
            command(stage, stage.ports)
        stage.finish()
        back(stage, stage.ports)
        assert stage.cluster.configs == PRIOR, f"step {n}"
        assert stage.runs.unfinished() == (), f"step {n}"
