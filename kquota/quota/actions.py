"""The order of reads and writes for client quotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kquota.errors import Refused, Unseen
from kquota.quota.change import QuotaChange
from kquota.quota.entity import Entity, Every, Filter, Name
from kquota.quota.limits import Limits, dotted
from kquota.quota.port import ClusterQuotas, Principals, Scram
from kquota.quota_keys import QUOTA_KEYS


def describe(quotas: ClusterQuotas, wanted: Filter) -> dict[Entity, Limits]:
    """Matching entities in display order, each with its keys sorted."""
    return _in_order(quotas.describe(wanted))


def describe_users(principals: Principals, name: Name | Every) -> tuple[dict[Entity, Limits], Scram]:
    """Users and their SCRAM credentials, both in display order."""
    found, scram = principals.users(name)
    return _in_order(found), {user: dict(sorted(scram[user].items())) for user in sorted(scram)}


def must_take_effect(principals: Principals, change: QuotaChange) -> tuple[str, ...]:
    """Warnings about keys that the brokers may be too old for.

    Raises Refused if the brokers are known to be too old.
    """
    new = [key for key in change.add if QUOTA_KEYS[key].since]
    if not new:
        return ()
    release = principals.release()
    if release is None:
        since = ", ".join(f"{key} from Kafka {dotted(QUOTA_KEYS[key].since)}" for key in new)
        return (
            f"this connection does not report the brokers' release. Brokers enforce {since} on and ignore it before",
        )
    if ignored := [key for key in new if release < QUOTA_KEYS[key].since]:
        since = ", ".join(f"{key} needs Kafka {dotted(QUOTA_KEYS[key].since)}" for key in ignored)
        raise Refused(f"{change.entity}: {since}, and the brokers are {dotted(release)}. Nothing was written")
    return ()


def _in_order(found: Mapping[Entity, Limits]) -> dict[Entity, Limits]:
    in_order = sorted(found.items(), key=lambda item: item[0].order())
    return {entity: dict(sorted(limits.items())) for entity, limits in in_order if limits}


def alter(quotas: ClusterQuotas, change: QuotaChange, attempts: Iterator[object]) -> tuple[str, ...]:
    """Write `change`, then read until it is visible, because on KRaft a read right after a write is often stale.

    Each item of `attempts` allows one more read. Returns the keys to delete that were not set before. Raises Unseen if
    the change was sent but never became visible.
    """
    wanted = Filter.of(change.entity)
    before = _limits(quotas, wanted, change.entity) if change.delete else {}
    quotas.alter([change])
    for _ in attempts:
        if change.seen(_limits(quotas, wanted, change.entity)):
            return tuple(key for key in change.delete if key not in before)
    raise Unseen(f"{change.entity}: the change was sent and accepted, but not seen yet")


def _limits(quotas: ClusterQuotas, wanted: Filter, entity: Entity) -> Limits:
    found: Mapping[Entity, Limits] = quotas.describe(wanted)
    return found.get(entity, {})
