"""Converts the commands of the app into Markdown: synopsis, options and examples, all from the help of the app."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import typer

from kquota.cli.help import CLUSTER, OPTIONS, examples, folded, plain
from kquota.cli.main import COMMANDS, app, register

_EXAMPLE_WIDTH: Final = 64
"""The maximum width of an example in characters, so that it fits on a page of 80 columns with its indentation."""
_VARIABLES: Final = re.compile(r"\s*\[env: ([^\]]+)\]")


@dataclass(frozen=True, slots=True)
class Command:
    """One command or one group of commands. Typer needs the context to show its options."""

    command: Any
    context: typer.Context

    @property
    def page(self) -> str:
        """The name of its page, for example `kquota-move-plan`."""
        return self.context.command_path.replace(" ", "-")

    @property
    def subcommands(self) -> Mapping[str, Command]:
        """The commands of a group by name, in the order of the help. Empty for a single command."""
        shown = {n: c for n, c in getattr(self.command, "commands", {}).items() if not c.hidden}
        return {n: Command(c, typer.Context(c, info_name=n, parent=self.context)) for n, c in shown.items()}

    @property
    def parameters(self) -> list[Any]:
        """The options and arguments that the help shows, in its order."""
        return [p for p in self.command.get_params(self.context) if p.get_help_record(self.context)]

    def options(self) -> set[str]:
        """Return all names of all options, for example `-h` and `--help`."""
        return {name for p in self.parameters if p.param_type_name == "option" for name in p.opts}

    def variables(self) -> dict[str, list[str]]:
        """Return the environment variables of each option that has some, by the first name of the option."""
        found: dict[str, list[str]] = {}
        for parameter in self.parameters:
            if named := _VARIABLES.search(parameter.get_help_record(self.context)[1]):
                found[parameter.opts[0]] = named[1].split(", ")
        return found

    def synopsis(self) -> str:
        """Return the command line. Optional parts are in brackets."""
        arguments = [self._shape(p) for p in self.parameters if p.param_type_name == "argument"]
        required = [f"`{p.opts[0]}` {self._value(p)}" for p in self.parameters if p.opts[0][0] == "-" and p.required]
        rest = ["*COMMAND* ..."] if self.subcommands else arguments
        # The space is non-breaking, because pandoc ends the sentence after three dots, and roff then prints two spaces.
        return " ".join([f"`{self.context.command_path}`", *required, "\\ ".join([r"\[*OPTION*\]...", *rest])])

    def _shape(self, argument: Any) -> str:
        value = self._value(argument)
        return value if argument.required else rf"\[{value}\]"

    def _value(self, parameter: Any) -> str:
        bare: str = parameter.make_metavar(self.context)
        if parameter.param_type_name == "argument":
            bare = bare.strip("{}[]").upper()
        elif bare[0] + bare[-1] in ("[]", "<>"):
            bare = bare[1:-1]
        return f"*{escaped(bare)}*"

    def described(self) -> str:
        """Return each argument and option with its help text, under the headings of the help."""
        parts: dict[str, list[str]] = {}
        heading = OPTIONS
        for parameter in self.parameters:
            heading = getattr(parameter, "rich_help_panel", None) or heading
            text = plain(_VARIABLES.sub("", parameter.get_help_record(self.context)[1]))
            parts.setdefault(heading, []).append(f"{self._term(parameter)}\n:   {prose(text)}")
        if CLUSTER in parts:
            parts[CLUSTER] = parts.pop(CLUSTER)
        if len(parts) == 1:
            return "\n\n".join(*parts.values())
        return "\n\n".join(f"## {escaped(name)}\n\n" + "\n\n".join(described) for name, described in parts.items())

    def _term(self, parameter: Any) -> str:
        if parameter.param_type_name == "argument":
            return self._value(parameter)
        names = ", ".join(f"`{name}`" for name in sorted(parameter.opts, key=_length))
        return names if parameter.is_flag or parameter.count else f"{names} {self._value(parameter)}"

    def examples(self) -> str:
        """Return the examples at the end of the help. A long example is broken between its options."""
        lines = ["\n".join(folded(example, _EXAMPLE_WIDTH)) for example in examples(self.command.epilog)]
        return "\n\n".join(f"```\n{command}\n```" for command in lines)


def _length(option: str) -> bool:
    """Return the sort key by which -h comes before --help."""
    return option.startswith("--")


def escaped(text: str) -> str:
    """Return the text with Markdown's special characters escaped."""
    return re.sub(r"([^\w\s,.:;/%()=…?!&-])", r"\\\1", text).replace("_", r"\_")


def prose(text: str) -> str:
    """Return a help text as Markdown. Options, and text in backticks, become literal text."""
    parts = re.split(r"`([^`]+)`|(?<![\w-])(--[a-z][\w-]*)", re.sub(r"\s+", " ", text).strip())
    # The parts repeat: text, then the two groups of the pattern, of which only one matches.
    return "".join(
        escaped(part or "") if index % 3 == 0 else f"`{part}`" for index, part in enumerate(parts) if part is not None
    )


@functools.cache
def root() -> Command:
    """Return the app with all its commands."""
    for name in COMMANDS:
        register(name)
    command = typer.main.get_command(app)
    return Command(command, typer.Context(command, info_name="kquota", **command.context_settings))


def every(command: Command) -> Iterator[Command]:
    """Yield a command and all commands below it, in the order of the help."""
    yield command
    for below in command.subcommands.values():
        yield from every(below)
