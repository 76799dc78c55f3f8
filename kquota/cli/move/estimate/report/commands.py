"""The commands at the end of a report, in the order in which they are run, quoted for a shell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Final

from kquota.cli.connection import Connection, names_a_cluster, where
from kquota.measure import ByteRate, exact_rate

NOBODY: Final = ("--bootstrap-server", "HOST:PORT")
"""Stands for the cluster where the sizes came from files alone."""
PIPED: Final = "PLAN.json"
"""Stands for the plan where it came through a pipe."""


def cluster(connection: Connection, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The options that say where the move runs, by address: who runs it may have another config.toml."""
    if not names_a_cluster(connection, environment):
        return NOBODY
    found = where(connection, environment)
    if found.bootstrap is None:
        return NOBODY
    security = () if found.command_config is None else ("--command-config", str(found.command_config))
    return ("--bootstrap-server", found.bootstrap, *security)


def commands(options: tuple[str, ...], plan: str, throttle: ByteRate) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What each command is for, and the command's words: a line for each, quoted."""
    at, of_plan = _words(*options), _words("--reassignment-json-file", plan)
    execute = ("kquota reassign-partitions", *at, *of_plan, f"--execute --throttle {exact_rate(throttle)}")
    return (
        ("Look first: everything is checked, and nothing is written.", (*execute, "--dry-run")),
        ("Start the move. The same again, with another --throttle, changes the rate while it moves.", execute),
        ("Watch it: exit code 8 while it moves, 0 when no run is open.", ("kquota move status", *at)),
        (
            "At the end, and as often as you like before: exit code 8 while replicas move; when all are in sync it "
            "gives the throttle back, and the exit code is 0.",
            ("kquota reassign-partitions", *at, *of_plan, "--verify"),
        ),
        (
            "If the first command was killed, or its machine went down: this goes on where it stopped.",
            ("kquota move resume", *at, *of_plan),
        ),
        (
            "If the move must be stopped: this takes it back, and its throttle, as all was before.",
            ("kquota move abort", *at, *of_plan),
        ),
    )


def _words(*options: str) -> tuple[str, ...]:
    """Options and their values, by turns, as one word each."""
    return tuple(shlex.join(pair) for pair in zip(options[::2], options[1::2], strict=True))
