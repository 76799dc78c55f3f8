"""kafka-configs' way to name an entity: --entity-type with --entity-name or --entity-default, or the short forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from typer.core import TyperCommand

from kquota.errors import Invalid
from kquota.quota.entity import CLIENTS, ENTITY_TYPES, EVERY, USERS, Every, Name
from kquota.terms import DEFAULT

# No argument of a process can hold a NUL, so this cannot be anybody's name.
_DEFAULT: Final = "\0"
_DEFAULT_FLAGS: Final = {
    "--entity-default": "--entity-name",
    "--user-defaults": "--user",
    "--client-defaults": "--client",
}

Named: TypeAlias = Mapping[str, Name | Every]
"""Entity type to name, in the order of the command line; EVERY where only the type was given."""


class EntityCommand(TyperCommand):
    """A command in which the order of --entity-name and --entity-default tells which entity type each belongs to."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write --entity-default as an --entity-name of its own kind: order is kept only within one option."""
        rewritten: list[str] = []
        for arg in args:
            rewritten += [_DEFAULT_FLAGS[arg], _DEFAULT] if arg in _DEFAULT_FLAGS else [arg]
        return super().parse_args(ctx, rewritten)


def named(types: Sequence[str], names: Sequence[str], user: str | None, client: str | None) -> Named:
    """Which entities the options name. Raises Invalid, in Kafka's words where Kafka has them."""
    short = {USERS: user, CLIENTS: client}
    given = {entity_type: name for entity_type, name in short.items() if name is not None}
    if given and (types or names):
        raise Invalid("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    if given:
        types, names = list(given), list(given.values())
    if not types:
        raise Invalid("At least one entity type must be specified: --entity-type users, clients, or both")
    for entity_type in types:
        if entity_type not in ENTITY_TYPES:
            raise Invalid(_wrong_type(entity_type))
    if len(set(types)) < len(types):
        raise Invalid(f"Duplicate entity type(s) specified: {', '.join(types)}")
    if len(names) > len(types):
        raise Invalid("More entity names specified than entity types")
    found: dict[str, Name | Every] = dict.fromkeys(types, EVERY)
    for entity_type, name in zip(types, names, strict=False):
        if name == "":
            raise Invalid(f"--entity-name for {entity_type} is empty; the default entity is --entity-default")
        found[entity_type] = DEFAULT if name == _DEFAULT else name
    return found


def _wrong_type(entity_type: str) -> str:
    hint = f"; did you mean {entity_type}s?" if f"{entity_type}s" in ENTITY_TYPES else ""
    return f"--entity-type {entity_type!r} is not one of {', '.join(ENTITY_TYPES)}{hint}"
