"""Creates commands from frozen dataclasses: the annotated fields are the options, and the docstring is the help.

A function in a neighboring module does the work. The module is imported when the command runs.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin

import typer

from kquota.cli import confirmation
from kquota.cli.connection import READ_LOGINS
from kquota.cli.contract import FAILED, drop_stdout, quieten
from kquota.cli.help import SUMMARIES, Command, Group, under
from kquota.cli.options import Each, Only, Output, hints
from kquota.cli.suggestion import remember
from kquota.cli.unattended import carried_out

OptionAnnotation = TypeVar("OptionAnnotation", Only, Each)

WORK: Final[dict[type[Any], tuple[str, str]]] = {}
"""The module and the function that do the work of each registered command, by options dataclass."""


def group(name: str, epilog: str) -> typer.Typer:
    """Return a group of commands. Register its commands with `add`."""
    return typer.Typer(name=name, cls=Group, help=SUMMARIES[name], epilog=epilog, no_args_is_help=True)


def add(
    group: typer.Typer,
    name: str,
    options: type[Any],
    *,
    epilog: str | None = None,
    headings: Mapping[str, str] | None = None,
    kind: type[Command] = Command,
    hidden: bool = False,
    work: str = "run.run",
) -> None:
    """Register the command `name`. A field of `options` that is a dataclass is a group of further options.

    `work` names the module and the function that do the work, for example `run.run`. The module is in the folder of
    `options`. `headings` and `epilog` are for the help, as in `help.Command` and `help.EXAMPLES`.
    """
    declared = list(parameters(options))
    module, _, function = f"{options.__module__.rpartition('.')[0]}.{work}".rpartition(".")
    WORK[options] = (module, function)

    def called(**given: object) -> int:
        run = getattr(importlib.import_module(module), function)
        output = importlib.import_module("kquota.cli.output")
        asked = filled(options, given)
        remember(asked)
        READ_LOGINS.clear()
        quiet = getattr(asked, "quiet", False)

        def work() -> int:
            code: int = output.show(run(asked), getattr(asked, "output", Output.text), quiet=quiet)
            return code

        try:
            with confirmation.during(asked), quieten(quiet):
                return carried_out(asked, work, quiet=quiet)
        except BrokenPipeError:  # the reader of stdout closed the pipe (`| head`) before the command had done its work
            drop_stdout()
            return FAILED

    called.__doc__ = options.__doc__
    called.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]  # typer reads it
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in declared}
    group.command(name, cls=under(headings or {}, kind), epilog=epilog, hidden=hidden)(called)


def parameters(options: type[Any], only: Only | None = None) -> Iterator[inspect.Parameter]:
    """Yield the parameters of an options dataclass, with those of its groups of options. `only` limits the fields,
    except groups and `Each` mappings.
    """
    for field in fields(options):
        hint = hints(options)[field.name]
        if (group := _group(hint)) is not None:
            yield from parameters(group, _annotation(hint, Only))
        elif (each := _annotation(hint, Each)) is not None:
            for name, option in each.options.items():
                yield _parameter(name, None, Annotated[str | None, option])
        elif only is None or field.name in only.names:
            yield _parameter(field.name, inspect.Parameter.empty if field.default is MISSING else field.default, hint)


def filled(options: type[Any], given: Mapping[str, object]) -> Any:
    """Return an instance of the options dataclass with the given values. Other fields keep their defaults.

    A mapping with `Each` contains only the options that are not None.
    """
    values: dict[str, object] = {}
    for field in fields(options):
        hint = hints(options)[field.name]
        if (group := _group(hint)) is not None:
            values[field.name] = filled(group, given)
        elif (each := _annotation(hint, Each)) is not None:
            values[field.name] = {name: given[name] for name in each.options if given[name] is not None}
        elif field.name in given:
            values[field.name] = given[field.name]
    return options(**values)


def _parameter(name: str, default: object, hint: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _group(hint: Any) -> type[Any] | None:
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return plain if is_dataclass(plain) and isinstance(plain, type) else None


def _annotation(hint: Any, kind: type[OptionAnnotation]) -> OptionAnnotation | None:
    return next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, kind)), None)
