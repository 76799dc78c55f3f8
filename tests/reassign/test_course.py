"""The course of a run: readings stay within their limit, and never lose the first, the last, or their order."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kquota.cli.move.report.answer import ReportedRun, RunReport
from kquota.measure import ByteRate
from kquota.reassign.course import (
    EMPTY,
    MOST_CHANGES,
    MOST_NAMED_RATES,
    MOST_READINGS,
    BrokerCourse,
    Course,
    CourseReading,
    RateChange,
    thinned,
    throughput,
)
from kquota.reassign.run import Stamp
from kquota.settings.resource import Setting
from kquota.stores.state import run_fields
from kquota.terms import LEADER_RATE, BrokerId
from tests.stores.record.hosts import RUN, TIME, Team

pytestmark = pytest.mark.unit
START = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
ONE, TWO = map(BrokerId, (1, 2))


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def reading(seconds: float, copied: int | None) -> CourseReading:
    return CourseReading(at=at(seconds), copied=copied, left=None)


@given(st.lists(st.floats(0.1, 10_000), max_size=1000))
def test_readings_stay_within_their_limit(gaps: list[float]) -> None:
    found, now, kept = [], 0.0, EMPTY
    for gap in gaps:
        now += gap
        found.append(reading(now, int(now)))
        kept = kept.read(found[-1:], ())
        assert len(kept.readings) <= MOST_READINGS
    assert thinned(kept.readings) == kept.readings
    assert list(kept.readings) == sorted(kept.readings, key=lambda one: one.at)
    assert kept.readings[:1] == tuple(found[:1])
    assert kept.readings[-1:] == tuple(found[-1:])
    rates = throughput(kept.readings)
    steps = [((b.at - a.at).total_seconds(), rates[b.at]) for a, b in itertools.pairwise(kept.readings)]
    assert sum(seconds * rate for seconds, rate in steps) == pytest.approx(
        (found[-1].copied or 0) - (found[0].copied or 0) if found else 0
    )


def test_an_even_pace_stays_even() -> None:
    kept = EMPTY
    for n in range(5000):
        kept = kept.read([reading(n, n)], ())
    gaps = [(b.at - a.at).total_seconds() for a, b in zip(kept.readings, kept.readings[1:], strict=False)]
    assert max(gaps[:-1]) <= 4 * min(gaps[:-1])


def test_unknown_bytes_are_skipped_and_smaller_ones_are_no_throughput() -> None:
    found = throughput([reading(0, 0), reading(5, None), reading(10, 100), reading(20, 40)])
    assert found == {at(10): 10, at(20): 0}


def test_older_readings_are_ignored_so_that_reading_twice_changes_nothing() -> None:
    found = [reading(n, n) for n in range(10)]
    once = EMPTY.read(found, ())
    assert once.read(found, ()) == once


def test_a_broker_keeps_what_was_expected_and_its_first_end() -> None:
    course = Course(brokers=(BrokerCourse(broker=ONE, expected_bytes=7, expected=3.0),))
    course = course.read((), [BrokerCourse(broker=ONE, copied=5), BrokerCourse(broker=TWO, copied=1)])
    course = course.read((), [BrokerCourse(broker=ONE, copied=7, ended=at(4))])
    course = course.read((), [BrokerCourse(broker=ONE, copied=None, ended=at(9))])
    assert course.brokers == (
        BrokerCourse(broker=ONE, expected_bytes=7, expected=3.0, copied=7, ended=at(4)),
        BrokerCourse(broker=TWO, copied=1),
    )


def test_a_copy_that_begins_after_the_end_of_the_others_has_no_end() -> None:
    """In a plan of waves, an end is seen only when no copy is left: `MoveWatch` counts those of all waves."""
    course = EMPTY.read((), [BrokerCourse(broker=ONE, ended=at(4))]).read((), [BrokerCourse(broker=ONE)])
    assert course.brokers[0].ended is None


@given(st.one_of(st.lists(st.floats(0.0, 10_000), max_size=1000), st.lists(st.floats(-10.0, 1.0), max_size=300)))
@example([0.0] * 300)
@example([-1.0] * 300)
def test_the_first_and_the_newest_changes_are_kept_and_the_others_thinned(gaps: list[float]) -> None:
    course, now, every = EMPTY, 0.0, list[RateChange]()
    for n, gap in enumerate(gaps, 1):
        now += gap
        every.append(RateChange(at=at(now), before=ByteRate(n), rate=ByteRate(n + 1)))
        course = course.changed(every[-1])
        assert len(course.changes) <= MOST_CHANGES
    newest = MOST_CHANGES // 2
    assert course.changes[:1] == tuple(every[:1])
    assert course.changes[-newest:] == tuple(every[-newest:])
    assert list(course.changes) == [change for change in every if change in course.changes]
    assert course.changes_dropped == len(every) - len(course.changes)


def test_the_changes_of_a_long_move_cover_its_whole_time() -> None:
    course = EMPTY
    for n in range(10 * MOST_CHANGES):
        course = course.changed(RateChange(at=at(n), before=ByteRate(n + 1), rate=ByteRate(n + 2)))
    times = [(one.at - START).total_seconds() for one in course.changes]
    assert max(later - before for before, later in itertools.pairwise(times)) < 10 * MOST_CHANGES / 10


def test_changes_that_name_many_rates_are_dropped_because_a_znode_is_small() -> None:
    course = EMPTY
    for n in range(MOST_CHANGES):
        named = tuple(Setting.of_broker(BrokerId(broker), LEADER_RATE) for broker in range(300))
        course = course.changed(RateChange(at=at(n), before=ByteRate(n + 1), rate=ByteRate(n + 2), settings=named))
    assert [one.at for one in course.changes] == [at(0), at(MOST_CHANGES - 2), at(MOST_CHANGES - 1)]
    assert course.changes_dropped == MOST_CHANGES - 3
    assert sum(len(one.settings) for one in course.changes) <= MOST_NAMED_RATES


def test_a_change_to_the_same_rate_is_none() -> None:
    assert EMPTY.changed(RateChange(at=at(0), before=ByteRate(5), rate=ByteRate(5))) == EMPTY


WHOLE = Course(
    expected=12.5,
    verdict="done",
    brokers=(BrokerCourse(broker=ONE, expected_bytes=7, expected=3.0, copied=7, ended=at(4)),),
    readings=(reading(0, 0), reading(5, None)),
    changes=(RateChange(at=at(1), before=None, rate=ByteRate(5), by="alice@bastion", reason="night"),),
    changes_dropped=3,
)


def test_the_record_keeps_a_course() -> None:
    run = replace(RUN, course=WHOLE)
    document = json.loads(json.dumps(run_fields.written(run)))
    assert run_fields.run_of([document], Stamp(version=1)) == run
    assert "course" not in run_fields.written(RUN)


def test_the_report_says_how_many_changes_are_not_kept() -> None:
    lines = list(RunReport(recorded=ReportedRun(of=replace(RUN, course=WHOLE))).text())
    assert lines[-1] == "  3 more changes between those above are not recorded"
    kept = replace(WHOLE, changes_dropped=0)
    assert "more change" not in "".join(RunReport(recorded=ReportedRun(of=replace(RUN, course=kept))).text())


def wrong(**values: object) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(run_fields.written(replace(RUN, course=WHOLE))["course"]))
    return document | values


@pytest.mark.parametrize(
    "course",
    [
        None,
        7,
        [],
        {},
        wrong(expected_seconds=-1),
        wrong(expected_seconds=True),
        wrong(expected_seconds=1e999),
        wrong(verdict="lost"),
        wrong(changes_dropped=-1),
        wrong(brokers=[{"broker": "1"}]),
        wrong(brokers=[{"broker": -1, "expected_bytes": 0, "expected_seconds": 1, "copied": 0, "ended": None}]),
        wrong(readings=[["2026-03-01T12:30:00", 1, 1]]),
        wrong(readings=[["2026-03-01T12:30:00+00:00", -1, 1]]),
        wrong(readings=[["2026-03-01T12:30:00+00:00"]]),
        wrong(readings=[["2026-03-01T12:30:00+00:00", 1, 1]] * (MOST_READINGS + 1)),
        wrong(changes=[{"at": "2026-03-01T12:30:00+00:00", "from": 0, "to": 1, "by": None, "reason": None}]),
        wrong(changes=[{"at": "2026-03-01T12:30:00+00:00", "from": 1, "to": 2, "by": 7, "reason": None}]),
    ],
)
def test_a_course_that_is_not_valid_counts_as_empty_so_that_the_run_can_be_undone(course: object) -> None:
    document = {**run_fields.written(RUN), "course": course}
    assert run_fields.run_of([document], Stamp(version=1)) == RUN


def test_every_host_reads_the_course_of_an_ended_run(tmp_path: Path) -> None:
    """A course may be larger than the fields that the list leaves out."""
    team = Team(tmp_path)
    many = tuple(BrokerCourse(broker=BrokerId(n), copied=10**12, ended=at(n)) for n in range(300))
    ended = replace(RUN, course=replace(WHOLE, brokers=many), finished=TIME)
    runs = team.process("a")
    with runs.hold("move run"):
        runs.begin(RUN)
        runs.update(ended)
    for whole in (True, False):
        (found,) = team.process("b").past(whole=whole).runs
        assert found.course == ended.course
    assert team.process("b").past(whole=True).runs == (ended,)


def test_a_damaged_journal_is_named_and_hides_no_other(tmp_path: Path) -> None:
    team = Team(tmp_path)
    runs = team.process("a")
    with runs.hold("move run"):
        runs.begin(RUN)
    (tmp_path / "a" / "cluster" / "20260101T000000Z-000000000000.journal").write_bytes(b"00000000 {}\nmore\n")
    found = team.process("a").past(whole=True)
    assert found.runs == (RUN,)
    assert list(found.unread) == ["20260101T000000Z-000000000000"]
