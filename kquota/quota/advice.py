"""Quotas proposed from measured use: a limit for each client, their sums, and the effect of a new number of brokers."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kquota.quota.entity import Entity
from kquota.quota.limits import Limits
from kquota.quota.precedence import Client, QuotasByEntity, rungs, winner
from kquota.quota.usage import QuotaBucket
from kquota.quota_keys import QUOTA_KEYS, Model

_LEAST: Final[Mapping[Model, float]] = {Model.RATE: 100_000.0, Model.SHARE: 1.0, Model.BUCKET: 1.0}
"""The minimum limit that kquota proposes, by model. At 100 kB/s, ten seconds of quota are about Kafka's default for the
largest batch (1 MB). Under a lower limit, such a batch is always delayed.
"""
_DIGITS: Final = 2
"""A proposed limit has this many significant digits, because measured use is not exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketStatistics:
    """The use of one bucket, in the unit of its key. Each number is the largest value of all brokers."""

    bucket: QuotaBucket
    broker: str
    """The broker with the highest `percentile`."""
    percentile: float
    """The requested percentile of the use."""
    most: float
    """The maximum use."""
    seconds: int
    """The time that the readings cover."""
    throttled: int
    """The seconds during which a broker throttled the client. The real demand of the client is then unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRules:
    """The rules of a proposal."""

    head_room: float
    """The factor from the measured use to the limit."""
    brokers: int | None = None
    """The current number of brokers, or None if it is unknown."""
    later: int | None = None
    """The future number of brokers, or None if it does not change."""

    def spread(self, key: str) -> float:
        """Return the factor by which the use on each broker changes with the number of brokers. It is 1 for a key that
        limits the whole cluster, and if `brokers` or `later` is None.
        """
        if self.brokers is None or self.later is None or QUOTA_KEYS[key].model is Model.BUCKET:
            return 1.0
        return self.brokers / self.later


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedLimit:
    """The proposed `limit` of a client, and its current limit `now`. `now` is None if no quota applies to the client.

    `spread` is the factor by which the client's use of each broker changes with the number of brokers.
    """

    use: BucketStatistics
    entity: Entity
    limit: float
    now: float | None
    spread: float

    @property
    def tighter(self) -> bool:
        """True if the proposed limit allows the client less in the whole cluster than its current limit, or if no quota
        applies now.
        """
        return self.now is None or self.limit < self.now * self.spread

    @property
    def throttles(self) -> bool:
        """True if the proposed limit is tighter, and lower than the client's highest use so far times `spread`."""
        return self.tighter and self.use.most * self.spread > self.limit


def proposals(uses: Iterable[BucketStatistics], quotas: QuotasByEntity, rules: ProposalRules) -> list[ProposedLimit]:
    """Return the proposal for each bucket, in the given order, on the entity with the same user and client-id.

    The limit is the `percentile` of the use times `head_room` times the spread, rounded up to two significant digits.
    It is at least `_LEAST`. A limit of at least half the highest limit of the key becomes the highest limit.
    """
    users = {entity.user for entity in quotas}
    client_ids = {entity.client_id for entity in quotas}

    # The limits are cached, because a million clients that no quota names can have the same limit.
    @functools.cache
    def now(client: Client, key: str) -> float | None:
        rung = winner(rungs(quotas, client, key))
        return None if rung is None else rung.value

    found = []
    for use in uses:
        bucket = use.bucket
        client = Client(
            user=bucket.user if bucket.user in users else None,
            client_id=bucket.client_id if bucket.client_id in client_ids else None,
        )
        factor, key = rules.spread(bucket.key), QUOTA_KEYS[bucket.key]
        wanted = max(use.percentile * rules.head_room * factor, _LEAST[key.model])
        found.append(
            ProposedLimit(
                use=use,
                entity=Entity(user=bucket.user, client_id=bucket.client_id),
                # Propose the maximum if `wanted` is at least half of it, because rounding up could exceed it.
                limit=rounded_up(wanted, whole=key.whole) if wanted < key.most / 2 else key.most,
                now=now(client, bucket.key),
                spread=factor,
            )
        )
    return found


def rounded_up(value: float, *, whole: bool) -> float:
    """Round a positive value up to two significant digits. With `whole`, the result is a whole number.

    >>> rounded_up(1_234_567.0, whole=True), rounded_up(12.31, whole=False)
    (1300000.0, 13.0)
    """
    unit = 10.0 ** (math.floor(math.log10(value)) - _DIGITS + 1)
    if whole:
        unit = max(1.0, unit)
    # Subtract a little, because 0.14 / 0.01 is 14.000000000000002 in floating point, and must not round up to 15.
    found = math.ceil(value / unit - 1e-9) * unit
    return float(round(found)) if unit >= 1 else round(found, 12)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTotal:
    """The sums of one key over all clients, and the capacity. `used` is the sum of their percentiles, as expected with
    the future number of brokers. `limits` is the sum of their proposed limits.

    The sums assume that all clients reach their values at the same time on one broker, or for
    `controller_mutation_rate` in the cluster. The capacity is None if it is unknown.
    """

    key: str
    clients: int
    used: float
    limits: float
    capacity: float | None

    @property
    def share(self) -> float | None:
        """The sum of the limits as a share of the capacity, or None if the capacity is unknown."""
        return None if self.capacity is None else self.limits / self.capacity


def totals(found: Iterable[ProposedLimit], capacity: Mapping[str, float]) -> tuple[KeyTotal, ...]:
    """Return the totals of each key with a proposal, in the order of `QUOTA_KEYS`. The capacity of a key that is not in
    `capacity` is unknown.
    """
    clients: defaultdict[str, int] = defaultdict(int)
    used: defaultdict[str, float] = defaultdict(float)
    limits: defaultdict[str, float] = defaultdict(float)
    for one in found:
        key = one.use.bucket.key
        clients[key] += 1
        used[key] += one.use.percentile * one.spread
        limits[key] += one.limit
    return tuple(
        KeyTotal(key=key, clients=clients[key], used=used[key], limits=limits[key], capacity=capacity.get(key))
        for key in QUOTA_KEYS
        if key in clients
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Resized:
    """A limit that changes with the number of brokers, so that the client keeps its current rate from the whole
    cluster.
    """

    entity: Entity
    key: str
    old: float
    new: float


def resized(quotas: QuotasByEntity, found: Sequence[ProposedLimit], rules: ProposalRules) -> tuple[Resized, ...]:
    """Return the existing limits that have no proposal, but change with the number of brokers, because each broker
    enforces them separately. They are in display order.

    A limit that limits nothing or that is not valid does not change.
    """
    proposed = {(one.entity, one.use.bucket.key) for one in found}
    changed = []
    for entity, limits in sorted(quotas.items(), key=lambda item: item[0].order()):
        for key, old in sorted(limits.items()):
            row, factor = QUOTA_KEYS[key], rules.spread(key)
            if factor == 1.0 or (entity, key) in proposed or not 0 < old < row.most:
                continue
            new = max(1.0, float(round(old * factor))) if row.whole else max(math.ulp(0.0), old * factor)
            changed.append(Resized(entity=entity, key=key, old=old, new=min(new, row.most)))
    return tuple(changed)


def advised(quotas: QuotasByEntity, found: Iterable[ProposedLimit], changed: Iterable[Resized]) -> dict[Entity, Limits]:
    """Return the entities that change, in display order. Each has all its limits, because a document replaces all
    limits of an entity.

    A document that names a client-id of a user also names the user, so the limits of such a user are included.
    """
    limits: dict[Entity, dict[str, float]] = {}
    for one in found:
        limits.setdefault(one.entity, dict(quotas.get(one.entity, {})))[one.use.bucket.key] = one.limit
    for other in changed:
        limits.setdefault(other.entity, dict(quotas.get(other.entity, {})))[other.key] = other.new
    users = {Entity(user=entity.user) for entity in limits if entity.user is not None}
    unchanged = {user: dict(quotas[user]) for user in users - limits.keys() if user in quotas}
    return dict(sorted((limits | unchanged).items(), key=lambda item: item[0].order()))
