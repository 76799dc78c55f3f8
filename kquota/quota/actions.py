"""The order of reads and writes for client quotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kquota.errors import Refused, Unknown
from kquota.quota.change import Change
from kquota.quota.entity import Entity, Every, Filter, Name
from kquota.quota.limits import SINCE, Limits, unknown_to
from kquota.quota.port import Principals, Quotas, Scram


def describe(quotas: Quotas, wanted: Filter) -> dict[Entity, Limits]:
    """Matching entities in the one order, each with its keys sorted."""
    return _in_order(quotas.describe(wanted))


def describe_users(principals: Principals, name: Name | Every) -> tuple[dict[Entity, Limits], Scram]:
    """Users and their SCRAM credentials, both in the one order."""
    found, scram = principals.users(name)
    return _in_order(found), {user: dict(sorted(scram[user].items())) for user in sorted(scram)}


def must_take_effect(principals: Principals, change: Change) -> tuple[str, ...]:
    """Warnings about keys that the brokers may be too old for. Raises Refused where it is known that they are."""
    new = [key for key in change.add if key in SINCE]
    if not new:
        return ()
    release = principals.release()
    if release is None:
        since = ", ".join(f"{key} from Kafka {_dotted(SINCE[key])}" for key in new)
        return (f"this connection does not tell the brokers' release; they obey {since} on and ignore it before",)
    if ignored := unknown_to(release, new):
        since = ", ".join(f"{key} exists from {_dotted(SINCE[key])} on" for key in ignored)
        raise Refused(f"{change.entity}: {since}, and the brokers are {_dotted(release)}. Nothing was written")
    return ()


def _dotted(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))


def _in_order(found: Mapping[Entity, Limits]) -> dict[Entity, Limits]:
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
