"""`kquota topics`: the part of kafka-topics that a controller mutation quota limits, with its retry (KIP-599)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from kquota.cli.actions import With, flag, value
from kquota.cli.connection import ThroughBrokers
from kquota.cli.options import Output, TableFormat

EPILOG: Final = """A topic that the controller's mutation quota rejects is tried again until --timeout. Exit codes: 0
done, 1 failed for some topic, which is named, 75 the quota still rejects some.

Examples:
  kquota topics --bootstrap-server localhost:9092 --create --from-file topics.txt --replication-factor 3 --timeout 10m
  kquota topics --bootstrap-server localhost:9092 --describe --topic 'orders.*' --under-replicated-partitions"""

CREATE, ALTER, DELETE, LIST, DESCRIBE = "create", "alter", "delete", "list", "describe"
ACTIONS: Final = (LIST, DESCRIBE, CREATE, ALTER, DELETE)
"""In the order in which Kafka's tool names them."""
WRITES: Final = (CREATE, ALTER, DELETE)
READS: Final = (LIST, DESCRIBE)
HEADINGS: Final = {
    "--create": "Action (exactly one)",
    "--topic": "Topics",
    "--exclude-internal": "Which of them, with --list and --describe",
    "--no-retry-quota-violated": "The mutation quota",
    "--dry-run": "Trial and output",
}
"""The first option of each part of the help, and its heading."""
REPORTS: Final = (
    "under_replicated_partitions",
    "unavailable_partitions",
    "under_min_isr_partitions",
    "at_min_isr_partitions",
)
"""What --describe can be asked to show partitions for; several show what any of them does."""

Many: TypeAlias = list[str]
"""`list` itself is an action below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsOptions:
    """Create, grow and delete topics under a mutation quota; list and describe them."""

    connection: ThroughBrokers

    create: Annotated[bool, flag("create", "Create topics.")] = False
    alter: Annotated[bool, flag("alter", "Give topics more partitions.")] = False
    delete: Annotated[bool, flag("delete", "Delete topics.")] = False
    list: Annotated[bool, flag("list", "Print the names of topics.")] = False
    describe: Annotated[bool, flag("describe", "Show topics and their partitions.")] = False

    topic: Annotated[
        Many | None,
        With(*WRITES, *READS),
        value("topic", "NAME", "A topic, repeatable; with every action but --create also a regular expression."),
    ] = None
    from_file: Annotated[
        Path | None,
        With(*WRITES),
        value("from-file", "FILE", "Many topics: NAME [PARTITIONS [REPLICATION-FACTOR]] a line."),
    ] = None
    partitions: Annotated[
        int | None,
        With(CREATE, ALTER),
        typer.Option(
            "--partitions",
            metavar="N",
            help="Partitions of each topic; with --alter, how many it is to have in all. [default: the brokers']",
        ),
    ] = None
    replication_factor: Annotated[
        int | None,
        With(CREATE),
        typer.Option("--replication-factor", metavar="N", help="Replicas of each partition. [default: the brokers']"),
    ] = None
    replica_assignment: Annotated[
        str | None,
        With(CREATE, ALTER),
        value("replica-assignment", "ID:ID,…", "The brokers of partition 0, of partition 1, ...: 1:2,2:3."),
    ] = None
    config: Annotated[
        Many | None, With(CREATE), value("config", "KEY=VALUE", "A config of the new topics, repeatable.")
    ] = None
    if_not_exists: Annotated[
        bool, With(CREATE), flag("if-not-exists", "With --create: a topic that exists is no error.")
    ] = False
    if_exists: Annotated[
        bool,
        With(ALTER, DELETE, DESCRIBE),
        flag("if-exists", "With --alter, --delete, --describe: a topic that does not exist is no error."),
    ] = False
    topic_id: Annotated[
        str | None, With(DESCRIBE), value("topic-id", "ID", "With --describe: the topic with this id, of Kafka 2.8 on.")
    ] = None
    exclude_internal: Annotated[bool, With(*READS), flag("exclude-internal", "Without Kafka's own topics.")] = False
    topics_with_overrides: Annotated[
        bool, With(DESCRIBE), flag("topics-with-overrides", "Only topics with configs of their own.")
    ] = False
    under_replicated_partitions: Annotated[
        bool, With(DESCRIBE), flag("under-replicated-partitions", "Only partitions with a replica out of sync.")
    ] = False
    unavailable_partitions: Annotated[
        bool, With(DESCRIBE), flag("unavailable-partitions", "Only partitions without a leader.")
    ] = False
    under_min_isr_partitions: Annotated[
        bool,
        With(DESCRIBE),
        flag("under-min-isr-partitions", "Only partitions with fewer replicas in sync than min.insync.replicas."),
    ] = False
    at_min_isr_partitions: Annotated[
        bool,
        With(DESCRIBE),
        flag("at-min-isr-partitions", "Only partitions with no replica in sync to spare: just min.insync.replicas."),
    ] = False
    no_retry_quota_violated: Annotated[
        bool,
        With(*WRITES),
        flag("no-retry-quota-violated", "End at the first rejection by the mutation quota, with exit code 75."),
    ] = False
    timeout: Annotated[
        str | None,
        With(*WRITES),
        value(
            "timeout",
            "TIME",
            "How long to try again what the quota rejects: 10m. [default: default.api.timeout.ms, else 60s]",
        ),
    ] = None
    dry_run: Annotated[bool, With(*WRITES), flag("dry-run", "Check everything and show what would be sent.")] = False
    validate_only: Annotated[
        bool,
        With(CREATE, ALTER),
        flag(
            "validate-only",
            "Change nothing, but let the controller check it, too. Kafka 4 counts that against the mutation quota.",
        ),
    ] = False
    output: TableFormat = Output.text
    zookeeper: Annotated[str | None, typer.Option("--zookeeper", hidden=True)] = None
