"""How far a long write or job has come: a bar on a terminal, and a last word when the operator stops a write."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kquota.cli.contract import say
from kquota.measure import human_duration


@contextmanager
def sending(count: int) -> Iterator[Callable[[int], None]]:
    """Yields what is to be told of each batch: how many entities more were sent."""
    sent = 0
    try:
        with _bar(count) as advance:

            def told(more: int) -> None:
                nonlocal sent
                sent += more
                advance(more)

            yield told
    except KeyboardInterrupt:
        say(
            f"{sent} of {count} entities were sent, and possibly one more batch. Run the command again to apply the "
            "rest"
        )
        raise


@contextmanager
def _bar(count: int) -> Iterator[Callable[[int], None]]:
    """On stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("entities", total=count)
        yield lambda more: progress.advance(task, more)


@contextmanager
def stages() -> Iterator[Callable[[int, int, int], None] | None]:
    """Yields what is to be told of Spark's newest stage: its number, its tasks done and all; None on no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting Spark", total=None)

        def told(stage: int, done: int, tasks: int) -> None:
            progress.update(task, description=f"Spark, stage {stage}", completed=done, total=tasks)

        yield told


_EVERY_SECONDS: Final = 10.0
_LONG_SECONDS: Final = 0.5


def throttled() -> Callable[[float], None]:
    """What is to be told of each wait for a broker that throttles us: a line now and then, so that none is a hang."""
    said = -_EVERY_SECONDS

    def say_so(wait: float) -> None:
        nonlocal said
        if wait >= _LONG_SECONDS and time.monotonic() - said >= _EVERY_SECONDS:
            said = time.monotonic()
            say(f"the broker throttles this principal: waiting {human_duration(wait)} (KIP-219)")

    return say_so


@contextmanager
def waiting(count: int) -> Iterator[Callable[[int, float], None]]:
    """Yields what is to be told before each wait for a quota: topics done by now, and the seconds it will take.

    A bar with rate and time left on a terminal; elsewhere a line now and then, so that a wait is not taken for a hang.
    """
    if sys.stderr.isatty():
        with _waiting_bar(count) as told:
            yield told
        return
    said = -_EVERY_SECONDS

    def say_so(done: int, wait: float) -> None:
        nonlocal said
        if wait >= 1 and time.monotonic() - said >= _EVERY_SECONDS:
            said = time.monotonic()
            say(f"waiting {human_duration(wait)} for the controller mutation quota: {done} of {count} topics are done")

    yield say_so


@contextmanager
def _waiting_bar(count: int) -> Iterator[Callable[[int, float], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("topics", total=count)
        began = time.monotonic()

        def told(done: int, wait: float) -> None:
            rate = done / max(0.001, time.monotonic() - began)
            words = f"topics, {rate:.3g}/s, waiting {human_duration(wait)} for the quota"
            progress.update(task, completed=done, description=words)

        yield told


@contextmanager
def lasting(what: str, seconds: float) -> Iterator[Callable[[float], None]]:
    """Yields what is to be told of the seconds gone by of something that lasts so long: a bar, where there is one."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=seconds)
        yield lambda gone: progress.update(task, completed=gone)


@contextmanager
def downloading() -> Iterator[Callable[[str, float | None], None]]:
    """Yields what is to be told of a step, and the share of it that is done, None while that is unknown.

    On a terminal a bar; elsewhere one line for each new step.
    """
    if not sys.stderr.isatty():
        seen: set[str] = set()

        def line(what: str, _share: float | None) -> None:
            if what not in seen:
                seen.add(what)
                say(what)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("kquota: {task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, share: bar.update(task, description=what, total=share and 1.0, completed=share or 0.0)
