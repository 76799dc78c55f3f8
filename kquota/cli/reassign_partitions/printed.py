"""What `reassign-partitions` prints: Kafka's own lines, or one JSON document, and remarks for the person."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kquota.cli import fields
from kquota.cli.contract import DONE, FAILED, NOT_YET
from kquota.cli.options import Output
from kquota.measure import ByteRate
from kquota.reassign import log_dirs, words
from kquota.reassign.progress import Progress, Status
from kquota.reassign.throttle import Change
from kquota.several import few, joined
from kquota.terms import BrokerId, ReplicaId, TopicPartition

if TYPE_CHECKING:
    # Each action needs one of these rooms alone.
    from kquota.reassign.cancellation import Cancellable, Cancellation
    from kquota.reassign.execution import Execution
    from kquota.reassign.log_dir_actions import Started
    from kquota.reassign.preparation import Prepared
    from kquota.reassign.verification import Verification

VERSION: Final = 1
_SHOWN: Final = 10


def executed(
    done: Execution,
    throttle: ByteRate | None,
    log_dir_throttle: ByteRate | None,
    record: str | None,
    output: Output,
) -> str:
    """As kafka-reassign-partitions prints it, but without its last line where nothing had to be started; or JSON."""
    if output is Output.json:
        return _document(
            run=None if done.run is None else done.run.id,
            record=record,
            throttle=throttle,
            started=_partitions(done.started),
            running=_partitions(done.running),
            log_dirs_started=_replicas(done.log_dirs.begun),
            **_not_begun(done.log_dirs),
            rollback=json.loads(words.assignment(done.rollback)),
        )
    lines = [words.current_assignment(done.rollback)]
    if done.run is not None and (throttle or log_dir_throttle) is not None and done.run.taken:
        lines.append(words.RUN_VERIFY)
        lines += [] if throttle is None else [words.throttle_set(throttle)]
        lines += [] if log_dir_throttle is None else [log_dirs.throttle_set(log_dir_throttle)]
    if done.started:
        lines.append(words.started(done.started))
    if done.log_dirs.begun:
        lines.append(log_dirs.started_lines(done.log_dirs.begun))
    return "\n".join(lines)


def executed_remarks(done: Execution, record: str | None) -> Iterator[str]:
    """For stderr."""
    if done.run is None:
        yield "every partition is where the plan wants it: nothing was written"
    else:
        yield f"run {done.run.id} is on record, with every prior value and the plan back, in {record}"
    if done.running:
        yield f"under way already: {few(done.running, _SHOWN)}"
    yield from log_dirs_remarks(done.log_dirs)


def log_dirs_remarks(
    done: Started, what: str = "started", again: str = "execute the same plan again, or kquota move resume"
) -> Iterator[str]:
    """For stderr: which replicas did not begin to go between log dirs, and what to do."""
    if done.refused:
        yield f"error: {log_dirs.failed(done.refused)}"
    if done.waiting:
        yield f"error: {log_dirs.timed_out(done.waiting, what)}: {again}"


def log_dirs_code(done: Started) -> int:
    """1 for what a broker refused, 8 for what has yet to begin, else 0."""
    if done.refused:
        return FAILED
    return NOT_YET if done.waiting else DONE


def prepared(found: Prepared, output: Output) -> str:
    """What --execute would write: every value, then the moves of the first wave. Nothing was written."""
    moves = {move.partition: move.target for move in found.wave if not move.submitted}
    later = max(0, len(found.moving) - len(found.wave))
    if output is Output.json:
        return _document(
            dry_run=True,
            changes=[fields.change(change) for change in found.changes],
            moves=[{**fields.partition(name), "replicas": target} for name, target in moves.items()],
            log_dirs=_replicas(found.log_dirs),
            later=later,
            rollback=json.loads(words.assignment(found.rollback)),
        )
    lines = [words.current_assignment(found.rollback), "", "Would be written (nothing was):"]
    lines += _changes(found.changes)
    lines += [f"  move {name} to {joined(target)}" for name, target in moves.items()]
    lines += [f"  {name} on broker {broker} into {path}" for (name, broker), path in found.log_dirs.items()]
    if later:
        lines.append(f"  and {later} more partitions in later waves")
    if not found.changes and not moves and not found.log_dirs:
        lines.append("  nothing")
    return "\n".join(lines)


def verified(found: Verification, output: Output) -> str:
    """As kafka-reassign-partitions prints it, but cleared is only what was given back; or JSON, null for unset."""
    if output is Output.json:
        return _document(**_verification(found))
    return "\n".join([words.status_lines(found.statuses), log_dirs.status_lines(found.log_dirs), *_clearing(found)])


def cancellable(found: Cancellable, output: Output) -> str:
    """What --cancel would submit."""
    if output is Output.json:
        moves = [{**fields.partition(name), "replicas": target} for name, target in found.targets.items()]
        return _document(dry_run=True, cancel=moves)
    if not found.targets:
        return words.NONE_CANCELLED
    lines = [
        f"  {name}{'' if target is None else f', back to {joined(target)}'}" for name, target in found.targets.items()
    ]
    return "\n".join(["Would be cancelled (nothing was):", *lines])


def cancelled(done: Cancellation, output: Output) -> str:
    """As kafka-reassign-partitions prints it; or JSON."""
    if output is Output.json:
        return _document(
            cancelled=_partitions(done.cancelled),
            log_dirs_cancelled=_replicas(done.log_dirs.begun),
            **_not_begun(done.log_dirs),
            **_verification(done.verification),
        )
    first = words.cancelled(done.cancelled) if done.cancelled else words.NONE_CANCELLED
    moved = done.log_dirs
    lines = [log_dirs.started_lines(moved.begun)] if moved.begun else []
    if not (moved.begun or moved.refused or moved.waiting):
        lines = [log_dirs.NONE_ACTIVE]
    return "\n".join([first, *lines, *_clearing(done.verification)])


def cancelled_remarks(done: Cancellation) -> Iterator[str]:
    """For stderr."""
    found = done.verification
    yield from log_dirs_remarks(done.log_dirs, "cancelled", "cancel the same plan again")
    yield from _given_back_remarks(found)
    if ended := [status.partition for status in found.statuses if status.progress is Progress.DONE]:
        yield (
            f"ended before, and stay where the plan wanted them: {few(ended, _SHOWN)}; the plan that --execute printed "
            "to save for rollback takes them back"
        )


def remarks(found: Verification) -> Iterator[str]:
    """For stderr: what does not come back as unset, what is still to come, and what to do next."""
    yield from _given_back_remarks(found)
    done = sum(status.progress is Progress.DONE for status in found.statuses)
    count = f"{done} of {len(found.statuses)} partitions are where the plan wants them"
    if found.waiting:
        run = "" if found.run is None else f" of run {found.run.id}"
        yield (
            f"error: {len(found.waiting)} partitions{run} were never handed over, as its kquota died: "
            "kquota move resume goes on, kquota move abort goes back"
        )
    elif found.verdict is Progress.ELSEWHERE:
        if gone := [s.partition for s in found.statuses if s.progress is Progress.ELSEWHERE and not s.replicas]:
            yield f"not there any more: {few(gone, _SHOWN)}"
        yield f"error: no move runs any more and only {count}: execute the plan again, or correct it"
    if found.verdict is Progress.IN_PROGRESS:
        back = "it gives the throttle back"
        if found.run is None:
            back = "no run of it is on record here, so of a throttle only list entries go that the plan proves"
        yield f"{count}; run --verify again until it exits 0: {back}"


def _given_back_remarks(found: Verification) -> Iterator[str]:
    for change in found.given_back:
        if change.after is not None and not change.setting.is_list:
            yield f"{change.setting} is {change.after!r} again"
    yield from found.notes
    for setting, why in sorted(found.pending.items()):
        yield f"warning: still to be given back: {setting} ({why}); run --verify again"


def _clearing(found: Verification) -> list[str]:
    settings = [change.setting for change in found.given_back]
    lines = []
    if brokers := {BrokerId(int(setting.name)) for setting in settings if setting.kind == "broker"}:
        lines.append(words.clearing_brokers(brokers))
    if topics := {setting.name for setting in settings if setting.kind == "topic"}:
        lines.append(words.clearing_topics(topics))
    return lines


def _verification(found: Verification) -> dict[str, object]:
    return {
        "verdict": found.verdict.value,
        "partitions": [_status(status) for status in found.statuses],
        "log_dirs": [
            {
                **fields.partition(status.partition),
                "broker": status.broker,
                "status": status.progress.value,
                "log_dir": status.place.current,
                "target": status.target,
            }
            for status in found.log_dirs
        ],
        "given_back": [fields.change(change) for change in found.given_back],
        "pending": [{**fields.setting(setting), "why": why} for setting, why in sorted(found.pending.items())],
        "waiting": _partitions(found.waiting),
    }


def _status(status: Status) -> dict[str, object]:
    return {
        **fields.partition(status.partition),
        "status": status.progress.value,
        "replicas": status.replicas,
        "target": status.target,
    }


def _document(**more: object) -> str:
    return json.dumps({"version": VERSION, **more})


def _partitions(names: Iterable[TopicPartition]) -> list[dict[str, object]]:
    return [fields.partition(name) for name in names]


def _not_begun(done: Started) -> dict[str, object]:
    return {
        "log_dirs_failed": _replicas({replica: str(error) for replica, error in done.refused.items()}),
        "log_dirs_waiting": _replicas(done.waiting),
    }


def _replicas(told: Mapping[ReplicaId, str]) -> list[dict[str, object]]:
    return [{**fields.partition(name), "broker": broker, "told": text} for (name, broker), text in told.items()]


def _changes(changes: Iterable[Change]) -> list[str]:
    return [f"  {c.setting}: {_value(c.before)} -> {_value(c.after)}" for c in changes]


def _value(value: str | None) -> str:
    return "unset" if value is None else value or "empty"
