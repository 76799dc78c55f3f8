"""Replication throttles (KIP-73) in a document: settings of brokers and topics before and after it is applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from kquota.settings.change import ConfigChange
from kquota.settings.resource import Resource
from kquota.settings.throttled_lists import entries
from kquota.terms import DEFAULT, THROTTLE_LISTS

Throttles: TypeAlias = Mapping[Resource, Mapping[str, str]]
"""Rates as whole bytes per second, lists as Kafka stores them. An empty list throttles nothing and is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """The throttles of one broker or topic before and after a document is applied; never pruned."""

    entity: Resource
    before: Mapping[str, str]
    after: Mapping[str, str]
    pruned: Literal[False] = False

    def differing(self) -> Iterator[tuple[str, str | None, str | None]]:
        """(key, old, new) of each key that changes, sorted; None means not set. The order of a list is irrelevant."""
        for key in sorted({*self.before, *self.after}):
            old, new = self.before.get(key), self.after.get(key)
            if not _same(key, old, new):
                yield key, old, new

    @property
    def change(self) -> ConfigChange:
        """The keys to set and the keys to delete. Raises Invalid if nothing changes."""
        keys = list(self.differing())
        return ConfigChange(
            resource=self.entity,
            add={key: new for key, _, new in keys if new is not None},
            delete=tuple(key for key, _, new in keys if new is None),
        )


def order(resource: Resource) -> tuple[object, ...]:
    """The order of resources in a document, on which the hash of a difference depends: the default broker is first."""
    return (resource.kind, resource.name is not DEFAULT, resource.order)


def throttlings(wanted: Throttles, standing: Throttles) -> tuple[Throttling, ...]:
    """The changes that turn `standing` into `wanted`, for the resources in `wanted`."""
    every = (
        Throttling(entity=resource, before=standing.get(resource, {}), after=wanted[resource])
        for resource in sorted(wanted, key=order)
    )
    return tuple(throttling for throttling in every if any(throttling.differing()))


def _same(key: str, old: str | None, new: str | None) -> bool:
    if old is None or new is None or key not in THROTTLE_LISTS:
        return old == new
    return set(entries(old)) == set(entries(new))
