"""The result of a load under its quotas: its end, its throughput in the long run, and its waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kquota.errors import Invalid
from kquota.simulate.curve import Curve
from kquota.simulate.load import Admission, Manner, Quotas, Request, Round, Sent, SimulatedClient, rounds
from kquota.terms import LONG_MAX, SAMPLE_MS

LONGEST_MS: Final = 30 * 86_400_000
_COSTS: Final = ("bytes", "thread_ms", "mutations")
_COUNTS: Final = ("admitted", "rejected", "delayed", "bytes", "mutations", "total_wait")


class NoRate(Invalid):
    """No mutation rate is high enough for the topics in the given time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """Topics that are created, grown or deleted under a mutation quota."""

    rounds: tuple[Round, ...]
    """All requests, in order of time."""
    next_wait_ms: int
    """The ms that another request, right after the last one, would have to wait."""

    @property
    def ms(self) -> int:
        """The time in ms from the first request to the last."""
        return self.rounds[-1].at if self.rounds else 0

    @property
    def mutations(self) -> int:
        """The number of accepted mutations."""
        return sum(one.mutations for one in self.rounds)


def deploy(items: Sequence[int], quota: Admission, manner: Manner = Manner()) -> Deploy:  # noqa: B008 - frozen
    """Simulate a client that waits as long as the broker asks. Times are in ms.

    `items` has the number of partitions of each topic. Raises Invalid if the total time, or the wait of the next
    request, is more than 30 days. Source: KIP-599, and ControllerMutationQuotaManager as shipped.

    >>> from kquota.simulate import Bucket, Mutations
    >>> deploy([80] * 7, Mutations(Bucket(rate=5))).ms
    85000
    """
    found = []
    for one in rounds(items, quota, manner):
        if one.at > LONGEST_MS:
            raise _too_long("the mutations take")
        found.append(one)
    # After the last round, the client waits only because of the request quota, or because it is an old client. The
    # mutation quota recovers during this wait, so the longer of the two waits counts.
    next_wait_ms = max(found[-1].wait_ms, quota.admit(1, found[-1].at) or 0) if found else 0
    if next_wait_ms > LONGEST_MS:
        raise _too_long("the next request waits")
    return Deploy(rounds=tuple(found), next_wait_ms=next_wait_ms)


def _too_long(what: str) -> Invalid:
    return Invalid(
        f"under this quota, {what} more than 30 days. Check the rate, which is in mutations per second, and the number "
        "of partitions"
    )


def rate_within(
    items: Sequence[int],
    ms: int,
    quota: Callable[[float], Admission],
    manner: Manner = Manner(),  # noqa: B008 - frozen
) -> int:
    """Return the smallest whole rate, in mutations per second, under which all `items` are done within `ms`.

    `items` has the number of partitions of each topic. `quota` returns the quota for a given rate. Raises NoRate if the
    request percentage alone makes the client late at every rate.

    >>> from kquota.simulate import Bucket, Mutations
    >>> rate_within([12] * 2_000, 600_000, lambda rate: Mutations(Bucket(rate=rate)))
    40
    """

    def late(rate: int) -> bool:
        return any(one.at > ms for one in rounds(items, quota(rate), manner))

    low, high = 0, 1
    while late(high):
        low, high = high, high * 2
        if high > LONG_MAX:
            why = "the request percentage alone makes the load take longer than the given time"
            raise NoRate(f"no mutation rate is high enough: {why}")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if late(middle) else (low, middle)
    return high


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The bytes and mutations that brokers accepted from a client, and how long brokers muted the client. Times and
    waits are in ms.

    The steady rates cover the time from the first attempt after two quota windows, when the first burst is used up, to
    the last attempt. They are None if there is no such attempt, or if this time is shorter than one window.
    """

    begin: int
    """The time of the first attempt, or 0 without an attempt."""
    end: int
    """The end of the last attempt, including its wait."""
    admitted: int
    """The number of accepted attempts. A fetch that the quota splits has several."""
    rejected: int
    """The number of attempts that the broker did not accept."""
    delayed: int
    """The number of attempts after which the client had to wait."""
    bytes: int
    mutations: int
    total_wait: int
    first_wait: int | None
    """The first wait, or None if the client never had to wait."""
    first_at: int | None
    """The time of the first wait, or None if the client never had to wait."""
    worst_wait: int
    """The longest wait, or 0 if the client never had to wait."""
    worst_at: int | None
    """The time of the longest wait, or None if the client never had to wait."""
    steady_bytes: float | None
    """The steady rate in bytes per second."""
    steady_mutations: float | None
    """The steady rate in mutations per second."""
    by: tuple[str, ...]
    """The names of the quotas that caused the waits, sorted."""
    costs: tuple[str, ...]
    """The costs that the requests have, sorted: `bytes`, `mutations` or `thread_ms`."""
    unfinished: bool
    """True if a fetch never gets any data, or if the waits exceed 30 days."""
    bytes_curve: Curve
    mutations_curve: Curve


@dataclass(slots=True)
class _Since:
    """The amounts accepted since `at`. `before` has the amounts accepted before `last`, the time of the last request.

    A rate covers the time from `at` to `last`, because the last request has no duration yet.
    """

    at: int
    last: int
    bytes: int = 0
    mutations: int = 0
    before: tuple[int, int] = (0, 0)

    def add(self, sent: Sent) -> None:
        if sent.at > self.last:
            self.last, self.before = sent.at, (self.bytes, self.mutations)
        self.bytes += sent.bytes
        self.mutations += sent.mutations


@dataclass(slots=True, kw_only=True)
class ClientSimulation:
    """The simulation of one client. It keeps only sums, and not the requests, because a load may be larger than memory.

    With `closed_loop`, every wait delays all later requests.
    """

    quotas: Quotas
    closed_loop: bool
    _client: SimulatedClient = field(init=False)
    _begin: int | None = None
    _end: int = 0
    _counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))
    _first: tuple[int, int] | None = None
    _worst: tuple[int, int | None] = (0, None)
    _by: set[str] = field(default_factory=set)
    _costs: set[str] = field(default_factory=set)
    _late: _Since | None = None
    _bytes: Curve = field(default_factory=Curve)
    _mutations: Curve = field(default_factory=Curve)

    def __post_init__(self) -> None:
        self._client = SimulatedClient(quotas=self.quotas, closed_loop=self.closed_loop)

    def take(self, request: Request) -> None:
        """Process the next request. Requests must be in the order of their times.

        Once the waits add up to more than 30 days, further attempts are ignored.
        """
        if len(self._costs) < len(_COSTS):
            self._costs.update(name for name in _COSTS if getattr(request, name))
        for sent in self._client.send(request):
            if self._counts["total_wait"] > LONGEST_MS:
                return
            self._add(sent)

    def flow(self) -> Flow:
        """Return the result so far."""
        first_at, first_wait = self._first or (None, None)
        worst_wait, worst_at = self._worst
        steady_bytes, steady_mutations = self._steady()
        return Flow(
            **self._counts,
            begin=self._begin or 0,
            end=self._end,
            first_wait=first_wait,
            first_at=first_at,
            worst_wait=worst_wait,
            worst_at=worst_at,
            steady_bytes=steady_bytes,
            steady_mutations=steady_mutations,
            by=tuple(sorted(self._by)),
            costs=tuple(sorted(self._costs)),
            unfinished=self._client.starved or self._counts["total_wait"] > LONGEST_MS,
            bytes_curve=self._bytes,
            mutations_curve=self._mutations,
        )

    def _steady(self) -> tuple[float, float] | tuple[None, None]:
        late = self._late
        if late is None or late.last - late.at < self._window_ms:
            return None, None
        seconds = (late.last - late.at) / 1_000
        return late.before[0] / seconds, late.before[1] / seconds

    @property
    def _window_ms(self) -> int:
        return self.quotas.samples * SAMPLE_MS

    def _add(self, sent: Sent) -> None:
        if self._begin is None:
            self._begin = sent.at
        self._end = max(self._end, sent.at + sent.wait_ms)
        counts = self._counts
        counts["admitted" if sent.served else "rejected"] += 1
        counts["bytes"] += sent.bytes
        counts["mutations"] += sent.mutations
        if sent.mutations:
            self._mutations.add(sent.at, sent.mutations)
        else:
            self._bytes.add(sent.at, sent.bytes)
        if sent.wait_ms:
            self._delayed(sent)
        if self._late is None and sent.at - self._begin >= 2 * self._window_ms:
            self._late = _Since(sent.at, sent.at)
        if self._late is not None:
            self._late.add(sent)

    def _delayed(self, sent: Sent) -> None:
        self._counts["delayed"] += 1
        self._counts["total_wait"] += sent.wait_ms
        self._first = self._first or (sent.at, sent.wait_ms)
        if sent.wait_ms > self._worst[0]:
            self._worst = (sent.wait_ms, sent.at)
        assert sent.by is not None
        self._by.add(sent.by)


def flow(requests: Iterable[Request], quotas: Quotas, *, closed_loop: bool = False) -> Flow:
    """Return the result of one client's whole load, on one connection to one broker. Source: KIP-124, KIP-219, KIP-599.

    `requests` must be in the order of their times. With `closed_loop`, every wait delays all later requests.

    >>> load = [Request(at, 1_000_000) for at in range(0, 60_000, 40)]  # 25 MB/s
    >>> flow(load, Quotas(producer_byte_rate=10e6)).worst_wait  # ms
    1100
    """
    walk = ClientSimulation(quotas=quotas, closed_loop=closed_loop)
    for one in requests:
        walk.take(one)
    return walk.flow()
