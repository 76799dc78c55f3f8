"""The order of reads and writes for client quotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kquota.errors import Unknown
from kquota.quota.change import Change
from kquota.quota.entity import Entity, Filter
from kquota.quota.limits import Limits
from kquota.quota.port import Quotas


def describe(quotas: Quotas, wanted: Filter) -> dict[Entity, Limits]:
    """Matching entities in the one order, each with its keys sorted."""
    found = quotas.describe(wanted)
    return {entity: dict(sorted(found[entity].items())) for entity in sorted(found, key=Entity.order) if found[entity]}


def alter(quotas: Quotas, change: Change, attempts: Iterator[object]) -> tuple[str, ...]:
    """Write `change`, then read until it is seen: on KRaft a read right after a write is often stale.

    Each item of `attempts` allows one more read. Returns the keys of `--delete-config` that were not set before. Raises
    Unknown if the change was sent and never seen.
    """
    wanted = Filter.of(change.entity)
    before = _limits(quotas, wanted, change.entity) if change.delete else {}
    quotas.alter([change])
    for _ in attempts:
        if change.seen(_limits(quotas, wanted, change.entity)):
            return tuple(key for key in change.delete if key not in before)
    raise Unknown(f"{change.entity}: the change was sent and accepted, but not seen yet; look with --describe")


def _limits(quotas: Quotas, wanted: Filter, entity: Entity) -> Limits:
    found: Mapping[Entity, Limits] = quotas.describe(wanted)
    return found.get(entity, {})
