"""Resources and settings: a topic, a broker, a group or another resource, its keys, and their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from kquota.entity_types import BROKERS as BROKERS
from kquota.entity_types import ENTITIES
from kquota.entity_types import TOPICS as TOPICS
from kquota.entity_types import ResourceKind as ResourceKind
from kquota.errors import Invalid
from kquota.terms import (
    DEFAULT,
    LONGEST_VALUE,
    THROTTLE_LISTS,
    THROTTLE_RATES,
    BrokerId,
    Default,
    is_id,
    wrong_topic_name,
)

THROTTLE_KEYS: Final[Mapping[ResourceKind, tuple[str, ...]]] = {BROKERS: THROTTLE_RATES, TOPICS: THROTTLE_LISTS}
"""The throttle keys that each kind of resource can have (KIP-73, KIP-113)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource with dynamic configs: a topic, a broker, the broker default (KIP-226), a group (KIP-848), a
    subscription to client metrics (KIP-714), or the loggers of a broker (KIP-412).

    Raises Invalid for a name that no resource of this kind can have, and for `DEFAULT` if the kind has no default.
    """

    kind: ResourceKind
    name: str | Default
    """The decimal broker id for a broker or its loggers. `DEFAULT` means all brokers."""

    def __post_init__(self) -> None:
        if isinstance(self.name, Default):
            if not ENTITIES[self.kind].has_default:
                instead = ". Set topic defaults on the brokers" if self.kind == TOPICS else ""
                raise Invalid(f"{self.kind} have no default entity{instead}")
        elif self.of_broker:
            if not is_id(self.name) or self.name != str(int(self.name)):
                raise Invalid(f"The entity name for {self.kind} must be a valid integer broker id, found: {self.name}")
        elif self.kind == TOPICS:
            if why := wrong_topic_name(self.name):
                raise Invalid(f"{self.name!r} {why}")
        elif not self.name:
            raise Invalid(f"{self.kind}: the name must not be empty")
        else:
            must_fit(self.kind, self.name)

    @property
    def of_broker(self) -> bool:
        """True if the resource belongs to one broker. No other broker can show or change its configs."""
        return ENTITIES[self.kind].of_broker and self.name is not DEFAULT

    @property
    def broker(self) -> BrokerId:
        """The id of the broker to which the resource belongs. Raises ValueError if the name is not a broker id."""
        return BrokerId(int(str(self.name)))

    @property
    def order(self) -> tuple[str, bool, int, str]:
        """The sort key for display: by kind, then brokers by id and other resources by name. The default is last."""
        return (self.kind, self.name is DEFAULT, self.broker if self.of_broker else 0, str(self.name))

    def parts(self) -> Iterator[tuple[str, str | Default]]:
        """Yield one pair, (kind, name). A quota entity yields its parts in the same form."""
        yield self.kind, self.name

    def __str__(self) -> str:
        return f"default {self.kind[:-1]}" if self.name is DEFAULT else f"{self.kind[:-1]} {self.name!r}"


@dataclass(frozen=True, slots=True)
class Setting:
    """One config key of one topic, of one broker, or of all brokers (the broker default).

    Settings, including broker ids, are sorted as text, because ids of runs and files on disk depend on this order.
    """

    resource: Resource
    key: str

    @classmethod
    def of_topic(cls, topic: str, key: str) -> Setting:
        """Return the config `key` of a topic. Raises Invalid for a name that no topic can have."""
        return cls(Resource(kind=TOPICS, name=topic), key)

    @classmethod
    def of_broker(cls, broker: BrokerId, key: str) -> Setting:
        """Return the dynamic config `key` of one broker. Raises Invalid for an id that no broker can have."""
        return cls(Resource(kind=BROKERS, name=str(broker)), key)

    @property
    def kind(self) -> Literal["broker", "topic"]:
        """The kind of the resource in the singular, as in JSON."""
        return "topic" if self.resource.kind == TOPICS else "broker"

    @property
    def name(self) -> str:
        """The topic, the broker id in decimal, or `default` for all brokers."""
        name = self.resource.name
        return name.value if isinstance(name, Default) else name

    @property
    def broker(self) -> BrokerId:
        """The id of the broker whose config this is. Raises ValueError if the name is not a broker id."""
        return self.resource.broker

    @property
    def is_list(self) -> bool:
        """True if the value is a throttled replica list (KIP-73)."""
        return self.key in THROTTLE_LISTS

    def __lt__(self, other: Setting) -> bool:
        return (self.kind, self.name, self.key) < (other.kind, other.name, other.key)

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Synonym:
    """The value that one source has for an entry."""

    source: str
    """Kafka's name for the source, for example `DEFAULT_CONFIG`."""
    key: str
    """The key at this source, which can differ from the key of the entry."""
    value: str | None
    """None if the broker does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One config in force on a resource."""

    key: str
    value: str | None
    """None if the broker does not report it, for example for a password."""
    source: str
    """Kafka's name for the source, for example `DYNAMIC_TOPIC_CONFIG`."""
    dynamic: bool
    """True if the config was set on this resource itself."""
    sensitive: bool = False
    """True if the value may be secret: a password, or a config that the cluster or kquota treats like one."""
    synonyms: tuple[Synonym, ...] = ()
    """The values of all sources, beginning with the value in force. Empty if the cluster reports none."""


def must_fit(kind: str, name: str) -> None:
    """Raise Invalid for a name that is not valid UTF-8, and for a name that is too long for Kafka's protocol, because a
    broker would close the connection.
    """
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise Invalid(f"{kind}: the name {name!r} is not valid UTF-8. Check the shell's locale") from None
    if size > LONGEST_VALUE:
        raise Invalid(f"{kind}: the name {name[:20]!r}… is {size:,} bytes long (longest allowed: {LONGEST_VALUE:,})")
