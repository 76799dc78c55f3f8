"""One reading of running moves as an answer: a table, plain lines, and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import wrap
from typing import Final

from kquota.cli.amounts import UNKNOWN, count_or_unknown, rate_or_unknown, size_or_unknown, time_or_unknown
from kquota.cli.contract import DONE, FAILED, NOT_YET
from kquota.cli.output import Answer, Part, hidden, key, moment, rounded, spread
from kquota.cli.table import aligned
from kquota.cli.watching.wording import MoveNamed, SymptomShown, shown
from kquota.measure import counted, human_duration, human_rate
from kquota.terms import BrokerId, TopicPartition
from kquota.watch.link_pace import Trend
from kquota.watch.observation import Observed
from kquota.watch.symptom import RunOpen, ThrottleLeft
from kquota.watch.view import DestinationView, SlowestCopy, WatchedBroker, WatchedMoveView

_WIDTH: Final = 80
_NO_DRIFT: Final = 5.0
"""The minimum drift that is shown, in seconds."""
_LEFT: Final = (ThrottleLeft, RunOpen)
"""The symptoms of a move that has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowestShown(Part):
    """The copy that is expected to end last at one destination, in bytes and seconds. None means unknown.

    `seconds_left` is also None if the copy makes no progress.
    """

    partition: TopicPartition = spread()
    left: int | None
    seconds_left: float | None = key(form=rounded(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationShown(Part):
    """The copies of one move to one broker, in bytes, bytes per second and seconds. None means unknown.

    `throttle` is also None if no throttle limits the copies. `seconds_left` is also None if the copies make no
    progress. `slowest` is None if no copy is known to lack bytes.
    """

    broker: BrokerId
    copies: int
    done: int
    copied: int | None
    left: int | None
    throughput: float | None = key(form=rounded(0))
    throttle: int | None
    throttled: bool | None
    seconds_left: float | None = key(form=rounded(1))
    slowest: SlowestShown | None

    @property
    def limit(self) -> str:
        """The throttle rate as text: `none` if no throttle limits the copies, or `unknown` if the rate is unknown."""
        if self.throttled is None:
            return UNKNOWN
        return "none" if self.throttle is None else human_rate(self.throttle)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedMoveShown(Part):
    """One move with its destinations. `elsewhere` counts partitions that ended without the replicas of the plan.

    Amounts are in bytes, bytes per second and seconds. None means unknown. `run` is None if no run is recorded here.
    `seconds_left` is also None if copies make no progress. A negative `drift` means that the move ends earlier than
    expected.
    """

    run: str | None
    partitions: int
    done: int
    elsewhere: int
    waiting: int
    moving: int
    log_dirs: int = key("log_dirs_moving")
    copied: int | None
    left: int | None
    throughput: float | None = key(form=rounded(0))
    seconds_left: float | None = key(form=rounded(1))
    drift: float | None = key("drift_seconds", rounded(1))
    destinations: tuple[DestinationShown, ...]
    plan: str | None = hidden()

    @property
    def name(self) -> str:
        """The name of the run or the plan, or a phrase if neither is known."""
        if self.run is not None:
            return f"run {self.run}"
        return "moves without a run recorded here" if self.plan is None else f"plan {self.plan}"

    @property
    def progress(self) -> str:
        """The progress as text: the partitions in each state, and the time left with its drift."""
        parts = [f"{self.done:,} of {counted(self.partitions, 'partition')} done"]
        if self.elsewhere:
            parts.append(f"{self.elsewhere} ended elsewhere")
        if self.waiting:
            parts.append(f"{self.waiting} not submitted yet")
        if self.log_dirs:
            parts.append(f"{counted(self.log_dirs, 'replica')} moving between log dirs")
        if self.moving or self.waiting:
            left = UNKNOWN if self.seconds_left is None else f"about {time_or_unknown(self.seconds_left)}"
            parts.append(f"time left {left}{self._drift}")
        return ", ".join(parts)

    @property
    def _drift(self) -> str:
        if self.drift is None or abs(self.drift) < _NO_DRIFT:
            return ""
        return f" ({human_duration(abs(self.drift))} {'later' if self.drift > 0 else 'earlier'} than expected)"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedBrokerShown(Part):
    """A broker that sends or receives copies. `SumReplicaLag` is in offsets. Rates are in bytes per second.

    None means unknown. For a throttle rate, None can also mean unset.
    """

    broker: BrokerId
    alive: bool
    lag: int | None = key("SumReplicaLag")
    trend: Trend | None
    sent: float | None = key(form=rounded(0))
    leader_rate: int | None
    received: float | None = key(form=rounded(0))
    follower_rate: int | None

    @property
    def lag_text(self) -> str:
        """`SumReplicaLag` and its trend as text."""
        how = "" if self.trend is None or not self.lag else f" {self.trend.value}"
        return f"{count_or_unknown(self.lag)}{how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MovesWatched(Answer):
    """One reading of the watched moves. With `lines`, the text is plain lines for a log, otherwise a table."""

    time: datetime
    ended: bool
    moves: tuple[WatchedMoveShown, ...]
    brokers: tuple[WatchedBrokerShown, ...]
    findings: tuple[SymptomShown, ...]
    lines: bool = hidden(default=False)

    def text(self) -> Iterator[str]:
        yield from self._log() if self.lines else self.table()
        yield from self.finding_lines()

    def finding_lines(self) -> Iterator[str]:
        """Yield one line for each finding, the most serious first."""
        for one in self.findings:
            yield f"  {one.finding}: {one.line}"

    def _log(self) -> Iterator[str]:
        lags = {broker.broker: broker.lag_text for broker in self.brokers}
        at = moment(self.time)
        for move in self.moves:
            yield f"{at} {move.name}: {move.progress}"
            for to in move.destinations:
                if to.done < to.copies:
                    yield (
                        f"{at} {move.name} to broker {to.broker}: {to.done:,} of {counted(to.copies, 'copy')} done, "
                        f"{size_or_unknown(to.copied)} copied, {size_or_unknown(to.left)} left, "
                        f"throughput {rate_or_unknown(to.throughput)}, throttle {to.limit}, "
                        f"SumReplicaLag {lags.get(to.broker, UNKNOWN)}, time left {time_or_unknown(to.seconds_left)}"
                    )

    def table(self) -> Iterator[str]:
        """Yield a table and the slowest copies of each move, then the `SumReplicaLag` of the brokers."""
        for move in self.moves:
            yield from _wrapped(f"{move.name}: {move.progress}")
            going = [to for to in move.destinations if to.done < to.copies]
            if not going:
                continue
            heads = ["to", "done", "copied", "left", "throughput", "throttle", "time left"]
            rows = [
                [
                    str(to.broker),
                    f"{to.done}/{to.copies}",
                    size_or_unknown(to.copied),
                    size_or_unknown(to.left),
                    rate_or_unknown(to.throughput),
                    to.limit,
                    time_or_unknown(to.seconds_left),
                ]
                for to in going
            ]
            yield from (f"  {line}".rstrip() for line in aligned(rows, heads, left=[0]))
            for to in going:
                if (slow := to.slowest) is not None and to.copies - to.done > 1:
                    left = f"{size_or_unknown(slow.left)} left, time left {time_or_unknown(slow.seconds_left)}"
                    yield f"  slowest copy to broker {to.broker}: {slow.partition}, {left}"
        if self.brokers:
            lags = ", ".join(f"broker {one.broker} {one.lag_text}" for one in self.brokers)
            yield from _wrapped(f"SumReplicaLag (offsets): {lags}")


def _wrapped(line: str) -> list[str]:
    """Wrap the text at `_WIDTH` characters, because a terminal would break longer lines within a word."""
    return wrap(line, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def answer(
    found: Observed, plan: str | None, *, lines: bool = False, unknown: bool = False, restores: bool = False
) -> MovesWatched:
    """Return one reading as an answer. With `restores`, the answer leaves out leftover throttles and open runs, because
    the command restores and ends them.

    The exit code is 8 if moves are running, if the answer has a leftover throttle or an open run, or if `unknown` is
    true because some runs cannot be read. Otherwise, it is 1 if replicas are not those of the plan, or else 0.
    """
    moves = tuple(_move(move, plan) for move in found.view.moves)
    going = [move.run for move in found.view.moves if not move.ended]
    symptoms = [one for one in found.symptoms if not (restores and isinstance(one, _LEFT))]
    findings = tuple(shown(one, _named(one, plan, going)) for one in symptoms)
    left = any(isinstance(one, _LEFT) for one in symptoms)
    code = DONE
    if not found.ended or left or unknown:
        code = NOT_YET
    elif any(move.elsewhere for move in moves):
        code = FAILED
    return MovesWatched(
        time=found.reading.time,
        ended=found.ended,
        moves=moves,
        brokers=tuple(_broker(one) for one in found.view.brokers),
        findings=findings,
        lines=lines,
        notes=() if moves else ("no move is running, and no run of a move is open",),
        code=code,
    )


def _named(symptom: object, plan: str | None, going: Sequence[str | None]) -> MoveNamed:
    """Return how commands select the move of a symptom: by its run, and by the file of the plan.

    `going` has the run of each move that has not ended, or None for moves without a run. A symptom without the field
    `run` belongs to one of these moves, so its run is known only if there is exactly one.
    """
    only = going[0] if len(going) == 1 else None
    return MoveNamed(run=getattr(symptom, "run", only), plan=plan)


def _move(move: WatchedMoveView, plan: str | None) -> WatchedMoveShown:
    return WatchedMoveShown(
        run=move.run,
        partitions=move.partitions,
        done=move.done,
        elsewhere=move.elsewhere,
        waiting=move.waiting,
        moving=move.moving,
        log_dirs=move.log_dirs,
        copied=move.copied,
        left=move.left,
        throughput=move.throughput,
        seconds_left=move.seconds_left,
        drift=move.drift,
        destinations=tuple(_destination(to) for to in move.destinations),
        plan=plan,
    )


def _destination(to: DestinationView) -> DestinationShown:
    return DestinationShown(
        broker=to.broker,
        copies=to.copies,
        done=to.done,
        copied=to.copied,
        left=to.left,
        throughput=to.throughput,
        throttle=to.throttle,
        throttled=to.throttled,
        seconds_left=to.seconds_left,
        slowest=_slowest(to.slowest),
    )


def _slowest(copy: SlowestCopy | None) -> SlowestShown | None:
    if copy is None:
        return None
    return SlowestShown(partition=copy.partition, left=copy.left, seconds_left=copy.seconds)


def _broker(one: WatchedBroker) -> WatchedBrokerShown:
    return WatchedBrokerShown(
        broker=one.broker,
        alive=one.alive,
        lag=one.lag,
        trend=one.trend,
        sent=one.sent,
        leader_rate=one.leader_rate,
        received=one.received,
        follower_rate=one.follower_rate,
    )
