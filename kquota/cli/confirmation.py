"""Confirmation before a write. kquota asks only on a terminal, after it has shown the change."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from kquota.cli.contract import say
from kquota.errors import Conflict, Invalid, Refused

MOST_SHOWN: Final = 50
"""The most lines, or entities, that are shown before the confirmation."""


def has_terminal() -> bool:
    """True if there is a terminal for a confirmation."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def must_have_terminal(instead: str = "give --yes") -> None:
    """Raise Invalid if there is no terminal."""
    if not has_terminal():
        raise Invalid(f"confirmation needs a terminal: {instead}")


def show(changes: Sequence[str]) -> None:
    """Print the changes on stderr, one per line, at most MOST_SHOWN."""
    for line in first(changes):
        say(line)


def first(changes: Sequence[str]) -> list[str]:
    """Return at most MOST_SHOWN changes, and the number of the others."""
    more = len(changes) - MOST_SHOWN
    rest = [f"... and {more} more: --dry-run --output json shows them"] if more > 0 else []
    return [*changes[:MOST_SHOWN], *rest]


def must_agree(question: str) -> None:
    """Ask for confirmation. Raises Refused for any answer except yes."""
    # typer's own prompt prints a blank on stdout.
    print(f"kquota: {question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("not confirmed; nothing was written")


def must_still_be(shown: object, now: object, what: str) -> None:
    """Raise Conflict if `what` (the quotas or the throttles) changed before the confirmation."""
    if now != shown:
        raise Conflict(
            f"{what} changed before you confirmed. Nothing was written. Run the command again to see the current state"
        )
