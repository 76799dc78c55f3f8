"""The answers of `kquota configs` about quotas and resources, in the words of kafka-configs.

Over brokers, these are the words of Kafka 4.3.1. Over ZooKeeper, they are the words of Kafka 2.8.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

from kquota.cli.output import Answer, JsonObject, Row, hidden, key, named, spread
from kquota.cli.table import COLUMNS, columns
from kquota.quota.entity import Entity, Every, Name
from kquota.quota.limits import Limits, plain
from kquota.quota.port import Scram
from kquota.settings.resource import BROKERS, Entry, Resource
from kquota.terms import CLIENTS, DEFAULT, IPS, USERS, Default

Described: TypeAlias = Mapping[Resource, Sequence[Entry]]
HIDDEN: Final = "[hidden]"
"""The text that replaces a secret."""
_ADMIN: Final = {USERS: "user-principal", CLIENTS: "client-id", IPS: "ip"}
_ZOOKEEPER: Final = _ADMIN | {IPS: "ips"}


def name_of(resource: Resource) -> str | None:
    """Return the name of a resource, or None for the broker defaults."""
    return None if isinstance(resource.name, Default) else resource.name


def named_resource(resource: Resource) -> Mapping[str, str | int | None]:
    """Return the type and the name of a resource for JSON: a broker id as a number, the broker defaults as null."""
    name = name_of(resource)
    return {resource.kind[:-1].replace("-", "_"): int(name) if name is not None and resource.of_broker else name}


def _credentials(scram: Scram | None) -> JsonObject | None:
    """Return the JSON key `scram` with the credentials, or None if they were not requested. `iterations` is null if the
    connection does not report the number of iterations.
    """
    if scram is None:
        return None
    credentials = ((user, *one) for user, found in scram.items() for one in found.items())
    return {"scram": [{"user": u, "mechanism": m, "iterations": count} for u, m, count in credentials]}


def _entities(found: Mapping[Entity, Limits]) -> list[JsonObject]:
    return [{**named(entity), "quotas": limits} for entity, limits in found.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedQuotas(Answer):
    """The quotas and, if only users were requested, their SCRAM credentials."""

    HEADER = (*COLUMNS, "key", "value")
    INDENT = 2

    entities: Mapping[Entity, Limits] = key(form=_entities)
    scram: Scram | None = spread(_credentials)
    """The SCRAM credentials, or None if they were not requested."""
    over_zookeeper: bool = hidden()
    asked: Entity | None = hidden()
    """The entity that was requested by name. None after a request for several entities, and if values were
    unreadable.
    """

    def text(self) -> Iterator[str]:
        if self.over_zookeeper:
            # Kafka 2.8's tool shows an entity that was requested by name even if it has no quota.
            absent: Mapping[Entity, Limits] = {} if self.asked is None else {self.asked: {}}
            return zookeeper_lines(self.entities or absent, self.scram or {})
        return admin_lines(self.entities, self.scram or {})

    def rows(self) -> Iterator[Row]:
        for entity, limits in self.entities.items():
            of_entity = columns(entity)
            for name, value in limits.items():
                yield [*of_entity, name, plain(value)]
        for user, found in (self.scram or {}).items():
            for mechanism, iterations in found.items():
                shown = HIDDEN if iterations is None else f"iterations={iterations}"
                yield [*columns(Entity(user=user)), mechanism, shown]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredQuotas(Answer):
    """The entity whose quotas or SCRAM credentials were altered, and Kafka's sentence about the entity."""

    HEADER = COLUMNS

    altered: Entity
    sentence: str = hidden()

    def text(self) -> tuple[str, ...]:
        return (self.sentence,)

    def rows(self) -> Iterator[Row]:
        yield columns(self.altered)


def admin_lines(found: Mapping[Entity, Limits], scram: Scram) -> Iterator[str]:
    """Yield the lines of `--describe` over `--bootstrap-server`, with each limit as Java prints a double."""
    for entity, limits in found.items():
        pairs = ", ".join(f"{name}={java_double(value)}" for name, value in limits.items())
        yield f"Quota configs for {entity_words(entity, _ADMIN, 'the default')} are {pairs}"
    for user, credentials in scram.items():
        pairs = ", ".join(f"{mechanism}=iterations={count}" for mechanism, count in credentials.items())
        yield f"SCRAM credential configs for user-principal '{user}' are {pairs}"


def zookeeper_lines(found: Mapping[Entity, Limits], scram: Scram) -> Iterator[str]:
    """Yield the lines of `--describe` over `--zookeeper`, one for each entity, in display order.

    Unlike Kafka's tool, kquota never prints SCRAM salts and keys.
    """
    credentials = {Entity(user=user): mechanisms for user, mechanisms in scram.items()}
    for entity in sorted({*found, *credentials}, key=Entity.order):
        pairs = [f"{mechanism}={HIDDEN}" for mechanism in credentials.get(entity, ())]
        pairs += [f"{name}={plain(value)}" for name, value in found.get(entity, {}).items()]
        yield f"Configs for {entity_words(entity)} are {','.join(pairs)}"


def entity_words(entity: Entity, kinds: Mapping[str, str] = _ZOOKEEPER, default: str = "default") -> str:
    """Return an entity in the words of Kafka's tool. `kinds` has the word for each entity type, and `default` is the
    word for a default entity. Without them, the words are those of Kafka 2.8 for ZooKeeper.
    """
    return ", ".join(
        f"{default} {kinds[kind]}" if name is DEFAULT else f"{kinds[kind]} '{name}'" for kind, name in entity.parts()
    )


def java_double(value: float) -> str:
    """Format a number like Java's Double.toString. A finite number has a decimal point. It has an exponent if its
    absolute value is at least 10^7, or less than 10^-3 but not 0.

    >>> java_double(1024.0), java_double(10_000_000.0), java_double(12.5), java_double(math.inf)
    ('1024.0', '1.0E7', '12.5', 'Infinity')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _resources(found: Described) -> list[JsonObject]:
    return [{**named_resource(resource), "configs": list(map(_config, entries))} for resource, entries in found.items()]


def _config(entry: Entry) -> JsonObject:
    secret = entry.sensitive
    return {
        "key": entry.key,
        "value": None if secret else entry.value,
        "source": entry.source,
        "sensitive": secret,
        "synonyms": [{"source": s.source, "key": s.key, "value": None if secret else s.value} for s in entry.synonyms],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConfigs(Answer):
    """The configs of the resources that the operator selected."""

    HEADER = ("type", "name", "key", "value", "source", "sensitive")
    INDENT = 2

    resources: Described = key(form=_resources)
    absent: Resource | None = hidden()
    """The requested resource if it does not exist or, except over ZooKeeper, is a dead broker. Otherwise None."""
    everything: bool = hidden()
    """True if static and default configs are included."""
    over_zookeeper: bool = hidden()

    def text(self) -> Iterator[str]:
        for resource, entries in self.resources.items():
            if self.over_zookeeper:
                yield _configs_over_zookeeper(resource, entries)
            else:
                yield from _configs_over_brokers(resource, entries, "All" if self.everything else "Dynamic")
        if self.absent is not None and self.absent not in self.resources:
            yield absence(self.absent)

    def rows(self) -> Iterator[Row]:
        for resource, entries in self.resources.items():
            for entry in entries:
                value = None if entry.sensitive else entry.value
                sensitive = _java(entry.sensitive)
                yield [resource.kind[:-1], name_of(resource), entry.key, value, entry.source, sensitive]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredConfigs(Answer):
    """The resource whose configs were altered."""

    HEADER = ("type", "name")

    altered: Resource = key(form=named_resource)
    over_zookeeper: bool = hidden()

    def text(self) -> tuple[str, ...]:
        resource = self.altered
        return (completed(resource.kind, resource.name, _resource_words(resource) if self.over_zookeeper else None),)

    def rows(self) -> Iterator[Row]:
        yield [self.altered.kind[:-1], name_of(self.altered)]


def completed(kind: str, name: Name | Every, words: str | None) -> str:
    """Return Kafka's sentence about an altered entity. `words` names the entity over ZooKeeper, and is None
    otherwise.
    """
    if words is not None:
        return f"Completed updating config for entity: {words}."
    if name is DEFAULT:
        return f"Completed updating default config for {kind} in the cluster."
    return f"Completed updating config for {kind[:-1]} {name}."


def absence(resource: Resource) -> str:
    """Return Kafka's sentence for a missing resource or a dead broker."""
    return f"The {resource.kind[:-1]} '{resource.name}' doesn't exist and doesn't have dynamic config."


def shown_value(entry: Entry) -> str:
    """Return the value as Java prints it. A secret becomes `HIDDEN`, unless it is empty or None."""
    return _java(HIDDEN if entry.sensitive and entry.value else entry.value)


def _configs_over_brokers(resource: Resource, entries: Sequence[Entry], which: str) -> Iterator[str]:
    """Yield the lines of `--describe` over brokers or controllers, as Kafka 4.3.1 prints them."""
    if resource.name is DEFAULT:
        yield f"Default configs for {resource.kind} in the cluster are:"
    else:
        yield f"{which} configs for {resource.kind[:-1]} {resource.name} are:"
    for entry in entries:
        synonyms = ", ".join(
            f"{s.source}:{s.key}={_java(HIDDEN if entry.sensitive and s.value else s.value)}" for s in entry.synonyms
        )
        yield (f"  {entry.key}={shown_value(entry)} sensitive={_java(entry.sensitive)} synonyms={{{synonyms}}}")


def _configs_over_zookeeper(resource: Resource, entries: Sequence[Entry]) -> str:
    """Return the line of `--describe` over `--zookeeper`, as Kafka 2.8 prints it, but without passwords."""
    pairs = ",".join(f"{entry.key}={HIDDEN if entry.sensitive else entry.value}" for entry in entries)
    return f"Configs for {_resource_words(resource)} are {pairs}"


def _resource_words(resource: Resource) -> str:
    """Return a topic or broker in the words of Kafka 2.8's tool for ZooKeeper."""
    kind = "brokers" if resource.kind == BROKERS else "topic"
    return f"default {kind}" if resource.name is DEFAULT else f"{kind} '{resource.name}'"


def _java(value: str | bool | None) -> str:
    """Format a value as Java prints it. Brokers report null for a secret, and Kafka's tool prints this null."""
    if value is None:
        return "null"
    return value if isinstance(value, str) else str(value).lower()


def _named(entity: Entity | Resource) -> Mapping[str, str | int | None]:
    return named_resource(entity) if isinstance(entity, Resource) else named(entity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritten(Answer):
    """The values that a write would set (None for a secret), and the keys that it would delete."""

    HEADER = ("entity", "operation", "key", "value")

    closing_notes: tuple[str, ...] = hidden(default=("nothing was written",))
    dry_run: bool = True
    altered: Entity | Resource = key(form=_named)
    added: Mapping[str, str | float | None] = key("set")
    deleted: tuple[str, ...] = key("delete")

    def text(self) -> Iterator[str]:
        sent = [f"set {name}={_sent(value)}" for name, value in self.added.items()]
        sent += [f"delete {name}" for name in self.deleted]
        yield f"{self.altered}: {'; '.join(sent)}"

    def rows(self) -> Iterator[Row]:
        for name, value in self.added.items():
            yield [str(self.altered), "set", name, _sent(value)]
        for name in self.deleted:
            yield [str(self.altered), "delete", name, None]


def _sent(value: str | float | None) -> str:
    if value is None:
        return HIDDEN
    return value if isinstance(value, str) else plain(value)
