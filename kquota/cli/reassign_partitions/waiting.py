"""`reassign-partitions --execute --wait`: start the moves, watch them to their end, and restore the throttle."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Final

from kquota.cli import move_stores, world
from kquota.cli.contract import DONE
from kquota.cli.output import Answer
from kquota.cli.reassign_partitions import execution, plan_option, remarks, verification
from kquota.cli.reassign_partitions.command import ReassignOptions
from kquota.cli.suggestion import readable_again
from kquota.cli.watching.loop import readings
from kquota.watch.observation import MoveWatch

_INTERVAL: Final = 5.0


def run(at: world.Where, options: ReassignOptions) -> Generator[Answer]:
    """Yield the answer of `--execute`, the answers of `move watch`, and the answer of `--verify`, which restores the
    throttle. After a dry run, or if a move between log dirs did not start, yield only the first answer.

    The plan is read only once, because it may come from a pipe or stdin. Raises the errors of `execution.run`,
    `readings` and `verification.run`.
    """
    plan, file = plan_option.plan(at, options), options.reassignment_json_file
    started = execution.run(at, options, plan)
    if options.dry_run or started.code != DONE:
        yield started
        return
    yield replace(started, is_continued=True)
    with remarks.resumable(file), move_stores.watching(at, options.state_dir) as (ports, _):
        watch = MoveWatch(ports, plan=plan)
        yield from readings(
            watch.look, ports.clock, _INTERVAL, options.output, plan=readable_again(file), restores=True
        )
    yield verification.run(at, replace(options, execute=False, verify=True), plan, watch)
