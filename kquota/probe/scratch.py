"""The scratch topic: a name that tells until when its probe may run, and a seal by which it is known as a probe's."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from kquota.terms import MIN_IN_SYNC

PREFIX: Final = "kquota-probe-"
"""Where a cluster has ACLs, this prefix is what a probe needs rights on."""
SEAL: Final = "min.compaction.lag.ms"
"""Means nothing on a topic that is never compacted, and is set in the very request that makes the topic."""
MARGIN: Final = timedelta(minutes=2)
"""For what comes before and after the load, and for clocks that differ."""
_NAME: Final = re.compile(re.escape(PREFIX) + r"([0-9]{8}T[0-9]{6})Z-[0-9a-f]{8}(?:-[0-9]+)?")
_TIME: Final = "%Y%m%dT%H%M%S"


def name(now: datetime, seconds: float, draw: str) -> str:
    """The name for a probe of so many seconds; `draw` is 8 digits of chance, in hex.

    >>> name(datetime(2026, 11, 21, 23, 0, tzinfo=UTC), 60, "0badcafe")
    'kquota-probe-20261121T230300Z-0badcafe'
    """
    ends = now.astimezone(UTC) + timedelta(seconds=seconds) + MARGIN
    return f"{PREFIX}{ends:{_TIME}}Z-{draw}"


def ends(topic: str) -> datetime | None:
    """When the probe that made this topic is over, also if it was killed; None for a name that no probe gives."""
    match = _NAME.fullmatch(topic)
    if match is None:
        return None
    try:
        return datetime.strptime(match[1], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def configs(topic: str) -> dict[str, str]:
    """What a scratch topic is created with; whatever is left behind, the brokers empty within the hour."""
    return {
        SEAL: _seal(topic),
        "cleanup.policy": "delete",
        "retention.ms": "3600000",
        "segment.bytes": str(16 * 2**20),
        MIN_IN_SYNC: "1",
        "max.message.bytes": str(2**20),
    }


def ours(topic: str, configs: Mapping[str, str | None]) -> bool:
    """Whether a probe made it: nobody gives this name and this seal by chance."""
    return ends(topic) is not None and configs.get(SEAL) == _seal(topic)


def _seal(topic: str) -> str:
    """48 bits that follow from the name, as a number that the config takes."""
    return str(int.from_bytes(hashlib.sha256(f"kquota probe {topic}".encode()).digest()[:6]))
