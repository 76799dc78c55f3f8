"""The loop of a watch: one reading for each interval, until the moves have ended."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import nullcontext
from dataclasses import replace
from typing import Protocol

from kquota.cli import world
from kquota.cli.contract import worded
from kquota.cli.options import Output
from kquota.cli.progress import live
from kquota.cli.watching.answer import MovesWatched, answer
from kquota.errors import Unreachable
from kquota.reassign.port import Clock
from kquota.watch.observation import Observed


class Looking(Protocol):
    """A watch of moves, for example `MoveWatch` or `PacedWatch`."""

    def look(self) -> Observed:
        """Return a new reading of the cluster. Raises Unreachable if the cluster does not answer."""
        ...


def readings(
    watch: Looking,
    clock: Clock,
    interval: float,
    output: Output,
    *,
    plan: str | None = None,
    once: bool = False,
    unknown: bool = False,
    unseen: tuple[str, ...] = (),
    restores: bool = False,
) -> Generator[MovesWatched]:
    """Yield an answer for each reading. For text on a terminal, each reading replaces the text of the previous reading,
    so only the last answer is yielded.

    With `once`, there is one reading, and a failure raises Unreachable. Without `once`, readings begin at least
    `interval` seconds apart, until the moves have ended, and a failure causes only a warning. `plan` is the plan's file
    for suggested commands. `unseen` are notes for an answer without a move. `unknown` means that some runs cannot be
    read. `restores` means that the command itself restores leftover throttles and ends open runs.
    """
    on_terminal = output.for_people and not once and sys.stdout.isatty()
    with live() if on_terminal else nullcontext() as show:
        while True:
            began = clock.monotonic()
            found = _look(watch, once)
            if found is not None:
                done = found.ended or once
                lines = not on_terminal and not once
                shown = answer(found, plan, lines=lines, unknown=unknown and done, restores=restores)
                if done:
                    break
                if show is None:
                    yield shown
                else:
                    show(shown.table(), shown.finding_lines())
            clock.sleep(max(0.0, interval - (clock.monotonic() - began)))
    yield shown if shown.moves else replace(shown, notes=(*shown.notes, *unseen))


def _look(watch: Looking, once: bool) -> Observed | None:
    try:
        return watch.look()
    except Unreachable as error:
        if once:
            raise
        world.warn(f"{worded(error)}. Trying again")
        return None
