"""The answers of `move report`: the list of runs, and the report of one run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from kquota.cli.amounts import UNKNOWN, rate_or_unknown, size_or_unknown, time_or_unknown
from kquota.cli.output import Answer, Part, Row, hidden, key, moment, rounded, spread
from kquota.cli.reassign_partitions.answer import plan_document
from kquota.cli.table import aligned
from kquota.measure import ByteRate, agreeing, human_duration, human_rate
from kquota.reassign.course import throughput
from kquota.reassign.plan import Plan
from kquota.reassign.progress import Progress
from kquota.reassign.run import Run
from kquota.settings.resource import Setting
from kquota.terms import BrokerId

_NOT_RECORDED: Final = "not recorded"
_UNDONE: Final = "undone"
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
    """One run, in bytes, bytes per second and seconds. None means unknown or not recorded.

    While the run is open, `ended`, `seconds` and `error` are None.
    """

    run: str
    """The id of the run."""
    begun: datetime
    ended: datetime | None
    outcome: str
    """`open`, `done`, `ended elsewhere` (the replicas were not those of the plan), `undone`, or `ended` if the record
    does not show how the run ended.
    """
    seconds: float | None = key(form=rounded(1))
    """The actual time from the start to the recorded end."""
    expected: float | None = key("expected_seconds", rounded(1))
    error: float | None = key(form=rounded(3))
    """(actual - expected) / expected. None if the run was undone or the expected time is 0. Also None if no command saw
    the end of the copies, because the recorded end can be long after the actual end.
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
            numbers = (one.copied, rounded(1)(one.expected), rounded(1)(one.seconds), rounded(3)(one.error))
            texts = (None if number is None else str(number) for number in numbers)
            yield (one.run, one.begun.isoformat(), ended, one.outcome, *texts, one.user, one.host, one.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerReported(Part):
    """The copies to one broker. None means unknown."""

    broker: BrokerId
    expected_bytes: int | None = key("bytes_expected")
    copied: int | None = key("bytes_copied")
    expected: float | None = key("expected_seconds", rounded(1))
    """The expected end of the last copy, in seconds from the start of the run."""
    seconds: float | None = key(form=rounded(1))
    """The actual end of the last copy, in seconds from the start of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingReported(Part):
    """One reading, `seconds` after the start of the run. None means unknown."""

    time: datetime
    seconds: float = key(form=rounded(1))
    copied: int | None = key("bytes_copied")
    """The bytes on the destinations."""
    left: int | None = key("bytes_left")
    """The bytes that were still to copy."""
    rate: float | None = key("throughput", rounded(0))
    """The throughput since the previous reading with known bytes, in bytes per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReported(Part):
    """A change of the throttle, `seconds` after the start of the run."""

    time: datetime
    seconds: float = key(form=rounded(1))
    before: ByteRate | None = key("from")
    """The previous rate in bytes per second, or None without a throttle."""
    rate: ByteRate | None = key("to")
    """The new rate in bytes per second, or None without a throttle."""
    by: str | None
    """The user that made the change, or None if the user is not recorded."""
    reason: str | None
    """The operator's reason for the change, or None if no reason is recorded."""
    settings: tuple[Setting, ...] = ()
    """The rates that changed. Empty if all rates changed."""

    @property
    def line(self) -> str:
        """The change as one line of text."""
        where = "".join(f" {setting}," for setting in self.settings)
        why = _NOT_RECORDED if self.reason is None else self.reason
        by = _NOT_RECORDED if self.by is None else self.by
        return f"{moment(self.time)}:{where} from {_rate(self.before)} to {_rate(self.rate)}; by: {by}; reason: {why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(Answer):
    """The report of one run. The TSV rows are the readings."""

    HEADER: ClassVar = ("time", "seconds", "bytes_copied", "bytes_left", "throughput")

    summary: RunSummary = spread()
    partitions: int | None
    """The number of partitions in the plan of the run, or None if the record has no plan."""
    brokers: tuple[BrokerReported, ...]
    readings: tuple[ReadingReported, ...]
    changes: tuple[ChangeReported, ...]
    changes_dropped: int
    """The number of other changes, made between those in `changes`, that the record does not keep."""
    rollback: Plan | None = key(form=plan_document)
    """The plan with the replicas from before the run, or None if the record has no plan."""

    @property
    def watched(self) -> bool:
        """True if the throughput at any reading is known."""
        return any(one.rate is not None for one in self.readings)

    @property
    def not_kept(self) -> str:
        """The number of dropped changes, as a line for people."""
        more = agreeing(self.changes_dropped, "more change", "between those above is", "between those above are")
        return f"{more} not recorded"

    def text(self) -> Iterator[str]:
        one = self.summary
        yield f"Run {one.run}: {one.outcome}"
        yield from (f"  {name + ':':<11} {value}" for name, value in facts(self))
        if self.brokers:
            yield from ("", "Copies to each broker (an end is the time since the start of the run):")
            heads = ["to", "bytes expected", "copied", "expected end", "actual end"]
            rows = [
                [
                    str(to.broker),
                    size_or_unknown(to.expected_bytes),
                    size_or_unknown(to.copied),
                    time_or_unknown(to.expected),
                    time_or_unknown(to.seconds),
                ]
                for to in self.brokers
            ]
            yield from (f"  {line}" for line in aligned(rows, heads))
        yield ""
        if self.watched:
            yield "Throughput:"
            heads = ["after", "copied", "left", "throughput"]
            step = -(-len(self.readings) // _SHOWN)
            shown = [r for n, r in enumerate(reversed(self.readings)) if n % step == 0][::-1]
            rows = [
                [human_duration(r.seconds), size_or_unknown(r.copied), size_or_unknown(r.left), rate_or_unknown(r.rate)]
                for r in shown
            ]
            yield from (f"  {line}" for line in aligned(rows, heads))
        else:
            yield UNWATCHED
        yield from ("", "Throttle changes:")
        yield from (f"  {change.line}" for change in self.changes)
        if self.changes_dropped:
            yield f"  {self.not_kept}"
        if not self.changes:
            yield "  none is recorded"

    def rows(self) -> Iterator[Row]:
        for one in self.readings:
            numbers = (rounded(1)(one.seconds), one.copied, one.left, rounded(0)(one.rate))
            yield (one.time.isoformat(), *(None if number is None else str(number) for number in numbers))


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
    yield "throttle", _rate(one.throttle) + (" (changed, see below)" if report.changes else "")
    yield "expected", _NOT_RECORDED if one.expected is None else human_duration(one.expected)
    if one.seconds is not None and one.end_unseen:
        yield "actual", f"at most {human_duration(one.seconds)}, because no command saw the end of the copies"
    elif one.seconds is not None:
        yield "actual", human_duration(one.seconds) + ("" if one.deviation is None else f" ({one.deviation})")
    yield "bytes", f"{size_or_unknown(one.copied)} copied, {size_or_unknown(one.expected_bytes)} expected"
    yield "partitions", UNKNOWN if report.partitions is None else f"{report.partitions:,}"


def listed(run: Run) -> RunSummary:
    """Return the summary of a run."""
    course = run.course
    seconds = None if run.finished is None else max(0.0, (run.finished - run.begun).total_seconds())
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
    """True if the run ended soon after its last reading with bytes left. Without a reading with bytes left, the start
    of the run counts instead. Unknown bytes also count as left. False for an open run and for an undone run.
    """
    if run.finished is None or run.aborting:
        return False
    before = [one.at for one in run.course.readings if one.left != 0]
    since = (run.finished - max(before, default=run.begun)).total_seconds()
    return since <= max(_CLOSE_SECONDS, _CLOSE * (run.finished - run.begun).total_seconds())


def reported(run: Run) -> RunReport:
    """Return the report of a run."""

    def after(time: datetime) -> float:
        return max(0.0, (time - run.begun).total_seconds())

    course = run.course
    rates = throughput(course.readings)
    return RunReport(
        summary=listed(run),
        partitions=len(run.plan.targets) or None,
        rollback=run.rollback if run.rollback.targets else None,
        brokers=tuple(
            BrokerReported(
                broker=to.broker,
                expected_bytes=to.expected_bytes,
                copied=to.copied,
                expected=to.expected,
                seconds=None if to.ended is None else after(to.ended),
            )
            for to in course.brokers
        ),
        readings=tuple(
            ReadingReported(
                time=one.at,
                seconds=after(one.at),
                copied=one.copied,
                left=one.left,
                rate=rates.get(one.at),
            )
            for one in course.readings
        ),
        changes=tuple(
            ChangeReported(
                time=one.at,
                seconds=after(one.at),
                before=one.before,
                rate=one.rate,
                by=one.by,
                reason=one.reason,
                settings=one.settings,
            )
            for one in course.changes
        ),
        changes_dropped=course.changes_dropped,
    )


def _outcome(run: Run) -> str:
    if run.finished is None:
        return "open"
    if run.aborting:
        return _UNDONE
    return "ended" if run.course.verdict is None else _ENDS.get(run.course.verdict, "ended")


def _rate(rate: ByteRate | None) -> str:
    return "no throttle" if rate is None else human_rate(rate)
