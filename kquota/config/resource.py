"""A topic, a broker or the default of all brokers, and one config entry of it, with the source that it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from kquota.terms import DEFAULT, Default

Kind: TypeAlias = Literal["topics", "brokers"]
TOPICS: Final = "topics"
BROKERS: Final = "brokers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """What has dynamic configs: a topic by name, a broker by id in decimal, or DEFAULT of all brokers (KIP-226)."""

    kind: Kind
    name: str | Default

    def __str__(self) -> str:
        return f"default {self.kind[:-1]}" if self.name is DEFAULT else f"{self.kind[:-1]} {self.name!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Synonym:
    """One value that stands behind an entry, in Kafka's words for where it was set: `DEFAULT_CONFIG`, …"""

    source: str
    key: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One config of a resource as it is in force. `value` None: the broker does not tell it, as with passwords.

    `source` is Kafka's word (`DYNAMIC_TOPIC_CONFIG`, `STATIC_BROKER_CONFIG`, …); `dynamic` says that it was set on this
    very resource. `synonyms` begins with the value in force.
    """

    key: str
    value: str | None
    source: str
    dynamic: bool
    sensitive: bool = False
    synonyms: tuple[Synonym, ...] = ()
