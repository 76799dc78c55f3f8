"""Options that many commands share, declared once. Every command imports this module, so its import must be fast."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, get_type_hints

import typer

from kquota.cli.formats import TABLES, WITHOUT_TABLES
from kquota.cli.formats import Output as Output
from kquota.errors import Invalid
from kquota.measure import duration
from kquota.terms import LONGEST_TEXT

ELECTION_BATCH: Final = 50
"""The default for the maximum number of partitions in one batch of preferred leader elections after a move."""


class WritingOptions:
    """The options of a command that can write to a cluster. `cli.confirmation` names the cluster before the command
    writes.
    """

    __slots__ = ()

    @property
    def writes(self) -> bool:
        """True if the command writes to a cluster with these options."""
        return not getattr(self, "dry_run", False)

    @property
    def asks(self) -> bool:
        """True if the command itself asks for confirmation, after it has shown the change."""
        return False

    @property
    def agreed(self) -> bool:
        """True if an option agrees to the write in advance."""
        return bool(getattr(self, "yes", False))


class Only:
    """An annotation of a group of options: the fields that the command has. The other fields keep their defaults."""

    def __init__(self, *names: str) -> None:
        """`names` can be in any order, because the help keeps the order of the group."""
        self.names: Final = names


class Each:
    """An annotation of a mapping of options. Each key has its own option, and the mapping contains the keys whose
    option is given.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        """`options` are typer options made from a table, for example from the quota keys."""
        self.options: Final = options


def option_name(name: str) -> str:
    """Return the option of a field of an options dataclass, or of a key of `Each`.

    >>> option_name("dry_run")
    '--dry-run'
    """
    return f"--{name.replace('_', '-')}"


def flag(name: str, text: str, **more: Any) -> Any:
    """Return an option without a value."""
    return typer.Option(f"--{name}", help=text, **more)


def value(name: str, metavar: str, text: str, **more: Any) -> Any:
    """Return an option with a value."""
    return typer.Option(f"--{name}", metavar=metavar, help=text, **more)


def finite(number: float | None) -> float | None:
    """Return the number. Raises BadParameter for NaN and infinity, which the bounds of an option do not exclude."""
    if number is not None and not math.isfinite(number):
        raise typer.BadParameter(f"{number:g} is not a finite number.")
    return number


_HINTS: Final[dict[type[Any], Mapping[str, Any]]] = {}


def hints(options: type[Any]) -> Mapping[str, Any]:
    """Return the field annotations of an options dataclass, by name.

    The annotations are evaluated only once, because the evaluation takes milliseconds.
    """
    if options not in _HINTS:
        _HINTS[options] = get_type_hints(options, include_extras=True)
    return _HINTS[options]


def _no_table(output: Output) -> Output:
    if output in TABLES:
        raise typer.BadParameter(f"this command prints {' or '.join(WITHOUT_TABLES)}.")
    return output


OutputFormat: TypeAlias = Annotated[
    Output, value("output", f"[{'|'.join(WITHOUT_TABLES)}]", "Format of stdout.", callback=_no_table)
]
TableFormat: TypeAlias = Annotated[Output, value("output", f"[{'|'.join(Output)}]", "Format of stdout.")]
"""The option `--output` of commands that can also write the formats of `TABLES`."""

Interval: TypeAlias = Annotated[str, value("interval", "TIME", "Time between two readings, at least 1s.")]
_SHORTEST_INTERVAL: Final = 1.0


def interval_seconds(text: str) -> float:
    """Parse the value of `--interval` into seconds. Raises Invalid for an invalid time and for less than one second."""
    seconds = duration(text, "--interval")
    if seconds < _SHORTEST_INTERVAL:
        raise Invalid(f"--interval {text}: must be at least {_SHORTEST_INTERVAL:g}s")
    return seconds


StateDir: TypeAlias = Annotated[
    Path | None, value("state-dir", "DIR", "Folder for the run journals.  [default: $XDG_STATE_HOME/kquota]")
]
Gone: TypeAlias = Annotated[
    list[str] | None,
    value("gone", "ID,…", "Brokers that will never come back. kquota does not restore the throttles set on them."),
]
OnlyLeaders: TypeAlias = Annotated[bool, flag("leader", "Limit only the traffic that leaders send.")]
OnlyFollowers: TypeAlias = Annotated[bool, flag("follower", "Limit only the traffic that followers receive.")]
ForcedRate: TypeAlias = Annotated[bool, flag("force", "Set the rate even if copies can never catch up under it.")]
LogDirThrottle: TypeAlias = Annotated[
    str | None,
    value(
        "replica-alter-log-dirs-throttle",
        "RATE",
        "Throttle rate for copies between the log dirs of a broker, for example 50MB/s.  [default: the rate that is "
        "set on the broker]",
    ),
]
PlanOfRun: TypeAlias = Annotated[
    Path | None, value("reassignment-json-file", "FILE", "Select the open run of this plan.")
]


def run_option(default: str) -> Any:
    """Return the option `--run`. `default` describes which run a command selects without this option."""
    return value("run", "ID", f"Id of the run, as `kquota move status` shows it.  [default: {default}]")


DryRun: TypeAlias = Annotated[bool, flag("dry-run", "Print the changes, without writing them.")]


def recordable(reason: str | None) -> str | None:
    """Return the value of `--reason`. Raises Invalid if it is too long for the record of a run, or not valid UTF-8."""
    if reason is not None and len(reason) > LONGEST_TEXT:
        raise Invalid(f"--reason: the text is too long ({len(reason):,} characters). Give at most {LONGEST_TEXT:,}")
    try:
        (reason or "").encode()
    except UnicodeEncodeError as error:  # Python passes on bytes of the command line that are not UTF-8
        raise Invalid(f"--reason: character {error.start + 1} is not valid UTF-8. Set the terminal to UTF-8") from None
    return reason


Reason: TypeAlias = Annotated[
    str | None,
    value(
        "reason",
        "TEXT",
        "Reason that colleagues see. kquota records it with the run or with the change of its throttle.",
        callback=recordable,
    ),
]
TakeOver: TypeAlias = Annotated[
    bool, flag("take-over", "Take the lock from a command on another host, even if it may still be running.")
]
Yes: TypeAlias = Annotated[bool, flag("yes", "Do not ask for confirmation.")]
Quiet: TypeAlias = Annotated[bool, flag("quiet", "Print only errors and other messages that need action, on stderr.")]
TimeLimit: TypeAlias = Annotated[
    str | None, value("timeout", "TIME", "Stop the command after this time, for example 2m, with exit code 75.")
]
Textfile: TypeAlias = Annotated[
    Path | None,
    value(
        "textfile",
        "FILE",
        "Also write metrics of the cluster for node exporter's textfile collector. The name must end in .prom.",
    ),
]
