"""The answers of `move report`: the list of runs, and the report of one run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from kquota.cli.amounts import UNKNOWN, rate_or_unknown, size_or_unknown, time_or_unknown
from kquota.cli.output import Answer, JsonObject, Part, Row, hidden, key, moment, rounded, spread
from kquota.cli.reassign_partitions.answer import plan_or_null
from kquota.cli.table import aligned
from kquota.measure import ByteRate, agreeing, human_duration, human_rate
from kquota.reassign.course import Course, RateChange, throughput
from kquota.reassign.progress import Progress
from kquota.reassign.run import Run

_NOT_RECORDED: Final = "not recorded"
_UNDONE: Final = "undone"
_TENTHS: Final = rounded(1)
_WHOLE: Final = rounded(0)
_SHOWN: Final = 15
"""The maximum number of readings in the text. JSON and TSV have all readings."""
_CLOSE: Final = 0.1
_CLOSE_SECONDS: Final = 10.0
"""A command saw the end of the copies if the run ended soon after the last reading with bytes left. Soon means within
the fraction `_CLOSE` of the run's time, or within `_CLOSE_SECONDS` if that is longer.
"""
_ENDS: Final = {Progress.DONE.value: "done", Progress.ELSEWHERE.value: "ended elsewhere"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary(Part):
    """The summary of one run. Sizes are in bytes, rates in bytes per second, and times in seconds.

    None means unknown or not recorded. While the run is open, `ended`, `seconds` and `error` are None.
    """

    run: str
    """The id of the run."""
    begun: datetime
    ended: datetime | None
    outcome: str
    """The outcome: `open`, `done`, `ended elsewhere` (the replicas were not those of the plan), `undone`, or `ended` if
    the record does not show how the run ended.
    """
    seconds: float | None = key(form=_TENTHS)
    """The actual time from the start to the recorded end."""
    expected: float | None = key("expected_seconds", _TENTHS)
    error: float | None = key(form=rounded(3))
    """The error of the expected time: (actual - expected) / expected. None if the run was undone or the expected time
    is 0. Also None if no command saw the end of the copies, because the recorded end can be long after the actual end.
    """
    copied: int | None = key("bytes_copied")
    expected_bytes: int | None = key("bytes_expected")
    throttle: ByteRate | None
    """The latest throttle of the run, without rates of single brokers. None without a throttle."""
    user: str | None
    """The user that began the run."""
    host: str | None
    """The host on which the run began."""
    reason: str | None
    """The operator's reason for the run."""
    end_seen: bool = hidden()
    """True if a command saw the end of the copies."""

    @property
    def who(self) -> str:
        """The user and host of the command that began the run, or `not recorded`."""
        return _NOT_RECORDED if self.user is None else f"{self.user}@{self.host}"

    @property
    def end_unseen(self) -> bool:
        """True if the actual time is only an upper bound, because no command saw the end of the copies.

        False for an undone run, and for a run without a known actual time.
        """
        return self.seconds is not None and not self.end_seen and self.outcome != _UNDONE

    @property
    def deviation(self) -> str | None:
        """The error as text: a percentage, or a time if the expected time is 0. None if the error is unknown."""
        if self.error is not None:
            return f"{self.error:+.0%}"
        if self.end_seen and self.expected == 0 and self.seconds is not None:
            return f"+{human_duration(self.seconds)}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsListed(Answer):
    """The runs on record, newest first."""

    HEADER: ClassVar = (
        *("run", "begun", "ended", "outcome", "bytes", "expected_seconds", "seconds", "error", "user", "host"),
        "reason",
    )

    runs: tuple[RunSummary, ...]

    def text(self) -> Iterator[str]:
        if not self.runs:
            return
        # The id begins with the start time of the run, and 80 columns have no room to show it twice.
        heads = ["run", "outcome", "bytes", "time", "error", "who"]
        rows = [
            [
                one.run,
                one.outcome,
                size_or_unknown(one.copied),
                "" if one.seconds is None else human_duration(one.seconds),
                "" if one.seconds is None else one.deviation or UNKNOWN,
                one.who,
            ]
            for one in self.runs
        ]
        yield from (line.rstrip() for line in aligned(rows, heads, left=[0, 1, 5]))

    def rows(self) -> Iterator[Row]:
        for one in self.runs:
            ended = None if one.ended is None else one.ended.isoformat()
            numbers = (one.copied, _TENTHS(one.expected), _TENTHS(one.seconds), rounded(3)(one.error))
            texts = (None if number is None else str(number) for number in numbers)
            yield (one.run, one.begun.isoformat(), ended, one.outcome, *texts, one.user, one.host, one.reason)


def _seconds(run: Run, time: datetime) -> float:
    return max(0.0, (time - run.begun).total_seconds())


def _recorded(run: Run) -> JsonObject:
    """Return the JSON of the recorded course. Each `seconds` counts from the start of the run. For a broker, it is the
    end of the last copy.
    """
    course, rates = run.course, throughput(run.course.readings)
    brokers = [
        {
            "broker": to.broker,
            "bytes_expected": to.expected_bytes,
            "bytes_copied": to.copied,
            "expected_seconds": _TENTHS(to.expected),
            "seconds": None if to.ended is None else _TENTHS(_seconds(run, to.ended)),
        }
        for to in course.brokers
    ]
    readings = [
        {
            "time": one.at,
            "seconds": _TENTHS(_seconds(run, one.at)),
            "bytes_copied": one.copied,
            "bytes_left": one.left,
            "throughput": _WHOLE(rates.get(one.at)),
        }
        for one in course.readings
    ]
    changes = [
        {
            "time": one.at,
            "seconds": _TENTHS(_seconds(run, one.at)),
            "from": one.before,
            "to": one.rate,
            "by": one.by,
            "reason": one.reason,
            "settings": one.settings,
        }
        for one in course.changes
    ]
    return {
        "partitions": len(run.plan.targets) or None,
        "brokers": brokers,
        "readings": readings,
        "changes": changes,
        "changes_dropped": course.changes_dropped,
        "rollback": plan_or_null(run.rollback),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(Answer):
    """The report of one run. The TSV rows are the readings."""

    HEADER: ClassVar = ("time", "seconds", "bytes_copied", "bytes_left", "throughput")

    summary: RunSummary = spread()
    recorded: Run = spread(_recorded)

    @property
    def course(self) -> Course:
        """The expected end, the readings and the rate changes of the run, as recorded."""
        return self.recorded.course

    @property
    def rates(self) -> dict[datetime, float]:
        """The throughput in bytes per second, by the time of the reading. A reading whose throughput is unknown is
        missing.
        """
        return throughput(self.course.readings)

    def after(self, time: datetime) -> float:
        """Return the seconds from the start of the run until `time`."""
        return _seconds(self.recorded, time)

    @property
    def not_kept(self) -> str:
        """The number of dropped changes, as a line for people."""
        dropped = self.course.changes_dropped
        return f"{agreeing(dropped, 'more change', 'between those above is', 'between those above are')} not recorded"

    def text(self) -> Iterator[str]:
        yield f"Run {self.summary.run}: {self.summary.outcome}"
        yield from (f"  {name + ':':<11} {value}" for name, value in facts(self))
        if self.course.brokers:
            yield from ("", "Copies to each broker (expected and actual end are times since the start of the run):")
            heads = ["to", "bytes expected", "copied", "expected end", "actual end"]
            rows = [
                [
                    str(to.broker),
                    size_or_unknown(to.expected_bytes),
                    size_or_unknown(to.copied),
                    time_or_unknown(to.expected),
                    time_or_unknown(None if to.ended is None else self.after(to.ended)),
                ]
                for to in self.course.brokers
            ]
            yield from (f"  {line}" for line in aligned(rows, heads))
        yield ""
        if rates := self.rates:
            yield "Throughput:"
            heads = ["after", "copied", "left", "throughput"]
            readings = self.course.readings
            step = -(-len(readings) // _SHOWN)
            rows = [
                [
                    human_duration(self.after(one.at)),
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
        yield from (f"  {_change_line(change)}" for change in self.course.changes)
        if self.course.changes_dropped:
            yield f"  {self.not_kept}"
        if not self.course.changes:
            yield "  none is recorded"

    def rows(self) -> Iterator[Row]:
        rates = self.rates
        for one in self.course.readings:
            numbers = (_TENTHS(self.after(one.at)), one.copied, one.left, _WHOLE(rates.get(one.at)))
            yield (one.at.isoformat(), *(None if number is None else str(number) for number in numbers))


def _change_line(change: RateChange) -> str:
    where = "".join(f" {setting}," for setting in change.settings)
    why = _NOT_RECORDED if change.reason is None else change.reason
    by = _NOT_RECORDED if change.by is None else change.by
    return f"{moment(change.at)}:{where} from {_rate(change.before)} to {_rate(change.rate)}; by: {by}; reason: {why}"


UNWATCHED: Final = (
    "The throughput is not recorded, because no `move run` or `--execute --wait` read the sizes during the copies."
)


def facts(report: RunReport) -> Iterator[tuple[str, str]]:
    """Yield the lines at the top of a report, each as a name and a value."""
    one = report.summary
    yield "began", moment(one.begun)
    yield "ended", "not yet" if one.ended is None else moment(one.ended)
    yield "who", one.who
    yield "reason", _NOT_RECORDED if one.reason is None else one.reason
    yield "throttle", _rate(one.throttle) + (" (changed, see below)" if report.course.changes else "")
    yield "expected", _NOT_RECORDED if one.expected is None else human_duration(one.expected)
    if one.seconds is not None and one.end_unseen:
        yield "actual", f"at most {human_duration(one.seconds)}, because no command saw the end of the copies"
    elif one.seconds is not None:
        yield "actual", human_duration(one.seconds) + ("" if one.deviation is None else f" ({one.deviation})")
    yield "bytes", f"copied: {size_or_unknown(one.copied)}, expected: {size_or_unknown(one.expected_bytes)}"
    targets = report.recorded.plan.targets
    yield "partitions", f"{len(targets):,}" if targets else UNKNOWN


def listed(run: Run) -> RunSummary:
    """Return the summary of a run."""
    course = run.course
    seconds = None if run.finished is None else _seconds(run, run.finished)
    expected, end_seen = course.expected, _end_seen(run)
    return RunSummary(
        run=run.id,
        begun=run.begun,
        ended=run.finished,
        outcome=_outcome(run),
        seconds=seconds,
        expected=expected,
        error=None if seconds is None or not expected or not end_seen else (seconds - expected) / expected,
        copied=course.copied,
        expected_bytes=course.expected_bytes,
        throttle=run.rate,
        user=None if run.owner is None else run.owner.user,
        host=None if run.owner is None else run.owner.host,
        reason=run.reason,
        end_seen=end_seen,
    )


def _end_seen(run: Run) -> bool:
    """Return True if the run ended soon after its last reading with bytes left. Without a reading with bytes left, the
    start of the run counts instead. Unknown bytes also count as left. False for an open run and for an undone run.
    """
    if run.finished is None or run.aborting:
        return False
    before = [one.at for one in run.course.readings if one.left != 0]
    since = (run.finished - max(before, default=run.begun)).total_seconds()
    return since <= max(_CLOSE_SECONDS, _CLOSE * (run.finished - run.begun).total_seconds())


def reported(run: Run) -> RunReport:
    """Return the report of a run."""
    return RunReport(summary=listed(run), recorded=run)


def _outcome(run: Run) -> str:
    if run.finished is None:
        return "open"
    if run.aborting:
        return _UNDONE
    return "ended" if run.course.verdict is None else _ENDS.get(run.course.verdict, "ended")


def _rate(rate: ByteRate | None) -> str:
    return "no throttle" if rate is None else human_rate(rate)
