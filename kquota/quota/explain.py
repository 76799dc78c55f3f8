"""The quota that applies to one client or one IP, for each key, and its effect on this cluster."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from kquota.errors import Invalid
from kquota.quota.capacity import Capacity
from kquota.quota.entity import Entity
from kquota.quota.precedence import Client, Per, QuotasByEntity, Rung, exceptions, ip_rungs, per, rungs, shared, winner
from kquota.quota_keys import QUOTA_KEYS, Model, QuotaKey, quotas_of
from kquota.terms import IPS, USERS


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAnswer:
    """The answer for one key. Rates and amounts are in the unit of the key."""

    key: str
    rungs: tuple[Rung, ...]
    limit: float | None
    """None if no quota and no reported static limit applies."""
    static: str | None
    """The broker config that sets the limit. None if a level sets it, or if `limit` is None."""
    per: Per | None
    """The identity that has the bucket. None if `limit` is None."""
    shared: str | None
    """A description of the clients that use the bucket. None if `limit` is None."""
    exceptions: tuple[Entity, ...]
    """The entities that take precedence for some names of a client whose user or client-id is unknown."""
    cluster: float | None
    """The total that the whole cluster allows. None if it is unknown or `limit` is None."""
    burst: float | None
    """The amount that can pass at once: `limit` times `burst_seconds`. None if one of these is None."""
    burst_seconds: int | None
    """The burst, in seconds of the limit. None if it is unknown, and always for `request_percentage`."""

    @property
    def row(self) -> QuotaKey:
        """The row of this key in `QUOTA_KEYS`."""
        return QUOTA_KEYS[self.key]

    @property
    def winner(self) -> Rung | None:
        """The level that applies, or None if no level does."""
        return winner(self.rungs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All answers for one client, one IP or both."""

    client: Client | None
    ip: str | None
    cluster: Capacity
    answers: tuple[KeyAnswer, ...]
    unresolved: tuple[str, ...]
    """The host names and the addresses with a scope that have an IP quota. kquota cannot compare them with `ip`. Empty
    if `ip` is None.
    """


def explain(quotas: QuotasByEntity, cluster: Capacity, *, client: Client | None, ip: str | None = None) -> Explanation:
    """Return the answer for every key that can apply to this client and to this IP. If `client` or `ip` is None, its
    keys are left out.

    Raises Invalid if `ip` is not an IP address.
    """
    answers = [] if client is None else [_client_answer(quotas, cluster, client, key) for key in quotas_of([USERS])]
    unresolved: tuple[str, ...] = ()
    if ip is not None:
        wanted = address(ip)
        if wanted is None:
            raise Invalid(f"{ip!r} is not an IP address. Give an address, because brokers compare addresses, not names")
        named = [entity for entity in sorted(quotas, key=Entity.order) if isinstance(entity.ip, str)]
        own = next((entity for entity in named if address(str(entity.ip)) == wanted), None)
        unresolved = tuple(str(entity.ip) for entity in named if address(str(entity.ip)) is None)
        answers += [_ip_answer(quotas, cluster, own, key) for key in quotas_of([IPS])]
    return Explanation(client=client, ip=ip, cluster=cluster, answers=tuple(answers), unresolved=unresolved)


def address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an IP address. Return None for a host name. An IPv4 address in IPv6 form is returned as IPv4.

    The result is also None for a scoped address (`fe80::1%eth0`), because its scope is valid only on one machine.
    """
    try:
        found = ipaddress.ip_address(text if "%" not in text else "")
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def _client_answer(quotas: QuotasByEntity, cluster: Capacity, client: Client, key: str) -> KeyAnswer:
    found = rungs(quotas, client, key)
    won = winner(found)
    static = QUOTA_KEYS[key].static if won is None and client.client_id != "" and cluster.static(key) else None
    # A static default uses the bucket of the last level, which is the client-id level.
    level = won.level if won is not None else len(found) if static else None
    bucket = None if level is None else (per(level), shared(level, client))
    return _answer(cluster, key, found, bucket, static, exceptions(quotas, client, key))


def _ip_answer(quotas: QuotasByEntity, cluster: Capacity, own: Entity | None, key: str) -> KeyAnswer:
    found = ip_rungs(quotas, own, key)
    whose = f"all new {QUOTA_KEYS[key].counts} from this IP, on all listeners; each IP has its own limit"
    return _answer(cluster, key, found, None if winner(found) is None else (Per.IP, whose))


def _answer(
    cluster: Capacity,
    key: str,
    found: tuple[Rung, ...],
    bucket: tuple[Per, str] | None,
    static: str | None = None,
    others: tuple[Entity, ...] = (),
) -> KeyAnswer:
    won = winner(found)
    limit = won.value if won is not None else cluster.static(key) if static else None
    seconds = _burst_seconds(cluster, key)
    return KeyAnswer(
        key=key,
        rungs=found,
        limit=limit,
        static=static,
        per=bucket and bucket[0],
        shared=bucket and bucket[1],
        exceptions=others,
        # Without a live broker, the total is unknown and not 0, because a broker that starts enforces the limit.
        cluster=limit if QUOTA_KEYS[key].model is Model.BUCKET else _times(limit, cluster.size or None),
        burst=_times(limit, seconds),
        burst_seconds=seconds,
    )


def _burst_seconds(cluster: Capacity, key: str) -> int | None:
    match QUOTA_KEYS[key].model:
        case Model.SHARE:
            return None
        case Model.BUCKET:
            return None if cluster.mutation_window is None else cluster.mutation_window.bucket_seconds
        case Model.RATE:
            return None if cluster.window is None else cluster.window.burst_seconds


def _times(limit: float | None, factor: int | None) -> float | None:
    return None if limit is None or factor is None else limit * factor
