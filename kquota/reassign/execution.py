"""The order of writes of `--execute`, resume and abort: record, throttle and submit each wave, then change log dirs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final

from kquota.errors import (
    Busy,
    Conflict,
    Incomplete,
    KquotaError,
    NextStep,
    Refused,
    StepFor,
    Unknown,
    Unreachable,
)
from kquota.measure import agreeing, counted
from kquota.reassign import guard, log_dir_actions, words
from kquota.reassign.log_dir_actions import Started
from kquota.reassign.moves import Move, Replicas, moves, throttled_brokers
from kquota.reassign.plan import Plan
from kquota.reassign.port import MovePorts, Snapshot
from kquota.reassign.preparation import MoveRequest, Prepared
from kquota.reassign.restoring import taking, without_topics
from kquota.reassign.run import Run, others_than, recreated, with_id
from kquota.reassign.throttle_writes import (
    enforce,
    read,
    record,
    restore_after,
    restore_ended,
    wait_until,
)
from kquota.reassign.wave import ListFull, first_full, lists_of, wanted, wave
from kquota.settings.resource import Setting
from kquota.terms import REPLICATION_RATES, SEEN_SECONDS, BrokerId, TopicPartition

_BETWEEN_WAVES: Final = 2.0
"""Seconds between two checks for room for the next wave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The result of `--execute`, resume or abort."""

    run: Run | None
    """None if every replica was in place, so that nothing had to be submitted or throttled."""
    rollback: Plan
    started: tuple[TopicPartition, ...] = ()
    """The partitions that this kquota submitted."""
    running: tuple[TopicPartition, ...] = ()
    """The partitions that were already moving as planned."""
    log_dirs: Started = field(default_factory=Started)


def carry_out(
    prepared: Prepared,
    report: Callable[[str], None] = lambda _: None,
    timeout: float = log_dir_actions.TIMEOUT,
    hold_back: Callable[[], str | None] = lambda: None,
    noted: Callable[[Run], Run] = lambda run: run,
    between: Callable[[], AbstractContextManager[None]] = nullcontext,
    wait: Callable[[float], None] | None = None,
) -> Execution:
    """Record, throttle and start the prepared moves. List entries and rates are set before the moves start (KIP-73).

    Returns when all moves are submitted, or when another process has ended the run. Running moves are not submitted
    again. A move of a later wave waits while it has a `guard.obstacle`. Moves between log dirs start last, because a
    broker creates a submitted replica only after a while. kquota waits at most `timeout` seconds until these moves
    begin.

    `report` receives messages for the operator. While `hold_back` returns a reason, no further wave is submitted.
    Before a later wave, `noted` adds readings to the run. Each wait for the next wave is inside a `between` block, in
    which other processes may change the run. `wait` replaces the clock's sleep in this block.

    Raises Refused, Conflict or Unreachable if the first wave failed and kquota restored its throttle. Raises Unknown if
    kquota cannot confirm a write or a submission, and Incomplete for another error after which the run stays open.
    Once the first wave is submitted, the run also stays open if the record or `between` raises an error. Raises Refused
    if another kquota has begun or stopped undoing the run, or if the record of the run can no longer be read. Raises
    Busy if another process has taken over the lock. Also raises the other errors of the ports.
    """
    run, ports, dirs = prepared.run, prepared.ports, prepared.ports.dirs
    if run is None:
        if prepared.turned and prepared.known is not None:
            # Every partition is in place, so nothing is left to submit.
            ports.runs.update(replace(prepared.known, handed_over=frozenset(prepared.plan.targets)))
        return Execution(run=None, rollback=prepared.rollback)
    if prepared.known is None:
        ports.runs.begin(run)
    else:
        ports.runs.update(run)
    if dirs is not None and prepared.reading is not None:
        log_dir_actions.announce(dirs, prepared.log_dirs, prepared.reading)
    run, started = _submit_first_wave(prepared, run)
    obstacles = _Obstacles(report=report, asked=prepared.applied)
    latest, more = _later_waves(ports, run, report, hold_back, noted, between, wait or ports.clock.sleep, obstacles)
    running = tuple(move.partition for move in prepared.moving if move.submitted)
    moved = Started()
    if latest is None:
        report(f"another kquota ended run {run.id}, so no further move starts")
    elif dirs is not None and prepared.log_dirs:
        moved = log_dir_actions.start(dirs, ports.clock, prepared.log_dirs, timeout, before=prepared.reading)
    run = latest or run
    return Execution(run=run, rollback=run.rollback, started=started + more, running=running, log_dirs=moved)


def _later_waves(
    ports: MovePorts,
    run: Run,
    report: Callable[[str], None],
    hold_back: Callable[[], str | None],
    noted: Callable[[Run], Run],
    between: Callable[[], AbstractContextManager[None]],
    wait: Callable[[float], None],
    obstacles: _Obstacles,
) -> tuple[Run | None, tuple[TopicPartition, ...]]:
    """Submit every wave after the first, as in `carry_out`. Return the recorded run (None if another process has ended
    it) and the submitted partitions.
    """
    started: tuple[TopicPartition, ...] = ()
    waiting, reason = 0, None
    while todo := run.waiting:
        if len(todo) != waiting:
            later = counted(len(todo), "partition")
            report(f"still to submit: {later}. The next wave starts when enough running moves have ended")
        waiting = len(todo)
        with between():
            wait(_BETWEEN_WAVES)
            reason = _held_back(hold_back, reason, report)
        open_runs = ports.runs.unfinished()
        latest = with_id(open_runs, run.id)
        if run.id in ports.runs.unreadable:
            raise Refused(
                f"run {run.id}: its record cannot be read any more, so no further wave starts. Use the version of "
                "kquota that wrote it"
            )
        if latest is None:
            return None, started
        if latest.aborting != run.aborting:
            now = "is undoing this run" if latest.aborting else "no longer undoes this run"
            wrong = f"run {run.id}: another kquota {now}, so no further wave starts. See "
            raise Refused(wrong, NextStep.SHOW_MOVES)
        run = latest
        if reason is None:
            run, more = _submit_later_wave(ports, noted(run), others_than(run, open_runs), obstacles)
            started += more
    return run, started


@dataclass(frozen=True, slots=True, kw_only=True)
class _Obstacles:
    """Holds back moves of later waves that have a `guard.obstacle`, and reports each obstacle of a move once."""

    report: Callable[[str], None]
    asked: MoveRequest
    reported: set[tuple[TopicPartition, str]] = field(default_factory=set)

    def without(self, run: Run, todo: Sequence[Move], found: Snapshot) -> list[Move]:
        ready: list[Move] = []
        held: dict[str, list[TopicPartition]] = {}
        for move in todo:
            name = move.partition
            why = None if move.submitted else guard.obstacle(move, found, run, force=self.asked.force)
            if why is None:
                ready.append(move)
            elif (name, why) not in self.reported:
                self.reported.add((name, why))
                held.setdefault(why, []).append(name)
        for why, names in held.items():
            them = "this move" if len(names) == 1 else "these moves"
            self.report(f"{guard.named(names)}: kquota starts {them} later, because {why}")
        return ready


def _held_back(hold_back: Callable[[], str | None], before: str | None, report: Callable[[str], None]) -> str | None:
    reason = hold_back()
    if reason is not None and before is None:
        report(f"no further wave starts: {reason}")
    if reason is None and before is not None:
        report("the next wave may start: the cluster is as healthy as before")
    return reason


def _submit_first_wave(prepared: Prepared, run: Run) -> tuple[Run, tuple[TopicPartition, ...]]:
    """Throttle and submit the first wave. Restore the throttle of a new run if it is certain that no move started."""
    ports, resumed = prepared.ports, prepared.known is not None
    todo = {move.partition: move.target for move in prepared.wave if not move.submitted}
    try:
        run = enforce(ports, run, prepared.wanted, prepared.now)
        refused = _submit(ports, todo)
    except Unknown as error:
        raise Unknown(error, *_stays_open(ports, run)) from error
    except Busy:  # nothing is restored here, because another kquota now owns the run and restores its settings
        raise
    except KquotaError as error:
        raise _after_restoring(ports, run, error, resumed=resumed) from error
    started = tuple(name for name in todo if name not in refused)
    if refused and not started and not resumed:
        raise _after_restoring(ports, run, Refused(words.failed(refused)), resumed=False)
    return _handed_over(ports, run, todo, refused), started


def _submit_later_wave(
    ports: MovePorts, run: Run, others: Sequence[Run], obstacles: _Obstacles
) -> tuple[Run, tuple[TopicPartition, ...]]:
    """Call `_submit_fitting`. All its errors except Busy are raised as Incomplete or Unknown with the next steps,
    because earlier waves keep moving under their throttle.
    """
    try:
        return _submit_fitting(ports, run, others, obstacles)
    except (Busy, Incomplete):
        raise
    except Unknown as error:
        raise Unknown(error, *_stays_open(ports, run)) from error
    except KquotaError as error:
        wait = f". {agreeing(len(run.waiting), 'partition', 'is', 'are')} not submitted yet"
        raise Incomplete((error, wait, *_stays_open(ports, run)), done=[], undone=[str(error)]) from error


def _stays_open(ports: MovePorts, run: Run) -> tuple[str | StepFor, ...]:
    return f". Run {run.id} stays open ({ports.runs.place(run)}). ", *_next_steps(run)


def _next_steps(run: Run) -> tuple[StepFor | str, ...]:
    resume, abort = StepFor(NextStep.RESUME_RUN, run.id), StepFor(NextStep.ABORT_RUN, run.id)
    return resume, " continues the run, and ", abort, " undoes it"


def _submit_fitting(
    ports: MovePorts, run: Run, others: Sequence[Run], obstacles: _Obstacles
) -> tuple[Run, tuple[TopicPartition, ...]]:
    """Restore the list entries of ended moves. Throttle and submit moves that now fit and have no obstacle. Return the
    recorded run and the partitions that were submitted now.

    Raises ListFull if no move of the run is under way and none can start because a throttled replica list is full.
    """
    found = ports.cluster.snapshot(run.goal.topics)
    again = recreated(run, found.topic_ids)
    run = record(ports, run, without_topics(run, again))
    moving = [move for move in moves(run.goal, found.partitions) if move.partition.topic not in again]
    ours = {name: now for name, now in found.partitions.items() if name.topic not in again}
    under_way = {name for name in run.handed_over if name in ours and ours[name].moving}
    _, run = restore_ended(ports, run, run.handed_over - under_way)
    if ports.cluster.largest_submission is not None and under_way:
        return run, ()
    waiting = set(run.waiting)
    todo = [move for move in moving if move.partition in waiting or move.submitted]
    dropped = waiting - {move.partition for move in todo}  # deleted, created again, or already moved by another client
    run = record(ports, run, replace(run, handed_over=run.handed_over | dropped))
    todo = obstacles.without(run, todo, found)
    lists = lists_of(todo) if run.rate else ()
    now = read(ports.cluster, dict.fromkeys(lists, ()))
    chosen = wave(todo, now, ports.cluster.largest_submission, run.limits, obstacles.asked.sizes)
    entries = wanted(chosen) if lists else {}
    fresh = {move.partition: move.target for move in chosen if not move.submitted}
    if not (chosen or under_way) and (full := first_full(todo, now)):
        raise ListFull(full)
    if fresh:
        rates = _restored_rates(run, chosen, found.alive)
        entries, now = {**entries, **rates}, {**now, **read(ports.cluster, rates)}
        run = record(ports, run, taking(run, entries, now, others))
        run = enforce(ports, run, entries, now)
    return _handed_over(ports, run, fresh, _submit(ports, fresh)), tuple(fresh)


def _restored_rates(run: Run, chosen: Sequence[Move], alive: Collection[BrokerId]) -> dict[Setting, tuple[str, ...]]:
    """Return the run's own rates to set again: those on the live brokers of `chosen` that the run has set and that were
    restored since. This can happen between two waves, because `--verify` restores rates while no move is running.
    """
    if not run.rate:
        return {}
    brokers = [broker for broker in throttled_brokers(chosen) if broker in alive]
    settings = [Setting.of_broker(broker, key) for broker in brokers for key in REPLICATION_RATES]
    restored = run.taken.keys() - run.held.keys()
    return {setting: (str(run.rate_on(setting)),) for setting in settings if setting in restored}


def _handed_over(
    ports: MovePorts, run: Run, todo: Mapping[TopicPartition, Replicas], refused: Mapping[TopicPartition, str]
) -> Run:
    started = [str(name) for name in todo if name not in refused]
    try:
        run = record(ports, run, replace(run, handed_over=run.handed_over | todo.keys()))
    except Busy:
        raise
    except (KquotaError, MemoryError) as error:
        why = error if isinstance(error, KquotaError) else "there is not enough memory"
        submitted = f". Run {run.id} has submitted {counted(len(started), 'partition')}"
        stays = ", and the throttle stays set. " if run.taken else ". "
        raise Incomplete((why, submitted, stays, *_next_steps(run)), done=started, undone=[str(why)]) from error
    if refused:
        failed = f"{words.failed(refused)}. Started: {', '.join(started) or 'none'}"
        stays = "The throttle stays set" if run.taken else f"Run {run.id} stays open"
        raise Incomplete(
            (failed, f". {stays}. ", *_next_steps(run)),
            done=started,
            undone=[str(name) for name in refused],
        )
    return run


def _submit(ports: MovePorts, todo: Mapping[TopicPartition, Replicas]) -> Mapping[TopicPartition, str]:
    if not todo:
        return {}
    lost: KquotaError | None = None
    refused: Mapping[TopicPartition, str] = {}
    try:
        refused = ports.cluster.submit(todo)
    except (Unknown, Unreachable) as error:
        lost = error
    sent = Plan(targets={name: target for name, target in todo.items() if name not in refused})

    def under_way() -> bool:
        return all(move.submitted for move in moves(sent, ports.cluster.snapshot(sent.topics).partitions))

    try:
        seen = wait_until(under_way, ports.clock)
    except KquotaError as error:
        # Restore nothing, because the moves may be running.
        why = f". kquota could not confirm that all of the moves were submitted ({guard.named(sent.targets)})"
        raise Unknown(error, why) from error
    if not seen:
        why = (
            f"kquota could not confirm within {SEEN_SECONDS:.0f} s that all of the moves were submitted "
            f"({guard.named(sent.targets)})"
        )
        raise Unknown(*((lost, ". ") if lost else ()), why) from lost
    return refused


def _after_restoring(ports: MovePorts, run: Run, error: KquotaError, *, resumed: bool) -> KquotaError:
    """Restore the values that a failed step wrote, as far as possible, and return the error to raise. The values of a
    `resumed` run stay set.
    """
    place = ports.runs.place(run)
    if resumed:
        and_throttle = ", and its throttle stays set" if run.taken else ""
        stays = f". Run {run.id} stays open ({place}){and_throttle}. "
        return Incomplete((error, stays, *_next_steps(run)), done=[], undone=[str(error)])
    restoration = restore_after(ports, run, error)
    if not restoration.pending:
        kind = next((kind for kind in (Conflict, Unreachable) if isinstance(error, kind)), Refused)
        return kind(error, ". No move was started, and kquota restored everything that it had written")
    still_set = [KquotaError(f"{setting} (", why, ")") for setting, why in restoration.pending.items()]
    _, *named = (part for pending in still_set for part in ("; ", pending))
    left = ". No move was started, but these settings may still be set: "
    return Incomplete(
        (error, left, *named, ". ", StepFor(NextStep.ABORT_RUN, run.id), f" restores them (record: {place})"),
        done=[str(change.setting) for change in restoration.restored],
        undone=list(map(str, still_set)),
    )
