"""`kquota leader-election`: like kafka-leader-election, but also in batches with a health check between them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli import commands
from kquota.cli.actions import StrictCommand
from kquota.cli.connection import ThroughBrokers
from kquota.cli.options import DryRun, Output, OutputFormat, WritingOptions, Yes, flag, value

EPILOG: Final = """With --batch, kquota waits between two batches until the new leaders are visible and the cluster is
as healthy as before. A partition is unhealthy if it has no leader, or has an out-of-sync replica. Exit codes: 0 done;
1 if some leaders were not elected (the output names their partitions).

Examples:
  kquota leader-election --bootstrap-server localhost:9092 --election-type preferred --all-topic-partitions --batch 50
  kquota leader-election --bootstrap-server localhost:9092 --election-type preferred --topic orders --partition 0"""

HEADINGS: Final = {
    "--election-type": "Election",
    "--topic": "Choice of partitions (exactly one)",
    "--batch": "Batches",
    "--dry-run": "Dry run and output",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionOptions(WritingOptions):
    """Elect leaders like kafka-leader-election, also in batches with a health check."""

    connection: ThroughBrokers

    election_type: Annotated[
        str | None,
        value(
            "election-type",
            "[preferred|unclean]",
            "preferred: the first replica becomes the leader. unclean: an out-of-sync replica may become the leader of "
            "a partition without a leader, which can lose messages.",
        ),
    ] = None
    topic: Annotated[str | None, value("topic", "NAME", "Topic of the partition; needs --partition.")] = None
    partition: Annotated[int | None, value("partition", "N", "Partition of the topic.", min=0)] = None
    path_to_json_file: Annotated[
        Path | None,
        value("path-to-json-file", "FILE", 'JSON file of partitions: {"partitions":[{"topic":"foo","partition":1}]}.'),
    ] = None
    all_topic_partitions: Annotated[
        bool, flag("all-topic-partitions", "Every partition that needs an election of this type.")
    ] = False
    batch: Annotated[
        int | None,
        value("batch", "N", "Maximum number of partitions in one request.  [default: all partitions at once]", min=1),
    ] = None
    pause: Annotated[
        str | None, value("pause", "TIME", "With --batch: time between two batches, for example 5s.  [default: 0s]")
    ] = None
    settle: Annotated[
        str | None,
        value(
            "settle",
            "TIME",
            "With --batch: maximum wait for the cluster to become healthy after a batch.  [default: 60s]",
        ),
    ] = None
    yes: Yes = False
    dry_run: DryRun = False
    output: OutputFormat = Output.text
    admin_config: Annotated[Path | None, typer.Option("--admin.config", hidden=True)] = None


app = typer.Typer()
commands.add(app, "leader-election", LeaderElectionOptions, epilog=EPILOG, headings=HEADINGS, kind=StrictCommand)
