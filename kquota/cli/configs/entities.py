"""Entities as kafka-configs names them: --entity-type with --entity-name or --entity-default, or the short forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from kquota.addresses import is_ip_or_host
from kquota.cli.configs.command import DEFAULT_NAME, KINDS
from kquota.errors import Invalid
from kquota.quota.entity import EVERY, Every, Name
from kquota.settings.resource import BROKERS, TOPICS
from kquota.terms import CLIENTS, DEFAULT, IPS, USERS

ELSEWHERE: Final = ("client-metrics", "groups", "broker-loggers")
"""Entity types of kafka-configs that have neither quotas nor throttles."""

Named: TypeAlias = Mapping[str, Name | Every]
"""Entity types with their names, in the order of the command line. A name is EVERY if only the type was given."""


def named(types: Sequence[str], names: Sequence[str], short: Mapping[str, str | None]) -> Named:
    """Return the entities that the options name. `short` has the values of the short forms by entity type.

    It resolves host names, but contacts no cluster. Raises Invalid, in Kafka's words where Kafka has them.
    """
    given = _in_kafkas_order({kind: name for kind, name in short.items() if name is not None})
    if given and (types or names):
        raise Invalid("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    if given:
        types, names = list(given), list(given.values())
    _must_be_types(types)
    if len(names) > len(types):
        raise Invalid("More entity names specified than entity types")
    found: dict[str, Name | Every] = dict.fromkeys(types, EVERY)
    for kind, name in zip(types, names, strict=False):
        if kind == TOPICS and name == DEFAULT_NAME:
            raise Invalid("--entity-default must not be specified with --describe or --alter of topics")
        found[kind] = DEFAULT if name == DEFAULT_NAME else _must_be_a_name(kind, name)
    return found


def _in_kafkas_order(given: Mapping[str, str]) -> dict[str, str]:
    """Sort names before defaults, because kafka-configs reports the first one as updated."""
    order = sorted(given, key=lambda kind: (given[kind] == DEFAULT_NAME, KINDS.index(kind)))
    return {kind: given[kind] for kind in order}


def _must_be_types(types: Sequence[str]) -> None:
    for kind in types:
        if kind in ELSEWHERE:
            raise Invalid(elsewhere(kind))
        if kind not in KINDS:
            hint = f". Use --entity-type {kind}s" if f"{kind}s" in KINDS else ""
            raise Invalid(f"Invalid entity type {kind}, the entity type must be one of {', '.join(KINDS)}{hint}")
    if not types:
        raise Invalid(f"At least one entity type must be specified: --entity-type with one of {', '.join(KINDS)}")
    if len(set(types)) < len(types):
        twice = dict.fromkeys(kind for kind in types if types.count(kind) > 1)
        raise Invalid(f"Duplicate entity type(s) specified: {','.join(twice)}")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise Invalid(f"Only '{USERS}' and '{CLIENTS}' entity types may be specified together")


def elsewhere(what: str) -> str:
    """Return why kquota does not support this entity type, and which tool does."""
    return f"{what}: not supported by kquota, which manages quotas and throttles. Use Kafka's kafka-configs"


def must_be_named(entities: Named) -> None:
    """Raise Invalid if a name is missing, as kafka-configs does before --alter."""
    missing = [kind for kind, name in entities.items() if isinstance(name, Every)]
    if not missing:
        return
    kinds = ",".join(missing)
    if len(missing) < len(entities):
        raise Invalid(f"An entity name must be specified for every entity type; --entity-name is missing for {kinds}")
    if missing == [TOPICS]:
        raise Invalid(
            "An entity name must be specified with --alter of topics: give --entity-name TOPIC. "
            "To change all topics, set the config on the brokers"
        )
    raise Invalid(
        "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips: "
        f"give --entity-name or, for all {kinds} without configs of their own, --entity-default"
    )


def _must_be_a_name(kind: str, name: str) -> str:
    if name == "":
        raise Invalid(f"--entity-name for {kind} is empty. Use --entity-default for the default entity")
    if kind == BROKERS and not (name.isascii() and name.isdigit()):
        raise Invalid(f"The entity name for brokers must be a valid integer broker id, but it is: {name}")
    if kind == IPS and not is_ip_or_host(name):
        raise Invalid(f"The entity name for ips must be a valid IP or resolvable host, but it is: {name}")
    return name
