"""What `reassign-partitions` prints: Kafka's own lines, or one JSON document, and remarks for the person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from kquota.measure import ByteRate
from kquota.reassign import words
from kquota.reassign.actions import Execution, Verification
from kquota.reassign.progress import Progress
from kquota.reassign.throttle import Change, Setting
from kquota.terms import BrokerId, TopicPartition

VERSION: Final = 1


def executed_text(done: Execution, throttle: ByteRate | None, _record: str | None) -> str:
    """As kafka-reassign-partitions prints it; without its last line where nothing had to be started."""
    lines = [words.current_assignment(done.rollback)]
    if done.run is not None and throttle is not None and done.run.taken:
        lines += [words.RUN_VERIFY, words.throttle_set(throttle)]
    if done.started:
        lines.append(words.started(done.started))
    return "\n".join(lines)


def executed_document(done: Execution, throttle: ByteRate | None, record: str | None) -> str:
    """One line; the throttle in bytes per second."""
    return json.dumps(
        {
            "version": VERSION,
            "run": None if done.run is None else done.run.id,
            "record": record,
            "throttle": throttle,
            "started": [_partition(name) for name in done.started],
            "running": [_partition(name) for name in done.running],
            "rollback": json.loads(done.rollback.text()),
        }
    )


def verified_text(found: Verification) -> str:
    """As kafka-reassign-partitions prints it, but cleared is only what was given back."""
    lines = [words.status_lines(found.statuses), ""]
    settings = [change.setting for change in found.given_back]
    if brokers := {BrokerId(int(setting.name)) for setting in settings if setting.kind == "broker"}:
        lines.append(words.clearing_brokers(brokers))
    if topics := {setting.name for setting in settings if setting.kind == "topic"}:
        lines.append(words.clearing_topics(topics))
    return "\n".join(lines)


def verified_document(found: Verification) -> str:
    """One line; null is unset."""
    return json.dumps(
        {
            "version": VERSION,
            "verdict": found.verdict.value,
            "partitions": [
                {
                    **_partition(status.partition),
                    "status": status.progress.value,
                    "replicas": status.replicas,
                    "target": status.target,
                }
                for status in found.statuses
            ],
            "given_back": [_given_back(change) for change in found.given_back],
            "pending": [{**_setting(setting), "why": why} for setting, why in sorted(found.pending.items())],
        }
    )


def remarks(found: Verification) -> Iterator[str]:
    """For stderr: what does not come back as unset, what is still to come, and what to do next."""
    for change in found.given_back:
        if change.after is not None:
            yield f"{change.setting} is {change.after!r} again"
    yield from found.notes
    for setting, why in sorted(found.pending.items()):
        yield f"warning: still to be given back: {setting} ({why}); run --verify again"
    done = sum(status.progress is Progress.DONE for status in found.statuses)
    count = f"{done} of {len(found.statuses)} partitions are where the plan wants them"
    if found.verdict is Progress.IN_PROGRESS:
        yield f"{count}; run --verify again until it exits 0: it gives the throttle back"
    elif found.verdict is Progress.ELSEWHERE:
        yield f"error: no move runs any more and only {count}: execute the plan again, or correct it"


def _partition(name: TopicPartition) -> dict[str, object]:
    return {"topic": name.topic, "partition": name.partition}


def _setting(setting: Setting) -> dict[str, str]:
    return {"kind": setting.kind, "name": setting.name, "key": setting.key}


def _given_back(change: Change) -> dict[str, str | None]:
    return {**_setting(change.setting), "from": change.before, "to": change.after}
