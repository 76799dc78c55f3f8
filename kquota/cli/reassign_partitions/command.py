"""`kquota reassign-partitions`: kafka-reassign-partitions, which restores what was there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli.actions import With, flag, value
from kquota.cli.connection import Connection
from kquota.cli.options import Output, TableFormat

EPILOG: Final = """Exit codes of --verify: 0 done, and the throttle given back; 8 still moving: ask again; 1 replicas
ended elsewhere.

Examples:
  kquota reassign-partitions --bootstrap-server localhost:9092 --execute --reassignment-json-file plan.json \
--throttle 50MB/s
  kquota reassign-partitions --bootstrap-server localhost:9092 --verify --reassignment-json-file plan.json"""

GENERATE, EXECUTE, VERIFY, CANCEL, LIST = "generate", "execute", "verify", "cancel", "list"
ACTIONS: Final = (GENERATE, EXECUTE, VERIFY, CANCEL, LIST)
"""In the order in which Kafka's tool names them."""
HEADINGS: Final = {
    "--generate": "Action (exactly one)",
    "--reassignment-json-file": "The plan",
    "--throttle": "The throttle",
    "--additional": "How carefully",
    "--state-dir": "Record and output",
}
"""The first option of each part of the help, and its heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignOptions:
    """Move partitions under a throttle, and put every throttle back exactly as it was."""

    connection: Connection
    generate: Annotated[bool, flag("generate", "Propose a plan for the topics named; nothing is moved.")] = False
    execute: Annotated[bool, flag("execute", "Start the moves of the plan, throttled.")] = False
    verify: Annotated[bool, flag("verify", "Say whether they are done; when they are, give the throttle back.")] = False
    cancel: Annotated[bool, flag("cancel", "Stop them: the partitions stay where they were.")] = False
    list: Annotated[bool, flag("list", "Show every move under way in the cluster.")] = False

    reassignment_json_file: Annotated[
        Path | None,
        With(EXECUTE, VERIFY, CANCEL, required=True),
        value("reassignment-json-file", "FILE", "The plan, as --generate and move plan print it."),
    ] = None
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
        value("broker-list", "ID,…", "For --generate, the brokers to place them on."),
    ] = None
    disable_rack_aware: Annotated[
        bool, With(GENERATE), flag("disable-rack-aware", "For --generate: do not look at the brokers' racks.")
    ] = False
    seed: Annotated[
        int | None,
        With(GENERATE),
        typer.Option(
            "--seed",
            metavar="N",
            min=0,
            help="For --generate: make the proposal again that this seed, told on stderr, made before.",
        ),
    ] = None
    throttle: Annotated[
        str | None,
        With(EXECUTE),
        value(
            "throttle",
            "RATE",
            "The most that each broker sends, and receives, of the moves: 50MB/s; bare: bytes per second. "
            "[default: no throttle]",
        ),
    ] = None
    replication_quota: Annotated[
        str | None, With(EXECUTE), value("replication-quota", "RATE", "KIP-73's name of --throttle.")
    ] = None
    replica_alter_log_dirs_throttle: Annotated[
        str | None,
        With(EXECUTE, zookeeper=False),
        value(
            "replica-alter-log-dirs-throttle",
            "RATE",
            "The most that each broker copies between its own log dirs, as --throttle. [default: no throttle]",
        ),
    ] = None
    throttle_whole_topics: Annotated[
        bool,
        With(EXECUTE),
        flag(
            "throttle-whole-topics",
            "Throttle all replicas of a topic (*) where the list of those that move is longer than a broker takes.",
        ),
    ] = False
    preserve_throttles: Annotated[bool, With(VERIFY, CANCEL), flag("preserve-throttles", "Give no throttle back.")] = (
        False
    )
    clear_all: Annotated[
        bool, With(VERIFY), flag("clear-all", "Clear all throttles, whoever set them, as Kafka's --verify does.")
    ] = False
    additional: Annotated[
        bool, With(EXECUTE, zookeeper=False), flag("additional", "Start although other moves run in the cluster.")
    ] = False
    disallow_replication_factor_change: Annotated[
        bool,
        With(EXECUTE),
        flag("disallow-replication-factor-change", "Refuse a plan that changes a replication factor."),
    ] = False
    timeout: Annotated[
        str | None,
        With(EXECUTE, CANCEL, zookeeper=False),
        value(
            "timeout",
            "MS",
            "How long to wait for moves between log dirs to begin: 10s; bare: milliseconds. [default: 10s]",
        ),
    ] = None
    force: Annotated[
        bool, With(EXECUTE, CANCEL), flag("force", "Do what is refused for being dangerous; the refusal names it.")
    ] = False
    reason: Annotated[
        str | None, With(EXECUTE), value("reason", "TEXT", "Why, for colleagues: move status shows it.")
    ] = None
    dry_run: Annotated[
        bool, With(EXECUTE, CANCEL), flag("dry-run", "Check everything and show what would be written.")
    ] = False
    state_dir: Annotated[
        Path | None,
        With(EXECUTE, VERIFY, CANCEL),
        value("state-dir", "DIR", "Where runs are on record. [default: $XDG_STATE_HOME/kquota]"),
    ] = None
    output: TableFormat = Output.text
    bootstrap_controller: Annotated[str | None, typer.Option("--bootstrap-controller", hidden=True)] = None
