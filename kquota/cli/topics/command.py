"""`kquota topics`: the options of kafka-topics, and retries of topics that a mutation quota rejects (KIP-599)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from kquota.cli import commands
from kquota.cli.actions import StrictCommand, With
from kquota.cli.connection import ThroughBrokers
from kquota.cli.options import Output, TableFormat, WritingOptions, Yes, flag, value

EPILOG: Final = """If the controller mutation quota rejects a topic, kquota retries it until --timeout expires.
Exit codes: 0 done; 1 if at least one topic failed, was not sent or has an unknown result; 75 if the quota still rejects
at least one topic.

Examples:
  kquota topics --bootstrap-server localhost:9092 --create --from-file topics.txt --replication-factor 3 --timeout 10m
  kquota topics --bootstrap-server localhost:9092 --describe --topic 'orders.*' --under-replicated-partitions"""

CREATE, ALTER, DELETE, LIST, DESCRIBE = "create", "alter", "delete", "list", "describe"
ACTIONS: Final = (LIST, DESCRIBE, CREATE, ALTER, DELETE)
"""The actions, in the order of Kafka's tool."""
WRITES: Final = (CREATE, ALTER, DELETE)
READS: Final = (LIST, DESCRIBE)
HEADINGS: Final = {
    "--create": "Action (exactly one)",
    "--topic": "Topics",
    "--exclude-internal": "Filters for --describe (--exclude-internal also for --list)",
    "--no-retry-quota-violated": "Mutation quota",
    "--dry-run": "Dry run and output",
}
REPORTS: Final = (
    "under_replicated_partitions",
    "unavailable_partitions",
    "under_min_isr_partitions",
    "at_min_isr_partitions",
)
"""The options of `--describe` that select partitions. You can combine them."""

Many: TypeAlias = list[str]
"""The field `list` of the class below hides the built-in type, so annotations use this alias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsOptions(WritingOptions):
    """Create, grow and delete topics under a mutation quota; list and describe them."""

    # kquota does not read `force`, which exists only because kafka-topics has --force up to Kafka 3.
    connection: ThroughBrokers

    create: Annotated[bool, flag("create", "Create topics.")] = False
    alter: Annotated[bool, flag("alter", "Add partitions to topics.")] = False
    delete: Annotated[bool, flag("delete", "Delete topics.")] = False
    list: Annotated[bool, flag("list", "Print the names of topics.")] = False
    describe: Annotated[bool, flag("describe", "Show topics and their partitions.")] = False

    topic: Annotated[
        Many | None,
        With(*WRITES, *READS),
        value("topic", "NAME", "Name of a topic or, except with --create, a regular expression. Repeatable."),
    ] = None
    from_file: Annotated[
        Path | None,
        With(*WRITES),
        value("from-file", "FILE", "File with one topic per line: NAME [PARTITIONS [REPLICATION-FACTOR]]."),
    ] = None
    partitions: Annotated[
        int | None,
        With(CREATE, ALTER),
        value(
            "partitions",
            "N",
            "Number of partitions of each topic. With --alter, the new total.  [default with --create: the "
            "brokers' default]",
        ),
    ] = None
    replication_factor: Annotated[
        int | None,
        With(CREATE),
        value(
            "replication-factor",
            "N",
            "With --create: number of replicas of each partition.  [default: the brokers' default]",
        ),
    ] = None
    replica_assignment: Annotated[
        str | None,
        With(CREATE, ALTER),
        value(
            "replica-assignment",
            "ID:ID,…",
            "Brokers of each partition, from partition 0, for example 1:2,2:3 (brokers 1 and 2, then brokers 2 and 3).",
        ),
    ] = None
    config: Annotated[
        Many | None, With(CREATE), value("config", "KEY=VALUE", "Config of the new topics. Repeatable.")
    ] = None
    if_not_exists: Annotated[
        bool, With(CREATE), flag("if-not-exists", "With --create: do not fail if a topic exists.")
    ] = False
    if_exists: Annotated[
        bool,
        With(ALTER, DELETE, DESCRIBE),
        flag("if-exists", "With --alter, --delete, --describe: do not fail if a topic does not exist."),
    ] = False
    topic_id: Annotated[
        str | None,
        With(DESCRIBE),
        value("topic-id", "ID", "With --describe: show only the topic with this id (Kafka 2.8 or newer)."),
    ] = None
    exclude_internal: Annotated[bool, With(*READS), flag("exclude-internal", "Exclude Kafka's internal topics.")] = (
        False
    )
    topics_with_overrides: Annotated[
        bool, With(DESCRIBE), flag("topics-with-overrides", "Only topics with overridden configs.")
    ] = False
    under_replicated_partitions: Annotated[
        bool, With(DESCRIBE), flag("under-replicated-partitions", "Only partitions with an out-of-sync replica.")
    ] = False
    unavailable_partitions: Annotated[
        bool, With(DESCRIBE), flag("unavailable-partitions", "Only partitions without a leader.")
    ] = False
    under_min_isr_partitions: Annotated[
        bool,
        With(DESCRIBE),
        flag("under-min-isr-partitions", "Only partitions with fewer in-sync replicas than min.insync.replicas."),
    ] = False
    at_min_isr_partitions: Annotated[
        bool,
        With(DESCRIBE),
        flag("at-min-isr-partitions", "Only partitions with exactly min.insync.replicas in-sync replicas."),
    ] = False
    no_retry_quota_violated: Annotated[
        bool,
        With(*WRITES),
        flag(
            "no-retry-quota-violated",
            "Stop at the first rejection by the mutation quota. The exit code is 75, or 1 if another topic failed or "
            "its result is unknown.",
        ),
    ] = False
    timeout: Annotated[
        str | None,
        With(*WRITES),
        value(
            "timeout",
            "TIME",
            "Time limit for retries of rejected topics, for example 10m.  [default: default.api.timeout.ms, else 60s]",
        ),
    ] = None
    dry_run: Annotated[bool, With(*WRITES), flag("dry-run", "Check the change and print it, without sending it.")] = (
        False
    )
    validate_only: Annotated[
        bool,
        With(CREATE, ALTER),
        flag(
            "validate-only",
            "With --create or --alter: let the controller check the change without making it. Kafka 4 counts this "
            "against the mutation quota.",
        ),
    ] = False
    yes: Annotated[Yes, With(*WRITES)] = False
    output: TableFormat = Output.text
    force: Annotated[bool, typer.Option("--force", hidden=True)] = False
    zookeeper: Annotated[str | None, typer.Option("--zookeeper", hidden=True)] = None

    @property
    def writes(self) -> bool:
        return (self.create or self.alter or self.delete) and not (self.dry_run or self.validate_only)


app = typer.Typer()
commands.add(app, "topics", TopicsOptions, epilog=EPILOG, headings=HEADINGS, kind=StrictCommand)
