"""A topic, a broker or the default of all brokers, and one config entry of it, with the source that it comes from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from kquota.errors import Invalid
from kquota.terms import DEFAULT, HIGHEST_ID, Default, wrong_topic_name

Kind: TypeAlias = Literal["topics", "brokers"]
TOPICS: Final = "topics"
BROKERS: Final = "brokers"

_BROKER: Final = re.compile(r"0|[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """What has dynamic configs: a topic by name, a broker by id in decimal, or DEFAULT of all brokers (KIP-226).

    Raises Invalid for a name that no topic or broker can have.
    """

    kind: Kind
    name: str | Default

    def __post_init__(self) -> None:
        if isinstance(self.name, Default):
            if self.kind == TOPICS:
                raise Invalid("topics have no default entity: what a topic does not set itself is set on the brokers")
        elif self.kind == BROKERS:
            if not _BROKER.fullmatch(self.name) or int(self.name) > HIGHEST_ID:
                raise Invalid(f"The entity name for brokers must be a valid integer broker id, found: {self.name}")
        elif why := wrong_topic_name(self.name):
            raise Invalid(f"{self.name!r} {why}")

    @property
    def order(self) -> tuple[str, bool, int, str]:
        """The one order in which resources are shown: topics by name, brokers by id, their default last."""
        number = int(self.name) if self.kind == BROKERS and self.name is not DEFAULT else 0
        return (self.kind, self.name is DEFAULT, number, str(self.name))

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
