"""The contract with scripts: exit codes, and messages for people on stderr only."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TextIO

from kquota.cli.formats import printable
from kquota.cli.options import option_name
from kquota.cli.suggestion import suggested, zookeeper_shell
from kquota.errors import (
    Busy,
    ExamineZnode,
    Invalid,
    KquotaError,
    NextStep,
    Parameter,
    QuotaViolatedException,
    Refused,
    Retry,
    StepFor,
)

DONE: Final = 0
FAILED: Final = 1
"""The exit code of a command that failed or was refused."""
WRONG: Final = 2
"""The exit code for wrong usage or invalid input."""
NOT_YET: Final = 8
"""The exit code of a command whose work is not finished, for example because a move is running, and of a check that has
a finding.
"""
TRY_LATER: Final = 75
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C."""
NOT_WRITTEN: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""The error numbers of a file system that cannot store the output."""


COMMANDS: Final[Mapping[NextStep, str]] = {
    NextStep.TAKE_SNAPSHOT: "log-dirs --snapshot DIR",
    NextStep.TAKE_SIZES: "log-dirs --describe",
    NextStep.RESUME_RUN: "move resume --run {}",
    NextStep.ABORT_RUN: "move abort --run {}",
    NextStep.CANCEL_MOVES: "reassign-partitions --cancel --reassignment-json-file PLAN",
    NextStep.END_THROTTLE: "throttle clear --run {}",
    NextStep.EXAMINE_THROTTLES: "throttle doctor",
    NextStep.SHOW_THROTTLES: "throttle show",
    NextStep.SHOW_MOVES: "move status",
    NextStep.SHOW_TOPIC: "topics --describe --topic {}",
    NextStep.SHOW_TOPIC_CONFIGS: "configs --describe --topic {}",
    NextStep.SHOW_BROKER_CONFIGS: "configs --describe --broker {}",
    NextStep.SHOW_GROUP_CONFIGS: "configs --describe --group {}",
    NextStep.SHOW_CLIENT_METRICS: "configs --describe --client-metrics {}",
    NextStep.SHOW_LOGGERS: "configs --describe --broker-logger {}",
    NextStep.SHOW_USER: "configs --describe --user {}",
    NextStep.SHOW_QUOTAS: "quota export",
    NextStep.SHOW_BROKER_DEFAULTS: "configs --describe --broker-defaults",
    NextStep.SHARE_RECORD: "record share",
    NextStep.UNSHARE_RECORD: "record unshare",
    NextStep.UNSHARE_OTHER: "record unshare --record {}",
    NextStep.CLEAN_UP_PROBES: "quota probe --clean-up",
    NextStep.USE_SANDBOX: "sandbox env {}",
    NextStep.STOP_SANDBOX: "sandbox down {}",
    NextStep.REMOVE_SANDBOX: "sandbox down {}",
}
"""The command for each next step. `{}` is the placeholder for the value of a `StepFor`."""
_BEFORE: Final[Mapping[NextStep, str]] = {
    NextStep.TAKE_SNAPSHOT: "Take one with ",
    NextStep.TAKE_SIZES: "Create the file again with kafka-log-dirs or ",
}
_OF_SANDBOXES: Final[Mapping[NextStep, str]] = {
    NextStep.USE_SANDBOX: 'Use it with: eval "$({})"',
    NextStep.STOP_SANDBOX: "stop it with: {}",
    NextStep.REMOVE_SANDBOX: "Remove the sandbox with: {}",
}
"""Steps whose command follows a colon and has no backquotes."""


def worst(codes: Iterable[int]) -> int:
    """Return the exit code of several runs: the first failure, otherwise `NOT_YET` if it is among them, otherwise
    `DONE`.
    """
    return max(codes, key=lambda code: (code != DONE, code != NOT_YET), default=DONE)


def worded(error: KquotaError) -> str:
    """Return the message of an error, with options and commands as a user types them."""
    return "".join(map(_worded, error.args))


def without_retry(error: KquotaError) -> str:
    """Return the same message as `worded`, but without `Retry`, for a command that repeats its work itself."""
    return "".join(_worded(part) for part in error.args if not isinstance(part, Retry))


def _worded(part: object) -> str:
    match part:
        case Parameter():
            return option_name(part)
        case NextStep():
            return _BEFORE.get(part, "") + suggested(COMMANDS[part])
        case StepFor():
            command = suggested(COMMANDS[part.step].format(shlex.quote(part.what)))
            return _OF_SANDBOXES[part.step].format(command.strip("`")) if part.step in _OF_SANDBOXES else command
        case ExamineZnode(path=path):
            return f"Examine it with {zookeeper_shell(f'get {shlex.quote(path)}')}"
        case KquotaError():
            return worded(part)
        case _:
            return str(part)


def not_installed(option: str, libraries: str | None, extra: str) -> Refused:
    """Return the error for missing libraries that `option` needs. `libraries` are their names, or None if the failed
    import does not name its module. `extra` is the extra of kquota that installs them.
    """
    return Refused(f"{option}: cannot import {libraries or 'a library'}. Run: pip install 'kquota[{extra}]'")


def exit_code(error: KquotaError) -> int:
    """Return 2 for invalid input, 75 for a violated quota or a held lock, and 1 otherwise."""
    match error:
        case Invalid():
            return WRONG
        case QuotaViolatedException() | Busy():
            return TRY_LATER
        case _:
            return FAILED


_NEEDED: Final = ("error: ", "warning: ")
_quiet: list[bool] = [False]


@contextmanager
def quieten(quiet: bool) -> Iterator[None]:
    """Until the block ends, make `say` print only the lines for `--quiet` if `quiet` is true, otherwise all lines."""
    _quiet[0] = quiet
    try:
        yield
    finally:
        _quiet[0] = False


def is_quiet() -> bool:
    """Return True if the operator gave `--quiet`."""
    return _quiet[0]


def say(line: str, *, needed: bool = False) -> None:
    """Print a line for people on stderr, so that stdout stays empty or contains one document.

    With `--quiet`, only errors, warnings and lines that are `needed` are printed.
    """
    if _quiet[0] and not needed and not line.startswith(_NEEDED):
        return
    to_stderr(f"kquota: {printable(line)}")


def to_stderr(text: str, end: str = "\n") -> None:
    """Print text for people on stderr as it is, and `end` after it.

    If stderr is a closed pipe (`2>&1 | head`) or a file on a full disk, this text and all later text on stderr are
    discarded, because a command that is writing to a cluster must still finish, and its exit code must not change.
    """
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except BlockingIOError:
        pass  # a full pipe that does not block: Python writes the text with the next one
    except OSError:
        _drop(sys.stderr)


_lost: list[bool] = [False]


def is_output_lost() -> bool:
    """Return True if the command has done its work, but stdout could not be stored. The process then exits with 1."""
    return _lost[0]


def report_lost_output(error: OSError, code: int) -> None:
    """Report that stdout could not be stored, and the exit code of the command itself."""
    complain(f"stdout cannot be written: {error.strerror}. The command itself ended with exit code {code}")
    _lost[0] = True
    drop_stdout()


def drop_stdout() -> None:
    """Discard the rest of stdout, so that Python's final flush does not fail."""
    _drop(sys.stdout)


def _drop(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain(message: str) -> None:
    """Print an error as one line on stderr."""
    say(f"error: {message}")
