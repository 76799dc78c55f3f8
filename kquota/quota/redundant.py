"""A setting that changes nothing: without it every client would have the same limit from the same bucket."""

from __future__ import annotations

from collections.abc import Iterable

from kquota.quota.bucket import bucket
from kquota.quota.entity import Entity
from kquota.quota.precedence import Client, Quotas, Rung, rungs, winner
from kquota.terms import DEFAULT


def stand_in(quotas: Quotas, entity: Entity, key: str, client_ids: Iterable[str]) -> Entity | None:
    """What would take the place of this entity's limit unnoticed, or None where somebody would notice.

    `client_ids` are those that a default user's quota of this key names: they are what one client of a user can meet
    and another cannot. A limit that is equal and counts in another bucket is noticed: clients begin to share.
    """
    if entity.ip is not None:
        default = Entity(ip=DEFAULT)
        same_ip = entity != default and quotas[entity].get(key) == quotas.get(default, {}).get(key)
        return default if same_ip else None
    heir = _heir(quotas, entity, key, _client(entity, None))
    if heir is None:
        return None
    others = () if isinstance(entity.client_id, str) else client_ids
    same = all(_binds_others(quotas, entity, key, c) or _heir(quotas, entity, key, c) for c in _clients(entity, others))
    return heir if same else None


def _clients(entity: Entity, client_ids: Iterable[str]) -> Iterable[Client]:
    return (_client(entity, client_id) for client_id in client_ids)


def _client(entity: Entity, client_id: str | None) -> Client:
    """A client that the entity speaks of; the part that it leaves open has this client-id, or a name of no quota."""
    return Client(
        user=entity.user if isinstance(entity.user, str) else None,
        client_id=entity.client_id if isinstance(entity.client_id, str) else client_id,
    )


def _binds_others(quotas: Quotas, entity: Entity, key: str, client: Client) -> bool:
    won = winner(rungs(quotas, client, key))
    return won is None or won.entity != entity


def _heir(quotas: Quotas, entity: Entity, key: str, client: Client) -> Entity | None:
    """Who would bind this client instead, if with the same limit from the same bucket."""
    found = rungs(quotas, client, key)
    won = winner(found)
    if won is None or won.entity != entity:
        return None
    below: Rung | None = next((rung for rung in found[won.level :] if rung.value is not None), None)
    if below is None or below.value != won.value or bucket(below.level, client) != bucket(won.level, client):
        return None
    return below.entity
