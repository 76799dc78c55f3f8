"""Entities as kafka-configs names them: `--entity-type` with `--entity-name` or `--entity-default`, or the short
forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from kquota.addresses import is_ip_or_host
from kquota.cli.configs.command import DEFAULT_NAME
from kquota.entity_types import ENTITIES, TOPICS
from kquota.errors import Invalid
from kquota.quota.entity import EVERY, Every, Name
from kquota.terms import CLIENTS, DEFAULT, IPS, USERS

_CONNECTION: Final = "with a --bootstrap-server or --bootstrap-controller argument"
Named: TypeAlias = Mapping[str, Name | Every]
"""The name of each entity type. A name is EVERY if only the type was given.

Types of `--entity-type` are in the order of the command line. For short forms, types with names come before types with
defaults, each in Kafka's order.
"""


def named(types: Sequence[str], names: Sequence[str], short: Mapping[str, str | None]) -> Named:
    """Return the entities that the options name. `short` has the values of the short forms by entity type, in Kafka's
    order. A name that is `DEFAULT_NAME` means the default entity.

    kquota resolves host names here, but does not connect to a cluster. Raises Invalid, in Kafka's words where Kafka has
    them, for options that do not name valid entities.
    """
    given = {kind: name for kind, name in short.items() if name is not None}
    if given and (types or names):
        raise Invalid("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    if given:
        # Names come before defaults, because kafka-configs reports the first entity as updated.
        types = sorted(given, key=lambda kind: given[kind] == DEFAULT_NAME)
        names = [given[kind] for kind in types]
    _must_be_types(types)
    if len(names) > len(types):
        raise Invalid("More entity names specified than entity types")
    found: dict[str, Name | Every] = dict.fromkeys(types, EVERY)
    for kind, name in zip(types, names, strict=False):
        if name == DEFAULT_NAME and not ENTITIES[kind].has_default:
            raise Invalid(
                f"--entity-default must not be specified with --describe of {kind}, or with --alter of {kind}"
            )
        found[kind] = DEFAULT if name == DEFAULT_NAME else _must_be_a_name(kind, name)
    return found


def _must_be_types(types: Sequence[str]) -> None:
    for kind in types:
        if kind not in ENTITIES:
            hint = f". Use --entity-type {kind}s" if f"{kind}s" in ENTITIES else ""
            one_of = f"the entity type must be one of {', '.join(ENTITIES)} {_CONNECTION}"
            raise Invalid(f"Invalid entity type {kind}, {one_of}{hint}")
    if not types:
        raise Invalid(
            f"At least one entity type must be specified: give --entity-type with one of {', '.join(ENTITIES)}, or a "
            "short form, for example --user NAME"
        )
    if len(set(types)) < len(types):
        twice = dict.fromkeys(kind for kind in types if types.count(kind) > 1)
        raise Invalid(f"Duplicate entity type(s) specified: {','.join(twice)}")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise Invalid(f"Only '{USERS}' and '{CLIENTS}' entity types may be specified together")


def must_be_in_zookeeper(entities: Named) -> None:
    """Raise Invalid for an entity type that has no configs in ZooKeeper."""
    for kind in entities:
        if not ENTITIES[kind].in_zookeeper:
            known = ", ".join(name for name, row in ENTITIES.items() if row.in_zookeeper)
            raise Invalid(
                f"Invalid entity type {kind}, the entity type must be one of {known} with a --zookeeper argument. "
                "Use --bootstrap-server"
            )


def must_be_described_together(entities: Named) -> None:
    """Raise Invalid for a type without a name if kafka-configs describes entities of this type only by name."""
    for kind, name in entities.items():
        if isinstance(name, Every) and not ENTITIES[kind].described_together:
            short = ENTITIES[kind].short
            raise Invalid(f"An entity name must be specified with --describe of {kind}: give --{short} NAME")


def must_be_named(entities: Named) -> None:
    """Raise Invalid for a type without a name or default, as kafka-configs does before `--alter`."""
    missing = [kind for kind, name in entities.items() if isinstance(name, Every)]
    if not missing:
        return
    kinds = ",".join(missing)
    if len(missing) < len(entities):
        raise Invalid(f"An entity name must be specified for every entity type; --entity-name is missing for {kinds}")
    if not ENTITIES[missing[0]].has_default:
        of_all = (
            ". To change all topics without a value of their own, set the matching config of the brokers with "
            "--broker-defaults"
        )
        instead = of_all if missing == [TOPICS] else ""
        short = ENTITIES[missing[0]].short
        raise Invalid(f"An entity name must be specified with --alter of {kinds}: give --{short} NAME{instead}")
    raise Invalid(
        "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips: "
        f"give --entity-name or, for all {' and '.join(missing)} without a value of their own, --entity-default"
    )


def _must_be_a_name(kind: str, name: str) -> str:
    if name == "":
        instead = ". Use --entity-default for the default entity" if ENTITIES[kind].has_default else ""
        raise Invalid(f"The entity name for {kind} is empty{instead}")
    if ENTITIES[kind].of_broker and not (name.isascii() and name.isdigit()):
        raise Invalid(f"The entity name for {kind} must be a valid integer broker id, but it is: {name}")
    if kind == IPS and not is_ip_or_host(name):
        raise Invalid(f"The entity name for ips must be a valid IP or resolvable host, but it is: {name}")
    return name


def entity_options(kind: str, name: Name | Every) -> list[str]:
    """Return the options of `configs` that select an entity, for example `--user` and `alice`, or only
    `--user-defaults`.
    """
    option = f"--{ENTITIES[kind].short}"
    return [f"{option}-defaults"] if name is DEFAULT else [option, str(name)]
