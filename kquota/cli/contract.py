"""The contract with scripts: exit codes, and messages for people on stderr only."""

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
    """The message of an error, with options and commands as a user types them."""
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
    """2 for invalid input, 75 for errors that may pass, else 1."""
    match error:
        case Invalid():
            return WRONG
        case QuotaViolatedException() | Busy():
            return TRY_LATER
        case _:
            return FAILED


def say(line: str) -> None:
    """Print a line for people on stderr, so that stdout stays empty or contains one document."""
    print(f"kquota: {printable(line)}", file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """Print an error as one line."""
    say(f"error: {message}")


def printable(text: str) -> str:
    """Text with visible control characters, because the name of a topic must not control the operator's terminal."""
    if text.isprintable():  # true for nearly every line, and checking each character costs 60 ms for 10,000 quotas
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
