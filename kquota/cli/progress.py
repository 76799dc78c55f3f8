"""Progress of long work: bars and live lines on a terminal, and messages about waits, steps and an interrupt."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import accumulate
from typing import Final

from kquota.cli.contract import say
from kquota.cli.formats import printable
from kquota.measure import counted, human_duration


@contextmanager
def _bar(description: str, total: float | None, *after: str) -> Iterator[Callable[..., None]]:
    """Show a bar on stderr until the block ends, and yield a function that updates it (`rich.progress.Progress.update`
    without the task). `after` are rich's columns after the bar.
    """
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        *(getattr(progress, name)() for name in after),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield partial(shown.update, shown.add_task(description, total=total))


@contextmanager
def sending(count: int, next_step: str) -> Iterator[Callable[[int], None]]:
    """Yield a function to call after each batch with the number of entities in the batch. On a terminal, the function
    shows a bar.

    After an interrupt, print the number of sent entities, and the sentence `next_step`.
    """
    sent = 0
    bar = _bar("entities", count, "TaskProgressColumn", "TimeRemainingColumn") if sys.stderr.isatty() else nullcontext()
    try:
        with bar as update:

            def add(more: int) -> None:
                nonlocal sent
                sent += more
                if update is not None:
                    update(completed=sent)

            yield add
    except KeyboardInterrupt:
        say(f"sent: {sent:,} of {counted(count, 'entity')}, and possibly one more batch. {next_step}")
        raise


@contextmanager
def stages() -> Iterator[Callable[[int, int, int], None] | None]:
    """Yield a function to call with the number of Spark's latest stage, the count of its completed tasks, and the count
    of all its tasks. Yield None without a terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    with _bar("starting Spark", None, "MofNCompleteColumn", "TimeElapsedColumn") as update:
        yield lambda stage, done, tasks: update(description=f"Spark, stage {stage}", completed=done, total=tasks)


_EVERY_SECONDS: Final = 10.0
_LONG_SECONDS: Final = 0.5


def throttled() -> Callable[[float], None]:
    """Return a function to call before each wait while Kafka throttles this client, with the seconds to wait. The
    function reports waits of at least 0.5 s, at most every 10 s.
    """
    printed_at = -_EVERY_SECONDS

    def say_so(wait: float) -> None:
        nonlocal printed_at
        if wait >= _LONG_SECONDS and time.monotonic() - printed_at >= _EVERY_SECONDS:
            printed_at = time.monotonic()
            say(f"Kafka throttles this client: waiting {human_duration(wait)} (KIP-219)")

    return say_so


@contextmanager
def waiting(count: int) -> Iterator[Callable[[int, float], None]]:
    """Yield a function to call before each wait for a quota, with the number of completed topics and the seconds to
    wait.

    On a terminal, the function shows a bar with rate and remaining time. Otherwise it prints a line for a wait of at
    least 1 s, at most every 10 s.
    """
    if sys.stderr.isatty():
        began = time.monotonic()
        with _bar("topics", count, "MofNCompleteColumn", "TimeRemainingColumn") as update:

            def show(done: int, wait: float) -> None:
                rate = done / max(0.001, time.monotonic() - began)
                words = f"topics, {rate:.3g}/s, waiting {human_duration(wait)} for the quota"
                update(completed=done, description=words)

            yield show
        return
    printed_at = -_EVERY_SECONDS

    def say_so(done: int, wait: float) -> None:
        nonlocal printed_at
        if wait >= 1 and time.monotonic() - printed_at >= _EVERY_SECONDS:
            printed_at = time.monotonic()
            of = counted(count, "topic")
            say(f"waiting {human_duration(wait)} for the controller mutation quota. Done: {done:,} of {of}")

    yield say_so


@contextmanager
def lasting(what: str, seconds: float) -> Iterator[Callable[[float], None]]:
    """Yield a function to call with the elapsed seconds of a task that takes `seconds`. On a terminal, the function
    shows a bar. Otherwise, it does nothing.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with _bar(what, seconds, "TimeRemainingColumn") as update:
        yield lambda done: update(completed=done)


@contextmanager
def downloading() -> Iterator[Callable[[str, float | None], None]]:
    """Yield a function to call with a step and the completed fraction of the step (None if the fraction is unknown).

    On a terminal, the function shows a bar. Otherwise, it prints one line for each new step.
    """
    if not sys.stderr.isatty():
        seen: set[str] = set()

        def line(what: str, _share: float | None) -> None:
            if what not in seen:
                seen.add(what)
                say(what)

        yield line
        return
    with _bar("kquota:", None, "TimeElapsedColumn") as update:
        yield lambda what, share: update(description=f"kquota: {what}", total=share and 1.0, completed=share or 0.0)


@contextmanager
def live() -> Iterator[Callable[[Iterable[str], Iterable[str]], None]]:
    """Yield a function that shows a table and findings below it on the terminal of stdout, as lines. Each call replaces
    the previous lines. The end of the block removes the last lines.

    If the terminal is too small, the function leaves out lines at the end of the table before it leaves out findings.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False)
    with Live(console=console, transient=True, auto_refresh=False) as shown:

        def rows(line: str) -> int:
            return len(console.render_lines(Text(line)))

        def show(table: Iterable[str], findings: Iterable[str]) -> None:
            below = fitting([printable(line) for line in findings], console.height - 1, rows, "finding")
            above = fitting(
                [printable(line) for line in table], console.height - 1 - sum(map(rows, below)), rows, "line"
            )
            shown.update(Text("\n".join([*above, *below])), refresh=True)

        yield show


def fitting(lines: Sequence[str], height: int, rows: Callable[[str], int], name: str) -> list[str]:
    """Return the first lines that fit into `height` rows. If lines are left out, add a last line with their number.
    Return no lines if not even this last line fits.

    `rows` returns how many rows a line takes. `name` is the word for one line.
    """
    *ends, whole = accumulate(map(rows, lines), initial=0)
    if whole <= height:
        return list(lines)
    for count, used in reversed([*enumerate(ends)]):
        more = f"  {counted(len(lines) - count, f'more {name}')} (the terminal is too small)"
        if used < height and used + rows(more) <= height:
            return [*lines[:count], more]
    return []
