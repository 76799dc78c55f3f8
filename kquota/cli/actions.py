"""Kafka's way of a command with several actions: one of them is asked for, and each option goes with some of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, get_type_hints

import typer

from kquota.errors import Invalid


class With:
    """The actions that an option goes with; stands in its annotation."""

    def __init__(self, *actions: str, required: bool = False, zookeeper: bool = True) -> None:
        """`required` by each of them; without `zookeeper` it goes with --bootstrap-server only."""
        self.actions = actions
        self.required = required
        self.zookeeper = zookeeper


def flag(name: str, text: str, **more: Any) -> Any:
    """An option without a value."""
    return typer.Option(f"--{name}", help=text, **more)


def value(name: str, metavar: str, text: str) -> Any:
    """An option with a value."""
    return typer.Option(f"--{name}", metavar=metavar, help=text)


def given_options(kind: type[Any]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Put every option of the dataclass `kind` in the place of the command's parameter `given`; others stay."""

    def decorated(command: Callable[..., int]) -> Callable[..., int]:
        hints = get_type_hints(kind, include_extras=True)
        options = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
            for f in fields(kind)
        ]

        @functools.wraps(command)
        def called(**told: Any) -> int:
            given = kind(**{option.name: told.pop(option.name) for option in options})
            return command(**told, given=given)

        declared = inspect.signature(command, eval_str=True).parameters
        others = [parameter for name, parameter in declared.items() if name != "given"]
        called.__signature__ = inspect.Signature([*others, *options])  # type: ignore[attr-defined]
        return called

    return decorated


def rules(kind: type[Any]) -> dict[str, With]:
    """The rule of each option of `kind` that has one, by its name on the command line."""
    return {
        name.replace("_", "-"): rule
        for name, hint in get_type_hints(kind, include_extras=True).items()
        for rule in getattr(hint, "__metadata__", ())
        if isinstance(rule, With)
    }


def stands(given: object, option: str) -> bool:
    """Whether an option was given."""
    return getattr(given, option.replace("-", "_")) not in (None, False)


def action(given: object, actions: Sequence[str], of_options: Mapping[str, With]) -> str:
    """The one action asked for. Raises Invalid, in Kafka's words, for none, two, or an option that it does not take."""
    asked = [name for name in actions if getattr(given, name)]
    if len(asked) != 1:
        raise Invalid(f"Command must include exactly one action: {', '.join(f'--{name}' for name in actions)}")
    for option, rule in of_options.items():
        if rule.required and asked[0] in rule.actions and not stands(given, option):
            raise Invalid(f'Missing required argument "[{option}]"')
    for option, rule in of_options.items():
        if asked[0] not in rule.actions and stands(given, option):
            instead = f": it goes with {' and '.join(f'--{name}' for name in rule.actions)}"
            raise Invalid(f'Option "[{option}]" can\'t be used with action "[{asked[0]}]"{instead}')
    return asked[0]
