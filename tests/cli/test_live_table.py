"""The live table of `move watch` on a low terminal: the findings are always visible."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from kquota.cli.progress import fitting, live
from kquota.cli.watching.answer import MovesWatched
from kquota.cli.watching.wording import MoveNamed, shown
from kquota.terms import BrokerId, TopicPartition
from kquota.watch.symptom import DestinationDown
from kquota.watch.view import DestinationView, SlowestCopy, WatchedMoveView

pytestmark = pytest.mark.unit

ROWS, COLUMNS = 24, 80
DESTINATIONS = range(11, 26)


def reading() -> MovesWatched:
    """One move to 15 destinations, one of which is dead."""
    slowest = SlowestCopy(partition=TopicPartition("orders", 1), left=1, seconds=1.0)
    lanes = tuple(
        DestinationView(
            broker=BrokerId(broker),
            copies=3,
            done=1,
            copied=1,
            left=1,
            throughput=1.0,
            throttle=1,
            throttled=True,
            seconds_left=1.0,
            written=0.0,
            slowest=slowest,
        )
        for broker in DESTINATIONS
    )
    move = WatchedMoveView(
        run="r1",
        partitions=45,
        done=15,
        elsewhere=0,
        waiting=0,
        moving=30,
        log_dirs=0,
        copied=1,
        left=1,
        throughput=1.0,
        seconds_left=1.0,
        drift=None,
        open=True,
        destinations=lanes,
    )
    down = shown(DestinationDown(broker=BrokerId(25), copies=2, why=None), MoveNamed(run="r1", plan=None))
    return MovesWatched(time=datetime.now(UTC), ended=False, moves=(move,), brokers=(), findings=(down,))


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Make stdout a pseudo-terminal of 80 x 24 in the block. The yielded function reads it up to a text."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(other, "w") as out, monkeypatch.context() as patch:
        for name in ("stdin", "stdout", "stderr"):
            patch.setattr(sys, f"__{name}__", out)
        patch.setattr(sys, "stdout", out)

        def written(until: str) -> str:
            out.flush()
            found = ""
            while until not in found and select.select([main], [], [], 60.0)[0]:
                found += os.read(main, 100_000).decode()
            return found

        yield written
    os.close(main)


def test_a_finding_is_visible_below_15_destinations(monkeypatch: pytest.MonkeyPatch) -> None:
    found = reading()
    with terminal(monkeypatch) as written, live() as show:
        show(found.table(), found.finding_lines())
        screen = written("--run r1`")
    assert len(screen.splitlines()) < ROWS
    assert "run r1: 15 of 45 partitions done" in screen
    assert "destination down: broker 25" in screen
    assert "--run r1`" in screen
    assert "more lines (the terminal is too small)" in screen


FITTING = {
    "everything fits": (["a", "b"], 2, ["a", "b"]),
    "nothing to show": ([], 0, []),
    "one line too many": (["a", "b", "c"], 2, ["a", "  2 more lines (the terminal is too small)"]),
    "a long line": (["a", "long", "c"], 3, ["a", "  2 more lines (the terminal is too small)"]),
    "no room": (["a", "b"], 0, []),
    "less than no room": (["a", "b"], -1, []),
    "nothing to show, and less than no room": ([], -1, []),
}


@pytest.mark.parametrize(("lines", "height", "expected"), FITTING.values(), ids=FITTING)
def test_lines_that_do_not_fit_are_counted(lines: list[str], height: int, expected: list[str]) -> None:
    assert fitting(lines, height, lambda line: 2 if line == "long" else 1, "line") == expected


NARROW = {
    "the number of lines takes two rows": (
        ["a", "b", "c", "d"],
        3,
        ["a", "  3 more lines (the terminal is too small)"],
    ),
    "only the number fits": (["a", "b", "c"], 2, ["  3 more lines (the terminal is too small)"]),
    "not even the number fits": (["a", "b"], 1, []),
}


@pytest.mark.parametrize(("lines", "height", "expected"), NARROW.values(), ids=NARROW)
def test_the_number_of_lines_that_do_not_fit_may_wrap(lines: list[str], height: int, expected: list[str]) -> None:
    assert fitting(lines, height, lambda line: 2 if "more" in line else 1, "line") == expected
