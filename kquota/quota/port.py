"""What this room needs of a cluster. `tests/quota/contract.py` defines it; the fake and the real stores pass it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from kquota.quota.change import QuotaChange
from kquota.quota.entity import Entity, Every, Filter, Name
from kquota.quota.limits import Limits
from kquota.quota.replacement import Replacement


class ClusterQuotas(Protocol):
    """The client quotas of one cluster."""

    def describe(self, wanted: Filter) -> Mapping[Entity, Limits]:
        """The entities that match and have limits; keys that are not client quotas are left out. May be stale."""
        ...

    def everything(self) -> Mapping[Entity, Limits]:
        """Every entity that has limits, in as few requests as the connection knows. May be stale."""
        ...

    def alter(self, changes: Sequence[QuotaChange]) -> None:
        """Make every change in force, whatever stood before, and touch nothing else; at most one change an entity.

        Raises Invalid for a name that this connection cannot carry (nothing written), Incomplete when some entities
        were changed and some were not, Unreachable when the answer was lost.
        """
        ...

    def must_carry(self, entities: Iterable[Entity]) -> None:
        """Raises Invalid for the first entity whose name this connection cannot carry. Contacts nothing."""
        ...

    def replace(self, batch: Sequence[Replacement]) -> Mapping[Entity, str]:
        """Make each replacement for itself, and touch no key that it does not change; returns why each undone one is.

        ZooKeeper makes one only if its `before` still stands at that moment; the Admin API has no such condition.
        Raises Unreachable when the answer was lost: whether this batch was made, wholly or in part, is not known then.
        """
        ...


Scram: TypeAlias = Mapping[str, Mapping[str, int | None]]
"""User to SCRAM mechanism (`SCRAM-SHA-256`) to its iterations, None where the connection keeps them to itself."""


class Principals(ClusterQuotas, Protocol):
    """What `kquota configs` asks besides: whom its users are known by, and which Kafka this is."""

    def users(self, name: Name | Every) -> tuple[Mapping[Entity, Limits], Scram]:
        """The users of this name, or every one: limits as `describe` tells them, and their SCRAM credentials."""
        ...

    def release(self) -> tuple[int, ...] | None:
        """The brokers' release, for example (3, 9), never newer than it is; None where it cannot be known."""
        ...
