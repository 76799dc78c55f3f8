"""One reading of running moves as an answer: a table, plain lines, and JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import wrap
from typing import Final

from kquota.cli.amounts import UNKNOWN, count_or_unknown, rate_or_unknown, size_or_unknown, size_with, time_or_unknown
from kquota.cli.contract import DONE, FAILED, NOT_YET
from kquota.cli.output import Answer, JsonObject, each, hidden, key, moment, plain, rounded
from kquota.cli.table import aligned
from kquota.cli.watching.wording import MoveNamed, SymptomShown, shown
from kquota.measure import counted, human_duration, human_rate
from kquota.watch.observation import Observed
from kquota.watch.symptom import RunOpen, ThrottleLeft
from kquota.watch.view import DestinationView, WatchedBroker, WatchedMoveView

_WIDTH: Final = 80
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_NO_DRIFT: Final = 5.0
"""The minimum drift that the text shows, in seconds. JSON has every known drift."""
_RATE: Final = rounded(0)
_SECONDS: Final = rounded(1)
_LEFT: Final = (ThrottleLeft, RunOpen)
"""The symptoms of a move that has ended."""


def _move(move: WatchedMoveView) -> JsonObject:
    return {
        "run": move.run,
        "partitions": move.partitions,
        "done": move.done,
        "elsewhere": move.elsewhere,
        "waiting": move.waiting,
        "moving": move.moving,
        "log_dirs_moving": move.log_dirs,
        "copied": move.copied,
        "left": move.left,
        "throughput": _RATE(move.throughput),
        "seconds_left": _SECONDS(move.seconds_left),
        "drift_seconds": _SECONDS(move.drift),
        "destinations": [_destination(to) for to in move.destinations],
    }


def _destination(to: DestinationView) -> JsonObject:
    slow = to.slowest
    return {
        "broker": to.broker,
        "copies": to.copies,
        "done": to.done,
        "copied": to.copied,
        "left": to.left,
        "throughput": _RATE(to.throughput),
        "throttle": to.throttle,
        "throttled": to.throttled,
        "seconds_left": _SECONDS(to.seconds_left),
        "slowest": None
        if slow is None
        else {**plain(slow.partition), "left": slow.left, "seconds_left": _SECONDS(slow.seconds)},
    }


def _broker(broker: WatchedBroker) -> JsonObject:
    return {
        "broker": broker.broker,
        "alive": broker.alive,
        "SumReplicaLag": broker.lag,
        "trend": broker.trend,
        "sent": _RATE(broker.sent),
        "leader_rate": broker.leader_rate,
        "received": _RATE(broker.received),
        "follower_rate": broker.follower_rate,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class MovesWatched(Answer):
    """One reading of the watched moves. With `lines`, the text is plain lines for a log, otherwise a table.

    `plan` is the file of the plan for suggested commands. None means that no plan was given, or that its file cannot be
    read again.
    """

    time: datetime
    ended: bool
    moves: tuple[WatchedMoveView, ...] = key(form=each(_move))
    brokers: tuple[WatchedBroker, ...] = key(form=each(_broker))
    findings: tuple[SymptomShown, ...]
    plan: str | None = hidden(default=None)
    lines: bool = hidden(default=False)

    def text(self) -> Iterator[str]:
        yield from self._log() if self.lines else self.table()
        yield from self.finding_lines()

    def finding_lines(self) -> Iterator[str]:
        """Yield one line for each finding, the most serious first."""
        for one in self.findings:
            yield f"  {one.finding}: {one.line}"

    def _log(self) -> Iterator[str]:
        lags = {broker.broker: _lag(broker) for broker in self.brokers}
        at = moment(self.time)
        for move in self.moves:
            name = self._name(move)
            to_broker = f"{name} to broker" if len(self.moves) > 1 else "to broker"
            yield f"{at} {name}{_undoing(move)}: {_progress(move)}"
            for to in move.destinations:
                if to.done < to.copies:
                    yield (
                        f"{at} {to_broker} {to.broker}: {to.done:,} of {counted(to.copies, 'copy')} done, "
                        f"{size_with(to.copied, 'copied')}, {size_with(to.left, 'left')}, "
                        f"throughput {rate_or_unknown(to.throughput)}, throttle {_limit(to)}, "
                        f"SumReplicaLag {lags.get(to.broker, UNKNOWN)}, time left {time_or_unknown(to.seconds_left)}"
                    )

    def table(self) -> Iterator[str]:
        """Yield a table and the slowest copies of each move, then the `SumReplicaLag` of the brokers."""
        for move in self.moves:
            yield from _wrapped(f"{self._name(move)}{_undoing(move)}: {_progress(move)}")
            going = [to for to in move.destinations if to.done < to.copies]
            if not going:
                continue
            heads = ["to", "done", "copied", "left", "throughput", "throttle", "time left"]
            rows = [
                [
                    str(to.broker),
                    f"{to.done:,}/{to.copies:,}",
                    size_or_unknown(to.copied),
                    size_or_unknown(to.left),
                    rate_or_unknown(to.throughput),
                    _limit(to),
                    time_or_unknown(to.seconds_left),
                ]
                for to in going
            ]
            yield from (f"  {line}".rstrip() for line in aligned(rows, heads, left=[0]))
            for to in going:
                if (slow := to.slowest) is not None and to.copies - to.done > 1:
                    left = f"{size_with(slow.left, 'left')}, time left {time_or_unknown(slow.seconds)}"
                    yield f"  slowest copy to broker {to.broker}: {slow.partition}, {left}"
        if self.brokers:
            lags = ", ".join(f"broker {one.broker}: {_lag(one)}" for one in self.brokers)
            yield from _wrapped(f"SumReplicaLag (offsets): {lags}")

    def _name(self, move: WatchedMoveView) -> str:
        if move.run is not None:
            return f"run {move.run}"
        return "moves without a run recorded here" if self.plan is None else f"plan {self.plan}"


def _undoing(move: WatchedMoveView) -> str:
    return ", being undone" if move.undoing else ""


def _progress(move: WatchedMoveView) -> str:
    parts = [f"{move.done:,} of {counted(move.partitions, 'partition')} done"]
    if move.elsewhere:
        parts.append(f"{move.elsewhere:,} ended elsewhere")
    if move.waiting:
        parts.append(f"{move.waiting:,} not submitted yet")
    if move.log_dirs:
        parts.append(f"{counted(move.log_dirs, 'replica')} moving between log dirs")
    if move.moving or move.waiting:
        parts.append(f"time left {_time_left(move)}{_drift(move.drift)}")
    return ", ".join(parts)


def _time_left(move: WatchedMoveView) -> str:
    """Return the time left as text. Before a throughput is known, it is a lower bound, as in `move status`."""
    if move.seconds_left is not None:
        return f"about {time_or_unknown(move.seconds_left)}"
    if move.throughput is not None or move.paused or move.least_seconds is None:
        return UNKNOWN
    return f"at least {time_or_unknown(move.least_seconds)}"


def _drift(seconds: float | None) -> str:
    if seconds is None or abs(seconds) < _NO_DRIFT:
        return ""
    return f" ({human_duration(abs(seconds))} {'later' if seconds > 0 else 'earlier'} than expected)"


def _limit(to: DestinationView) -> str:
    if to.throttled is None:
        return UNKNOWN
    return "none" if to.throttle is None else human_rate(to.throttle)


def _lag(one: WatchedBroker) -> str:
    how = "" if one.trend is None or not one.lag else f" {one.trend.value}"
    return f"{count_or_unknown(one.lag)}{how}"


def _wrapped(line: str) -> list[str]:
    """Wrap the text at `_WIDTH` characters, because a terminal would break longer lines within a word. A number and its
    unit stay on one line.
    """
    joined = re.sub(r"(?<=\d) (?=\w)", _NO_BREAK, line)
    lines = wrap(joined, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return [each.replace(_NO_BREAK, " ") for each in lines]


def answer(
    found: Observed, plan: str | None, *, lines: bool = False, unknown: bool = False, restores: bool = False
) -> MovesWatched:
    """Return one reading as an answer. With `restores`, the answer leaves out leftover throttles and open runs, because
    the command restores and ends them.

    The exit code is 1 if the moves have ended, but replicas are not those of the plan. Otherwise, it is 8 if moves are
    running, or if the answer has a leftover throttle or an open run. It is also 8 with `unknown`, which means that some
    runs cannot be read. Otherwise, it is 0.
    """
    # An ended run has no partitions left if later runs move all of them again.
    moves = tuple(move for move in found.view.moves if move.partitions)
    going = [move.run for move in moves if not move.ended]
    symptoms = [one for one in found.symptoms if not (restores and isinstance(one, _LEFT))]
    findings = tuple(shown(one, _named(one, plan, going)) for one in symptoms)
    left = any(isinstance(one, _LEFT) for one in symptoms)
    code = NOT_YET if not found.ended or left or unknown else DONE
    if found.ended and any(move.elsewhere for move in moves):
        code = FAILED
    return MovesWatched(
        time=found.reading.time,
        ended=found.ended,
        moves=moves,
        brokers=found.view.brokers,
        findings=findings,
        plan=plan,
        lines=lines,
        notes=() if moves else ("no move is running, and no run of a move is open",),
        code=code,
    )


def _named(symptom: object, plan: str | None, going: Sequence[str | None]) -> MoveNamed:
    """Return the move of a symptom, for suggested commands. `going` has the run of each move that has not ended, or
    None for moves without a run. A symptom without the field `run` belongs to one of these moves, so its run is known
    only if there is exactly one such move.
    """
    only = going[0] if len(going) == 1 else None
    return MoveNamed(run=getattr(symptom, "run", only), plan=plan)
