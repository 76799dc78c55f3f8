"""What scripts rely on: the exit codes, and that everything for a person goes to stderr."""

from __future__ import annotations

import sys
from typing import Final

from kquota.errors import Busy, Invalid, KquotaError, NextStep, Parameter, QuotaViolatedException

DONE: Final = 0
FAILED: Final = 1
WRONG: Final = 2
NOT_YET: Final = 8
TRY_LATER: Final = 75
INTERRUPTED: Final = 130


_COMMANDS: Final = {
    NextStep.TAKE_SNAPSHOT: "take one with: kquota log-dirs --snapshot DIR",
    NextStep.TAKE_SIZES: "take it again with kafka-log-dirs --describe or kquota log-dirs --describe",
    NextStep.RESUME: "kquota move resume",
    NextStep.ABORT: "kquota move abort",
    NextStep.END_THROTTLE: "kquota throttle clear --run",
    NextStep.EXAMINE_THROTTLES: "kquota throttle doctor",
    NextStep.SHOW_THROTTLES: "kquota throttle show",
    NextStep.SHOW_MOVES: "kquota move status",
    NextStep.SHOW_TOPICS: "kquota topics",
    NextStep.SHOW_CONFIGS: "kquota configs --describe",
    NextStep.SHARE_RECORD: "kquota record share",
    NextStep.UNSHARE_RECORD: "kquota record unshare",
}


def worded(error: KquotaError) -> str:
    """The message of an error with the options and commands that a person types."""
    return "".join(map(_worded, error.args))


def _worded(part: object) -> str:
    match part:
        case Parameter():
            return f"--{part.replace('_', '-')}"
        case NextStep():
            return _COMMANDS[part]
        case KquotaError():
            return worded(part)
        case _:
            return str(part)


def exit_code(error: KquotaError) -> int:
    """2 for input that cannot be right, 75 for what may work later, else 1."""
    match error:
        case Invalid():
            return WRONG
        case QuotaViolatedException() | Busy():
            return TRY_LATER
        case _:
            return FAILED


def say(line: str) -> None:
    """A line for the person: stderr, so that stdout stays empty or one document."""
    print(f"kquota: {printable(line)}", file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """One error, one line."""
    say(f"error: {message}")


def printable(text: str) -> str:
    """Text with its control characters made visible: a topic's name must not drive the operator's terminal."""
    if text.isprintable():  # nearly every line is, and looking at each character costs 10,000 quotas 60 ms
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
