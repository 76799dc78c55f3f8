"""Commands with several actions, like Kafka's tools. The user gives exactly one action, and many options work only
with some actions.

The options dataclass has a bool for each action. If an option works only with some actions, its annotation contains
`With`. Register the command with `commands.add` and `kind=StrictCommand`. The command's work calls `action` first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar

from kquota.cli.formats import TABLES, WITHOUT_TABLES
from kquota.cli.help import Command
from kquota.cli.options import hints, option_name
from kquota.errors import Invalid
from kquota.list_text import listed


class With:
    """The actions that an option works with. An instance is part of the option's annotation."""

    def __init__(
        self, *actions: str, required: bool = False, unless: str | None = None, zookeeper: bool = True
    ) -> None:
        """If `required` is true, each of these actions needs this option, or the option `unless` instead. If
        `zookeeper` is false, the option does not work with `--zookeeper`.
        """
        self.actions = actions
        self.required = required
        self.unless = unless
        self.zookeeper = zookeeper


def rules(kind: type[Any]) -> Mapping[str, With]:
    """Return the rules in the options dataclass `kind`, by option name without `--`. Options without a rule are left
    out.
    """
    return {
        name.replace("_", "-"): rule
        for name, hint in hints(kind).items()
        for rule in getattr(hint, "__metadata__", ())
        if isinstance(rule, With)
    }


def is_given(options: object, option: str) -> bool:
    """Return True if the user gave the option. The default of the option must be None or False."""
    value = getattr(options, option.replace("-", "_"))
    return value is not None and value is not False


def action(options: object, actions: Sequence[str], tables: Sequence[str] = ()) -> str:
    """Return the action that the user gave. `tables` are the actions that can print TSV. Without `tables`, no format
    is refused.

    Raises Invalid for no action or several actions, for a missing required option, and for an option or a format that
    does not work with the action.
    """
    asked = [name for name in actions if getattr(options, name)]
    if len(asked) != 1:
        raise Invalid(f"Command must include exactly one action: {', '.join(f'--{name}' for name in actions)}")
    of_options = rules(type(options))
    for option, rule in of_options.items():
        instead = rule.unless is not None and is_given(options, rule.unless)
        if rule.required and asked[0] in rule.actions and not is_given(options, option) and not instead:
            raise Invalid(f'Missing required argument "[{option}]"')
    for option, rule in of_options.items():
        if asked[0] not in rule.actions and is_given(options, option):
            raise Invalid(
                f'Option "[{option}]" can\'t be used with action "[{asked[0]}]": it works with '
                f"{listed(map(option_name, rule.actions))}"
            )
    output = getattr(options, "output", None)
    if tables and asked[0] not in tables and output in TABLES:
        written = " or ".join(WITHOUT_TABLES)
        raise Invalid(f"--output {output} works with {listed(map(option_name, tables))}; --{asked[0]} prints {written}")
    return asked[0]


class StrictCommand(Command):
    """A command that also refuses wrong input that Click would accept. If Kafka's tools report the same error, the
    message has their words.
    """

    written_as: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Options without a value, each with the option and the value for which it stands."""
    synonyms: ClassVar[Mapping[str, str]] = {}
    """Other names of options, each with the name that the help shows."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raises Invalid for a value without an option, and for an option that is followed by
        another option instead of its value. Also raises Invalid for a repeated option that may occur only once.
        """
        params = self.get_params(ctx)
        options = [param for param in params if not getattr(param, "is_flag", False)]
        valued = {name: not param.multiple for param in options for name in param.opts}
        known = {name for param in params for name in param.opts} | {*self.written_as, *self.synonyms}
        return super().parse_args(ctx, list(self._checked(args, valued, known)))

    def twice(self, option: str) -> str:
        """Return the message for a repeated option that may occur only once."""
        return f"Found multiple arguments for option {option[2:]}, but you asked for only one"

    def _checked(self, args: Sequence[str], valued: Mapping[str, bool], known: Set[str]) -> Iterator[str]:
        """Yield the arguments to parse. `valued` has the options that take a value, with True for those that may occur
        only once.
        """
        given: set[str] = set()
        rest = iter(args)
        for arg in rest:
            if arg == "--" or not arg.startswith("-"):
                # Repeat only the name, because the argument may be a SCRAM credential whose --add-config was forgotten.
                name = arg.partition("=")[0]
                raise Invalid(f"unexpected argument {name!r}. Write each value after its option")
            if f"-{arg}".partition("=")[0] in known:
                # Kafka's tools accept one dash in front of a long option.
                arg = f"-{arg}"
            name, equals, text = arg.partition("=")
            arg = f"{self.synonyms.get(name, name)}{equals}{text}"
            written = self.written_as.get(arg, (arg,))
            name, equals, _ = written[0].partition("=")
            if valued.get(name, False):
                if name in given:
                    raise Invalid(self.twice(name))
                given.add(name)
            yield from written
            if name not in known:
                # The option is unknown, and its value may follow. Stop checking, because Click reports the option.
                yield from rest
            if name in valued and not equals and len(written) == 1:
                for value in rest:
                    if value in known:
                        raise Invalid(
                            f"Option {name} requires an argument, but {value} is an option. Give {name} a value"
                        )
                    yield value
                    break
