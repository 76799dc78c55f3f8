"""The record of runs: whole or not at all, private, and never misread."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Busy, Invalid, Refused
from kquota.measure import ByteRate
from kquota.reassign.plan import Plan, run_id
from kquota.reassign.run import Run
from kquota.reassign.throttle import Setting, Taken
from kquota.stores.runs import RunFiles, decode, encode, state_folder
from kquota.terms import LEADER_REPLICAS, BrokerId, TopicPartition

TIME = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
PLAN = Plan(targets={TopicPartition("t", 0): (BrokerId(1), BrokerId(3))})


def run(*, prior: str | None = None, ours: tuple[str, ...] = ("0:1",), begun: datetime = TIME) -> Run:
    setting = Setting.of_topic("t", LEADER_REPLICAS)
    return Run(
        id=run_id(PLAN, begun),
        begun=begun,
        plan=PLAN,
        rollback=Plan(targets={TopicPartition("t", 0): (BrokerId(1), BrokerId(2))}),
        rate=ByteRate(1000),
        taken={setting: Taken(setting=setting, prior=prior, ours=ours)},
    )


@given(st.none() | st.text(), st.lists(st.text()).map(tuple), st.datetimes(timezones=st.just(UTC)))
def test_a_record_reads_as_it_was_written(prior: str | None, ours: tuple[str, ...], begun: datetime) -> None:
    one = run(prior=prior, ours=ours, begun=begun)
    assert decode(encode(one), "") == one
    assert decode(encode(replace(one, finished=begun, rate=None)), "") == replace(one, finished=begun, rate=None)


def test_a_run_is_open_until_it_is_finished(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "deep" / "state", "abc-DEF_123")
    assert files.unfinished() == ()
    older, younger = run(), run(begun=datetime(2026, 3, 2, tzinfo=UTC))
    files.begin(younger)
    files.begin(older)
    assert files.unfinished() == (older, younger)
    files.update(replace(older, finished=TIME))
    assert files.unfinished() == (younger,)
    assert len(files.every()) == 2
    assert RunFiles(tmp_path / "deep" / "state", "other").unfinished() == ()


def test_only_the_owner_can_read_a_record(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "state", "c")
    files.begin(run())
    path = Path(files.place(run()))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_one_id_begins_once(tmp_path: Path) -> None:
    files = RunFiles(tmp_path, "c")
    files.begin(run())
    with pytest.raises(Busy, match="try again"):
        files.begin(run(prior="x"))
    assert files.unfinished() == (run(),)
    assert len(list((tmp_path / "c").iterdir())) == 1


def with_version(version: object) -> str:
    return json.dumps(json.loads(encode(run())) | {"version": version})


DAMAGED = {
    "empty": ("", "is not a record that kquota wrote"),
    "cut short": (encode(run())[:100], "is not a record that kquota wrote"),
    "another document": ("[]", "is not a record that kquota wrote"),
    "newer": (with_version(2), "use the kquota that wrote it"),
    "a field lost": (encode(run()).replace('"rollback"', '"x"'), "KeyError"),
    "a setting of nothing": (encode(run()).replace('"topic",\n   "name"', '"planet",\n   "name"'), "planet"),
}


@pytest.mark.parametrize(("text", "complaint"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_is_refused_by_name(tmp_path: Path, text: str, complaint: str) -> None:
    files = RunFiles(tmp_path, "c")
    files.begin(run())
    Path(files.place(run())).write_text(text)
    with pytest.raises(Refused, match=complaint) as raised:
        files.unfinished()
    assert str(raised.value).startswith(files.place(run()))


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="must be safe before a move starts"):
        RunFiles(tmp_path / "file", "c").begin(run())


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\0b"])
def test_a_cluster_id_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(Invalid):
        RunFiles(tmp_path, name)


def test_the_folder_is_where_xdg_says() -> None:
    assert state_folder({"XDG_STATE_HOME": "/x"}) == Path("/x/kquota")
    for environment in ({}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}):
        assert state_folder(environment) == Path.home() / ".local" / "state" / "kquota"
