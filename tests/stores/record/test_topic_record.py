"""Runs in a topic: every host sees them, one host writes, others watch its lease, and a paused host writes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kquota.errors import Busy, Refused, Unknown
from kquota.reassign.plan import Plan
from kquota.reassign.port import MovePorts
from kquota.reassign.run import Owner
from kquota.reassign.throttle_writes import restore_run
from kquota.stores.record import lease, topic
from kquota.stores.record import runs as recorded
from kquota.stores.record.lease import HEARTBEAT_SECONDS, LEASE_SECONDS, WRITE_SECONDS
from kquota.stores.state import runs as journals
from kquota.stores.state.log import KeyAndValue
from kquota.terms import BrokerId, TopicPartition
from tests.reassign.fake import MemoryCluster, Ticks
from tests.stores.record.fake import Fault, MemoryLog
from tests.stores.record.hosts import RATE, RUN, TIME, Team, faster, on_another_machine


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


def test_every_host_sees_a_run_and_its_end(team: Team) -> None:
    one = team.process("a")
    with one.hold("execute"):
        one.begin(RUN)
    assert team.process("b").unfinished() == (RUN,)
    other = team.process("b")
    with other.hold("verify"):
        other.update(replace(RUN, finished=TIME))
    for host in "abc":
        assert team.process(host).unfinished() == ()
        assert [run.finished for run in team.process(host).every()] == [TIME]


def test_versions_only_grow_for_all_writers(team: Team) -> None:
    for n, host in enumerate("abaacb", 1):
        runs = team.process(host)
        with runs.hold("set"):
            if n == 1:
                runs.begin(RUN)
            else:
                runs.update(faster(runs.unfinished()[0], n))
        for reader in "abc":
            (run,) = team.process(reader).unfinished()
            assert run.stamp is not None
            assert run.stamp.version == n
            assert run.stamp.by is not None
            assert run.stamp.by.pid == os.getpid()


def test_the_error_of_a_second_writer_names_the_first(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    on_another_machine(monkeypatch, "bastion")
    with (
        team.process("a").hold("reassign-partitions --execute"),
        pytest.raises(Busy, match=r"\(reassign-partitions --execute, pid 7 on bastion as alice, since "),
        team.process("b").hold("verify"),
    ):
        pass
    with team.process("b").hold("verify"):
        pass


def test_a_lock_is_free_after_a_whole_lease_without_change(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    on_another_machine(monkeypatch, "bastion")
    dead = team.process("a")
    held = dead.hold("execute")  # and is killed
    held.__enter__()
    for age in (0.0, LEASE_SECONDS / 2, LEASE_SECONDS - 1):
        team.clock.now = 1000.0 + age
        with pytest.raises(Busy, match=rf"the lock is free in {LEASE_SECONDS - age:.0f} s"):
            team.process("b").hold("verify").__enter__()
    team.clock.now = 1000.0 + LEASE_SECONDS
    with pytest.raises(Busy), team.process("c").hold("verify"):
        pass  # it looks for the first time
    with team.process("b").hold("verify"):
        pass


def test_a_renewal_restarts_the_lease(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    on_another_machine(monkeypatch, "bastion")
    alive = team.process("a")
    with alive.hold("execute"):
        for _ in range(20):
            with pytest.raises(Busy), team.process("b").hold("verify"):
                pass
            team.clock.now += HEARTBEAT_SECONDS + 1
            alive.keep_alive()


def test_a_patient_command_waits_for_the_dead_and_not_for_the_living(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_another_machine(monkeypatch, "bastion")
    dead = team.process("a")
    held = dead.hold("execute")
    held.__enter__()
    with team.process("b", patient=True).hold("move abort"):
        pass
    assert team.clock.now - 1000.0 == LEASE_SECONDS
    assert len(team.said) == 1
    assert "Waiting up to 30 s for its heartbeat" in team.said[0]

    alive = team.process("a")
    held = alive.hold("execute")
    held.__enter__()
    began, sleep = team.clock.now, team.clock.sleep

    def slept(seconds: float) -> None:
        sleep(seconds)
        if team.clock.now - began > HEARTBEAT_SECONDS:
            alive.keep_alive()

    monkeypatch.setattr(team.clock, "sleep", slept)
    with pytest.raises(Busy), team.process("b", patient=True).hold("move abort"):
        pass
    assert team.clock.now - began < LEASE_SECONDS


def test_without_a_boot_id_a_patient_command_waits_for_one_lease(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS. The file of sightings is useless there, and the command waited without an end."""
    on_another_machine(monkeypatch, "bastion")
    monkeypatch.setattr(lease, "boot", lambda: None)
    held = team.process("a").hold("execute")
    held.__enter__()
    sleep = team.clock.sleep

    def slept(seconds: float) -> None:
        assert team.clock.now - 1000.0 < LEASE_SECONDS
        sleep(seconds)

    monkeypatch.setattr(team.clock, "sleep", slept)
    with team.process("b", patient=True).hold("move abort"):
        pass
    assert team.clock.now - 1000.0 == LEASE_SECONDS


def test_a_dead_process_of_this_machine_holds_nothing(team: Team) -> None:
    lock = {"format": 1, "cluster": "cluster", "term": 3, "beat": 9, "released": False}
    runs = team.process("a")
    with runs.hold("execute"):
        mine = json.loads(next(i.value for _, i in reversed(team.topic.items) if i.key == "lock") or b"")
    team.topic.write([("lock", json.dumps({**mine, **lock, "pid": 2**22 + 1}).encode())])
    with team.process("b").hold("verify"):
        pass


@pytest.mark.parametrize("slept", [0.0, HEARTBEAT_SECONDS - 1, LEASE_SECONDS, 10 * LEASE_SECONDS])
def test_a_previous_owner_writes_nothing_and_names_the_new_owner(
    team: Team, monkeypatch: pytest.MonkeyPatch, slept: float
) -> None:
    """The paused owner: its own clock or the record's next append stops any further step."""
    on_another_machine(monkeypatch, "bastion")
    old = team.process("a")
    with (
        pytest.raises(Busy, match=r"has taken over the lock\. Nothing more is written") as raised,
        old.hold("execute"),
    ):
        old.begin(RUN)
        on_another_machine(monkeypatch, "jump-host")
        new = team.process("b")
        with new.hold("abort", take_over=True):
            new.update(replace(RUN, aborting=True, finished=TIME))
        team.clock.now += slept
        old.must_hold()
        old.update(faster(RUN, 9))
    assert "jump-host" in str(raised.value)
    assert team.process("a").unfinished() == ()


@pytest.mark.parametrize("writes", ["must_hold", "update", "keep_alive"])
def test_a_late_owner_does_not_regain_the_lock_by_reading(
    team: Team, monkeypatch: pytest.MonkeyPatch, writes: str
) -> None:
    """Its next append would not be stale, because it has read everything, and would replace the other's lock."""
    on_another_machine(monkeypatch, "bastion")
    old = team.process("a")
    with pytest.raises(Busy, match=r"jump-host as alice.* has taken over"), old.hold("execute"):
        old.begin(RUN)
        on_another_machine(monkeypatch, "jump-host")
        held = team.process("b").hold("abort", take_over=True)
        held.__enter__()
        assert old.unfinished() == (RUN,)
        team.clock.now += HEARTBEAT_SECONDS + 1
        call = getattr(old, writes)
        call(faster(RUN, 9)) if writes == "update" else call()
    assert team.process("c").unfinished() == (RUN,)


def test_a_previous_owner_does_not_continue_from_the_values_of_the_new_one(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise its journal would number its old values as the successors of values that it never read."""
    on_another_machine(monkeypatch, "bastion")
    old = team.process("a")
    with pytest.raises(Busy, match=r"jump-host as alice.* has taken over"), old.hold("execute"):
        old.begin(RUN)
        on_another_machine(monkeypatch, "jump-host")
        other = team.process("b")
        with other.hold("abort", take_over=True):
            other.update(faster(RUN, 8))
        assert old.unfinished()
        old.update(faster(RUN, 9))
    with team.process("a").hold("verify"):
        assert [run.rate for run in team.process("c").unfinished()] == [8]


def test_a_host_does_not_send_later_what_the_takeover_stopped(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new owner changed other runs only, so the version in the record is still the one of the previous owner."""
    on_another_machine(monkeypatch, "bastion")
    old = team.process("a")
    with pytest.raises(Busy, match=r"jump-host as alice.* has taken over"), old.hold("throttle set"):
        old.begin(RUN)
        on_another_machine(monkeypatch, "jump-host")
        with team.process("b").hold("resume", take_over=True):
            pass
        old.update(faster(RUN, 9))
    with team.process("a").hold("verify"):
        assert [run.rate for run in team.process("a").unfinished()] == [RUN.rate]
    assert [run.rate for run in team.process("c").unfinished()] == [RUN.rate]


def test_a_later_takeover_does_not_take_back_what_was_sent(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same process loses the lock twice, as a command that adjusts a throttle for hours can."""
    on_another_machine(monkeypatch, "bastion")
    old, other = team.process("a"), team.process("b")
    with old.hold("execute"):
        old.begin(RUN)
    for rate, sent in ((9, False), (7, True)):
        on_another_machine(monkeypatch, "bastion")
        with pytest.raises(Busy, match=r"jump-host as alice.* has taken over"), old.hold("adjust"):
            if sent:
                old.update(faster(RUN, rate))
            on_another_machine(monkeypatch, "jump-host")
            with other.hold("resume", take_over=True):
                pass
            old.keep_alive() if sent else old.update(faster(RUN, rate))
            team.clock.now += HEARTBEAT_SECONDS + 1
            old.keep_alive()
    with team.process("a").hold("verify"):
        assert [run.rate for run in team.process("c").unfinished()] == [7]


def test_two_unsent_lines_do_not_override_one_of_another_host(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    on_another_machine(monkeypatch, "bastion")
    old = team.process("a")
    with old.hold("execute"):
        old.begin(RUN)
    for version in (2, 3):
        old._files.write(faster(RUN, 60 + version), old._shared.identity, version)  # and was killed
    monkeypatch.setattr(journals, "me", lambda: Owner(user="alice", host="jump-host", pid=7, since=TIME))
    other = team.process("b")
    with other.hold("set"):
        other.update(faster(RUN, 8))
    with team.process("a").hold("verify"):
        assert [run.rate for run in team.process("c").unfinished()] == [8]
    assert "was continued on another host" in team.warned[-1]


def test_a_continued_run_overrides_an_unsent_end(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    old = team.process("a")
    with old.hold("cancel"):
        old.begin(RUN)
    old._files.write(replace(RUN, finished=TIME), old._shared.identity, 2)  # and was killed
    for module in (journals, recorded):
        monkeypatch.setattr(module, "me", lambda: Owner(user="alice", host="jump-host", pid=7, since=TIME))
    other = team.process("b")
    with other.hold("resume"):
        other.update(RUN)
        other.update(RUN)
    with team.process("a").hold("verify"):
        (run,) = team.process("c").unfinished()
        assert (run, run.stamp and run.stamp.version) == (RUN, 2)


def test_another_process_of_the_host_that_continues_a_run_overrides_an_unsent_end(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = team.process("a")
    with old.hold("execute"):
        old.begin(RUN)
    ended = team.process("b")
    with monkeypatch.context() as patch:
        patch.setattr(journals, "me", lambda: Owner(user="alice", host="jump-host", pid=7, since=TIME))
        ended._files.write(replace(RUN, finished=TIME), ended._shared.identity, 2)  # and was killed
    for module in (journals, recorded):
        monkeypatch.setattr(module, "me", lambda: Owner(user="alice", host="bastion", pid=8, since=TIME))
    later = team.process("a")
    with later.hold("resume"):
        later.update(RUN)
    with team.process("b").hold("verify"):
        assert [run.finished for run in team.process("c").unfinished()] == [None]


def test_a_host_paused_during_locking_does_not_hold_the_lock_of_another(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_another_machine(monkeypatch, "bastion")
    slow, append = team.process("a"), MemoryLog.append

    def paused_behind(log: MemoryLog, entries: Sequence[KeyAndValue]) -> None:
        append(log, entries)
        monkeypatch.setattr(MemoryLog, "append", append)
        on_another_machine(monkeypatch, "jump-host")
        team.process("b").hold("abort", take_over=True).__enter__()

    monkeypatch.setattr(MemoryLog, "append", paused_behind)
    with pytest.raises(Busy, match=r"jump-host as alice.* has taken over"), slow.hold("execute"):
        pass


def test_a_takeover_waits_until_the_old_owner_cannot_write(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have requested its lock a moment ago.

    Afterwards it writes only for a limited time without a new request.
    """
    on_another_machine(monkeypatch, "bastion")
    old = team.process("a")
    held = old.hold("execute")
    held.__enter__()
    with team.process("b").hold("abort", take_over=True):
        assert team.clock.waits == [WRITE_SECONDS]


def test_nothing_is_written_to_a_record_that_answers_late(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = team.process("a")
    write = team.topic.write

    def slow(entries: object) -> None:
        team.clock.now += WRITE_SECONDS + 1
        write(entries)  # type: ignore[arg-type]

    with pytest.raises(Busy, match="answered too late"), runs.hold("execute"):
        team.clock.now += HEARTBEAT_SECONDS + 1
        monkeypatch.setattr(team.topic, "write", slow)
        runs.must_hold()


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.NOT_WRITTEN])
def test_after_a_lost_answer_the_next_command_continues(team: Team, fault: Fault) -> None:
    """The journal was written first: it is one version ahead, or equal to the record."""
    runs = team.process("a")
    with pytest.raises(Unknown), runs.hold("execute"):
        runs.begin(RUN)
        team.topic.fault = fault
        runs.update(faster(RUN, 6))
    for host in "ab":
        runs = team.process(host)
        with runs.hold("verify"):
            (run,) = runs.unfinished()
            assert run.rate == (6 if host == "a" else 7)
            runs.update(faster(run, 7))


def test_a_host_that_could_not_see_the_record_loses_to_it(team: Team) -> None:
    runs = team.process("a")
    with runs.hold("execute"):
        runs.begin(RUN)
        runs.update(faster(RUN, 6))
    files = runs._files
    files.write(faster(RUN, 66), None, 3)  # alone, with --record none
    other = team.process("b")
    with other.hold("set"):
        other.update(faster(RUN, 8))
    assert team.process("a").unfinished()[0].rate == 8
    assert "was continued on another host" in team.warned[-1]


@pytest.mark.parametrize("version", [2, 3], ids=["at once", "later"])
@pytest.mark.parametrize("alone", [[], [3], [2], [2, 3, 4]], ids=["never", "ahead", "the same version", "many"])
def test_a_host_that_learns_an_end_only_reports_what_it_wrote_alone(
    team: Team, monkeypatch: pytest.MonkeyPatch, alone: Sequence[int], version: int
) -> None:
    old = team.process("a")
    with old.hold("execute"):
        old.begin(RUN)
    for number in alone:
        old._files.write(faster(RUN, 60 + number), None, number)  # with --record none
    with monkeypatch.context() as elsewhere:
        for module in (journals, recorded):
            elsewhere.setattr(module, "me", lambda: Owner(user="alice", host="jump-host", pid=7, since=TIME))
        other = team.process("b")
        with other.hold("verify"):
            for number in range(2, version):
                other.update(faster(RUN, 10 + number))
            other.update(replace(RUN, finished=TIME))
    for doing in ("verify", "throttle clear", "verify"):
        team.warned.clear()
        later = team.process("a")
        assert later.unfinished() == ()
        assert ["was continued on another host" in line for line in team.warned] == [True] * bool(alone)
        with later.hold(doing):
            assert later.settled
    team.topic.recreate()
    assert team.process("a").unfinished() == (), "the journal has the end"


def test_a_reader_after_compaction_sees_the_same_as_a_live_reader(team: Team) -> None:
    live = team.process("a")
    with live.hold("execute"):
        live.begin(RUN)
        for n in range(6, 30):
            live.update(faster(RUN, n))
            if n % 7 == 0:
                team.topic.compact()
        fresh = team.process("b")
        assert fresh.every() == live.every()
        assert [run.stamp for run in fresh.every()] == [run.stamp for run in live.every()]


def large(n: int) -> Plan:
    return Plan(
        targets={TopicPartition(f"{n:064x}{i:x}", i * 7919 % 100_003): (BrokerId(i % 977),) for i in range(20_000)}
    )


def test_a_large_plan_is_written_once_and_never_in_part(team: Team) -> None:
    runs, run = team.process("a"), replace(RUN, plan=large(1), rollback=large(2))
    with runs.hold("execute"):
        runs.begin(run)
        before = len(team.topic.items)
        runs.update(replace(run, handed_over=frozenset(list(run.plan.targets)[:3])))
        assert len(team.topic.items) - before == 2, "the sheet and a heartbeat"
        team.topic.compact()
    (found,) = team.process("b").unfinished()
    assert (found.plan, found.rollback, len(found.handed_over)) == (run.plan, run.rollback, 3)
    missing = next(i for i in team.topic.items if i[1].key.endswith("/0"))
    team.topic.items.remove(missing)
    fresh = team.process("c")
    assert fresh.unfinished() == ()
    assert fresh.unreadable == (RUN.id,)
    assert "is missing" in team.warned[-1]


def test_a_part_that_was_deleted_is_written_again(team: Team) -> None:
    """A value can come back, for example because a replica falls out of sync again."""
    runs, first = team.process("a"), replace(RUN, plan=large(1))
    with runs.hold("execute"):
        runs.begin(first)
        runs.update(replace(first, plan=large(2)))
        runs.begin(replace(RUN, id="other", finished=TIME))
        runs.update(first)
    (found,) = team.process("b").unfinished()
    assert found.plan == first.plan


def test_the_newest_ended_runs_stay(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic, "_ENDED", 5)
    for n in range(8):
        runs = team.process("a")
        with runs.hold("execute"):
            runs.begin(replace(RUN, id=f"run-{n}", finished=TIME, plan=large(n) if n in (1, 7) else RUN.plan))
    team.topic.compact()
    assert [run.id for run in team.process("b").every()] == [f"run-{n}" for n in range(3, 8)]
    parts = {i.key.split("/")[1] for _, i in team.topic.items if i.key.startswith("part/") and i.value is not None}
    assert parts == {"run-7"}


# Invalid values under a run's key, and the reported reasons.
FORGED = {
    "another format": (lambda d: {**d, "format": 3}, "it has format 3, and this kquota reads 2"),
    "another cluster": (lambda d: {**d, "cluster": "x"}, "it belongs to another cluster"),
    "another run": (lambda d: {**d, "run": {**d["run"], "id": "elsewhere"}}, "it contains another run"),
    "a config that is not a throttle": (
        lambda d: {**d, "run": {**d["run"], "taken": [{"kind": "topic", "name": "t", "key": "retention.ms"}]}},
        "is not a throttle key",
    ),
    "a version in text": (lambda d: {**d, "v": "7"}, "is not the version of a run"),
    "a part of nothing": (lambda d: {**d, "run": {**d["run"], "plan": {"part": "0" * 32}}}, "is missing"),
    "a list": (lambda _: [], "it is not a JSON object"),
}


@pytest.mark.parametrize(("forge", "why"), FORGED.values(), ids=FORGED)
def test_a_forged_record_is_reported_and_left_unchanged(team: Team, forge: object, why: str) -> None:
    """B7: the other run is still visible."""
    runs = team.process("a")
    with runs.hold("execute"):
        runs.begin(RUN)
    sheet = json.loads(next(i.value for _, i in team.topic.items if i.key == f"run/{RUN.id}") or b"")
    forged = forge({**sheet, "run": {**sheet["run"], "id": "forged"}})  # type: ignore[operator]
    team.topic.write([("run/forged", json.dumps(forged).encode()), ("run/../../x", b"{}")])
    found = team.process("b")
    assert found.unfinished() == (RUN,)
    assert found.unreadable == ("'../../x'", "forged")
    assert any("forged" in line and why in line for line in team.warned), team.warned


def test_a_lock_that_cannot_be_read_stops_writers_and_can_be_taken_over(team: Team) -> None:
    team.topic.write([("lock", b"[" * 100_000)])
    with pytest.raises(Refused, match="the lock cannot be read"), team.process("a").hold("execute"):
        pass
    assert team.process("a").unfinished() == ()
    with team.process("a").hold("abort", take_over=True):
        pass


def test_a_recreated_record_gets_the_open_runs_of_each_host(team: Team) -> None:
    runs = team.process("a")
    with runs.hold("execute"):
        runs.begin(RUN)
    team.topic.recreate()
    assert team.process("b").unfinished() == ()
    with team.process("a").hold("verify"):
        pass
    assert team.process("b").unfinished() == (RUN,)


def test_a_record_from_which_records_were_deleted_may_hide_runs(team: Team) -> None:
    """The first version of an open run is lost. Only the host that began the run still knows it."""
    runs = team.process("a")
    with runs.hold("execute"):
        runs.begin(RUN)
    assert (team.process("b").hidden, team.process("b").unseen) == (False, None)
    team.topic.truncate()
    elsewhere = team.process("b")
    assert (elsewhere.hidden, elsewhere.unfinished()) == (True, ())
    assert "records were deleted from topic" in str(elsewhere.unseen)
    assert team.process("a").unfinished() == (RUN,)
    with team.process("a").hold("verify"):
        pass
    assert (team.process("b").hidden, team.process("b").unfinished()) == (True, (RUN,))


def test_a_write_that_arrives_after_the_takeover_is_reverted(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old owner paused between its last check of the lock and its write, and its request waited in a broker."""
    on_another_machine(monkeypatch, "bastion")
    old = team.process("a")
    held = old.hold("execute")
    held.__enter__()
    old.begin(RUN)
    cluster = MemoryCluster(alive={BrokerId(1)}, configs={RATE: "5"})
    ticks = Ticks(on_sleep=lambda seconds: cluster.write(RATE, "5") if seconds >= 1 else None)
    on_another_machine(monkeypatch, "jump-host")
    new = team.process("b")
    with new.hold("abort", take_over=True):
        assert 0 < new.late_seconds <= LEASE_SECONDS
        restoration = restore_run(MovePorts(cluster=cluster, runs=new, clock=ticks), new.unfinished()[0])
        assert restoration.pending == {}
    assert cluster.configs == {}
    with team.process("c").hold("verify"):
        assert team.process("c").late_seconds == 0.0


def test_a_lease_is_not_counted_from_the_sighting_of_an_older_record(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first lock of a new topic has the same term and heartbeat as the first lock of the deleted one."""
    on_another_machine(monkeypatch, "one")
    with team.process("one").hold("move run"), pytest.raises(Busy), team.process("two").hold("--verify"):
        pass
    team.clock.sleep(3600)
    team.topic.recreate()
    other = team.process("two").hold("--verify")
    with team.process("one").hold("move run"), pytest.raises(Busy, match="the lock is free in 30 s"), other:
        pass
