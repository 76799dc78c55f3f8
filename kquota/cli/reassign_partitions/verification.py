"""`reassign-partitions --verify`: report the state of a plan, and restore the throttles of moves that have ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kquota.cli import past_moves, world
from kquota.cli.contract import DONE, FAILED, NOT_YET, TRY_LATER, worded
from kquota.cli.options import Output
from kquota.cli.output import Answer, Lines, Part, hidden, spread
from kquota.cli.reassign_partitions import plan_option, remarks
from kquota.cli.reassign_partitions.command import ReassignOptions
from kquota.errors import Busy, Invalid, Refused, Unknown
from kquota.reassign import log_dirs, words
from kquota.reassign.moves import Replicas
from kquota.reassign.plan import Plan
from kquota.reassign.progress import Progress
from kquota.reassign.run import Purpose
from kquota.reassign.verification import Verification, unless_it_writes, verify
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.terms import BrokerId, TopicPartition
from kquota.watch.observation import MoveWatch

_KINDS: Final = ("warning", "error")
"""The first words of the notes that a person must read."""


def run(at: world.Where, options: ReassignOptions, watch: MoveWatch | None = None) -> Answer:
    """Report the state of the plan, or of the plan of every open run, and restore throttles of ended moves.

    The readings of `watch` go into the record.
    """
    if options.preserve_throttles and options.clear_all:
        raise Invalid("--preserve-throttles restores nothing and --clear-all removes everything: give one of them")
    if options.quiet and options.output is not Output.text:
        raise Invalid(f"--quiet prints no document, and --output {options.output} is one: give one of them")
    if options.all_runs:
        if options.reassignment_json_file is not None:
            raise Invalid("--all-runs verifies every open run and --reassignment-json-file one plan: give one of them")
        if options.clear_all:
            raise Invalid("--all-runs restores only what runs have set, and --clear-all removes everything: give one")
    plan = None if options.all_runs else plan_option.plan(at, options)
    try:
        with remarks.resumable(), world.staged(at, options.state_dir, _hold(options)) as stage:
            found = _every_run(stage, options) if plan is None else _of_plan(stage, plan, options, watch)
    except Busy:
        if options.quiet:
            return Lines(lines=(), code=TRY_LATER)
        raise
    return Lines(lines=(), notes=troubles(found.notes), code=found.code) if options.quiet else found


def _hold(options: ReassignOptions) -> world.Hold | None:
    return None if options.preserve_throttles else world.Hold(doing="reassign-partitions --verify", later=True)


def _of_plan(stage: world.Stage, plan: Plan, options: ReassignOptions, watch: MoveWatch | None = None) -> Verified:
    ports = stage.cluster, stage.runs, stage.clock, plan, stage.dirs
    looks = not options.preserve_throttles and not options.clear_all
    found = unless_it_writes(*ports) if looks else None
    if found is None:
        with stage.hold():
            began = stage.clock.now()
            found = verify(*ports, preserve=options.preserve_throttles, clear_all=options.clear_all)
            past_moves.keep_look(stage, found, began, watch)
    return verified(found, tuple(remarks.of_verification(found)))


def _every_run(stage: world.Stage, options: ReassignOptions) -> VerifiedRuns:
    """Verify the runs one after the other, oldest first. A run that fails does not hide the others."""
    shown, notes, codes = [], [], [DONE]
    for run in stage.runs.unfinished():
        if run.purpose is not Purpose.MOVE:
            continue
        try:
            found = _of_plan(stage, run.plan, options)
        except (Refused, Unknown) as error:
            notes.append(f"error: run {run.id}: {worded(error)}")
            codes.append(FAILED)
            continue
        shown.append(VerifiedRun(run=run.id, owner=None if run.owner is None else str(run.owner), found=found))
        notes += [_about(run.id, note) for note in found.notes]
        codes.append(found.code)
    if stage.runs.hidden or stage.runs.unreadable:
        notes.append("error: kquota cannot read all runs of this cluster, so open runs may be missing here")
        codes.append(NOT_YET)
    code = FAILED if FAILED in codes else max(codes)
    return VerifiedRuns(runs=tuple(shown), notes=tuple(notes), code=code)


def _about(run: str, note: str) -> str:
    """The note with the id of its run, after its kind."""
    kind, colon, rest = note.partition(": ")
    return f"{kind}: run {run}: {rest}" if colon and kind in _KINDS else f"run {run}: {note}"


def troubles(notes: Iterable[str]) -> tuple[str, ...]:
    """The warnings and errors of these notes."""
    return tuple(note for note in notes if note.partition(": ")[0] in _KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionShown(Part):
    """The state of a partition of the plan."""

    partition: TopicPartition = spread()
    status: Progress
    replicas: Replicas
    target: Replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirShown(Part):
    """The state of a replica that the plan moves into the log dir `target`."""

    partition: TopicPartition = spread()
    broker: BrokerId
    status: Progress
    log_dir: str | None
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRestore(Part):
    """A setting that is still to be restored, and the reason."""

    setting: Setting = spread()
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownThrottle(Part):
    """A throttle that stays set, because it is unknown which run needs it."""

    setting: Setting = spread()
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified(Answer):
    """The answer of --verify, printed like kafka-reassign-partitions. In JSON, null means unset.

    Unlike Kafka's tool, kquota clears only what it restores.
    """

    found: Verification = hidden()
    verdict: Progress
    partitions: tuple[PartitionShown, ...]
    log_dirs: tuple[LogDirShown, ...]
    given_back: tuple[Change, ...]
    pending: tuple[PendingRestore, ...]
    waiting: tuple[TopicPartition, ...]
    unknown: tuple[UnknownThrottle, ...]
    unread_brokers: tuple[BrokerId, ...]

    def text(self) -> Iterator[str]:
        yield from words.status_lines(self.found.statuses).split("\n")
        yield from log_dirs.status_lines(self.found.log_dirs).split("\n")
        yield from clearing(self.found)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedRun(Part):
    """An open run, who began it, and the state of its plan."""

    run: str
    owner: str | None
    found: Verified = spread()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedRuns(Answer):
    """The answer of --verify --all-runs: the runs that were open, oldest first."""

    runs: tuple[VerifiedRun, ...]

    def text(self) -> Iterator[str]:
        if not self.runs:
            yield "No runs are open."
        for one in self.runs:
            yield f"Run {one.run}" + (f", begun by {one.owner}:" if one.owner else ":")
            yield from one.found.text()


def verified(found: Verification, notes: tuple[str, ...] = ()) -> Verified:
    """Return the answer. The exit code is 0 for done, 8 for moving, pending or unknown, and 1 for ended elsewhere."""
    left = found.pending or found.unknown or found.unread
    code = NOT_YET if left or found.verdict is Progress.IN_PROGRESS else DONE
    partitions = (
        PartitionShown(partition=one.partition, status=one.progress, replicas=one.replicas, target=one.target)
        for one in found.statuses
    )
    in_dirs = (
        LogDirShown(
            partition=one.partition,
            broker=one.broker,
            status=one.progress,
            log_dir=one.place.current,
            target=one.target,
        )
        for one in found.log_dirs
    )
    return Verified(
        found=found,
        verdict=found.verdict,
        partitions=tuple(partitions),
        log_dirs=tuple(in_dirs),
        given_back=found.restored,
        pending=tuple(PendingRestore(setting=setting, why=why) for setting, why in sorted(found.pending.items())),
        waiting=found.waiting,
        unknown=tuple(UnknownThrottle(setting=s, value=value) for s, value in sorted(found.unknown.items())),
        unread_brokers=found.unread,
        notes=notes,
        code=FAILED if found.verdict is Progress.ELSEWHERE else code,
    )


def clearing(found: Verification) -> Iterator[str]:
    """Yield Kafka's lines about the restored settings."""
    settings = [change.setting for change in found.restored]
    if brokers := {BrokerId(int(setting.name)) for setting in settings if setting.kind == "broker"}:
        yield words.clearing_brokers(brokers)
    if topics := {setting.name for setting in settings if setting.kind == "topic"}:
        yield words.clearing_topics(topics)
