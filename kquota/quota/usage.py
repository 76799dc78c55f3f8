"""The use of quotas as brokers measure it, joined with the quota that limits each bucket (KIP-13, KIP-124, KIP-599).

The module also writes the lines of a usage snapshot: the use of each key by each client on each broker, at one time.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from kquota.quota.entity import Entity
from kquota.quota.precedence import Client, Per, QuotasByEntity, QuotasByLevel, by_level, limiting, shared
from kquota.sizes.snapshot import STAMP
from kquota.terms import FULL_SAMPLES_MS

USAGE_VERSION: Final = 1
"""The version of the line format, which is the first key of each line."""
LONGEST_SECONDS: Final = 3_600
"""The maximum number of seconds that one reading covers. A reading says little about earlier use."""
_FIRST_SECONDS: Final = FULL_SAMPLES_MS // 1_000
"""The seconds that the first reading covers: the shortest time over which brokers measure, with Kafka's defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaBucket:
    """A bucket of a quota key. The tags of a broker's metric for the bucket identify the client: a user, a client-id,
    or both. An absent tag is None.
    """

    key: str
    user: str | None
    client_id: str | None

    @property
    def client(self) -> Client:
        """The client. A part without a tag is None."""
        return Client(user=self.user, client_id=self.client_id)

    @property
    def per(self) -> Per:
        """The identity that has this bucket.

        Raises ValueError if no tag is set, because no client has such a bucket.
        """
        if self.user is not None:
            return Per.USER if self.client_id is None else Per.USER_AND_CLIENT
        if self.client_id is None:
            raise ValueError("a bucket needs a user or a client-id")
        return Per.CLIENT


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketUse:
    """The metrics of a bucket on one broker. None means that the broker does not report the value."""

    broker: str
    used: float | None
    """The use, in the unit of the key."""
    throttle_ms: float | None = None
    """The mean throttle time, in milliseconds."""
    tokens: float | None = None
    """The tokens in the bucket of KIP-599. The number is negative while the controller rejects mutations."""

    @property
    def throttled(self) -> bool:
        """True if the broker delays or rejects this client now."""
        return bool(self.throttle_ms) or (self.tokens is not None and self.tokens < 0)

    def order(self) -> tuple[bool, float]:
        """Return the key that sorts readings by use. Throttled readings come last. An unknown use counts as 0."""
        return self.throttled, self.used or 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """A bucket with the quota that limits it, and its use on each broker. `level`, `entity` and `limit` are None if no
    quota limits the bucket.
    """

    bucket: QuotaBucket
    level: int | None
    entity: Entity | None
    limit: float | None
    readings: tuple[BucketUse, ...]
    """One reading for each broker that reports the bucket, sorted by broker id."""

    @property
    def shared_by(self) -> str | None:
        """A description of the clients that share the bucket. None if no quota limits the bucket."""
        return None if self.level is None else shared(self.level, self.bucket.client)

    @property
    def worst(self) -> BucketUse:
        """The reading with the highest use, among the throttled readings if there are any."""
        if len(self.readings) == 1:
            return self.readings[0]
        return max(self.readings, key=BucketUse.order)

    @property
    def share(self) -> float | None:
        """The use on the worst broker as a share of the limit. None in the same cases as the function `share`."""
        return share(self.worst, self.limit)

    @property
    def throttled(self) -> bool:
        """True if at least one broker delays or rejects this client now."""
        return any(one.throttled for one in self.readings)

    def order(self) -> tuple[bool, float, float, str, str, str]:
        """Return the sort key for display: throttled buckets first, then the highest share of the limit, then the
        highest use, then by key, user and client-id. An unknown share or use counts as 0.
        """
        bucket, worst = self.bucket, self.worst
        throttled, used = worst.order()
        if throttled:  # another broker can have a higher use
            used = max(one.used or 0.0 for one in self.readings)
        part = share(worst, self.limit) or 0.0
        return not throttled, -part, -used, bucket.key, bucket.user or "", bucket.client_id or ""


def share(reading: BucketUse, limit: float | None) -> float | None:
    """Return the use as a share of the limit. None if there is no limit above 0, if the broker does not report the use,
    or if the share is not finite.
    """
    if limit is None or not limit > 0 or reading.used is None:
        return None
    found = reading.used / limit
    return found if math.isfinite(found) else None


def joined(quotas: QuotasByEntity, found: Iterable[tuple[QuotaBucket, BucketUse]]) -> tuple[Usage, ...]:
    """Return each bucket with the quota that limits it and its readings, in the order of `Usage.order`. Raises
    ValueError for a bucket without tags.
    """
    by_bucket: defaultdict[QuotaBucket, list[BucketUse]] = defaultdict(list)
    for bucket, reading in found:
        by_bucket[bucket].append(reading)
    indexed = by_level(quotas)
    return tuple(sorted((_joined(indexed, one, readings) for one, readings in by_bucket.items()), key=Usage.order))


@lru_cache(maxsize=1_024)
def _place(broker: str) -> tuple[bool, str]:
    return not broker.isdigit(), broker.zfill(12)


def _joined(quotas: QuotasByLevel, bucket: QuotaBucket, readings: Sequence[BucketUse]) -> Usage:
    # The tags show which levels can set the limit, because brokers leave out the parts that a level ignores.
    level, entity, limit = limiting(quotas, bucket.client, bucket.key, bucket.per) or (None, None, None)
    return Usage(
        bucket=bucket,
        level=level,
        entity=entity,
        limit=limit,
        readings=tuple(readings if len(readings) == 1 else sorted(readings, key=lambda one: _place(one.broker))),
    )


def weight(time: datetime, before: datetime | None) -> int:
    """Return the whole seconds that a reading at `time` covers: the time since the previous reading at `before`, but at
    least 1 s and at most an hour. If `before` is None, the reading covers `_FIRST_SECONDS`.
    """
    if before is None:
        return _FIRST_SECONDS
    return max(1, min(LONGEST_SECONDS, int((time - before).total_seconds())))


def usage_lines(
    cluster_id: str, time: datetime, seconds: int, found: Iterable[tuple[QuotaBucket, BucketUse]]
) -> Iterator[str]:
    """Yield one JSON line for each bucket and broker, in the order of `found`. A value that the broker does not report
    is null. A user or a client-id is null if the bucket has no such tag.

    The time is in UTC. Each line has the number of seconds that it covers, so a job can weight a line without the other
    lines.
    """
    stamp = time.astimezone(UTC).strftime(STAMP)
    for bucket, use in found:
        row = {
            "version": USAGE_VERSION,
            "cluster": cluster_id,
            "time": stamp,
            "seconds": seconds,
            "key": bucket.key,
            "user": bucket.user,
            "client_id": bucket.client_id,
            "broker": use.broker,
            "used": use.used,
            "throttle_ms": use.throttle_ms,
            "tokens": use.tokens,
        }
        yield json.dumps(row, separators=(",", ":"), ensure_ascii=False)
