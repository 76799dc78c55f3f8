"""The work of `kquota record`: create, examine and delete the topic that records the runs of all hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kquota.cli import confirmation, world
from kquota.cli.contract import DONE, NOT_YET, say
from kquota.cli.output import Answer, JsonObject, key, spread
from kquota.cli.record.command import ShareOptions, StatusOptions, UnshareOptions
from kquota.cli.suggestion import suggested
from kquota.measure import counted

if TYPE_CHECKING:
    from kquota.cli.world import Condition, Removal, Sharing, SharingPlan
    from kquota.mutation.topic import Creation


def _created(setup: Creation | None) -> JsonObject | None:
    if setup is None:
        return None
    return {"partitions": setup.partitions, "replicas": setup.replication_factor, "configs": setup.configs}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordShared(Answer):
    """The topic that records the runs of all hosts. In a dry run, the fields describe what kquota would do."""

    ASCII = True

    dry_run: bool
    topic: str
    plan: SharingPlan = spread(lambda plan: {"create": _created(plan.setup), "marker": plan.marker})

    def text(self) -> Iterator[str]:
        setup = self.plan.setup
        if setup is None:
            yield f"topic {self.topic} exists and can hold the record"
        else:
            yield f"{'would create' if self.dry_run else 'created'} topic {self.topic}"
            yield f"  partitions {setup.partitions}, replicas {setup.replication_factor}"
            yield from (f"  {name}={value}" for name, value in setup.configs.items())
        if self.plan.marker:
            yield f"{'would write' if self.dry_run else 'wrote'} znode /kquota/record, which names the topic"


def share(options: ShareOptions) -> RecordShared:
    """Create the topic, or check an existing topic, and record the open runs of this host in the topic. On a cluster
    with ZooKeeper, also write the znode that names the topic. A dry run only checks, and reports a command that holds
    the lock.

    Raises Invalid for `--record none`. Raises Refused if the cluster cannot have a record, or if the journals of this
    host cannot be read or written. Raises Busy while another command writes to the record. Raises Incomplete if kquota
    created the topic but cannot use the topic. Raises Unreachable if the cluster does not answer.
    """
    with world.record(options.connection, options.state_dir) as record:
        plan = record.plan()
        if not options.dry_run:
            record.share(plan)
        in_the_way = _held(record) if options.dry_run else ()
    if record.has_default_name:
        used = f"every kquota that can read topic {record.topic} now records its runs there"
    else:
        used = (
            f"commands with --bootstrap-server use topic {record.topic} only if --record, KQUOTA_RECORD or config.toml "
            "names it. Set one of these on every host"
        )
    # A run that began before the record exists is known only to its own host.
    others = (
        "each other host adds its open runs with its next command that writes. Until then, `throttle doctor --fix` can "
        f"remove their throttles. Run {suggested('record share')} on every host now"
        f"{'' if options.state_dir is None else ', with the state folder of that host'}"
    )
    notes = (used, others) if plan.setup is not None else (used,)
    return RecordShared(
        dry_run=options.dry_run,
        topic=record.topic,
        plan=plan,
        closing_notes=in_the_way if options.dry_run else notes,
    )


def _held(record: Sharing) -> tuple[str, ...]:
    """Return the note of a dry run if another command holds the lock, otherwise ()."""
    if (writer := record.writer()) is None:
        return ()
    return (f"note: {writer} holds the lock of this cluster. Without --dry-run, this command would now exit with 75",)


def _condition(found: Condition | None) -> JsonObject | None:
    """Return the JSON of a record, or None without a record. `writer` and the values after it are null if the record
    cannot be used. `writer` is also null if no command is writing.
    """
    if found is None:
        return None
    unreadable = None if found.unreadable is None else sorted(found.unreadable.items())
    return {
        "topic_id": found.identity,
        "replicas": found.replicas,
        "wrong": found.wrong,
        "weak": found.weak,
        "writer": found.writer,
        "open_runs": found.open_runs,
        "ended_runs": found.ended_runs,
        "unreadable": None if unreadable is None else [{"run": run, "why": why} for run, why in unreadable],
        "foreign_records": found.foreign,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStatus(Answer):
    """The state of a cluster's shared record. `record` is None if the topic does not exist."""

    ASCII = True

    topic: str
    record: Condition | None = key(form=_condition)

    def text(self) -> Iterator[str]:
        if (found := self.record) is None:
            return
        foreign = f", {counted(found.foreign, 'record')} that kquota did not write" if found.foreign else ""
        yield f"topic {self.topic}, id {found.identity}, {counted(found.replicas, 'replica')}"
        if found.open_runs is None or found.ended_runs is None:
            yield "  the runs are unknown, because the record cannot be used"
        else:
            yield f"  {counted(len(found.open_runs), 'open run')}, {counted(found.ended_runs, 'ended run')}{foreign}"
        for run_id in found.open_runs or ():
            yield f"  open: {run_id}"
        if found.writer is not None:
            yield f"  {found.writer} is writing"
        for line in found.wrong:
            yield f"  cannot be used: {line}"
        for line in found.weak:
            yield f"  may lose or refuse records: {line}"
        for run, why in sorted((found.unreadable or {}).items()):
            yield f"  run {run} cannot be read: {why}"


def status(options: StatusOptions) -> RecordStatus:
    """Read the state of the record. The exit code is as for `answer`.

    Raises Invalid for `--record none`, Forbidden if this user is not allowed to see the topic, and Unreachable if the
    cluster does not answer.
    """
    with world.record(options.connection, options.state_dir) as record:
        return answer(record.topic, record.condition())


def answer(topic: str, found: Condition | None) -> RecordStatus:
    """Return the answer of `record status`. `found` is None if the cluster has no shared record.

    The exit code is 0 if the record exists and has no problem, otherwise 8.
    """
    if found is None:
        none = f"this cluster has no shared record (no topic {topic}). Create one: {suggested('record share')}"
        return RecordStatus(topic=topic, record=None, notes=(none,), code=NOT_YET)
    sound = not (found.wrong or found.weak or found.unreadable)
    return RecordStatus(topic=topic, record=found, code=DONE if sound else NOT_YET)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordUnshared(Answer):
    """The topic of the shared record, and what was deleted. In a dry run, the fields describe what kquota would
    delete.
    """

    ASCII = True

    dry_run: bool
    topic: str
    removal: Removal = spread(lambda removal: {"deleted": removal.topic, "marker": removal.marker})

    def text(self) -> Iterator[str]:
        deletes, removes = ("would delete", "would remove") if self.dry_run else ("deleted", "removed")
        removal = self.removal
        if removal.topic:
            yield f"{deletes} topic {self.topic} with {counted(removal.ended_runs, 'ended run')}"
        elif removal.marker or removal.memory:
            yield f"topic {self.topic} does not exist"
        else:
            yield f"topic {self.topic} does not exist. Nothing {'would be' if self.dry_run else 'was'} deleted"
        if removal.marker:
            yield f"{deletes} znode /kquota/record, which names the topic of the record"
        if removal.memory and not removal.topic:
            yield f"{removes} the name of the topic from the state folder of this host"


def _asked(topic: str, removal: Removal) -> tuple[str, str]:
    if removal.topic:
        others = f"Other hosts that have used it refuse to write until {suggested('record unshare')} runs there"
        return f"kquota deletes topic {topic}. {others}", "delete the topic?"
    missing = f"topic {topic} does not exist. kquota"
    if removal.marker:
        return f"{missing} deletes the znode /kquota/record, which names this topic", "delete the znode?"
    return (
        f"{missing} removes the name of the topic from the state folder of this host",
        "remove the name from this host?",
    )


def unshare(options: UnshareOptions) -> RecordUnshared:
    """Delete the topic of the record, the znode that names the topic, and the name of the topic on this host. A dry run
    only returns what kquota would delete, and reports a command that holds the lock.

    Raises Refused if a run is open or cannot be read, if the cluster has a ZooKeeper that the options do not name, or
    if the operator does not confirm. Raises Busy while another command writes to the record. Raises Invalid for
    `--record none`, and if kquota must ask but there is no terminal. Raises Incomplete if kquota deleted the topic, but
    not the znode. Raises Unreachable if the cluster does not answer.
    """
    asks = not (options.yes or options.dry_run)
    if asks:
        confirmation.must_have_terminal()
    with world.record(options.connection, options.state_dir) as record:
        removal = record.unshare(dry_run=True)
        if asks and (removal.topic or removal.marker or removal.memory):
            line, question = _asked(record.topic, removal)
            say(line)
            confirmation.must_agree(question)
        if not options.dry_run:
            removal = record.unshare()
        in_the_way = _held(record) if options.dry_run else ()
    return RecordUnshared(dry_run=options.dry_run, topic=record.topic, removal=removal, closing_notes=in_the_way)
