"""`reassign-partitions --execute --wait`: start the moves, watch them to their end, and restore the throttle."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Final

from kquota.cli import move_stores, world
from kquota.cli.contract import DONE
from kquota.cli.output import Answer
from kquota.cli.reassign_partitions import execution, remarks, verification
from kquota.cli.reassign_partitions.command import ReassignOptions
from kquota.cli.watching.loop import readings
from kquota.errors import Invalid
from kquota.reassign.plan import read
from kquota.watch.observation import MoveWatch

_INTERVAL: Final = 5.0
_STDIN: Final = Path("-")


def run(at: world.Where, options: ReassignOptions) -> Generator[Answer]:
    """Yield the answer of --execute, the answers of `move watch`, and the answer of --verify, which restores the
    throttle. After a dry run or a failure, yield only the first answer.

    Raises Invalid for a plan on stdin, because the plan is read more than once.
    """
    file = options.reassignment_json_file or _STDIN
    if file == _STDIN:
        raise Invalid("--wait reads the plan more than once. Give --reassignment-json-file a file, not -")
    started = execution.run(at, options)
    yield started
    if options.dry_run or started.code != DONE:
        return
    with remarks.resumable(), move_stores.watching(at, options.state_dir) as (ports, _):
        watch = MoveWatch(ports, plan=read(file))
        yield from readings(watch, ports.clock, _INTERVAL, options.output, plan=str(file), restores=True)
    yield verification.run(at, replace(options, execute=False, verify=True), watch)
