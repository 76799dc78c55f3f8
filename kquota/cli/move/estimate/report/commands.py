"""The commands at the end of a report, in the order in which the operator runs them, quoted for a shell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Final

from kquota.cli.connection import Connection, names_a_cluster, where
from kquota.measure import ByteRate, exact_rate

ADDRESS_PLACEHOLDER: Final = ("--bootstrap-server", "HOST:PORT")
"""The placeholder for the address of the cluster if it is unknown, for example because all sizes come from files."""
PLAN_PLACEHOLDER: Final = "PLAN.json"
"""The placeholder for the plan if it cannot be read again, for example after a pipe."""


def cluster(connection: Connection, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return `--bootstrap-server` with the addresses of the brokers and, if a login file is given, `--command-config`.
    The name of a cluster is not used, because the operator of the move may have another config.toml. Return
    `ADDRESS_PLACEHOLDER` if no address is known.

    Raises Invalid as `where` does.
    """
    if not names_a_cluster(connection, environment):
        return ADDRESS_PLACEHOLDER
    found = where(connection, environment)
    if found.bootstrap is None:
        return ADDRESS_PLACEHOLDER
    security = () if found.command_config is None else ("--command-config", str(found.command_config))
    return ("--bootstrap-server", found.bootstrap, *security)


def commands(options: tuple[str, ...], plan: str, throttle: ByteRate) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the purpose of each command, and its parts, quoted for a shell. A page shows one part per line."""
    at, of_plan = _words(*options), _words("--reassignment-json-file", plan)
    rate = exact_rate(throttle)
    execute = ("kquota reassign-partitions", *at, *of_plan, f"--execute --throttle {rate}")
    return (
        ("Check the move. Nothing is written.", (*execute, "--dry-run")),
        ("Start the move.", execute),
        (
            "Show the progress. Exit code 8: a run of a move is open, or a recorded run cannot be read. Exit code 0: "
            "neither is the case.",
            ("kquota move status", *at),
        ),
        (
            f"Only if the move is too slow or affects clients: change the throttle. Replace {rate} with the new rate.",
            ("kquota throttle set", *at, *of_plan, f"--throttle {rate}"),
        ),
        (
            "Verify the move until the exit code is 0. Exit code 8: replicas are moving, or a throttle is not restored "
            "yet. Exit code 0: the moves have ended, and the throttle is restored.",
            ("kquota reassign-partitions", *at, *of_plan, "--verify"),
        ),
        (
            "Only if the start was interrupted, for example by a crash: resume the run where it stopped.",
            ("kquota move resume", *at, *of_plan),
        ),
        (
            "Only if you must stop the move: move the replicas back, and restore the throttle.",
            ("kquota move abort", *at, *of_plan),
        ),
    )


def _words(*options: str) -> tuple[str, ...]:
    return tuple(shlex.join(pair) for pair in zip(options[::2], options[1::2], strict=True))
