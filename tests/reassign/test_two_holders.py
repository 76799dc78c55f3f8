"""A process loses the lock to another one. Neither its journal nor its last write on the way leaves a throttle set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kquota.errors import Busy
from kquota.measure import ByteRate
from kquota.reassign.port import MovePorts
from kquota.reassign.run import Owner, Run, at_rate
from kquota.reassign.throttle_writes import restore_run
from kquota.stores.record import runs as recorded
from kquota.stores.state import runs as journals
from kquota.terms import BrokerId
from kquota.throttle.set_and_clear import adjust
from tests.reassign.fake import MemoryCluster, Ticks
from tests.stores.record.hosts import RATE, RUN, TIME, Team, on_another_machine

OTHER = replace(RUN, id="20260301T123000Z-ba9876543210")


def test_a_run_that_another_leaves_its_rate_to_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team, host = Team(tmp_path), "cron"

    def me() -> Owner:
        return Owner(user="alice", host=host, pid=7, since=TIME)

    monkeypatch.setattr(recorded, "me", me)
    monkeypatch.setattr(journals, "me", me)
    on_another_machine(monkeypatch, "cron")
    cluster = MemoryCluster(alive={BrokerId(1)}, configs={RATE: "5"})
    cron, jump = team.process("cron"), team.process("jump")

    with pytest.raises(Busy, match="taken over"), cron.hold("throttle set"):
        cron.begin(RUN)
        cron.begin(OTHER)
        host = "jump"
        on_another_machine(monkeypatch, host)
        with jump.hold("resume", take_over=True):
            host = "cron"
            _end(cron, OTHER)
    with jump.hold("resume", take_over=True):
        host = "jump"
        open_runs = {run.id: run for run in jump.unfinished()}
        restore_run(MovePorts(cluster=cluster, runs=jump, clock=Ticks()), open_runs[RUN.id])
    host = "cron"
    on_another_machine(monkeypatch, host)
    with (cron := team.process("cron")).hold("verify"):
        (left,) = cron.unfinished()
        assert left.id == OTHER.id
        assert cluster.configs == {RATE: "5"}
        restore_run(MovePorts(cluster=cluster, runs=cron, clock=Ticks()), left)
    assert cluster.configs == {}


def test_a_run_whose_rate_another_sets_again_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The previous holder has restored the rate, and its journal says that the run has ended."""
    team, host = Team(tmp_path), "cron"

    def me() -> Owner:
        return Owner(user="alice", host=host, pid=7, since=TIME)

    monkeypatch.setattr(recorded, "me", me)
    monkeypatch.setattr(journals, "me", me)
    on_another_machine(monkeypatch, "cron")
    cluster = MemoryCluster(alive={BrokerId(1)})
    cron, jump = team.process("cron"), team.process("jump")

    with pytest.raises(Busy, match="taken over"), cron.hold("resume"):
        cron.begin(RUN)
        host = "jump"
        on_another_machine(monkeypatch, host)
        with jump.hold("throttle set", take_over=True):
            host = "cron"
            _end(cron, RUN)
    with jump.hold("throttle set", take_over=True):
        host = "jump"
        (run,) = jump.unfinished()
        adjust(MovePorts(cluster=cluster, runs=jump, clock=Ticks()), run, at_rate(run, ByteRate(5)))
        assert cluster.configs == {RATE: "5"}
    host = "cron"
    on_another_machine(monkeypatch, host)
    with (cron := team.process("cron")).hold("verify"):
        assert [run.id for run in cron.unfinished()] == [RUN.id]


def test_a_late_write_of_the_previous_holder_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It had checked its lock before it lost it, and its write is on the way for at most `late_seconds`."""
    team = Team(tmp_path)
    cluster = MemoryCluster(alive={BrokerId(1)}, configs={RATE: "5"})
    on_the_way = [10.0]

    def arrives(seconds: float) -> None:
        on_the_way[0] -= seconds
        if on_the_way[0] <= 0 < on_the_way[0] + seconds:
            cluster.write(RATE, "5")

    runs = team.process("jump")
    with runs.hold("abort"):
        runs.begin(RUN)
        clock = Ticks(arrives)
        monkeypatch.setattr(recorded.RecordedRuns, "late_seconds", property(lambda _: max(0.0, 30.0 - clock.slept)))
        assert restore_run(MovePorts(cluster=cluster, runs=runs, clock=clock), RUN).pending == {}
        clock.sleep(30.0)
    assert cluster.configs == {}


def test_a_process_that_has_seen_another_holder_writes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own lease has not ended, because only the clock of the other host has advanced."""
    team = Team(tmp_path)
    elsewhere = Team(tmp_path, topic=team.topic)
    on_another_machine(monkeypatch, "cron")
    with pytest.raises(Busy, match="taken over"), (cron := team.process("cron")).hold("execute"):
        cron.begin(RUN)
        on_another_machine(monkeypatch, "jump")
        with elsewhere.process("jump").hold("abort", take_over=True):
            team.clock.now += 2
            with pytest.raises(Busy):
                cron.unfinished()
            cron.must_hold()


def _end(runs: recorded.RecordedRuns, run: Run) -> None:
    """The line is in the journal before the record refuses it."""
    runs.update(replace(run, finished=TIME))
