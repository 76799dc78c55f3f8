"""Help as plain text: options under headings, nothing truncated, and example commands that can be pasted."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import cleandoc
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

from typer.core import TyperCommand, TyperGroup

from kquota.cli import connection
from kquota.cli.options import option_name

EXAMPLES: Final = "Examples:"
"""The line of an epilog above the example commands. Each indented line below it is one command, of any length."""
ARGUMENTS, OPTIONS, CLUSTER = "Arguments", "Options", "Cluster"
"""The default headings."""
SUMMARIES: Final[Mapping[str, str]] = {
    "configs": "Set and show quotas, and the configs of topics, brokers and other entities, like kafka-configs.",
    "reassign-partitions": "Move partitions under a throttle, and restore every throttle exactly as it was.",
    "topics": "Create, grow and delete topics under a mutation quota; list and describe them.",
    "leader-election": "Elect leaders like kafka-leader-election, also in batches with a health check.",
    "log-dirs": "Show replica sizes like kafka-log-dirs, and record them in a history.",
    "move": "Plan, estimate, run, watch, adjust, resume, undo and report on partition moves.",
    "throttle": "Show, set, restore and clean up replication throttles.",
    "quota": "Manage a cluster's quotas as one document, explain which quota limits a client, and test quotas under "
    "load.",
    "record": "Share one record of runs, so that every host can see and resume all runs and restore their throttles.",
    "sandbox": "Run a real ZooKeeper and real Kafka on this machine.",
}
"""The summary of each command, in the order of the help. `kquota --help` imports no command, so a test compares these
with the real help.
"""
_OF_A_CLUSTER: Final = set(map(option_name, connection.OPTIONS))
_BEFORE_AN_OPTION: Final = re.compile(r" (?=-{1,2}[a-z]|[|>])")
_REMARK: Final = re.compile(r"\[[^]\n]+\]")
_BLANK: Final = "\N{NO-BREAK SPACE}"
_AT_LEAST: Final = re.compile(r"x>=(\S+?)([];])")
_FROM_TO: Final = re.compile(r"(\d+)<=x<=(\d+)")

Rows: TypeAlias = Sequence[tuple[str, str]]
Kind = TypeVar("Kind", bound="Command")


class Command(TyperCommand):
    """A command whose options can be under headings."""

    headings: ClassVar[Mapping[str, str]] = {}
    """The headings of the help. Each key is the first option below its heading. Sections keep the order of declaration.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        heading = OPTIONS
        for param in self.params:
            heading = self.headings.get(param.opts[0], heading)
            argument = param.param_type_name == "argument"
            under = ARGUMENTS if argument else CLUSTER if param.opts[0] in _OF_A_CLUSTER else heading
            setattr(param, "rich_help_panel", under)  # noqa: B010 - Click's own parameters do not declare it

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help. Options that select the cluster come last, because they are the same for most commands."""
        parts: dict[str, list[tuple[str, str]]] = {}
        heading = OPTIONS
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is None:
                continue
            # --help has no heading, so it belongs to the section before it.
            under = getattr(param, "rich_help_panel", None) or heading
            heading = heading if under in (ARGUMENTS, CLUSTER) else under
            parts.setdefault(under, []).append(record)
        if CLUSTER in parts:
            parts[CLUSTER] = parts.pop(CLUSTER)
        _write(self, ctx, formatter, parts)


class Group(TyperGroup):
    """A group of commands, each with a full sentence that describes it."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help. The commands come before the options, because readers look for the commands."""
        shown = self.summaries(ctx)
        records = (param.get_help_record(ctx) for param in self.get_params(ctx))
        options = [record for record in records if record is not None]
        _write(self, ctx, formatter, {"Commands": shown, OPTIONS: options})

    def summaries(self, ctx: Any) -> list[tuple[str, str]]:
        """Return each visible command with its description."""
        commands = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        return [(name, summary(command.help)) for name, command in commands if not command.hidden]


def summary(text: str | None) -> str:
    """Return the first paragraph of a command's help."""
    return _paragraphs(text)[0]


def under(headings: Mapping[str, str], kind: type[Kind]) -> type[Kind]:
    """Return a command class of this kind with these headings."""
    return type(kind.__name__, (kind,), {"headings": headings})


def examples(epilog: str | None) -> list[str]:
    """Return the example commands of an epilog, each on one line."""
    _, _, below = (epilog or "").partition(EXAMPLES)
    return [line.strip() for line in below.splitlines() if line.startswith("  ")]


def folded(command: str, width: int) -> list[str]:
    """Fold a command into lines of at most `width` where possible. Each line except the last ends with a backslash.

    kquota breaks lines only before an option, a pipe or a redirection, so a pasted copy is the same command.
    """
    lines = [""]
    for word in _BEFORE_AN_OPTION.split(command):
        longer = f"{lines[-1]} {word}" if lines[-1].strip() else f"{lines[-1]}{word}"
        if len(longer) + 2 <= width or not lines[-1].strip():
            lines[-1] = longer
        else:
            lines[-1] += " \\"
            lines.append(f"  {word}")
    return lines


def _write(command: Command | Group, ctx: Any, formatter: Any, parts: Mapping[str, Rows]) -> None:
    # A required argument is shown without typer's braces.
    formatter.write_usage(ctx.command_path, " ".join(piece.strip("{}") for piece in command.collect_usage_pieces(ctx)))
    for paragraph in _paragraphs(command.help):
        formatter.write(f"\n{_filled(paragraph, formatter.width, '  ')}")
    formatter.write(_tables(parts, formatter.width))
    formatter.write(_epilog(command.epilog, formatter.width))


def _epilog(text: str | None, width: int) -> str:
    notes, _, _ = (text or "").partition(EXAMPLES)
    written = [_filled(note, width, "") for note in _paragraphs(notes)]
    if commands := examples(text):
        lines = ["\n".join(f"  {line}" for line in folded(command, width - 2)) for command in commands]
        written.append("\n".join([EXAMPLES, *lines]) + "\n")
    return "".join(f"\n{part}" for part in written)


def _paragraphs(text: str | None) -> list[str]:
    return [" ".join(part.split()) for part in cleandoc(text or "").split("\n\n") if part.strip()]


def _tables(parts: Mapping[str, Rows], width: int) -> str:
    shown = {heading: rows for heading, rows in parts.items() if rows}
    names = [len(name) for rows in shown.values() for name, _ in rows]
    column = min(max(names, default=0), width * 3 // 10)
    return "".join(f"\n{heading}:\n{''.join(_rows(rows, column, width))}" for heading, rows in shown.items())


def _rows(rows: Rows, column: int, width: int) -> Iterator[str]:
    indent = " " * (column + 4)
    for name, description in rows:
        text = _filled(plain(description), width, indent)
        yield f"  {name:<{column}}  {text.removeprefix(indent)}" if len(name) <= column else f"  {name}\n{text}"


def plain(description: str) -> str:
    """Translate the ranges that typer adds, for example `x>=1`, to English. The range of an id, `x>=0`, is left out.

    >>> plain("Partition. [x>=0]"), plain("Replicas. [x>=1]")
    ('Partition.', 'Replicas. [at least 1]')
    """
    described = description.removesuffix("[x>=0]").rstrip()
    return _FROM_TO.sub(r"\1 to \2", _AT_LEAST.sub(r"at least \1\2", described))


def _filled(text: str, width: int, indent: str) -> str:
    """Break lines between words, but not within an option or within a bracketed note that fits on a line."""
    room = width - len(indent)
    kept = _REMARK.sub(lambda found: found[0].replace(" ", _BLANK) if len(found[0]) <= room else found[0], text)
    lines: Iterable[str] = textwrap.wrap(
        kept, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "".join(f"{line.replace(_BLANK, ' ')}\n" for line in lines)
