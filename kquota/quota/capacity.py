"""The parts of a cluster that determine the effect of a quota: live brokers, their threads and quota windows.

The code is pure: it receives the settings of a broker as text. An unknown value is None, never Kafka's default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from kquota.measure import whole_number
from kquota.quota_keys import QUOTA_KEYS
from kquota.terms import LONG_MAX, SAMPLE_MS, SAMPLES, BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaWindow:
    """The time over which a broker measures a quota: `samples` samples of `seconds` each."""

    samples: int
    seconds: int

    @property
    def burst_seconds(self) -> int:
        """The burst that a byte rate allows without a delay, in seconds of the rate: all samples except one."""
        return (self.samples - 1) * self.seconds

    @property
    def bucket_seconds(self) -> int:
        """The seconds of quota in a full token bucket of KIP-599. An empty bucket takes the same time to fill."""
        return self.samples * self.seconds


AS_SHIPPED: Final = QuotaWindow(samples=SAMPLES, seconds=SAMPLE_MS // 1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCapacity:
    """The settings of one live broker that affect quotas. None means unknown."""

    id: BrokerId
    io_threads: int | None = None
    network_threads: int | None = None
    listeners: int | None = None
    """The number of listeners, without controller listeners."""
    largest_batch: int | None = None
    """`message.max.bytes`."""
    window: QuotaWindow | None = None
    mutation_window: QuotaWindow | None = None
    controllers: frozenset[int] | None = None
    """The ids of the quorum voters, whose settings apply to mutations. It is empty with ZooKeeper, where any broker can
    be the controller.
    """
    default_partitions: int | None = None
    callback: str | None = None
    """`client.quota.callback.class`. It is also None if the config is not set."""
    static: Mapping[str, float] | None = None
    """The static limit of each quota key that has one."""

    @property
    def request_capacity(self) -> int | None:
        """The request capacity in percent of one thread: (`num.io.threads` + `num.network.threads`) x 100 (KIP-124).
        None if it is unknown.
        """
        if self.io_threads is None or self.network_threads is None:
            return None
        return (self.io_threads + self.network_threads) * 100

    @property
    def request_most(self) -> int | None:
        """The highest `request_percentage` that can limit a client, with the network threads of every listener. None if
        it is unknown.
        """
        if self.io_threads is None or self.network_threads is None or self.listeners is None:
            return None
        return (self.io_threads + self.network_threads * self.listeners) * 100


def broker(id_: BrokerId, settings: Mapping[str, str | None]) -> BrokerCapacity:
    """Parse the quota settings of a broker from its configs, as DescribeConfigs returns them. An empty mapping means
    that the settings are unknown.

    A setting that is missing is unknown, and so is a number that is not whole. However, a broker without
    `process.roles` uses ZooKeeper.
    """
    return BrokerCapacity(
        id=id_,
        io_threads=whole_number(settings.get("num.io.threads")),
        network_threads=whole_number(settings.get("num.network.threads")),
        listeners=_listeners(settings),
        largest_batch=whole_number(settings.get("message.max.bytes")),
        window=_window(settings, "quota.window"),
        mutation_window=_window(settings, "controller.quota.window"),
        controllers=_controllers(settings),
        default_partitions=whole_number(settings.get("num.partitions")),
        callback=settings.get("client.quota.callback.class") or None,
        static={k: float(rate) for k, row in QUOTA_KEYS.items() if (rate := _limit(settings.get(row.static or "")))}
        if settings
        else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The live brokers and their Kafka release. `brokers` is None if even their number is unknown. `release` is None if
    it is unknown.
    """

    brokers: tuple[BrokerCapacity, ...] | None
    release: tuple[int, ...] | None = None

    def ignores(self, key: str) -> bool:
        """Return True if the brokers run a known release without this quota key. They may store the quota, but never
        enforce it.
        """
        return self.release is not None and self.release < QUOTA_KEYS[key].since

    @property
    def size(self) -> int | None:
        """The number of live brokers. None if it is unknown."""
        return None if self.brokers is None else len(self.brokers)

    @property
    def reported(self) -> bool:
        """True if there is a live broker and every live broker reported its settings."""
        return bool(self.brokers) and all(broker.io_threads is not None for broker in self.brokers or ())

    @property
    def window(self) -> QuotaWindow | None:
        """The quota window of all keys except `controller_mutation_rate`. None if it is unknown or not the same on all
        brokers.
        """
        return _same(broker.window for broker in self.brokers or ())

    @property
    def mutation_window(self) -> QuotaWindow | None:
        """The quota window of `controller_mutation_rate`. None if it is unknown or not the same on all nodes that can
        be the controller.
        """
        brokers = self.brokers or ()
        controllers = _same(broker.controllers for broker in brokers)
        if controllers is None:
            return None
        if not controllers <= {broker.id for broker in brokers}:
            return None
        return _same(b.mutation_window for b in brokers if not controllers or b.id in controllers)

    @property
    def default_partitions(self) -> int | None:
        """`num.partitions`, the default for new topics. None if it is unknown or not the same on all brokers."""
        return _same(broker.default_partitions for broker in self.brokers or ())

    @property
    def largest_batch(self) -> int | None:
        """The largest `message.max.bytes` that a broker reports. None if no broker reports it."""
        known = [broker.largest_batch for broker in self.brokers or () if broker.largest_batch is not None]
        return max(known, default=None)

    @property
    def callback(self) -> str | None:
        """The `client.quota.callback.class`, which decides about quotas instead of Kafka (KIP-257). None if no broker
        reports one.
        """
        return next((broker.callback for broker in self.brokers or () if broker.callback is not None), None)

    def static(self, key: str) -> float | None:
        """Return the lowest limit that a broker config sets for `key`, or None if no broker reports one. This limit
        applies to a client-id if no level has a limit.
        """
        return min((b.static[key] for b in self.brokers or () if b.static and key in b.static), default=None)


_T = TypeVar("_T")


def _same(values: Iterable[_T | None]) -> _T | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _controllers(settings: Mapping[str, str | None]) -> frozenset[int] | None:
    if not settings:
        return None
    if not settings.get("process.roles"):
        return frozenset()
    voters = [voter.partition("@")[0].strip() for voter in (settings.get("controller.quorum.voters") or "").split(",")]
    return frozenset(map(int, voters)) if all(voter.isdigit() for voter in voters) else None


def _listeners(settings: Mapping[str, str | None]) -> int | None:
    listeners = settings.get("listeners")
    if not listeners:
        return None
    controllers = {name.strip() for name in (settings.get("controller.listener.names") or "").split(",")}
    return sum(listener.partition(":")[0].strip() not in controllers for listener in listeners.split(","))


def _window(settings: Mapping[str, str | None], prefix: str) -> QuotaWindow | None:
    samples, seconds = whole_number(settings.get(f"{prefix}.num")), whole_number(settings.get(f"{prefix}.size.seconds"))
    return None if samples is None or seconds is None else QuotaWindow(samples=samples, seconds=seconds)


def _limit(text: str | None) -> int | None:
    rate = whole_number(text)
    return None if rate == LONG_MAX else rate
