"""The answers of `kquota configs` about quotas, in the words of kafka-configs.

Over brokers, these are the words of Kafka 4.3.1. Over ZooKeeper, they are the words of Kafka 2.8.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from kquota.cli.output import Answer, JsonObject, Row, hidden, key, named, spread
from kquota.cli.table import COLUMNS, columns
from kquota.quota.entity import Entity
from kquota.quota.limits import Limits, plain
from kquota.quota.port import Scram
from kquota.settings.resource import Resource
from kquota.terms import CLIENTS, DEFAULT, IPS, USERS, Default

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
    """Return the SCRAM credentials. `iterations` is null if the connection does not report the number of iterations."""
    if scram is None:
        return None
    credentials = ((user, *one) for user, found in scram.items() for one in found.items())
    return {"scram": [{"user": u, "mechanism": m, "iterations": count} for u, m, count in credentials]}


def _entities(found: Mapping[Entity, Limits]) -> list[JsonObject]:
    return [{**named(entity), "quotas": limits} for entity, limits in found.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedQuotas(Answer):
    """The quotas and, if only users were requested, their SCRAM credentials. Otherwise, `scram` is None.

    `asked` is the entity that was requested by name. It is None after a request for several entities, and if values
    were unreadable.
    """

    HEADER = (*COLUMNS, "key", "value")
    INDENT = 2

    entities: Mapping[Entity, Limits] = key(form=_entities)
    scram: Scram | None = spread(_credentials)
    over_zookeeper: bool = hidden()
    asked: Entity | None = hidden()

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
    """Yield the lines of --describe over --bootstrap-server, with each limit as Java prints a double."""
    for entity, limits in found.items():
        pairs = ", ".join(f"{name}={java_double(value)}" for name, value in limits.items())
        yield f"Quota configs for {_admin_words(entity)} are {pairs}"
    for user, credentials in scram.items():
        pairs = ", ".join(f"{mechanism}=iterations={count}" for mechanism, count in credentials.items())
        yield f"SCRAM credential configs for user-principal '{user}' are {pairs}"


def zookeeper_lines(found: Mapping[Entity, Limits], scram: Scram) -> Iterator[str]:
    """Yield the lines of --describe over --zookeeper. Unlike Kafka's tool, kquota never prints SCRAM salts and keys."""
    credentials = {Entity(user=user): mechanisms for user, mechanisms in scram.items()}
    for entity in sorted({*found, *credentials}, key=Entity.order):
        pairs = [f"{mechanism}={HIDDEN}" for mechanism in credentials.get(entity, ())]
        pairs += [f"{name}={plain(value)}" for name, value in found.get(entity, {}).items()]
        yield f"Configs for {entity_words(entity)} are {','.join(pairs)}"


def _admin_words(entity: Entity) -> str:
    return ", ".join(
        f"the default {_ADMIN[kind]}" if name is DEFAULT else f"{_ADMIN[kind]} '{name}'"
        for kind, name in entity.parts()
    )


def entity_words(entity: Entity) -> str:
    """Return an entity in the words of Kafka 2.8's tool for ZooKeeper."""
    return ", ".join(
        f"default {_ZOOKEEPER[kind]}" if name is DEFAULT else f"{_ZOOKEEPER[kind]} '{name}'"
        for kind, name in entity.parts()
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
