"""The true state of a run if this host's journal and the shared record differ."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kquota.reassign.plan import Plan
from kquota.reassign.run import Owner, Run, Stamp
from kquota.stores.record.shared import joined
from kquota.stores.state.journal import JournaledRun
from kquota.terms import BrokerId, TopicPartition

TIME = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
EARLIER, LATER = (TIME - timedelta(days=1), "q"), (TIME + timedelta(days=1), "s")
"""The oldest ended run of a full record: before or after the run of these tests."""
HERE = "topic 1"
MINE, OTHERS = (Owner(user="alice", host=host, pid=7, since=TIME) for host in ("bastion", "jump-host"))
RUN = Run(id="r", begun=TIME, plan=Plan(targets={}), rollback=Plan(targets={}), rate=None, taken={})


def at(version: int, by: Owner = OTHERS, *, ended: bool = False, reason: str = "") -> Run:
    return replace(RUN, finished=TIME if ended else None, reason=reason, stamp=Stamp(version=version, by=by))


def kept(version: int, *spans: tuple[str, int, int], ended: bool = False) -> JournaledRun:
    sent = {name: dict.fromkeys(range(first, last + 1), MINE) for name, first, last in spans}
    return JournaledRun(run=at(version, MINE, ended=ended, reason="local"), shared=sent)


# The journal, the full record, and the result: the source that counts (None: the run does not exist any more),
# whether this host has to update the record, and whether it loses what only it has written.
CASES = {
    "only here, never shared": (kept(3), None, "local", True, False),
    "only here, it died before it could share its first line": (kept(1, (HERE, 1, 1)), None, None, False, False),
    "only here, it died before it could share its latest line": (kept(4, (HERE, 4, 4)), None, "local", True, False),
    "was shared, ended elsewhere, was cleared away": (kept(3, (HERE, 1, 3)), None, None, False, False),
    "was shared in another record": (kept(3, ("topic 0", 1, 3)), None, "local", True, False),
    "ended here": (kept(3, (HERE, 1, 3), ended=True), None, "local", False, False),
    "only there": (None, at(2), "shared", False, False),
    "the same": (kept(3, (HERE, 1, 3)), at(3, MINE), "shared", False, False),
    "another host continued": (kept(3, (HERE, 1, 3)), at(7), "shared", False, False),
    "another host ended it": (kept(3, (HERE, 1, 3)), at(5, ended=True), "shared", False, False),
    "another host ended it after a version of this host alone": (
        kept(5, (HERE, 1, 5), ended=True),
        at(5, ended=True),
        "shared",
        False,
        True,
    ),
    "ended there, at a lower version": (kept(3), at(2, ended=True), "shared", False, True),
    "one line ahead: it died before it shared it": (kept(4, (HERE, 1, 4)), at(3, MINE), "local", True, False),
    "ended here, one line ahead": (kept(4, (HERE, 1, 4), ended=True), at(3, MINE), "local", True, False),
    "one line ahead of what another host wrote": (kept(6, (HERE, 6, 6)), at(5), "local", True, False),
    "two lines ahead, and another host continued": (kept(4, (HERE, 1, 4)), at(3), "shared", False, True),
    "ahead: it could not see the record": (kept(6, (HERE, 1, 3)), at(3, MINE), "local", True, False),
    "ahead, and another host continued": (kept(6, (HERE, 1, 3)), at(5), "shared", False, True),
    "behind, and it wrote alone": (kept(5, (HERE, 1, 3)), at(7), "shared", False, True),
}


@pytest.mark.parametrize(("local", "there", "counts", "ahead", "lost"), CASES.values(), ids=CASES)
def test_whether_the_journal_or_the_record_counts(
    local: JournaledRun | None, there: Run | None, counts: str | None, ahead: bool, lost: bool
) -> None:
    shared = {} if there is None else {"r": replace(there, reason="shared")}
    found = joined({} if local is None else {"r": local}, shared, HERE, oldest=LATER)
    assert {run.reason for run in found.runs.values()} == ({counts} if counts else set())
    assert (found.ahead, found.lost) == (("r",) * ahead, ("r",) * lost)


def test_the_journal_keeps_the_plan_of_a_run_that_the_record_has_without_it() -> None:
    plan = Plan(targets={TopicPartition("orders", 0): (BrokerId(1), BrokerId(3))})
    mine = kept(3, (HERE, 1, 3))
    found = joined({"r": replace(mine, run=replace(mine.run, plan=plan))}, {"r": at(5, ended=True)}, HERE, oldest=LATER)
    assert found.runs["r"] == replace(at(5, ended=True), plan=plan)


def test_without_a_record_the_journals_count() -> None:
    assert joined({"r": kept(3, (HERE, 1, 3))}, {}, None, oldest=LATER).runs == {"r": at(3, reason="local")}


@pytest.mark.parametrize(
    ("local", "counts", "missing"),
    [
        (kept(3, (HERE, 1, 3)), True, True),
        (kept(3, (HERE, 3, 3)), True, True),
        (kept(3), True, False),
        (kept(1, (HERE, 1, 1)), False, False),
        (kept(3, (HERE, 1, 1)), True, True),
        (kept(3, (HERE, 1, 3), ended=True), True, False),
    ],
    ids=[
        "shared",
        "its first line may not have arrived",
        "never shared",
        "it never began",
        "it went on alone",
        "ended",
    ],
)
@pytest.mark.parametrize("oldest", [None, EARLIER], ids=["not full", "all its ended runs are older"])
def test_a_record_has_lost_a_run_that_it_cannot_have_deleted(
    local: JournaledRun, counts: bool, missing: bool, oldest: tuple[datetime, str] | None
) -> None:
    """Someone has deleted its znodes, or the topic has lost its end."""
    found = joined({"r": local}, {}, HERE, oldest=oldest)
    assert found.runs.keys() == ({"r"} if counts else set())
    assert found.ahead == (("r",) if counts and local.run.finished is None else ())
    assert found.missing == (("r",) if missing else ())


@pytest.mark.parametrize("local", [kept(1, (HERE, 1, 1)), kept(3, (HERE, 1, 3))], ids=["one version", "several"])
@pytest.mark.parametrize("oldest", [None, LATER], ids=["not full", "all its ended runs are newer"])
def test_a_record_with_a_gap_proves_no_end(local: JournaledRun, oldest: tuple[datetime, str] | None) -> None:
    """Retention can delete an open run and keep newer runs that have ended."""
    found = joined({"r": local}, {}, HERE, oldest=oldest, gap=True)
    assert (set(found.runs), found.ahead, found.missing) == ({"r"}, ("r",), ("r",))


@pytest.mark.parametrize("oldest", [None, EARLIER, LATER])
def test_a_run_that_cannot_be_read_in_the_record_is_not_overwritten(oldest: tuple[datetime, str] | None) -> None:
    """A newer kquota on another host has continued it."""
    found = joined({"r": kept(3, (HERE, 1, 3))}, {}, HERE, unreadable=["r"], oldest=oldest)
    assert (found.runs, found.ahead, found.missing) == ({}, (), ())


def test_a_run_of_this_host_alone_does_not_replace_one_that_cannot_be_read() -> None:
    found = joined({"r": kept(3)}, {}, HERE, unreadable=["r"], oldest=None)
    assert (found.runs, found.ahead, found.missing) == ({}, (), ())


def test_a_version_that_two_hosts_have_written_is_lost_on_one_of_them() -> None:
    found = joined({"r": kept(5, (HERE, 1, 5))}, {"r": at(5)}, HERE, oldest=None)
    assert (found.runs["r"], found.lost) == (at(5), ("r",))
