"""`kquota move watch`: select the moves, and watch them until they have ended."""

from __future__ import annotations

from collections.abc import Generator

from kquota.cli import move_stores, world
from kquota.cli.move.command import WatchOptions
from kquota.cli.options import interval_seconds
from kquota.cli.suggestion import readable_again
from kquota.cli.watching.answer import MovesWatched
from kquota.cli.watching.loop import readings
from kquota.errors import Invalid
from kquota.reassign.plan import read
from kquota.watch.observation import MoveWatch


def run(options: WatchOptions) -> Generator[MovesWatched]:
    """Watch a plan, a run, or every move, and yield the answers of `readings`.

    Raises Invalid for a plan together with a run, and for an invalid plan or interval. Raises Refused if no open run of
    a move has the given id. Raises Unreachable if the cluster does not answer.
    """
    interval = interval_seconds(options.interval)
    if options.plan is not None and options.run is not None:
        raise Invalid("PLAN and --run both select a move. Give one of them")
    plan = None if options.plan is None else read(options.plan, world.warn)
    with move_stores.watching(world.where(options.connection), options.state_dir) as (ports, runs):
        watch = MoveWatch(ports, plan=plan, run=options.run)
        yield from readings(
            watch.look,
            ports.clock,
            interval,
            options.output,
            plan=readable_again(options.plan),
            once=options.once,
            unknown=plan is None and options.run is None and (runs.hidden or bool(runs.unreadable)),
            unseen=world.unseen(runs.unseen),
        )
