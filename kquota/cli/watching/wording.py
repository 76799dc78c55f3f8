"""The symptoms of moves as text: the problem, and the command that helps."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from kquota.cli.amounts import size_or_unknown, size_with, time_or_unknown
from kquota.cli.output import Part
from kquota.cli.suggestion import suggested, zookeeper_shell
from kquota.list_text import few, joined
from kquota.measure import ByteRate, agreeing, counted, exact_rate, human_bytes, human_duration, human_rate
from kquota.terms import LOG_DIR_RATE, TopicPartition
from kquota.watch.symptom import (
    CaughtReplica,
    DestinationDown,
    FullDisk,
    IdleLogDir,
    LastPartition,
    NoLeader,
    NotBegun,
    NothingArrives,
    NotStarted,
    NotSubmitted,
    RunOpen,
    RunPaused,
    StarvedCopies,
    Symptom,
    ThrottleLeft,
    Undo,
)

_SHOWN: Final = 5
_LEAST_LOG_DIR_RATE: Final = 10_000_000
"""The lowest log dir throttle that a finding suggests, in bytes per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymptomShown(Part):
    """A symptom as text and JSON: its name (`finding`), the problem (`what`), the next step (`do`), and its values."""

    finding: str
    what: str
    do: str
    values: Mapping[str, Any]

    @property
    def line(self) -> str:
        """The symptom as one line for people."""
        return f"{self.what}. {self.do}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveNamed:
    """A move for suggested commands, which select it by its run or by the file of its plan. None means unknown."""

    run: str | None
    plan: str | None

    def by_plan(self, action: str, *more: str) -> str:
        """Return a command that selects the move by its plan, with the placeholder `PLAN` if the file is unknown."""
        file = shlex.quote(self.plan or "PLAN")
        return suggested(" ".join(("reassign-partitions", action, "--reassignment-json-file", file, *more)))


def shown(symptom: Symptom, named: MoveNamed) -> SymptomShown:
    """Return a symptom as text and values. The keys of `values` are the names of the symptom's fields."""
    fields = {name: getattr(symptom, name) for name in symptom.__dataclass_fields__}
    values = {name: round(value, 1) if isinstance(value, float) else value for name, value in fields.items()}
    return SymptomShown(finding=_NAMES[type(symptom)], what=_sentence(symptom), do=_do(symptom, named), values=values)


_NAMES: Mapping[type[Symptom], str] = {
    StarvedCopies: "starved",
    DestinationDown: "destination down",
    NoLeader: "no leader",
    NotSubmitted: "not submitted",
    NotBegun: "controller idle",
    NotStarted: "not started",
    LastPartition: "last partition",
    ThrottleLeft: "throttle left",
    RunOpen: "run open",
    IdleLogDir: "log dir idle",
    CaughtReplica: "replica caught",
    FullDisk: "disk full",
    NothingArrives: "nothing arrives",
    RunPaused: "paused",
}


def _sentence(symptom: Symptom) -> str:
    match symptom:
        case StarvedCopies():
            return _starved(symptom)
        case DestinationDown():
            return _down(symptom)
        case NoLeader():
            return _leaderless(symptom)
        case NotSubmitted():
            return (
                f"{agreeing(symptom.partitions, 'partition', 'is', 'are')} not submitted yet (first: {symptom.first})"
            )
        case NotBegun(seconds=seconds):
            moves = counted(symptom.partitions, "submitted move")
            return f"the controller has not begun {moves} after {human_duration(seconds)} (first: {symptom.first})"
        case NotStarted():
            logs = "log" if symptom.copies == 1 else "logs"
            what = f"broker {symptom.broker} has not created the {logs} of {counted(symptom.copies, 'copy')} after "
            return f"{what}{human_duration(symptom.seconds)} (first: {symptom.first})"
        case LastPartition():
            what = f"{symptom.partition} has been the only unfinished partition for {human_duration(symptom.seconds)} "
            what += f"(copy to broker {symptom.destination}: {size_with(symptom.left, 'left')}, "
            return f"{what}time left {time_or_unknown(symptom.seconds_left)})"
        case ThrottleLeft(run=run):
            still = "a throttle is still set on its partitions"
            return f"the move has ended, but {still if run is None else f'the throttle of run {run} is still set'}"
        case RunOpen(run=run):
            return f"the move has ended, but run {run} is still open"
        case IdleLogDir():
            return _idle(symptom)
        case CaughtReplica():
            more = f" and {counted(symptom.more, 'more replica')}" if symptom.more else ""
            what = f"{symptom.partition} on broker {symptom.broker}{more}: not moving, but "
            return f"{what}out of sync and limited by the throttle (KIP-542)"
        case FullDisk():
            state = symptom.error or f"{size_or_unknown(symptom.usable)} free"
            copies = "" if symptom.left is None else f", {human_bytes(symptom.left)} still to copy"
            return f"broker {symptom.broker}: {symptom.log_dir} cannot take the copies ({state}{copies})"
        case NothingArrives():
            what = f"{_moves(symptom.run)} has copied nothing for {human_duration(symptom.seconds)}"
            return f"{what} ({size_with(symptom.left, 'left')})"
        case RunPaused():
            return f"{_moves(symptom.run)} is paused ({size_with(symptom.left, 'left')})"
        case _:
            assert_never(symptom)


def _do(symptom: Symptom, named: MoveNamed) -> str:
    match symptom:
        case StarvedCopies():
            return _raise_rate(symptom, named)
        case DestinationDown(why=why):
            repair = "Start the broker" if why is None else "Check the broker"
            if named.run is None or symptom.undo is Undo.NONE:
                return f"{repair}. See the open runs: {suggested('move status')}"
            if symptom.undo is Undo.RUNNING:
                return f"{repair}, or cancel the moves that are still running: {named.by_plan('--cancel')}"
            return f"{repair}, or undo the move: {suggested('move abort' + _run(named.run))}"
        case NoLeader():
            show = _of_topic("topics --describe", symptom.partitions[0])
            return f"Start one of these brokers. See the replicas of the topic: {show}"
        case NotBegun():
            return (
                f"Find the controller with {zookeeper_shell('get /controller')}. If the controller hangs, restart it, "
                f"so that another broker begins the moves. Then see the moves: {suggested('move watch --once')}"
            )
        case NotStarted(first=first):
            return f"See the replicas of the topic: {_of_topic('topics --describe', first)}"
        case NotSubmitted(run=run):
            return f"If no command of this run is running, submit the rest: {suggested('move resume' + _run(run))}"
        case LastPartition(partition=partition):
            return f"See the throttle of the topic: {_of_topic('throttle show', partition)}"
        case CaughtReplica(partition=partition):
            fix = suggested("throttle doctor --fix")
            show = _of_topic("throttle show", partition)
            return f"Remove the entries that no run holds: {fix}. See the lists of the topic: {show}"
        case ThrottleLeft(run=run):
            return _verify(named, "Restore the throttle" if run is None else "End the run and restore its throttle")
        case RunOpen(run=run):
            return f"End the run: {suggested('move resume' + _run(run))}"
        case IdleLogDir(rate=int()):
            return _raise_log_dir_rate(symptom, named)
        case IdleLogDir(broker=broker) | FullDisk(broker=broker):
            return f"See the log dirs: {suggested(f'log-dirs --describe --broker-list {broker}')}"
        case NothingArrives():
            return f"See the throttles: {suggested('throttle show')}"
        case RunPaused(run=run):
            return f"Continue the run: {suggested('move adjust --continue' + _run(run))}"
        case _:
            assert_never(symptom)


def _of_topic(command: str, partition: TopicPartition) -> str:
    return suggested(f"{command} --topic {shlex.quote(partition.topic)}")


def _down(symptom: DestinationDown) -> str:
    dead, silent = "is dead or fenced", f"does not report its sizes or log end offsets ({symptom.why})"
    copies = counted(symptom.copies, "copy")
    return f"broker {symptom.broker}, the destination of {copies}, {dead if symptom.why is None else silent}"


def _idle(symptom: IdleLogDir) -> str:
    what = f"{symptom.partition} on broker {symptom.broker}: the copy into {symptom.log_dir} has not grown for "
    limit = "" if symptom.rate is None else f" under the throttle {LOG_DIR_RATE}={symptom.rate}"
    return f"{what}{human_duration(symptom.seconds)}{limit}"


def _leaderless(symptom: NoLeader) -> str:
    first = f" of {symptom.partitions[0]}" if len(symptom.partitions) > 1 else ""
    have = "has" if len(symptom.partitions) == 1 else "have"
    what = f"{few(symptom.partitions, _SHOWN)} {have} no leader to copy from "
    return f"{what}(replicas{first} on brokers: {joined(symptom.replicas)})"


def _starved(symptom: StarvedCopies) -> str:
    verb = "sends" if symptom.side.value == "leader" else "receives"
    followers = f", including {human_rate(symptom.followers)} to in-sync followers" if symptom.followers >= 1 else ""
    return (
        f"broker {symptom.broker} {verb} {human_rate(symptom.used)} of its {symptom.side.value} rate of "
        f"{human_rate(symptom.rate)}{followers}. The copies do not catch up, because producers write "
        f"{human_rate(symptom.written)} to the copied partitions"
    )


def _raise_rate(symptom: StarvedCopies, named: MoveNamed) -> str:
    """Return the next step for starved copies. Without a run, the command only shows the throttles, because another run
    may hold the rate.
    """
    if named.run is None:
        return f"Raise the rate. See the throttles: {suggested('throttle show')}"
    enough = max(symptom.rate, symptom.followers + symptom.written) * 2
    rate = exact_rate(ByteRate(max(1, math.ceil(float(f"{enough:.1e}")))))
    return f"Raise the rate: {suggested(f'throttle set --run {named.run} --throttle {rate}')}"


def _raise_log_dir_rate(symptom: IdleLogDir, named: MoveNamed) -> str:
    rate = exact_rate(ByteRate(max(_LEAST_LOG_DIR_RATE, 10 * (symptom.rate or 0))))
    if named == MoveNamed(run=None, plan=None):
        command = suggested(f"configs --alter --add-config {LOG_DIR_RATE}={rate} --broker {symptom.broker}")
        return f"Raise the throttle: {command}"
    return f"Raise the throttle: {named.by_plan('--execute', '--replica-alter-log-dirs-throttle', rate)}"


def _verify(named: MoveNamed, purpose: str) -> str:
    if named.plan is not None:
        return f"{purpose}: {named.by_plan('--verify')}"
    if named.run is not None:
        return f"{purpose}: {suggested(f'move resume --run {named.run}')}"
    return f"Examine the throttle: {suggested('throttle doctor')}"


def _moves(run: str | None) -> str:
    return "the move" if run is None else f"run {run}"


def _run(run: str | None) -> str:
    return "" if run is None else f" --run {run}"
