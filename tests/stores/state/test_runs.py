"""The record of runs: an append-only, private journal that is never misread, and the lock that excludes others."""

from __future__ import annotations

import itertools
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Busy, Invalid, Refused
from kquota.measure import ByteRate
from kquota.reassign.plan import Plan, run_id
from kquota.reassign.run import Owner, Purpose, Run, Stamp, Taken
from kquota.settings.resource import Setting
from kquota.stores.state import journal
from kquota.terms import FOLLOWER_REPLICAS, LEADER_REPLICAS, BrokerId, TopicPartition
from tests.reassign.records import alone

TIME = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
T0 = TopicPartition("t", 0)
PLAN = Plan(targets={T0: (BrokerId(1), BrokerId(3))})
LEADERS, FOLLOWERS = (Setting.of_topic("t", key) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS))


def run(*, prior: str | None = None, ours: tuple[str, ...] = ("0:1",), begun: datetime = TIME) -> Run:
    return Run(
        id=run_id(PLAN, begun),
        begun=begun,
        plan=PLAN,
        rollback=Plan(targets={T0: (BrokerId(1), BrokerId(2))}),
        rate=ByteRate(1000),
        taken={LEADERS: Taken(setting=LEADERS, prior=prior, ours=ours)},
    )


STAMP = Stamp(version=1)
TAKEN = st.dictionaries(
    st.sampled_from([LEADERS, FOLLOWERS]),
    st.tuples(st.none() | st.text(), st.lists(st.sampled_from(["*", "0:1", "17:2147483647"])).map(tuple)),
).map(lambda found: {s: Taken(setting=s, prior=prior, ours=ours) for s, (prior, ours) in sorted(found.items())})
SOME = Plan(targets={TopicPartition(topic, n): (BrokerId(1), BrokerId(3)) for topic in "tu" for n in range(9)})


def _with_plan(begun: Run, plan: Plan, handed_over: frozenset[TopicPartition]) -> Run:
    """The run with a plan, and with those of `handed_over` that are in one of its plans."""
    return replace(begun, plan=plan, handed_over=handed_over & {T0, *plan.targets})


RUNS = st.builds(
    replace,
    st.builds(
        _with_plan,
        st.builds(run),
        st.sampled_from([PLAN, SOME, Plan(targets={})]),
        st.frozensets(st.sampled_from(list(SOME.targets))),
    ),
    taken=TAKEN,
    rate=st.none() | st.integers(1, 2**40).map(ByteRate),
    log_dir_rate=st.none() | st.integers(1, 2**40).map(ByteRate),
    purpose=st.sampled_from(Purpose),
    topic_ids=st.dictionaries(st.sampled_from("tu"), st.text(max_size=30)),
    aborting=st.booleans(),
    finished=st.none() | st.datetimes(timezones=st.just(UTC)).filter(lambda time: 1 < time.year < 9999),
    owner=st.none()
    | st.builds(Owner, user=st.text(), host=st.text(), pid=st.integers(0, 2**31 - 1), since=st.just(TIME)),
    reason=st.none() | st.text(),
    crowded=st.booleans(),
)


@given(st.lists(RUNS, min_size=1, max_size=4))
def test_a_journal_is_read_back_as_last_written(states: list[Run]) -> None:
    written = [journal.first(states[0], STAMP)]
    written += [journal.change(before, after, STAMP) for before, after in itertools.pairwise(states)]
    data = b"".join(map(journal.line, written))
    documents, whole = journal.lines(data, "")
    assert whole == len(data)
    assert journal.replay(documents, "").run == states[-1]


def test_a_journal_grows_by_the_partitions_of_each_wave() -> None:
    """Each line would otherwise repeat all earlier waves, and a run can have a wave for each of its partitions."""
    waves = [replace(run(), plan=SOME, handed_over=frozenset(list(SOME.targets)[:n])) for n in range(19)]
    written = [journal.change(before, after, STAMP) for before, after in itertools.pairwise(waves)]
    assert [one["also_handed_over"] for one in written] == [str(n) for n in range(18)]
    assert all("handed_over" not in one for one in written)


@pytest.mark.parametrize(
    "forged", ["18", "0-18", "3-1", "0,0", "0-2,2", "0,", ",", "a", "٣", "1-", " 1", 1, [1], None, "0-99999999999"]
)
@pytest.mark.parametrize("key", ["handed_over", "also_handed_over"])
def test_forged_positions_are_refused(key: str, forged: object) -> None:
    first = journal.first(replace(run(), plan=SOME), STAMP)
    with pytest.raises(Refused, match="is not a valid journal"):
        journal.replay([first, {"v": 2, "by": None, "at": None, "record": None, key: forged}], "j")


def test_a_partition_is_added_once() -> None:
    """A forged journal could otherwise add the same million partitions in each of its lines."""
    more = {"v": 2, "by": None, "at": None, "record": None, "also_handed_over": "0-4"}
    first = journal.first(replace(run(), plan=SOME), STAMP)
    assert len(journal.replay([first, more], "j").run.handed_over) == 5
    with pytest.raises(Refused, match="0-4: positions must ascend, be below 18 and be listed only once"):
        journal.replay([first, more, more], "j")


def test_a_run_of_many_topics_with_one_partition_each_is_read_back() -> None:
    """Each topic was an object of its own in `handed_over`, which took more memory than kquota allows."""
    names = [TopicPartition(f"{n:030}", 0) for n in range(30_000)]
    plan = Plan(targets=dict.fromkeys(names, (BrokerId(1), BrokerId(3))))
    ids = {name.topic: "RXWn764lRD27K2w3HJofHQ" for name in names}
    large = replace(run(), plan=plan, rollback=plan, topic_ids=ids)
    whole = replace(large, handed_over=frozenset(names))
    data = journal.line(journal.first(large, STAMP)) + journal.line(journal.change(large, whole, STAMP))
    documents, _ = journal.lines(data, "j")
    assert journal.replay(documents, "j").run == whole


def test_a_journal_contains_the_log_dirs_of_a_plan() -> None:
    """The log dirs do not affect whether two plans are equal."""
    dirs = {(T0, BrokerId(3)): "/data/b"}
    written = journal.line(journal.first(replace(run(), plan=replace(PLAN, log_dirs=dirs)), STAMP))
    documents, _ = journal.lines(written, "")
    assert journal.replay(documents, "").run.plan.log_dirs == dirs


@given(RUNS, RUNS, st.data())
def test_a_truncated_line_is_ignored(before: Run, after: Run, data: st.DataObject) -> None:
    first, second = journal.line(journal.first(before, STAMP)), journal.line(journal.change(before, after, STAMP))
    cut = data.draw(st.integers(0, len(second) - 1))
    documents, whole = journal.lines(first + second[:cut], "")
    assert whole == len(first)
    assert journal.replay(documents, "").run == before


def test_a_truncated_line_is_overwritten(tmp_path: Path) -> None:
    files = alone(tmp_path, "c")
    files.begin(run())
    path = Path(files.place(run()))
    path.write_bytes(path.read_bytes() + b'1234abcd {"aborting":tr')
    assert alone(tmp_path, "c").unfinished() == (run(),)
    later = replace(run(), handed_over=frozenset({T0}))
    alone(tmp_path, "c").update(later)
    assert alone(tmp_path, "c").unfinished() == (later,)


def test_a_line_that_another_process_began_is_overwritten(tmp_path: Path) -> None:
    """A command that waits without the lock keeps the journal in memory. Another one may be killed while it writes."""
    files = alone(tmp_path, "c")
    files.begin(run())
    aborting, later = replace(run(), aborting=True), replace(run(), aborting=True, handed_over=frozenset({T0}))
    alone(tmp_path, "c").update(aborting)
    path = Path(files.place(run()))
    path.write_bytes(path.read_bytes() + b'1234abcd {"paused":tr')
    files.update(later)
    assert alone(tmp_path, "c").unfinished() == (later,)


def test_a_run_that_died_before_its_first_line_never_began(tmp_path: Path) -> None:
    files = alone(tmp_path, "c")
    files.begin(run())
    path = Path(files.place(run()))
    path.write_bytes(path.read_bytes()[:50])
    assert alone(tmp_path, "c").every() == ()


def test_a_journal_only_grows(tmp_path: Path) -> None:
    files = alone(tmp_path, "c")
    files.begin(run())
    path = Path(files.place(run()))
    before = path.read_bytes()
    files.update(run())
    assert path.read_bytes() == before
    files.update(replace(run(), aborting=True))
    assert path.read_bytes().startswith(before)
    assert path.read_bytes()[len(before) :].endswith(b',"aborting":true}\n')


def test_a_run_is_open_until_it_is_finished(tmp_path: Path) -> None:
    files = alone(tmp_path / "deep" / "state", "abc-DEF_123")
    assert files.unfinished() == ()
    older, younger = run(), run(begun=datetime(2026, 3, 2, tzinfo=UTC))
    files.begin(younger)
    files.begin(older)
    assert files.unfinished() == (older, younger)
    files.update(replace(older, finished=TIME))
    assert files.unfinished() == (younger,)
    assert len(files.every()) == 2
    assert alone(tmp_path / "deep" / "state", "other").unfinished() == ()


def test_only_the_owner_can_read_a_record(tmp_path: Path) -> None:
    files = alone(tmp_path / "state", "c")
    files.begin(run())
    path = Path(files.place(run()))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_one_id_begins_once(tmp_path: Path) -> None:
    files = alone(tmp_path, "c")
    files.begin(run())
    with pytest.raises(Busy, match="Try again"):
        files.begin(run(prior="x"))
    assert files.unfinished() == (run(),)
    assert len(list((tmp_path / "c").iterdir())) == 1


FIRST = journal.first(run(), STAMP)
DAMAGED = {
    "another document": (b"[]\n[]\n", "line 1 is damaged"),
    "a changed digit": (journal.line(FIRST).replace(b"1000", b"9000") + journal.line({}), "line 1 is damaged"),
    "older": (journal.line(FIRST | {"version": journal.VERSION - 1}), "has version 3, and this kquota reads 4"),
    "newer": (journal.line(FIRST | {"version": journal.VERSION + 1}), "Use the version of kquota that wrote it"),
    "a newer plan": (
        journal.line(FIRST | {"plan": {"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "after": 5}]}}),
        r': the recorded plan has unknown keys \("after"\). Use the version of kquota that wrote it$',
    ),
    "a field lost": (journal.line({k: v for k, v in FIRST.items() if k != "rollback"}), "KeyError"),
    "a setting of nothing": (
        journal.line(FIRST | {"taken": [{"kind": "planet", "name": "t", "key": "k", "prior": None, "ours": []}]}),
        "planet",
    ),
}


@pytest.mark.parametrize(("data", "complaint"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_is_refused_by_name(tmp_path: Path, data: bytes, complaint: str) -> None:
    files = alone(tmp_path, "c")
    files.begin(run())
    Path(files.place(run())).write_bytes(data)
    with pytest.raises(Refused, match=complaint) as raised:
        files.unfinished()
    assert str(raised.value).startswith(files.place(run()))


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    files = alone(tmp_path / "file", "c")
    with pytest.raises(Refused, match="cannot continue without its journals"):
        files.begin(run())
    with pytest.raises(Refused, match="cannot continue without its journals"), files.hold("execute"):
        pass


def test_an_unknown_key_of_a_run_is_ignored() -> None:
    """So a team can use two versions of kquota, unless the new version of the format says otherwise."""
    assert journal.replay([FIRST | {"color": "red"}], "j").run == run()


@pytest.fixture
def unlisted() -> Iterator[Path]:
    """A state folder whose journals this user cannot list. root, whom no permission stops, becomes another user."""
    before = os.geteuid()
    with TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        (Path(made) / "c").mkdir(mode=0o311)
        if before == 0:
            os.seteuid(65534)
        yield Path(made)
        os.seteuid(before)
        (Path(made) / "c").chmod(0o700)


def test_a_folder_that_cannot_be_read_does_not_count_as_one_without_runs(unlisted: Path) -> None:
    with pytest.raises(Refused, match=r"cannot be read \(Permission denied\)"):
        alone(unlisted, "c").unfinished()


@pytest.mark.parametrize("name", ["", "x" * 300, "../x", "a.b", "a\0"])
def test_a_run_id_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match=r"is not valid \(only letters"):
        alone(tmp_path, "c").begin(replace(run(), id=name))
    assert not (tmp_path / "c").exists()


def test_a_journal_under_another_runs_name_is_refused(tmp_path: Path) -> None:
    files = alone(tmp_path, "c")
    files.begin(run())
    path = Path(files.place(run()))
    path.rename(path.with_name("other.journal"))
    with pytest.raises(Refused, match="contains another run"):
        alone(tmp_path, "c").unfinished()


def test_a_link_in_the_place_of_a_record_or_the_lock_is_not_followed(tmp_path: Path) -> None:
    files, elsewhere = alone(tmp_path, "c"), tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "lock").symlink_to(elsewhere)
    Path(files.place(run())).symlink_to(elsewhere)
    with pytest.raises(Busy):
        files.begin(run())
    with pytest.raises(Refused), files.hold("execute"):
        pass
    assert elsewhere.read_text() == "precious"


def test_one_process_holds_the_lock_and_others_learn_which(tmp_path: Path) -> None:
    one, other = alone(tmp_path, "c"), alone(tmp_path, "c")
    assert other.writer() is None
    with one.hold("execute plan.json"):
        assert (other.writer() or "").startswith(f"another kquota (execute plan.json, pid {os.getpid()} on ")
        with pytest.raises(Busy, match=rf"\(execute plan\.json, pid {os.getpid()} on .+, since \d{{4}}-"):
            other.hold("verify").__enter__()
        with alone(tmp_path, "another").hold("verify"):
            pass
    assert other.writer() is None
    with other.hold("verify"):
        pass


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from kquota.stores.state.runs import RunFiles\n"
        "with RunFiles(Path(sys.argv[1]), 'c').hold('execute'): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False).returncode == -9
    assert alone(tmp_path, "c").writer() is None
    with alone(tmp_path, "c").hold("verify"):
        pass


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\0b"])
def test_a_cluster_id_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(Invalid):
        alone(tmp_path, name)


def test_a_limit_of_the_file_size_is_reported_with_the_folder_before_any_start(tmp_path: Path) -> None:
    """This process may not write a byte to any file."""
    files = alone(tmp_path, "c")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with (
            pytest.raises(
                Refused,
                match=r"c/lock: cannot be written \(File too large\)\. Raise the limit of the file size: "
                r"`ulimit -f unlimited`, because kquota cannot continue without its journals$",
            ),
            files.hold("execute"),
        ):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("unreadable", [False, True])
def test_a_full_disk_is_reported_with_the_runs_whose_throttles_stay_set(tmp_path: Path, unreadable: bool) -> None:
    files = alone(tmp_path, "c")
    ids = [f"{run().id}{number}" for number in range(4)]
    for each in ids:
        files.begin(replace(run(), id=each))
    files.update(replace(run(), id=ids[2], finished=TIME))
    files.update(replace(run(ours=()), id=ids[3]))
    if unreadable:
        Path(files.place(replace(run(), id=ids[3]))).write_text("junk")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(Refused) as raised, files.hold("execute"):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(raised.value).endswith(
        f"without its journals. The throttles of these runs may still be set: {ids[0]}, {ids[1]} (showing the "
        "throttles). After you have solved the problem, run the same command again"
    )
