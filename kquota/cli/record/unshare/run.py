"""`kquota record unshare`: ask, and delete the topic with the runs of all hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kquota.cli import confirmation, world
from kquota.cli.contract import say
from kquota.cli.output import Answer, hidden
from kquota.cli.record.unshare.command import UnshareOptions
from kquota.measure import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordUnshared(Answer):
    """The topic, and whether it was deleted. `deleted` is false if there was nothing to delete."""

    ASCII = True

    dry_run: bool
    topic: str
    deleted: bool
    ended_runs: int = hidden()

    def text(self) -> Iterator[str]:
        if not self.deleted:
            yield f"topic {self.topic} does not exist: nothing {'would be' if self.dry_run else 'was'} deleted"
        else:
            runs = counted(self.ended_runs, "ended run")
            yield f"{'would delete' if self.dry_run else 'deleted'} topic {self.topic} with {runs}"


def run(options: UnshareOptions) -> RecordUnshared:
    """Delete the topic. Raises Refused while a run is open, or if the operator does not agree."""
    asks = not (options.yes or options.dry_run)
    if asks:
        confirmation.must_have_terminal()
    with world.record(options.connection, options.state_dir) as at:
        found = at.condition()
        deleted = at.deletable(found)
        if asks:
            say(f"cluster {at.files.cluster_id}: kquota deletes topic {at.topic}; hosts then see only their own runs")
            confirmation.must_agree("delete it?")
        if not options.dry_run:
            deleted = at.unshare()
    ended = 0 if found is None else found.ended_runs
    return RecordUnshared(dry_run=options.dry_run, topic=at.topic, deleted=deleted, ended_runs=ended)
