"""The one question before a write: asked on a terminal only, after what would change has been shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from kquota.cli.contract import say
from kquota.errors import Conflict, Invalid, Refused

MOST_SHOWN: Final = 50
"""Lines, or entities: whoever is asked reads no more."""


def has_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def must_have_terminal(instead: str = "give --yes") -> None:
    """Raises Invalid where nobody can be asked."""
    if not has_terminal():
        raise Invalid(f"confirmation needs a terminal: {instead}")


def show(changes: Sequence[str]) -> None:
    """What would change, on stderr, a line each; of many the first."""
    for line in first(changes):
        say(line)


def first(changes: Sequence[str]) -> list[str]:
    """What would change; of many the first, and how many more there are."""
    more = len(changes) - MOST_SHOWN
    rest = [f"... and {more} more: --dry-run --output json shows them"] if more > 0 else []
    return [*changes[:MOST_SHOWN], *rest]


def must_agree(question: str) -> None:
    """Ask, and wait for the answer. Raises Refused for everything but yes."""
    # typer's own question leaves a blank on stdout.
    print(f"kquota: {question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("not confirmed; nothing was written")


def must_still_be(shown: object, now: object, what: str) -> None:
    """Raises Conflict where `what` (the quotas, the throttles) changed while the operator thought."""
    if now != shown:
        raise Conflict(
            f"{what} changed before you confirmed. Nothing was written. Run the command again to see the current state"
        )
