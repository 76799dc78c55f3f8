"""The one table of quota keys for all commands. A new key is one row."""

from __future__ import annotations

import enum
import sys
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from kquota.terms import (
    CLIENTS,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IPS,
    LONG_MAX,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USERS,
)


class Model(enum.Enum):
    """The way in which a broker enforces a limit, and the burst that it accepts."""

    RATE = "rate"
    """The mean rate over the samples of `quota.window.num`, on each broker (KIP-13, KIP-612).

    The burst is the limit times the duration of all samples except one.
    """
    SHARE = "share"
    """The share of thread time on each broker, with a delay of at most one sample (KIP-124). kquota does not calculate
    the burst.
    """
    BUCKET = "bucket"
    """A token bucket over the samples of `controller.quota.window.num`, in the controller (KIP-599).

    The burst is a full bucket: the limit times the duration of all samples.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaKey:
    """One row: the properties of a key. A limit is finite and above 0. A limit in bytes is a whole number, and is read
    and shown with units.
    """

    entity_types: tuple[str, ...] = (USERS, CLIENTS)
    """The entity types that can have the key. An entity with several types can have the key only if all of them are in
    this tuple.
    """
    counts: str
    """The quantity that the limit counts per second. If `simulated` is set, this is also the name of a field of a
    simulated request and of a column of a trace.
    """
    bits: int | None = None
    """If set, a limit is a whole number up to 2^bits - 1."""
    unit: str
    """The unit of a limit in words."""
    model: Model
    since: tuple[int, ...] = ()
    """The first release that has the key, or () if all supported releases have it."""
    static: str | None = None
    """The broker config that limits a client-id without a quota for this key, or None. Kafka 3.0 removed these configs.
    """
    simulated: str | None = None
    """The help of the key's option of `quota simulate`, or None if no simulated load uses the quota."""
    fetches: bool = False
    """True if the response to a throttled request is empty."""

    @property
    def in_bytes(self) -> bool:
        """True if a limit is a byte rate, which accepts units."""
        return self.counts == "bytes"

    @property
    def whole(self) -> bool:
        """True if a limit is a whole number."""
        return self.in_bytes or self.bits is not None

    @property
    def most(self) -> float:
        """The highest valid limit. For a key whose limits are whole numbers, it has the same effect as no limit."""
        if self.in_bytes:
            return float(LONG_MAX)
        return sys.float_info.max if self.bits is None else float(2**self.bits - 1)


QUOTA_KEYS: Final = {
    PRODUCER_BYTE_RATE: QuotaKey(
        counts="bytes",
        unit="bytes per second, on each broker",
        model=Model.RATE,
        static="quota.producer.default",
        simulated="Byte rate of a producer on each broker, for example 10MB/s. Without a unit: bytes per second.",
    ),
    CONSUMER_BYTE_RATE: QuotaKey(
        counts="bytes",
        unit="bytes per second, on each broker",
        model=Model.RATE,
        static="quota.consumer.default",
        simulated="Byte rate of a consumer on each broker, for example 10MB/s. Without a unit: bytes per second.",
        fetches=True,
    ),
    REQUEST_PERCENTAGE: QuotaKey(
        counts="thread_ms",
        unit="percent of one thread, on each broker",
        model=Model.SHARE,
        simulated="Thread time that a client may use on each broker, in percent of one thread (KIP-124).",
    ),
    CONTROLLER_MUTATION_RATE: QuotaKey(
        counts="mutations",
        unit="partitions created or deleted per second, in the whole cluster",
        model=Model.BUCKET,
        since=(2, 7),
        simulated="Partitions created or deleted per second in the whole cluster (KIP-599).",
    ),
    CONNECTION_CREATION_RATE: QuotaKey(
        entity_types=(IPS,),
        counts="connections",
        bits=31,
        unit="connections per second, on each broker",
        model=Model.RATE,
        since=(2, 7),
    ),
}
"""Every row by its quota key, in display order."""


def quotas_of(entity_types: Collection[str]) -> tuple[str, ...]:
    """Return the keys that an entity with exactly these entity types can have, in display order."""
    return tuple(key for key, row in QUOTA_KEYS.items() if all(kind in row.entity_types for kind in entity_types))
