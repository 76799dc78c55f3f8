"""The answers of `move report`: the list of runs, and the report of one run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from kquota.cli.amounts import UNKNOWN, rate_or_unknown, size_or_unknown, time_or_unknown
from kquota.cli.output import Answer, JsonObject, Row, each, key, moment, rounded, spread
from kquota.cli.reassign_partitions.answer import plan_or_null
from kquota.cli.table import aligned
from kquota.measure import ByteRate, agreeing, human_duration, human_rate
from kquota.reassign.course import Course, RateChange, throughput
from kquota.reassign.progress import Progress
from kquota.reassign.run import Run

_NOT_RECORDED: Final = "not recorded"
_TENTHS: Final = rounded(1)
_WHOLE: Final = rounded(0)
_ERROR: Final = rounded(3)
_SHOWN: Final = 15
"""The maximum number of readings in the text. JSON and TSV have all readings."""
_CLOSE: Final = 0.1
_CLOSE_SECONDS: Final = 10.0
"""A command saw the end of the copies if the run ended soon after the last reading with bytes left. Soon means within
the fraction `_CLOSE` of the run's time, or within `_CLOSE_SECONDS` if that is longer.
"""
_ENDS: Final = {Progress.DONE.value: "done", Progress.ELSEWHERE.value: "ended elsewhere"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """A run on record. Rates are in bytes per second, and times in seconds. None means unknown or not recorded."""

    of: Run

    @property
    def course(self) -> Course:
        """The expected end, the readings and the rate changes of the run."""
        return self.of.course

    def rates(self) -> dict[datetime, float]:
        """Calculate the throughput by the time of the reading. A reading whose throughput is unknown is missing."""
        return throughput(self.course.readings)

    def after(self, time: datetime) -> float:
        """Return the time from the start of the run until `time`."""
        return max(0.0, (time - self.of.begun).total_seconds())

    @property
    def seconds(self) -> float | None:
        """The actual time from the start to the recorded end. None while the run is open."""
        return None if self.of.finished is None else self.after(self.of.finished)

    @property
    def outcome(self) -> str:
        """The outcome: `open`, `done`, `ended elsewhere` (the replicas were not those of the plan), `undone`, or
        `ended` if the record does not show how the run ended.
        """
        if self.of.finished is None:
            return "open"
        if self.of.aborting:
            return "undone"
        return "ended" if self.course.verdict is None else _ENDS.get(self.course.verdict, "ended")

    @property
    def end_seen(self) -> bool:
        """True if the run ended soon after its last reading with bytes left. Without a reading with bytes left, the
        start of the run counts instead. Unknown bytes also count as left. False for an open run and for an undone run.
        """
        run = self.of
        if run.finished is None or run.aborting:
            return False
        before = [one.at for one in self.course.readings if one.left != 0]
        since = (run.finished - max(before, default=run.begun)).total_seconds()
        return since <= max(_CLOSE_SECONDS, _CLOSE * (run.finished - run.begun).total_seconds())

    @property
    def end_unseen(self) -> bool:
        """True if the actual time is only an upper bound, because no command saw the end of the copies."""
        return self.of.finished is not None and not self.of.aborting and not self.end_seen

    @property
    def error(self) -> float | None:
        """The error of the expected time: (actual - expected) / expected. None if the run was undone or the expected
        time is 0. Also None if no command saw the end of the copies, because the recorded end can be long after the
        actual end.
        """
        seconds, expected = self.seconds, self.course.expected
        return (seconds - expected) / expected if seconds is not None and expected and self.end_seen else None

    @property
    def deviation(self) -> str | None:
        """The error as text: a percentage, or a time if the expected time is 0. None if the error is unknown."""
        if self.error is not None:
            return f"{self.error:+.0%}"
        if self.end_seen and self.course.expected == 0 and self.seconds is not None:
            return f"+{human_duration(self.seconds)}"
        return None

    @property
    def who(self) -> str:
        """The user and host of the command that began the run, or `not recorded`."""
        return _NOT_RECORDED if self.of.owner is None else self.of.owner.person

    @property
    def not_kept(self) -> str:
        """The number of dropped changes, as a line for people."""
        dropped = self.course.changes_dropped
        return f"{agreeing(dropped, 'more change', 'between those above is', 'between those above are')} not recorded"


def _summary(found: ReportedRun) -> JsonObject:
    """Return the JSON of one run. `throttle` is the latest throttle, without rates of single brokers."""
    run, course = found.of, found.course
    return {
        "run": run.id,
        "begun": run.begun,
        "ended": run.finished,
        "outcome": found.outcome,
        "seconds": _TENTHS(found.seconds),
        "expected_seconds": _TENTHS(course.expected),
        "error": _ERROR(found.error),
        "bytes_copied": course.copied,
        "bytes_expected": course.expected_bytes,
        "throttle": run.rate,
        "user": None if run.owner is None else run.owner.user,
        "host": None if run.owner is None else run.owner.host,
        "reason": run.reason,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsListed(Answer):
    """The runs on record, newest first."""

    HEADER: ClassVar = (
        *("run", "begun", "ended", "outcome", "bytes", "expected_seconds", "seconds", "error", "user", "host"),
        "reason",
    )

    runs: tuple[ReportedRun, ...] = key(form=each(_summary))

    def text(self) -> Iterator[str]:
        if not self.runs:
            return
        # The id begins with the start time of the run, and 80 columns have no room to show this time twice.
        heads = ["run", "outcome", "bytes", "time", "error", "who"]
        rows = [
            [
                one.of.id,
                one.outcome,
                size_or_unknown(one.course.copied),
                "" if one.seconds is None else human_duration(one.seconds),
                "" if one.seconds is None else one.deviation or UNKNOWN,
                one.who,
            ]
            for one in self.runs
        ]
        yield from (line.rstrip() for line in aligned(rows, heads, left=[0, 1, 5]))

    def rows(self) -> Iterator[Row]:
        for one in self.runs:
            run, owner = one.of, one.of.owner
            ended = None if run.finished is None else run.finished.isoformat()
            numbers = (one.course.copied, _TENTHS(one.course.expected), _TENTHS(one.seconds), _ERROR(one.error))
            texts = (None if number is None else str(number) for number in numbers)
            names = (None, None) if owner is None else (owner.user, owner.host)
            yield (run.id, run.begun.isoformat(), ended, one.outcome, *texts, *names, run.reason)


def _report(found: ReportedRun) -> JsonObject:
    """Return the JSON of a run and its course. Each `seconds` counts from the start of the run. For a broker, it is the
    end of the last copy.
    """
    course, rates = found.course, found.rates()
    brokers = [
        {
            "broker": to.broker,
            "bytes_expected": to.expected_bytes,
            "bytes_copied": to.copied,
            "expected_seconds": _TENTHS(to.expected),
            "seconds": None if to.ended is None else _TENTHS(found.after(to.ended)),
        }
        for to in course.brokers
    ]
    readings = [
        {
            "time": one.at,
            "seconds": _TENTHS(found.after(one.at)),
            "bytes_copied": one.copied,
            "bytes_left": one.left,
            "throughput": _WHOLE(rates.get(one.at)),
        }
        for one in course.readings
    ]
    changes = [
        {
            "time": one.at,
            "seconds": _TENTHS(found.after(one.at)),
            "from": one.before,
            "to": one.rate,
            "by": one.by,
            "reason": one.reason,
            "settings": one.settings,
        }
        for one in course.changes
    ]
    return {
        **_summary(found),
        "partitions": len(found.of.plan.targets) or None,
        "brokers": brokers,
        "readings": readings,
        "changes": changes,
        "changes_dropped": course.changes_dropped,
        "rollback": plan_or_null(found.of.rollback),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(Answer):
    """The report of one run. The TSV rows are the readings."""

    HEADER: ClassVar = ("time", "seconds", "bytes_copied", "bytes_left", "throughput")

    recorded: ReportedRun = spread(_report)

    def text(self) -> Iterator[str]:
        run = self.recorded
        yield f"Run {run.of.id}: {run.outcome}"
        yield from (f"  {name + ':':<11} {value}" for name, value in facts(run))
        if run.course.brokers:
            yield from ("", "Copies to each broker (expected and actual end are times since the start of the run):")
            heads = ["to", "bytes expected", "copied", "expected end", "actual end"]
            rows = [
                [
                    str(to.broker),
                    size_or_unknown(to.expected_bytes),
                    size_or_unknown(to.copied),
                    time_or_unknown(to.expected),
                    time_or_unknown(None if to.ended is None else run.after(to.ended)),
                ]
                for to in run.course.brokers
            ]
            yield from (f"  {line}" for line in aligned(rows, heads))
        yield ""
        if rates := run.rates():
            yield "Throughput:"
            heads = ["after", "copied", "left", "throughput"]
            readings = run.course.readings
            step = -(-len(readings) // _SHOWN)
            rows = [
                [
                    human_duration(run.after(one.at)),
                    size_or_unknown(one.copied),
                    size_or_unknown(one.left),
                    rate_or_unknown(rates.get(one.at)),
                ]
                for one in readings[::-step][::-1]
            ]
            yield from (f"  {line}" for line in aligned(rows, heads))
        else:
            yield UNWATCHED
        yield from ("", "Throttle changes:")
        yield from (f"  {_change_line(change)}" for change in run.course.changes)
        if run.course.changes_dropped:
            yield f"  {run.not_kept}"
        if not run.course.changes:
            yield "  none is recorded"

    def rows(self) -> Iterator[Row]:
        run, rates = self.recorded, self.recorded.rates()
        for one in run.course.readings:
            numbers = (_TENTHS(run.after(one.at)), one.copied, one.left, _WHOLE(rates.get(one.at)))
            yield (one.at.isoformat(), *(None if number is None else str(number) for number in numbers))


def _change_line(change: RateChange) -> str:
    where = "".join(f" {setting}," for setting in change.settings)
    why = _NOT_RECORDED if change.reason is None else change.reason
    by = _NOT_RECORDED if change.by is None else change.by
    return f"{moment(change.at)}:{where} from {_rate(change.before)} to {_rate(change.rate)}; by: {by}; reason: {why}"


UNWATCHED: Final = (
    "The throughput is not recorded, because no `move run` or `--execute --wait` read the sizes during the copies."
)


def facts(recorded: ReportedRun) -> Iterator[tuple[str, str]]:
    """Yield the lines at the top of a report, each as a name and a value."""
    run, course = recorded.of, recorded.course
    yield "began", moment(run.begun)
    yield "ended", "not yet" if run.finished is None else moment(run.finished)
    yield "who", recorded.who
    yield "reason", _NOT_RECORDED if run.reason is None else run.reason
    yield "throttle", _rate(run.rate) + (" (changed, see below)" if course.changes else "")
    yield "expected", _NOT_RECORDED if course.expected is None else human_duration(course.expected)
    if recorded.seconds is not None and recorded.end_unseen:
        yield "actual", f"at most {human_duration(recorded.seconds)}, because no command saw the end of the copies"
    elif recorded.seconds is not None:
        deviation = "" if recorded.deviation is None else f" ({recorded.deviation})"
        yield "actual", human_duration(recorded.seconds) + deviation
    yield "bytes", f"copied: {size_or_unknown(course.copied)}, expected: {size_or_unknown(course.expected_bytes)}"
    yield "partitions", f"{len(run.plan.targets):,}" if run.plan.targets else UNKNOWN


def _rate(rate: ByteRate | None) -> str:
    return "no throttle" if rate is None else human_rate(rate)
