"""Strict command lines: every option occurs once, and every value belongs to the option before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar

from kquota.cli.help import Command
from kquota.errors import Invalid


class StrictCommand(Command):
    """A command that refuses input that Click would ignore, in the words of Kafka's tools."""

    written_as: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Options without a value that represent another option and its value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raises Invalid for a value without an option, an option without its value, and a repeated option."""
        params = self.get_params(ctx)
        options = [param for param in params if not getattr(param, "is_flag", False)]
        valued = {name: not param.multiple for param in options for name in param.opts}
        known = {name for param in params for name in param.opts} | set(self.written_as)
        return super().parse_args(ctx, list(self._checked(args, valued, known)))

    def twice(self, option: str) -> str:
        """The message for an option that may occur once and is repeated."""
        return f"Found multiple arguments for option {option[2:]}, but you asked for only one"

    def _checked(self, args: Sequence[str], valued: Mapping[str, bool], known: Set[str]) -> Iterator[str]:
        """The arguments to parse; `valued` are the options with a value, and whether each may occur only once."""
        given: set[str] = set()
        rest = iter(args)
        for arg in rest:
            if arg == "--" or not arg.startswith("-"):
                # Not repeated in full, because it may be a SCRAM credential whose --add-config was forgotten.
                name = arg.partition("=")[0]
                raise Invalid(f"unexpected argument {name!r}: write each value after its option")
            written = self.written_as.get(arg, (arg,))
            name, equals, _ = written[0].partition("=")
            if valued.get(name, False):
                if name in given:
                    raise Invalid(self.twice(name))
                given.add(name)
            yield from written
            if name in valued and not equals and len(written) == 1:
                for value in rest:
                    if value in known:
                        raise Invalid(f"Option {name} requires an argument, but {value} is an option")
                    yield value
                    break
