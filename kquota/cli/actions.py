"""Kafka's way of a command with several actions: one of them is asked for, and each option goes with some of them.

The dataclass of options has a bool for each action, and `With` in the annotation of each option that goes with some.
The command is registered by `commands.add` with `kind=StrictCommand`, and its `run` begins with `action`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from kquota.cli.options import TABLES, WITHOUT_TABLES, hints
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


def rules(kind: type[Any]) -> Mapping[str, With]:
    """The rule of each option of the dataclass `kind` that has one, by its name on the command line."""
    return {
        name.replace("_", "-"): rule
        for name, hint in hints(kind).items()
        for rule in getattr(hint, "__metadata__", ())
        if isinstance(rule, With)
    }


def is_given(options: object, option: str) -> bool:
    """Whether an option was given."""
    return getattr(options, option.replace("-", "_")) not in (None, False)


def action(options: object, actions: Sequence[str], tables: Sequence[str] = ()) -> str:
    """The one action asked for; of these, `tables` can write TSV.

    Raises Invalid, in Kafka's words, for no action, for two, and for an option that it does not take.
    """
    asked = [name for name in actions if getattr(options, name)]
    if len(asked) != 1:
        raise Invalid(f"Command must include exactly one action: {', '.join(f'--{name}' for name in actions)}")
    of_options = rules(type(options))
    for option, rule in of_options.items():
        if rule.required and asked[0] in rule.actions and not is_given(options, option):
            raise Invalid(f'Missing required argument "[{option}]"')
    for option, rule in of_options.items():
        if asked[0] not in rule.actions and is_given(options, option):
            raise Invalid(
                f'Option "[{option}]" can\'t be used with action "[{asked[0]}]": it goes with {_listed(rule.actions)}'
            )
    output = getattr(options, "output", None)
    if tables and asked[0] not in tables and output in TABLES:
        written = " or ".join(WITHOUT_TABLES)
        raise Invalid(f"--output {output} goes with {_listed(tables)}; --{asked[0]} writes {written}")
    return asked[0]


def _listed(actions: Sequence[str]) -> str:
    return " and ".join(f"--{name}" for name in actions)
