"""Commands without an operator: fewer messages (`--quiet`), a time limit (`--timeout`) and metrics (`--textfile`)."""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kquota.cli.contract import DONE, FAILED, NOT_YET, TRY_LATER, complain, exit_code, not_installed
from kquota.cli.options import Output, WritingOptions
from kquota.errors import Busy, Invalid, KquotaError
from kquota.measure import duration

if TYPE_CHECKING:
    from kquota.cli.metrics_file import MetricsFile

GRACE_SECONDS: Final = 3.0
"""The time limit in seconds for a command to close its connections after `--timeout`. kquota then ends the process."""


class TimedOut(BaseException):
    """The command has reached its `--timeout`. TimedOut is not an Exception, so that no retry catches it."""


def carried_out(asked: Any, work: Callable[[], int], *, quiet: bool) -> int:
    """Do the work of a command with these options, and return its exit code. With `quiet`, return 75 instead of raising
    Busy.

    With `--textfile`, also write the metrics after the work. If the work failed, the file has only the exit code and
    the time of the last success.

    Before the work, raises Invalid or Refused if `--quiet`, `--timeout` or `--textfile` cannot be used. Raises TimedOut
    after `--timeout`, and BrokenPipeError if the reader of stdout closed the pipe before the work was done. After the
    work, raises Unreachable or Refused if the metrics cannot be read or written.
    """
    output = getattr(asked, "output", Output.text)
    if quiet and not output.for_people:
        raise Invalid(f"--quiet prints no document, but --output {output} does. Give only one of them")
    if quiet and isinstance(asked, WritingOptions) and asked.writes and asked.asks and not asked.agreed:
        raise Invalid("--quiet: this command asks for confirmation. Add --yes")
    limit, file = getattr(asked, "time_limit", None), getattr(asked, "textfile", None)
    metrics = None if file is None else _metrics(asked)
    seconds = None if limit is None else duration(limit, "--timeout")
    found = None
    try:
        with _within(seconds, limit):
            code = work()
            if metrics is not None and code in (DONE, NOT_YET):
                found = metrics.read()
    except (KquotaError, TimedOut, BrokenPipeError) as error:
        code = _code(error)
        if metrics is not None:
            metrics.keep(code)
        if quiet and isinstance(error, Busy):
            return code  # without a message, because the next scheduled command repeats the work
        raise
    if found is not None and metrics is not None:
        metrics.write(*found, code)
    elif metrics is not None:
        metrics.keep(code)
    return code


def _code(error: KquotaError | TimedOut | BrokenPipeError) -> int:
    match error:
        case TimedOut():
            return TRY_LATER
        case KquotaError():
            return exit_code(error)
        case _:
            return FAILED


def _metrics(asked: Any) -> MetricsFile:
    try:
        module = importlib.import_module("kquota.cli.metrics_file")
    except ImportError as error:
        raise not_installed("--textfile", error.name, "metrics") from error
    found: MetricsFile = module.opened(asked)
    return found


@contextmanager
def _within(seconds: float | None, limit: str | None) -> Iterator[None]:
    """Raise TimedOut in this block after `seconds` (None: never), even while the block waits for a library. `limit` is
    the same time as the operator typed it.

    If the process still runs `GRACE_SECONDS` later, print the error unless it was already printed, and end the process
    with exit code 75. A library may otherwise delay the end, because it may never return to Python, or may wait for its
    own threads. An abrupt end is safe, because a run is recorded before each write.
    """
    if seconds is None:
        yield
        return
    line = f"--timeout {limit}: the command did not end in time, so kquota stopped it. Recorded runs stay open. "
    line += "Run the command again"
    ended, passed = threading.Event(), threading.Event()

    def over(_number: int, _frame: object) -> None:
        passed.set()
        raise TimedOut(line)

    def end() -> None:
        if ended.wait(seconds + GRACE_SECONDS):
            return
        if not _reported.is_set():
            complain(line)
        os._exit(TRY_LATER)

    threading.Thread(target=end, daemon=True, name="timeout").start()
    handler = signal.signal(signal.SIGALRM, over)
    began = time.monotonic()
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
        ended.set()
    except Exception as error:
        # A library may have turned TimedOut into another error.
        if passed.is_set():
            raise TimedOut(line) from error
        ended.set()
        raise
    except KeyboardInterrupt:
        ended.set()
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(0.01, left - (time.monotonic() - began)))


_reported: Final = threading.Event()


def report(over: TimedOut) -> int:
    """Print the error of a command that did not end in time, and return its exit code."""
    _reported.set()
    complain(str(over))
    return TRY_LATER
