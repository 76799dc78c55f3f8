"""The answers of `kquota configs` in Kafka's words: kafka-configs 4.3.1 for brokers, 2.8.2 for ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kquota.cli.output import Answer, Part, Row, hidden, key, spread
from kquota.cli.table import COLUMNS, columns
from kquota.quota.entity import Entity
from kquota.quota.limits import Limits, plain
from kquota.quota.port import Scram
from kquota.settings.resource import BROKERS, Entry, Resource
from kquota.terms import CLIENTS, DEFAULT, IPS, USERS, Default

Configs: TypeAlias = Mapping[Resource, Sequence[Entry]]

_HIDDEN: Final = "[hidden]"
_ADMIN: Final = {USERS: "user-principal", CLIENTS: "client-id", IPS: "ip"}
_ZOOKEEPER: Final = _ADMIN | {IPS: "ips"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityQuotas(Part):
    """An entity and its limits."""

    entity: Entity = spread()
    quotas: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential(Part):
    """A SCRAM credential. `iterations` is None if the connection does not report it."""

    user: str
    mechanism: str
    iterations: int | None


def _credentials(scram: Scram | None) -> Mapping[str, list[Credential]] | None:
    if scram is None:
        return None
    credentials = ((user, *one) for user, found in scram.items() for one in found.items())
    return {"scram": [Credential(user=u, mechanism=m, iterations=count) for u, m, count in credentials]}


def _entities(found: Mapping[Entity, Limits]) -> list[EntityQuotas]:
    return [EntityQuotas(entity=entity, quotas=limits) for entity, limits in found.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedQuotas(Answer):
    """Quotas, and SCRAM credentials if users were requested. `named` is the entity that was requested by name."""

    HEADER = (*COLUMNS, "key", "value")
    INDENT = 2

    entities: Mapping[Entity, Limits] = key(form=_entities)
    scram: Scram | None = spread(_credentials)
    over_zookeeper: bool = hidden()
    named: Entity | None = hidden()

    def text(self) -> Iterator[str]:
        if self.over_zookeeper:
            # Kafka 2.8's tool shows an entity that was requested by name even if it has no quota.
            absent: Mapping[Entity, Limits] = {} if self.named is None else {self.named: {}}
            return zookeeper_lines(self.entities or absent, self.scram or {})
        return admin_lines(self.entities, self.scram or {})

    def rows(self) -> Iterator[Row]:
        for entity, limits in self.entities.items():
            of_entity = columns(entity)
            for name, value in limits.items():
                yield [*of_entity, name, plain(value)]
        for user, found in (self.scram or {}).items():
            for mechanism, iterations in found.items():
                shown = _HIDDEN if iterations is None else f"iterations={iterations}"
                yield [*columns(Entity(user=user)), mechanism, shown]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredQuotas(Answer):
    """The entity whose quotas were altered, and Kafka's sentence about it."""

    HEADER = COLUMNS

    altered: Entity
    sentence: str = hidden()

    def text(self) -> tuple[str, ...]:
        return (self.sentence,)

    def rows(self) -> Iterator[Row]:
        yield columns(self.altered)


def admin_lines(found: Mapping[Entity, Limits], scram: Scram) -> Iterator[str]:
    """--describe on --bootstrap-server, with values as Java prints doubles."""
    for entity, limits in found.items():
        pairs = ", ".join(f"{name}={java_double(value)}" for name, value in limits.items())
        yield f"Quota configs for {_admin_words(entity)} are {pairs}"
    for user, credentials in scram.items():
        pairs = ", ".join(f"{mechanism}=iterations={count}" for mechanism, count in credentials.items())
        yield f"SCRAM credential configs for user-principal '{user}' are {pairs}"


def zookeeper_lines(found: Mapping[Entity, Limits], scram: Scram) -> Iterator[str]:
    """--describe on --zookeeper. Kafka prints SCRAM's salt and keys there; kquota does not."""
    credentials = {Entity(user=user): mechanisms for user, mechanisms in scram.items()}
    for entity in sorted({*found, *credentials}, key=Entity.order):
        pairs = [f"{mechanism}={_HIDDEN}" for mechanism in credentials.get(entity, ())]
        pairs += [f"{name}={plain(value)}" for name, value in found.get(entity, {}).items()]
        yield f"Configs for {entity_words(entity)} are {','.join(pairs)}"


def _admin_words(entity: Entity) -> str:
    return ", ".join(
        f"the default {_ADMIN[kind]}" if name is DEFAULT else f"{_ADMIN[kind]} '{name}'"
        for kind, name in entity.parts()
    )


def entity_words(entity: Entity) -> str:
    """An entity in the words of Kafka 2.8's tool for ZooKeeper."""
    return ", ".join(
        f"default {_ZOOKEEPER[kind]}" if name is DEFAULT else f"{_ZOOKEEPER[kind]} '{name}'"
        for kind, name in entity.parts()
    )


def java_double(value: float) -> str:
    """Java's Double.toString: always with a point, with an exponent from 10^7 and below 10^-3.

    >>> java_double(1024.0), java_double(10_000_000.0), java_double(12.5)
    ('1024.0', '1.0E7', '12.5')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits = mantissa.removesuffix(".0").lstrip("-")
        sign = "-" if value < 0 else ""
        whole, _, part = digits.partition(".")
        return f"{sign}{whole[0]}.{(whole[1:] + part).rstrip('0') or '0'}E{len(whole) - 1}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _name(resource: Resource) -> str | None:
    return None if isinstance(resource.name, Default) else resource.name


def _named(resource: Resource) -> Mapping[str, str | int | None]:
    """For JSON, where the id of a broker is a number, and null means the default of all brokers."""
    name = _name(resource)
    return {resource.kind[:-1]: int(name) if name is not None and resource.kind == BROKERS else name}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym(Part):
    """A possible value of a config; None if it is secret or not set."""

    source: str
    key: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Part):
    """A config. The `value` of a `sensitive` one is None."""

    key: str
    value: str | None
    source: str
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceConfigs(Part):
    """A topic, a broker or the default of all brokers, with its configs."""

    resource: Resource = spread(_named)
    configs: tuple[Config, ...]


def _resources(found: Configs) -> list[ResourceConfigs]:
    return [
        ResourceConfigs(resource=resource, configs=tuple(map(_config, entries))) for resource, entries in found.items()
    ]


def _config(entry: Entry) -> Config:
    synonyms = (
        ConfigSynonym(source=s.source, key=s.key, value=None if entry.sensitive else s.value) for s in entry.synonyms
    )
    return Config(
        key=entry.key,
        value=None if entry.sensitive else entry.value,
        source=entry.source,
        sensitive=entry.sensitive,
        synonyms=tuple(synonyms),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConfigs(Answer):
    """Configs of topics or brokers; `everything` includes static ones. `absent` was requested but does not exist."""

    HEADER = ("type", "name", "key", "value", "source", "sensitive")
    INDENT = 2

    resources: Configs = key(form=_resources)
    absent: Resource | None = hidden()
    everything: bool = hidden()
    over_zookeeper: bool = hidden()

    def text(self) -> Iterator[str]:
        for resource, entries in self.resources.items():
            if self.over_zookeeper:
                yield _zookeeper_line(resource, entries)
            else:
                yield from _admin_lines(resource, entries, "All" if self.everything else "Dynamic")
        if self.absent is not None and self.absent not in self.resources:
            yield absence(self.absent)

    def rows(self) -> Iterator[Row]:
        for resource, entries in self.resources.items():
            for entry in entries:
                value = None if entry.sensitive else entry.value
                sensitive = _java(entry.sensitive)
                yield [resource.kind[:-1], _name(resource), entry.key, value, entry.source, sensitive]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredConfigs(Answer):
    """The topic or broker whose configs were altered."""

    HEADER = ("type", "name")

    altered: Resource = key(form=_named)
    over_zookeeper: bool = hidden()

    def text(self) -> Iterator[str]:
        resource = self.altered
        if self.over_zookeeper:
            yield f"Completed updating config for entity: {_resource_words(resource)}."
        elif resource.name is DEFAULT:
            yield f"Completed updating default config for {resource.kind} in the cluster."
        else:
            yield f"Completed updating config for {resource.kind[:-1]} {resource.name}."

    def rows(self) -> Iterator[Row]:
        yield [self.altered.kind[:-1], _name(self.altered)]


def absence(resource: Resource) -> str:
    """Kafka's sentence for a topic that does not exist and for a broker that is not alive."""
    return f"The {resource.kind[:-1]} '{resource.name}' doesn't exist and doesn't have dynamic config."


def shown_value(entry: Entry) -> str:
    """The value as Java prints it, or a placeholder for a secret."""
    return _java(_HIDDEN if entry.sensitive and entry.value else entry.value)


def _admin_lines(resource: Resource, entries: Sequence[Entry], which: str) -> Iterator[str]:
    """kafka-configs' --describe on --bootstrap-server, as Kafka 4.3.1 prints it."""
    if resource.name is DEFAULT:
        yield f"Default configs for {resource.kind} in the cluster are:"
    else:
        yield f"{which} configs for {resource.kind[:-1]} {resource.name} are:"
    for entry in entries:
        synonyms = ", ".join(
            f"{s.source}:{s.key}={_java(_HIDDEN if entry.sensitive and s.value else s.value)}" for s in entry.synonyms
        )
        yield (f"  {entry.key}={shown_value(entry)} sensitive={_java(entry.sensitive)} synonyms={{{synonyms}}}")


def _zookeeper_line(resource: Resource, entries: Sequence[Entry]) -> str:
    """kafka-configs' --describe on --zookeeper, as Kafka 2.8 prints it, without passwords."""
    pairs = ",".join(f"{entry.key}={_HIDDEN if entry.sensitive else entry.value}" for entry in entries)
    return f"Configs for {_resource_words(resource)} are {pairs}"


def _resource_words(resource: Resource) -> str:
    """A topic or broker in the words of Kafka 2.8's tool for ZooKeeper."""
    kind = "brokers" if resource.kind == BROKERS else "topic"
    return f"default {kind}" if resource.name is DEFAULT else f"{kind} '{resource.name}'"


def _java(value: str | bool | None) -> str:
    """A value as Java prints it. A broker does not report secrets, and its null is shown as in Kafka's tool."""
    if value is None:
        return "null"
    return value if isinstance(value, str) else str(value).lower()
