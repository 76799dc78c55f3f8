"""`reassign-partitions --list`: every move under way in the cluster, whoever started it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from kquota.cli import fields, world
from kquota.cli.contract import DONE
from kquota.cli.options import Output
from kquota.cli.tsv import table
from kquota.reassign import words
from kquota.reassign.moves import Partition
from kquota.several import joined
from kquota.terms import TopicPartition

VERSION: Final = 1
_HEADER: Final = ("topic", "partition", "replicas", "adding", "removing")


def show(at: world.Where, output: Output) -> int:
    """Print them, in Kafka's words, as JSON, or as a table."""
    with world.moves(at, None) as (cluster, _):
        running = cluster.snapshot(()).running
    match output:
        case Output.json:
            print(document(running))
        case Output.tsv:
            print(rows(running), end="")
        case _:
            print(words.running(running))
    return DONE


def document(running: Mapping[TopicPartition, Partition]) -> str:
    """One line; during a move `replicas` are old and new ones together, as for Kafka."""
    moves = [
        {**fields.partition(name), "replicas": now.replicas, "adding": now.adding, "removing": now.removing}
        for name, now in running.items()
    ]
    return json.dumps({"version": VERSION, "reassignments": moves})


def rows(running: Mapping[TopicPartition, Partition]) -> str:
    """A row for each partition; brokers are joined by commas."""
    return table(
        _HEADER,
        (
            (name.topic, str(name.partition), *map(joined, (now.replicas, now.adding, now.removing)))
            for name, now in running.items()
        ),
    )
