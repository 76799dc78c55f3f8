"""`kquota topics`: the part of kafka-topics that a controller mutation quota limits, with its retry (KIP-599)."""

from __future__ import annotations

from typing import Final

from kquota.cli import world
from kquota.cli.actions import given_options
from kquota.cli.connection import Connection, connected
from kquota.cli.topics import options
from kquota.cli.topics.options import DESCRIBE, LIST, Given

EPILOG: Final = """A topic that the controller's mutation quota rejects is tried again until --timeout. Exit codes: 0
done, 1 failed for some topic, which is named, 75 the quota still rejects some.

Examples:
  kquota topics --bootstrap-server localhost:9092 --create --from-file topics.txt --replication-factor 3 --timeout 10m
  kquota topics --bootstrap-server localhost:9092 --describe --topic 'orders.*' --under-replicated-partitions"""


@connected(zookeeper=False)
@given_options(Given)
def topics(connection: Connection, given: Given) -> int:
    """Create, grow and delete topics under a mutation quota; list and describe them."""
    asked = options.action(given)
    at = world.where(connection)
    if asked in (LIST, DESCRIBE):
        from kquota.cli.topics import listing

        return listing.show(at, given, describe=asked == DESCRIBE)
    from kquota.cli.topics import mutations

    return mutations.mutate(at, given, asked)
