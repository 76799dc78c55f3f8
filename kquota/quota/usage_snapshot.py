"""The lines of a usage snapshot: the use of each key by each client on each broker, at one time.

Each line has the number of seconds that it covers, so a job can weight the line without reading any other line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from kquota.quota.usage import BucketUse, QuotaBucket
from kquota.sizes.snapshot import STAMP
from kquota.terms import FULL_SAMPLES_MS

USAGE_VERSION: Final = 1
"""The version of the line format, which is the first key of each line."""
LONGEST_SECONDS: Final = 3_600
"""The maximum number of seconds that one reading covers, because a reading says little about earlier use."""
_FIRST_SECONDS: Final = FULL_SAMPLES_MS // 1_000
"""The seconds that the first reading covers: the quota window, over which brokers measure."""


def weight(time: datetime, before: datetime | None) -> int:
    """Return the seconds that a reading at `time` covers: the time since the previous reading at `before`, at most an
    hour and at least 1 s, or the quota window if `before` is None.
    """
    if before is None:
        return _FIRST_SECONDS
    return max(1, min(LONGEST_SECONDS, int((time - before).total_seconds())))


def usage_lines(
    cluster_id: str, time: datetime, seconds: int, found: Iterable[tuple[QuotaBucket, BucketUse]]
) -> Iterator[str]:
    """Yield one JSON line for each bucket and broker. A value that the broker does not report is null. A user or a
    client-id is null if the bucket does not depend on it.
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
