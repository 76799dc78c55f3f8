"""The table of entity types that `kquota configs` knows, in Kafka's order. Each type is one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from kquota.terms import CLIENTS, DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, DYNAMIC_TOPIC, IPS, USERS

ResourceKind: TypeAlias = Literal["topics", "brokers", "client-metrics", "groups", "broker-loggers"]
"""The types of resources: entities with configs that are not quotas."""
TOPICS: Final = "topics"
BROKERS: Final = "brokers"
CLIENT_METRICS: Final = "client-metrics"
GROUPS: Final = "groups"
BROKER_LOGGERS: Final = "broker-loggers"


class ValueSource(NamedTuple):
    """A source of a value (KIP-226): its code in Kafka's protocol, and its name in Kafka."""

    code: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WireType:
    """A type of resource in Kafka's protocol: its code, and the source of the values that are set on the resource.

    `default_source` is the source of values that are set on the default entity, or None without a default entity.
    """

    code: int
    source: ValueSource
    default_source: ValueSource | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityType:
    """One row: the rules for a type."""

    short: str
    """The name of the short option, without dashes."""
    what: str
    """The value of the short option, as the help describes it."""
    wire: WireType | None = None
    """None for the types of client quotas, which are not resources."""
    has_default: bool = False
    """True if there is a default entity."""
    of_broker: bool = False
    """True if a name is a broker id. Through brokers, only the named broker reports and changes these configs."""
    described_together: bool = True
    """False if the operator must name the entity to describe."""
    since: tuple[int, ...] = ()
    """The first release that has the type, for example (3, 7). Empty if all supported releases have the type."""
    in_zookeeper: bool = False
    """True if the type is available over ZooKeeper."""


ENTITIES: Final[Mapping[str, EntityType]] = {
    TOPICS: EntityType(
        short="topic",
        what="a topic's name",
        wire=WireType(code=2, source=ValueSource(1, DYNAMIC_TOPIC)),
        in_zookeeper=True,
    ),
    CLIENTS: EntityType(short="client", what="a client-id", has_default=True, in_zookeeper=True),
    USERS: EntityType(short="user", what="a principal's name", has_default=True, in_zookeeper=True),
    BROKERS: EntityType(
        short="broker",
        what="a broker's id",
        wire=WireType(
            code=4,
            source=ValueSource(2, DYNAMIC_BROKER),
            default_source=ValueSource(3, DYNAMIC_DEFAULT_BROKER),
        ),
        has_default=True,
        of_broker=True,
        in_zookeeper=True,
    ),
    IPS: EntityType(short="ip", what="an address or host", has_default=True, in_zookeeper=True),
    CLIENT_METRICS: EntityType(
        short="client-metrics",
        what="a subscription's name",
        wire=WireType(code=16, source=ValueSource(7, "DYNAMIC_CLIENT_METRICS_CONFIG")),
        since=(3, 7),
    ),
    GROUPS: EntityType(
        short="group",
        what="a group's id",
        wire=WireType(code=32, source=ValueSource(8, "DYNAMIC_GROUP_CONFIG")),
        since=(4, 0),
    ),
    BROKER_LOGGERS: EntityType(
        short="broker-logger",
        what="a broker's id",
        wire=WireType(code=8, source=ValueSource(6, "DYNAMIC_BROKER_LOGGER_CONFIG")),
        of_broker=True,
        described_together=False,
        since=(2, 4),
    ),
}

RESOURCES: Final[tuple[ResourceKind, ...]] = (TOPICS, BROKERS, CLIENT_METRICS, GROUPS, BROKER_LOGGERS)
"""All values of `ResourceKind`, in the order of `ENTITIES`."""
