"""The loop of a watch: one reading for each interval, until the moves have ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import nullcontext
from dataclasses import replace

from kquota.cli import world
from kquota.cli.contract import worded
from kquota.cli.options import Output
from kquota.cli.progress import live
from kquota.cli.watching.answer import MovesWatched, answer
from kquota.errors import Unreachable
from kquota.reassign.port import Clock
from kquota.watch.observation import Observed


def readings(
    look: Callable[[], Observed],
    clock: Clock,
    interval: float,
    output: Output,
    *,
    wait: Callable[[float], None] | None = None,
    plan: str | None = None,
    once: bool = False,
    unknown: bool = False,
    unseen: tuple[str, ...] = (),
    restores: bool = False,
) -> Generator[MovesWatched]:
    """Yield an answer for each reading. For text on a terminal, each reading replaces the text of the previous reading,
    so only the last answer is yielded.

    `look` reads the cluster, and raises Unreachable if the cluster does not answer. With `once`, there is one reading,
    which can raise this error. Without `once`, the error causes only a warning, and readings begin at least `interval`
    seconds apart until the moves have ended. `wait` waits between two readings, by default with `clock`.

    `plan` is the plan's file for suggested commands. `unseen` are notes for an answer without a move. `unknown` means
    that some runs cannot be read. `restores` means that the command itself restores leftover throttles and ends open
    runs.
    """
    on_terminal = output.for_people and not once and sys.stdout.isatty()
    with live() if on_terminal else nullcontext() as show:
        while True:
            began = clock.monotonic()
            found = _read(look, once=once)
            if found is not None:
                done = found.ended or once
                lines = not on_terminal and not once
                shown = answer(found, plan, lines=lines, unknown=unknown and done, restores=restores)
                if done:
                    break
                if show is None:
                    yield replace(shown, is_continued=True)
                else:
                    show(shown.table(), shown.finding_lines())
            (wait or clock.sleep)(max(0.0, interval - (clock.monotonic() - began)))
    yield shown if shown.moves else replace(shown, notes=(*shown.notes, *unseen))


def _read(look: Callable[[], Observed], *, once: bool) -> Observed | None:
    try:
        return look()
    except Unreachable as error:
        if once:
            raise
        world.warn(f"{worded(error)}. Trying again")
        return None
