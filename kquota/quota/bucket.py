"""Which clients share a limit. A level counts by user, by client-id or by both, and so determines the bucket."""

from __future__ import annotations

import enum
from typing import Final

from kquota.quota.precedence import LEVELS, Client, LevelPart


class Per(enum.Enum):
    """The identity that a bucket counts by, named as in the tags of the broker's quota metric."""

    USER_AND_CLIENT = "user and client-id"
    USER = "user"
    CLIENT = "client-id"
    IP = "ip"


def per(level: int) -> Per:
    """The identity that the bucket of a level, 1 to 8, counts by (ClientQuotaManager's metric tags)."""
    user, client_id = LEVELS[level - 1]
    if user is LevelPart.ABSENT:
        return Per.CLIENT
    return Per.USER if client_id is LevelPart.ABSENT else Per.USER_AND_CLIENT


def bucket(level: int, client: Client) -> tuple[str | None, str | None]:
    """The (user, client-id) that identify the bucket of this level; "" for a part that the level ignores."""
    by = per(level)
    return ("" if by is Per.CLIENT else client.user, "" if by is Per.USER else client.client_id)


_SHARED: Final = (
    "all connections of {user} with {client}; no other client spends from it",
    "all connections of {user} with {client}; each client-id of this user has a bucket of its own",
    "all clients of {user} together, but those for which a level above is set",
    "all connections of {user} with {client}; each user has a bucket of its own",
    "all connections of {user} with {client}; each user and client-id has a bucket of its own",
    "all clients of {user} together, but those for which a level above is set; each user has a bucket of its own",
    "all users with {client} together, but those for which a level above is set",
    "all users with {client} together, but those for which a level above is set",
)


def shared(level: int, client: Client) -> str:
    """A description of the clients that share this client's bucket when this level, 1 to 8, applies."""
    user = "this user" if client.user is None else f"user {client.user!r}"
    client_id = {None: "this client-id", "": "no client-id"}.get(client.client_id, f"client-id {client.client_id!r}")
    return _SHARED[level - 1].format(user=user, client=client_id)
