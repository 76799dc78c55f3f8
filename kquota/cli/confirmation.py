"""Names the cluster on stderr before a write, and asks for confirmation.

Some commands ask after they have shown the change. If config.toml has `confirm = true` for the cluster, every command
that writes asks. A confirmation needs a terminal. `--yes` replaces the confirmation. The options of a command that
writes are `WritingOptions`, and `cli.world` calls `names` for each connection, so no command has to call `names`
itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kquota.cli.contract import is_quiet, say, to_stderr
from kquota.cli.formats import printable
from kquota.cli.options import WritingOptions
from kquota.errors import Conflict, Invalid, Refused

if TYPE_CHECKING:
    from kquota.cli.connection import Where

MOST_SHOWN: Final = 50
"""The maximum number of lines, or entities, that are shown before the confirmation."""


@dataclass(slots=True, kw_only=True)
class _Command:
    options: WritingOptions
    agreed: bool
    """True after a confirmation, and if an option such as `--yes` replaces the confirmation."""
    clusters: list[str] = field(default_factory=list)
    """The clusters that `names` has printed, or left out because of `--quiet`."""


_running: Final[list[_Command]] = []


@contextmanager
def during(options: Any) -> Iterator[None]:
    """Until the block ends, make `names` and the confirmations apply to the command with these options.

    For a command that does not write to a cluster, `names` does nothing.
    """
    if isinstance(options, WritingOptions) and options.writes:
        _running.append(_Command(options=options, agreed=options.agreed))
    try:
        yield
    finally:
        _running.clear()


def must_be_possible(at: Where) -> None:
    """Raise Invalid if config.toml requires a confirmation, but the command has `--quiet` or no terminal.

    No confirmation is required if the command does not write, or if an option such as `--yes` already agrees. The check
    needs no connection.
    """
    if at.confirm and _running and not _running[0].agreed and (is_quiet() or not has_terminal()):
        why = "does not work with --quiet" if is_quiet() else "needs a terminal"
        raise Invalid(
            f"cluster {at.name}: confirmation {why} (`confirm = true` in config.toml). Nothing was written. Give --yes"
        )


def names(at: Where, cluster_id: str | None) -> None:
    """If the command writes to the cluster of a connection, print the cluster once on stderr (not with `--quiet`).
    Ask for confirmation if config.toml requires one, unless the operator already agreed or the command itself asks.

    `cluster_id` is None if ZooKeeper does not store the id. Raises Refused if the operator does not confirm.
    """
    if not _running:
        return
    command = _running[0]
    known = cluster_id or f"at {at.bootstrap or at.zookeeper or at.controllers}"
    cluster = known if at.name is None else f"{at.name} ({known})"
    if cluster in command.clusters:
        return
    command.clusters.append(cluster)
    say(f"target cluster: {cluster}")
    if at.confirm and not (command.agreed or command.options.asks):
        must_agree("write to it?")


def has_terminal() -> bool:
    """Return True if there is a terminal for a confirmation."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def must_have_terminal(instead: str = "Give --yes") -> None:
    """Raise Invalid if there is no terminal for a confirmation. The message suggests `instead`."""
    if not has_terminal():
        raise Invalid(f"confirmation needs a terminal. Nothing was written. {instead}")


def first(changes: Sequence[str]) -> list[str]:
    """Return the first `MOST_SHOWN` changes and, if there are more, a line with the number of omitted changes."""
    more = len(changes) - MOST_SHOWN
    rest = [f"... and {more:,} more: --dry-run --output json shows all"] if more > 0 else []
    return [*changes[:MOST_SHOWN], *rest]


def must_agree(question: str) -> None:
    """Ask for confirmation, and name the cluster. Raises Refused for any answer except `y` and `yes`.

    After a confirmation, `names` does not ask again.
    """
    clusters = ", ".join(printable(cluster) for command in _running for cluster in command.clusters)
    # Typer's prompt is not used, because it prints a space on stdout.
    to_stderr(f"kquota: cluster {clusters}: {question} [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("not confirmed. Nothing was written")
    for command in _running:
        command.agreed = True


def must_still_be(shown: object, now: object, what: str) -> None:
    """Raise Conflict if the state `now` differs from the state `shown`. `what` names the state in the message."""
    if now != shown:
        raise Conflict(
            f"{what} changed before you confirmed. Nothing was written. Run the command again to see the current state"
        )
