"""`kquota reassign-partitions`: like kafka-reassign-partitions, but it restores previous throttles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli import commands
from kquota.cli.actions import StrictCommand, With
from kquota.cli.connection import Connection
from kquota.cli.options import Output, Quiet, TableFormat, Textfile, WritingOptions, Yes, flag, recordable, value
from kquota.errors import Invalid

EPILOG: Final = """Exit codes of --verify: 0 if the moves have ended and the throttle is restored; 8 if moves are
still running or a throttle is not restored yet (run --verify again), or if a throttle of an unknown run
may still be set; 1 if some replicas are not those of the plan.
With --all-runs: 0 if all runs are done; 8 if some are not done yet; 1 if the state of a run is unknown, or some of
its replicas are not those of its plan.

Examples:
  kquota reassign-partitions --bootstrap-server localhost:9092 --execute --reassignment-json-file plan.json \
--throttle 50MB/s
  kquota reassign-partitions --bootstrap-server localhost:9092 --verify --all-runs --quiet"""

GENERATE, EXECUTE, VERIFY, CANCEL, LIST = "generate", "execute", "verify", "cancel", "list"
ACTIONS: Final = (GENERATE, EXECUTE, VERIFY, CANCEL, LIST)
"""The actions, in the order of Kafka's tool."""
_LONGEST: Final = 15
"""The maximum number of digits of a timeout in milliseconds, which is enough for 30,000 years."""
HEADINGS: Final = {
    "--generate": "Action (exactly one)",
    "--reassignment-json-file": "Plan",
    "--throttle": "Throttle",
    "--additional": "Safety",
    "--state-dir": "Record and output",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignOptions(WritingOptions):
    """Move partitions under a throttle, and restore every throttle exactly as it was."""

    connection: Connection
    generate: Annotated[bool, flag("generate", "Propose a plan for the given topics. Nothing is moved.")] = False
    execute: Annotated[bool, flag("execute", "Start the moves of the plan, under the given throttle.")] = False
    verify: Annotated[bool, flag("verify", "Report whether the moves have ended. If so, restore the throttle.")] = False
    cancel: Annotated[bool, flag("cancel", "Stop the moves. The partitions return to their previous replicas.")] = False
    list: Annotated[bool, flag("list", "Show every running move of the cluster.")] = False

    reassignment_json_file: Annotated[
        Path | None,
        With(EXECUTE, VERIFY, CANCEL, required=True, unless="all-runs"),
        value("reassignment-json-file", "FILE", "The plan, as --generate and `kquota move plan` print it."),
    ] = None
    all_runs: Annotated[
        bool,
        With(VERIFY),
        flag("all-runs", "For --verify: verify every open run instead of one plan, for example from cron."),
    ] = False
    topics_to_move_json_file: Annotated[
        Path | None,
        With(GENERATE, required=True),
        value(
            "topics-to-move-json-file", "FILE", 'For --generate, the topics: {"topics":[{"topic":"foo"}],"version":1}.'
        ),
    ] = None
    broker_list: Annotated[
        str | None,
        With(GENERATE, required=True),
        value("broker-list", "ID,…", "For --generate, the brokers to place the topics on."),
    ] = None
    disable_rack_aware: Annotated[
        bool, With(GENERATE), flag("disable-rack-aware", "For --generate: ignore the racks of the brokers.")
    ] = False
    seed: Annotated[
        int | None,
        With(GENERATE),
        value(
            "seed",
            "N",
            "For --generate: seed of an earlier proposal, to repeat it. "
            "kquota prints the seed of each proposal on stderr.",
            min=0,
        ),
    ] = None
    throttle: Annotated[
        str | None,
        With(EXECUTE),
        value(
            "throttle",
            "RATE",
            "Throttle rate for the copies that each broker sends and receives, for example 50MB/s. Without a unit: "
            "bytes per second.  "
            "[default: no throttle for a new run, unchanged for an open one]",
        ),
    ] = None
    replication_quota: Annotated[
        str | None, With(EXECUTE), value("replication-quota", "RATE", "KIP-73's name for --throttle.")
    ] = None
    unthrottled: Annotated[
        bool,
        With(EXECUTE),
        flag(
            "unthrottled",
            "For --execute: confirm that the copies need no throttle, and print no note about it.",
        ),
    ] = False
    replica_alter_log_dirs_throttle: Annotated[
        str | None,
        With(EXECUTE, zookeeper=False),
        value(
            "replica-alter-log-dirs-throttle",
            "RATE",
            "Throttle rate for copies between the log dirs of a broker, for example 50MB/s. --throttle does not limit "
            "these copies.  [default: the rate that is set on the broker]",
        ),
    ] = None
    throttle_whole_topics: Annotated[
        bool,
        With(EXECUTE),
        flag(
            "throttle-whole-topics",
            "Throttle all replicas of a topic (*) if its throttled replica list would otherwise be too long for a "
            "broker.",
        ),
    ] = False
    preserve_throttles: Annotated[
        bool,
        With(VERIFY, CANCEL),
        flag("preserve-throttles", "For --verify and --cancel: do not restore any throttle."),
    ] = False
    clear_all: Annotated[
        bool,
        With(VERIFY),
        flag(
            "clear-all",
            "For --verify: if no move is running, clear the rates of all brokers and the lists of the plan's topics, "
            "including those of other tools and users, as Kafka's --verify does.",
        ),
    ] = False
    additional: Annotated[
        bool,
        With(EXECUTE, zookeeper=False),
        flag("additional", "For --execute: start even if other moves are running in the cluster."),
    ] = False
    disallow_replication_factor_change: Annotated[
        bool,
        With(EXECUTE),
        flag("disallow-replication-factor-change", "For --execute: refuse a plan that changes a replication factor."),
    ] = False
    timeout: Annotated[
        str | None,
        With(EXECUTE, VERIFY, CANCEL),
        value(
            "timeout",
            "MS",
            "Time to wait for moves between log dirs to start (--cancel: to stop). For --verify: stop the command "
            "after this time with exit code 75. Without a unit: milliseconds.  [default: 10s; --verify: no limit]",
        ),
    ] = None
    force: Annotated[
        bool,
        With(EXECUTE, CANCEL),
        flag(
            "force", "Run the command even if a check refuses it as dangerous. The error message describes the danger."
        ),
    ] = False
    wait: Annotated[
        bool,
        With(EXECUTE),
        flag(
            "wait",
            "For --execute: watch the moves until they have ended, like `kquota move watch`, and then restore the "
            "throttle.",
        ),
    ] = False
    reason: Annotated[
        str | None,
        With(EXECUTE),
        value("reason", "TEXT", "Reason that colleagues see. kquota records it with the run.", callback=recordable),
    ] = None
    dry_run: Annotated[
        bool, With(EXECUTE, CANCEL), flag("dry-run", "Check everything and print the changes, without writing them.")
    ] = False
    yes: Annotated[Yes, With(EXECUTE, VERIFY, CANCEL)] = False
    state_dir: Annotated[
        Path | None,
        With(EXECUTE, VERIFY, CANCEL),
        value("state-dir", "DIR", "Folder for the run journals.  [default: $XDG_STATE_HOME/kquota]"),
    ] = None
    quiet: Annotated[Quiet, With(VERIFY)] = False
    textfile: Annotated[Textfile, With(VERIFY)] = None
    output: TableFormat = Output.text

    @property
    def time_limit(self) -> str | None:
        """The time limit of the whole command, with its unit. None unless both `--verify` and `--timeout` are given.

        Raises the error of `is_milliseconds`.
        """
        if not self.verify or self.timeout is None:
            return None
        return f"{self.timeout}ms" if is_milliseconds(self.timeout) else self.timeout

    @property
    def writes(self) -> bool:
        return not self.dry_run and (self.execute or self.verify or self.cancel)


def is_milliseconds(timeout: str) -> bool:
    """Return True if this value of `--timeout` is a bare number of milliseconds, as in Kafka's tool.

    Raises Invalid for a value without a unit that is not a whole number or has more than `_LONGEST` digits.
    """
    if timeout.isascii() and timeout.isdigit() and len(timeout) <= _LONGEST:
        return True
    if not timeout[-1:].isalpha():
        raise Invalid(
            f"--timeout {timeout!r}: not a valid time. Give whole milliseconds, or a time with a unit, for example "
            "10000 or 10s"
        )
    return False


app = typer.Typer()
commands.add(app, "reassign-partitions", ReassignOptions, epilog=EPILOG, headings=HEADINGS, kind=StrictCommand)
