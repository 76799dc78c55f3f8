"""The scratch topics of probes. Each name contains the latest end of its probe. A seal in the configs shows that a
probe created the topic.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from kquota.terms import MIN_IN_SYNC

PREFIX: Final = "kquota-probe-"
"""The prefix of the names. On a cluster with ACLs, a probe needs rights on topics with this prefix."""
SEAL: Final = "min.compaction.lag.ms"
"""The topic config that contains the seal. It has no effect on a topic that is never compacted. It is set in the
request that creates the topic.
"""
MARGIN: Final = timedelta(minutes=2)
"""The time for the steps before and after the load, and for clocks that differ."""
_NAME: Final = re.compile(re.escape(PREFIX) + r"([0-9]{8}T[0-9]{6})Z-[0-9a-f]{8}(?:-[0-9]+)?")
_TIME: Final = "%Y%m%dT%H%M%S"


def name(now: datetime, seconds: float, draw: str) -> str:
    """Return the topic name for a probe that lasts this many seconds. The name contains the end of the probe plus
    `MARGIN`, in UTC. `draw` is 8 random hexadecimal digits.

    >>> name(datetime(2026, 11, 21, 23, 0, tzinfo=UTC), 60, "0badcafe")
    'kquota-probe-20261121T230300Z-0badcafe'
    """
    ends = now.astimezone(UTC) + timedelta(seconds=seconds) + MARGIN
    return f"{PREFIX}{ends:{_TIME}}Z-{draw}"


def ends(topic: str) -> datetime | None:
    """Return the latest end of the probe, which the name of its topic contains, in UTC. None for a name that no probe
    uses.
    """
    match = _NAME.fullmatch(topic)
    if match is None:
        return None
    try:
        return datetime.strptime(match[1], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def configs(topic: str) -> dict[str, str]:
    """Return the configs of a scratch topic. With these configs, brokers delete the data of a leftover topic after
    about an hour.
    """
    return {
        SEAL: _seal(topic),
        "cleanup.policy": "delete",
        "retention.ms": "3600000",
        "segment.bytes": str(16 * 2**20),
        MIN_IN_SYNC: "1",
        "max.message.bytes": str(2**20),
    }


def ours(topic: str, configs: Mapping[str, str | None]) -> bool:
    """Return True if a probe created the topic. The name and the seal do not occur together by chance."""
    return ends(topic) is not None and configs.get(SEAL) == _seal(topic)


def _seal(topic: str) -> str:
    """Return 48 bits derived from the name, as a number that the config accepts."""
    return str(int.from_bytes(hashlib.sha256(f"kquota probe {topic}".encode()).digest()[:6]))
