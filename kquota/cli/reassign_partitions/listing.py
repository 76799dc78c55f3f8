"""`reassign-partitions --list`: every running move of the cluster, including those of other clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kquota.cli import move_stores, world
from kquota.cli.contract import worded
from kquota.cli.output import Answer, JsonObject, Row, key, plain
from kquota.cli.reassign_partitions.command import ReassignOptions
from kquota.errors import KquotaError
from kquota.list_text import joined
from kquota.measure import counted
from kquota.reassign import words
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.run import Run
from kquota.terms import TopicPartition


def _moves(running: Mapping[TopicPartition, PartitionReplicas]) -> list[JsonObject]:
    """Return the JSON of the moves. `replicas` has the old and the new replicas together, as in Kafka."""
    return [
        {**plain(name), "replicas": now.replicas, "adding": now.adding, "removing": now.removing}
        for name, now in running.items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MovesShown(Answer):
    """Every running move."""

    running: Mapping[TopicPartition, PartitionReplicas] = key("reassignments", _moves)

    HEADER = ("topic", "partition", "replicas", "adding", "removing")

    def text(self) -> Iterator[str]:
        yield from words.running(self.running).split("\n")

    def rows(self) -> Iterator[Row]:
        for name, now in self.running.items():
            yield [name.topic, str(name.partition), *map(joined, (now.replicas, now.adding, now.removing))]


def run(at: world.Where, _: ReassignOptions) -> MovesShown:
    """Return the running moves, with notes about their runs. If the record cannot be read, the answer has a warning.

    Raises the errors of `move_stores.running`.
    """
    notes = []
    open_runs: Sequence[Run] = ()
    with move_stores.running(at) as (found, unfinished):
        try:
            if found:
                open_runs = unfinished()
        except KquotaError as error:
            notes.append(f"warning: the runs of these moves are unknown: {worded(error)}")
    for run in open_runs:
        if moving := sum(name in found for name in run.plan.targets):
            why = "" if run.reason is None else f", reason: {run.reason}"
            begun = "" if run.owner is None else f", started by {run.owner}"
            notes.append(f"{counted(moving, 'move')} of run {run.id}{begun}{why}")
    return MovesShown(running=found, notes=tuple(notes))
