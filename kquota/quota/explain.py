"""Which quota binds one client or one IP, key by key, and what that comes to on this cluster."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kquota.errors import Invalid
from kquota.quota.bucket import Per, per, shared
from kquota.quota.capacity import STATIC_DEFAULTS, Cluster
from kquota.quota.entity import Entity
from kquota.quota.precedence import Client, Quotas, Rung, exceptions, ip_rungs, rungs, winner
from kquota.terms import (
    CLIENT_QUOTAS,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

UNITS: Final[Mapping[str, str]] = {
    PRODUCER_BYTE_RATE: "bytes per second, on each broker",
    CONSUMER_BYTE_RATE: "bytes per second, on each broker",
    REQUEST_PERCENTAGE: "percent of one thread, on each broker",
    CONTROLLER_MUTATION_RATE: "partitions created or deleted per second, in the whole cluster",
    CONNECTION_CREATION_RATE: "connections per second, on each broker",
}
NOTHING_KNOWN: Final = Cluster(brokers=None)
"""A cluster that told nothing but its quotas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What holds for one key. `limit` None: unlimited. Every other figure None: unlimited, or not known.

    `static` names the broker config that the limit is from, where no level sets one. `exceptions` would come first for
    clients with a name that was left open. `cluster` is the most that all live brokers together allow; `burst` is what
    passes at once, in the unit of the limit times seconds, and `burst_seconds` how long an empty bucket fills.
    """

    key: str
    rungs: tuple[Rung, ...]
    limit: float | None
    static: str | None
    per: Per | None
    shared: str | None
    exceptions: tuple[Entity, ...]
    cluster: float | None
    burst: float | None
    burst_seconds: int | None

    @property
    def winner(self) -> Rung | None:
        """The level that binds; None where none is set."""
        return winner(self.rungs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All answers for one client, one IP or both; `unresolved` are IP quotas on host names, which brokers look up."""

    client: Client | None
    ip: str | None
    cluster: Cluster
    answers: tuple[Answer, ...]
    unresolved: tuple[str, ...]


def explain(quotas: Quotas, cluster: Cluster, *, client: Client | None, ip: str | None = None) -> Explanation:
    """Every key that can bind this client, this IP, or both. Raises Invalid for an IP that is none."""
    answers = [] if client is None else [_client_answer(quotas, cluster, client, key) for key in CLIENT_QUOTAS]
    unresolved: tuple[str, ...] = ()
    if ip is not None:
        wanted = address(ip)
        if wanted is None:
            raise Invalid(f"--ip {ip!r} is not an IP address; brokers compare addresses, not names")
        named = [entity for entity in sorted(quotas, key=Entity.order) if isinstance(entity.ip, str)]
        own = next((entity for entity in named if address(str(entity.ip)) == wanted), None)
        unresolved = tuple(str(entity.ip) for entity in named if address(str(entity.ip)) is None)
        answers.append(_ip_answer(quotas, cluster, own))
    return Explanation(client=client, ip=ip, cluster=cluster, answers=tuple(answers), unresolved=unresolved)


def address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a text writes, an IPv4 address in IPv6's clothes as IPv4, or None for a host name.

    An address that holds for one interface of one machine only (`fe80::1%eth0`) is none that a broker could see.
    """
    try:
        found = ipaddress.ip_address(text if "%" not in text else "")
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def _client_answer(quotas: Quotas, cluster: Cluster, client: Client, key: str) -> Answer:
    found = rungs(quotas, client, key)
    won = winner(found)
    limit = None if won is None else won.value
    static = None
    if limit is None and client.client_id != "" and (limit := cluster.static(key)) is not None:
        static = STATIC_DEFAULTS[key]
    seconds = _burst_seconds(cluster, key)
    return Answer(
        key=key,
        rungs=found,
        limit=limit,
        static=static,
        per=Per.CLIENT if static else None if won is None else per(won.level),
        shared=shared(len(found), client) if static else None if won is None else shared(won.level, client),
        exceptions=exceptions(quotas, client, key),
        cluster=limit if key == CONTROLLER_MUTATION_RATE else _times(limit, cluster.size),
        burst=_times(limit, seconds),
        burst_seconds=seconds,
    )


def _ip_answer(quotas: Quotas, cluster: Cluster, own: Entity | None) -> Answer:
    found = ip_rungs(quotas, own, CONNECTION_CREATION_RATE)
    won = winner(found)
    limit = None if won is None else won.value
    seconds = _burst_seconds(cluster, CONNECTION_CREATION_RATE)
    return Answer(
        key=CONNECTION_CREATION_RATE,
        rungs=found,
        limit=limit,
        static=None,
        per=None if won is None else Per.IP,
        shared=None if won is None else "all new connections from this IP, on all listeners; each IP has its own",
        exceptions=(),
        cluster=_times(limit, cluster.size),
        burst=_times(limit, seconds),
        burst_seconds=seconds,
    )


def _burst_seconds(cluster: Cluster, key: str) -> int | None:
    if key == REQUEST_PERCENTAGE:
        return None
    window = cluster.mutation_window if key == CONTROLLER_MUTATION_RATE else cluster.window
    if window is None:
        return None
    return window.bucket_seconds if key == CONTROLLER_MUTATION_RATE else window.burst_seconds


def _times(limit: float | None, factor: int | None) -> float | None:
    return None if limit is None or factor is None else limit * factor
