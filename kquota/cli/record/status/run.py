"""`kquota record status`: examine the topic with the runs of all hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kquota.cli import world
from kquota.cli.contract import DONE, NOT_YET
from kquota.cli.output import Answer, Part, key
from kquota.cli.record.status.command import StatusOptions
from kquota.measure import counted

if TYPE_CHECKING:
    from kquota.cli.world import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRun(Part):
    """A recorded run that cannot be read, and the reason."""

    run: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCondition(Part):
    """The state of the record, like `kquota.stores.record.sharing.Condition`."""

    topic_id: str
    replicas: int
    wrong: Sequence[str]
    weak: Sequence[str]
    writer: str | None
    open_runs: Sequence[str]
    ended_runs: int
    unreadable: tuple[UnreadableRun, ...]
    foreign: int = key("foreign_records")

    @property
    def sound(self) -> bool:
        """True if the record can be used, loses nothing, and can be read completely."""
        return not (self.wrong or self.weak or self.unreadable)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStatus(Answer):
    """The state of the record of a cluster. `record` is None if there is none."""

    ASCII = True

    topic: str
    record: RecordCondition | None

    def text(self) -> Iterator[str]:
        if (found := self.record) is None:
            return
        foreign = f", {counted(found.foreign, 'record')} that kquota did not write" if found.foreign else ""
        yield f"topic {self.topic}, id {found.topic_id}, {found.replicas} replicas"
        yield f"  {counted(len(found.open_runs), 'open run')}, {counted(found.ended_runs, 'ended run')}{foreign}"
        for run_id in found.open_runs:
            yield f"  open: {run_id}"
        if found.writer is not None:
            yield f"  {found.writer} is writing"
        for line in found.wrong:
            yield f"  cannot be used: {line}"
        for line in found.weak:
            yield f"  weak: {line}"
        for one in found.unreadable:
            yield f"  run {one.run} cannot be read: {one.why}"


def run(options: StatusOptions) -> RecordStatus:
    """Read the state of the record. Raises Forbidden if this user may not see the topic."""
    with world.record(options.connection, options.state_dir) as at:
        return answer(at.topic, at.condition())


def answer(topic: str, found: Condition | None) -> RecordStatus:
    """Return the state of the record in a topic. None means that there is no record."""
    if found is None:
        none = f"this cluster has no shared record (no topic {topic}). Next: kquota record share"
        return RecordStatus(topic=topic, record=None, notes=(none,), code=NOT_YET)
    record = _condition(found)
    return RecordStatus(topic=topic, record=record, code=DONE if record.sound else NOT_YET)


def _condition(found: Condition) -> RecordCondition:
    return RecordCondition(
        topic_id=found.identity,
        replicas=found.replicas,
        wrong=found.wrong,
        weak=found.weak,
        writer=found.writer,
        open_runs=found.open_runs,
        ended_runs=found.ended_runs,
        unreadable=tuple(UnreadableRun(run=run_id, why=why) for run_id, why in sorted(found.unreadable.items())),
        foreign=found.foreign,
    )
