"""The options that `--execute`, `--verify` and `--cancel` share, as values."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kquota.cli.connection import Where
from kquota.cli.contract import say
from kquota.cli.reassign_partitions.command import ReassignOptions, is_milliseconds
from kquota.measure import duration
from kquota.reassign import log_dirs
from kquota.reassign.plan import Plan, read

_TIMEOUT: Final = "10000"


def plan(at: Where, options: ReassignOptions) -> Plan:
    """Return the plan in the file, and print warnings about the plan. Raises Invalid if the file is not a plan, or if
    the plan has log dirs and `--zookeeper` is given.
    """
    # The `run` module has already refused an action without a plan.
    found = read(options.reassignment_json_file or Path(), lambda line: say(f"warning: {line}"))
    if at.zookeeper is not None:
        log_dirs.must_have_brokers(found)
    return found


def timeout(options: ReassignOptions) -> float:
    """Return the timeout in seconds, 10 by default. As in Kafka, a bare number is milliseconds. Raises Invalid for an
    invalid time.
    """
    text = options.timeout or _TIMEOUT
    return int(text) / 1000 if is_milliseconds(text) else duration(text, "--timeout")
