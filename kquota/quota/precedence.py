"""The precedence of the eight levels for a client, key by key (KIP-55), and the clients that share a bucket."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kquota.quota.entity import Entity, Name
from kquota.quota.limits import Limits
from kquota.terms import DEFAULT

QuotasByEntity: TypeAlias = Mapping[Entity, Limits]
_UserAndClientId: TypeAlias = tuple[Name | None, Name | None]
QuotasByLevel: TypeAlias = Mapping[int, Mapping[_UserAndClientId, tuple[Entity, Limits]]]
"""All limits of clients by level (1 to 8), then by user and client-id."""


class LevelPart(enum.Enum):
    """The way in which a level specifies a user or a client-id."""

    NAMED = "named"
    DEFAULT = "default"
    ABSENT = "absent"


LEVELS: Final[tuple[tuple[LevelPart, LevelPart], ...]] = (
    (LevelPart.NAMED, LevelPart.NAMED),
    (LevelPart.NAMED, LevelPart.DEFAULT),
    (LevelPart.NAMED, LevelPart.ABSENT),
    (LevelPart.DEFAULT, LevelPart.NAMED),
    (LevelPart.DEFAULT, LevelPart.DEFAULT),
    (LevelPart.DEFAULT, LevelPart.ABSENT),
    (LevelPart.ABSENT, LevelPart.NAMED),
    (LevelPart.ABSENT, LevelPart.DEFAULT),
)
"""(user, client-id) of each level in order of precedence: level 1 is `LEVELS[0]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One client as a broker sees it. None means any name that has no quota of its own.

    A client without a client-id has `client_id` "", and a client that does not authenticate has user `ANONYMOUS`.
    """

    user: str | None
    client_id: str | None

    @classmethod
    def of(cls, entity: Entity) -> Client:
        """Return a client of the entity. Its user or client-id is None unless the entity names it."""
        user, client_id = (name if isinstance(name, str) else None for name in (entity.user, entity.client_id))
        return cls(user=user, client_id=client_id)


class LevelState(enum.Enum):
    """The effect of one level on one client or IP, for one key."""

    WINS = "wins"
    SHADOWED = "shadowed"
    UNSET = "not set"
    INAPPLICABLE = "does not apply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One level of precedence for a client or an IP."""

    level: int
    entity: Entity | None
    """None if no entity can match on this level, and on level 1 of an IP without its own quota."""
    value: float | None
    """The limit of the entity, or None if it is not set."""
    state: LevelState


def level_of(entity: Entity) -> int:
    """Return the level, 1 to 8, of an entity with a user, a client-id or both. Raises ValueError for an IP."""
    return LEVELS.index((_part(entity.user), _part(entity.client_id))) + 1


def rungs(quotas: QuotasByEntity, client: Client, key: str) -> tuple[Rung, ...]:
    """Return all eight levels for this client and key, level 1 first. At most one level wins. Without a winner, only a
    static limit in the brokers' configs can apply.

    A level with a client-id, even the default one, never applies to a client that sends no client-id. For this
    client, brokers look up the limit under the user alone (ClientQuotaManager.DefaultQuotaCallback).
    """
    return _ladder(quotas, _levels(client), key)


def by_level(quotas: QuotasByEntity) -> QuotasByLevel:
    """Index the quotas of clients for `limiting`. The quotas of IPs are left out."""
    found: dict[int, dict[_UserAndClientId, tuple[Entity, Limits]]] = {}
    for entity, limits in quotas.items():
        if entity.ip is None:
            found.setdefault(level_of(entity), {})[entity.user, entity.client_id] = (entity, limits)
    return found


def limiting(quotas: QuotasByLevel, client: Client, key: str, by: Per) -> tuple[int, Entity, float] | None:
    """Return the level, entity and limit of the quota that limits the bucket of this client and key, or None if no
    quota does. `by` is the identity that has the bucket. Unlike `rungs`, this function is fast enough for 100,000
    clients.
    """
    return _first(quotas, client, key, _LEVELS_OF[by])


def _first(quotas: QuotasByLevel, client: Client, key: str, levels: Iterable[int]) -> tuple[int, Entity, float] | None:
    for level in levels:
        if (those := quotas.get(level)) is None:
            continue
        names, applies = _names(LEVELS[level - 1], client)
        if names is not None and applies and names in those:
            entity, limits = those[names]
            if (limit := limits.get(key)) is not None:
                return level, entity, limit
    return None


def ip_rungs(quotas: QuotasByEntity, own: Entity | None, key: str) -> tuple[Rung, ...]:
    """Return the two levels of an IP: its own quota, then the default quota of all IPs (KIP-612). `own` is the entity
    of the IP, or None if the IP has no quota of its own.
    """
    return _ladder(quotas, [(own, own is not None), (Entity(ip=DEFAULT), True)], key)


def winner(found: Iterable[Rung]) -> Rung | None:
    """Return the level that applies, or None if no level does."""
    return next((rung for rung in found if rung.state is LevelState.WINS), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applicability:
    """The result of `applicability` for one quota."""

    hidden_by: Entity | None
    """The entity that takes precedence over the quota for every client that sends a client-id. None if the quota can
    apply to such a client.
    """
    nameless: bool = False
    """True if the hidden quota still applies to clients that send no client-id."""


def applicability(quotas: QuotasByEntity, entity: Entity, key: str) -> Applicability:
    """Return the entity that hides the quota of `entity`, if there is one: it takes precedence for every client that
    sends a client-id.

    One test client is enough. It has the names of `entity`, and otherwise names that have no quota. An entity that
    takes precedence for this client takes precedence for every client that `entity` covers and that sends a client-id.
    """
    client = Client.of(entity)
    first = winner(rungs(quotas, client, key))
    if first is None or first.entity == entity:
        return Applicability(hidden_by=None)
    without = winner(rungs(quotas, Client(user=client.user, client_id=""), key))
    return Applicability(hidden_by=first.entity, nameless=without is not None and without.entity == entity)


def exceptions(quotas: QuotasByEntity, client: Client, key: str) -> tuple[Entity, ...]:
    """Return the entities, in display order, that take precedence for the client if its unknown (None) user or
    client-id has a certain name. Entities that limit no such client, because others always take precedence, are left
    out. For all other names, the winner of `rungs`, if any, limits the client.
    """
    bound = winner(rungs(quotas, client, key))
    below = len(LEVELS) + 1 if bound is None else bound.level
    index = by_level(quotas)
    found = [
        entity
        for level in index.keys() & range(1, below)
        for entity, limits in index[level].values()
        if key in limits and _limits_some(index, entity, client, key)
    ]
    return tuple(sorted(found, key=Entity.order))


def _limits_some(quotas: QuotasByLevel, entity: Entity, client: Client, key: str) -> bool:
    """Return True if the quota of `entity` limits the client when the names of `entity` replace the unknown ones of the
    client. If the client-id is then still unknown, the client may also send none.
    """
    pairs = ((entity.user, client.user), (entity.client_id, client.client_id))
    if not all(asked is None or name in (None, DEFAULT, asked) for name, asked in pairs):
        return False
    named = Client.of(entity)
    user = named.user if client.user is None else client.user
    client_id = named.client_id if client.client_id is None else client.client_id
    levels = range(1, level_of(entity) + 1)
    for sent in (client_id,) if client_id is not None else (None, ""):
        first = _first(quotas, Client(user=user, client_id=sent), key, levels)
        if first is not None and first[1] == entity:
            return True
    return False


def _ladder(quotas: QuotasByEntity, levels: Iterable[tuple[Entity | None, bool]], key: str) -> tuple[Rung, ...]:
    found: list[Rung] = []
    won = False
    for level, (entity, applies) in enumerate(levels, 1):
        value = None if entity is None else quotas.get(entity, {}).get(key)
        if not applies:
            state = LevelState.INAPPLICABLE
        elif value is None:
            state = LevelState.UNSET
        else:
            state = LevelState.SHADOWED if won else LevelState.WINS
            won = True
        found.append(Rung(level=level, entity=entity, value=value, state=state))
    return tuple(found)


# The result is cached, because several lint rules about one entity ask for the same client.
@functools.lru_cache(maxsize=64)
def _levels(client: Client) -> tuple[tuple[Entity | None, bool], ...]:
    """Return the entity of each level for this client (None if the client has no name for it), and whether the level
    applies.
    """
    found: list[tuple[Entity | None, bool]] = []
    for level in LEVELS:
        names, applies = _names(level, client)
        found.append((None if names is None else Entity(user=names[0], client_id=names[1]), applies))
    return tuple(found)


def _names(level: tuple[LevelPart, LevelPart], client: Client) -> tuple[_UserAndClientId | None, bool]:
    """Return the user and client-id of the entity on this level for this client, and whether the level applies. The
    first value is None if the level needs a name that the client does not have.
    """
    user, client_id = level
    if (user is LevelPart.NAMED and not client.user) or (client_id is LevelPart.NAMED and not client.client_id):
        return None, False
    nameless = client.client_id == "" and client_id is not LevelPart.ABSENT
    return (_name_on_level(user, client.user), _name_on_level(client_id, client.client_id)), not nameless


def _name_on_level(part: LevelPart, name: str | None) -> Name | None:
    if part is LevelPart.NAMED:
        return name
    return DEFAULT if part is LevelPart.DEFAULT else None


def _part(name: Name | None) -> LevelPart:
    if name is None:
        return LevelPart.ABSENT
    return LevelPart.DEFAULT if name is DEFAULT else LevelPart.NAMED


class Per(enum.Enum):
    """The identity that has a bucket. Its parts are the tags of the broker's quota metric for the bucket."""

    USER_AND_CLIENT = "user and client-id"
    USER = "user"
    CLIENT = "client-id"
    IP = "ip"


def per(level: int) -> Per:
    """Return the identity that has its own bucket on a level, 1 to 8 (the metric tags of ClientQuotaManager)."""
    user, client_id = LEVELS[level - 1]
    if user is LevelPart.ABSENT:
        return Per.CLIENT
    return Per.USER if client_id is LevelPart.ABSENT else Per.USER_AND_CLIENT


_LEVELS_OF: Final = {by: tuple(n for n in range(1, len(LEVELS) + 1) if per(n) is by) for by in Per}


def bucket(level: int, client: Client) -> tuple[str | None, str | None]:
    """Return the (user, client-id) that identifies a client's bucket on a level, 1 to 8. A part that the level ignores
    is "". An unknown part is None.
    """
    by = per(level)
    return ("" if by is Per.CLIENT else client.user, "" if by is Per.USER else client.client_id)


_SHARED: Final = (
    "all connections of {user} with {client}; no other client uses this bucket",
    "all connections of {user} with {client}; each client-id of this user has its own bucket",
    "all clients of {user} together, except clients with a limit on a level above",
    "all connections of {user} with {client}; each user has its own bucket",
    "all connections of {user} with {client}; each user and client-id has its own bucket",
    "all clients of {user} together, except clients with a limit on a level above; each user has its own bucket",
    "all users with {client} together, except clients with a limit on a level above",
    "all users with {client} together, except clients with a limit on a level above",
)


def shared(level: int, client: Client) -> str:
    """Return a description of the clients that share this client's bucket when this level, 1 to 8, applies."""
    user = "this user" if client.user is None else f"user {client.user!r}"
    client_id = {None: "this client-id", "": "no client-id"}.get(client.client_id, f"client-id {client.client_id!r}")
    return _SHARED[level - 1].format(user=user, client=client_id)
