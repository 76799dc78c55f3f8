"""A client under its quotas: the time of each request, and how long the client is muted in between (KIP-219)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from kquota.errors import Invalid
from kquota.quota_keys import QUOTA_KEYS, Model
from kquota.simulate.delay import Bucket, Draft, Mutations, Throughput, percent, throttle_time_ms, throughput
from kquota.simulate.rate import must_be_positive, must_be_whole
from kquota.terms import SAMPLES

BYTE_RATE: Final = "byte rate"
REQUEST: Final = "request percentage"
MUTATIONS: Final = "mutation rate"
_PATIENCE: Final = 1_000
"""The number of empty answers in a row after which the client gives up on a fetch."""


class Request(NamedTuple):
    """One request of a client. The class is a tuple to save memory, because a trace has millions of requests."""

    at: int
    """The earliest time in ms at which the client sends the request."""
    bytes: int = 0
    thread_ms: float = 0.0
    """The time in ms that the request uses a thread of the broker."""
    mutations: int = 0
    """The number of partitions that the request creates or deletes."""


class Sent(NamedTuple):
    """One attempt to send a request."""

    at: int
    """The time in ms at which the broker reads the attempt."""
    bytes: int
    """The bytes that the broker accepts."""
    mutations: int
    """The mutations that the broker accepts."""
    wait_ms: int
    """The time for which the broker then mutes the client."""
    by: str | None
    """The quota that causes the wait, or None without a wait."""
    served: bool
    """True if the broker accepts the attempt, so that the client does not repeat it."""


@dataclass(frozen=True, slots=True, init=False)
class Quotas:
    """The quotas of a client by key, for example `Quotas(producer_byte_rate=10e6)`. None means no quota.

    A client produces or consumes, not both. Raises Invalid for a key that is not simulated, and for two keys of one
    model. Also raises Invalid for a limit that is 0, negative or not finite, and for fewer than 1 sample.
    """

    limits: Mapping[str, float]
    """The limit of each key that has a quota, in the unit of the key."""
    strict: bool
    """True if brokers reject mutations over the quota. Otherwise they accept and delay them, as for an old client
    (KIP-599).
    """
    samples: int
    """The value of `quota.window.num` and `controller.quota.window.num`."""

    def __init__(self, *, strict: bool = True, samples: int = SAMPLES, **limits: float | None) -> None:
        known = {key: row for key, row in QUOTA_KEYS.items() if row.simulated is not None}
        if unknown := limits.keys() - known.keys():
            raise Invalid(f"{', '.join(sorted(unknown))}: not simulated. Simulated keys: {', '.join(known)}")
        held = {key: limit for key in known if (limit := limits.get(key)) is not None}
        for model in Model:
            if len(rivals := [key for key in held if known[key].model is model]) > 1:
                raise Invalid(f"one connection either produces or consumes. Give {' or '.join(rivals)}, not both")
        for key, limit in held.items():
            must_be_positive(limit, key)
        must_be_whole(samples, "samples")
        for name, value in (("limits", held), ("strict", strict), ("samples", samples)):
            object.__setattr__(self, name, value)

    def limit(self, model: Model) -> float | None:
        """Return the limit of this model, or None if there is none."""
        return next((limit for key, limit in self.limits.items() if QUOTA_KEYS[key].model is model), None)

    def throughput(self, model: Model) -> Throughput | None:
        """Return a new meter for the limit of this model, or None if there is no limit."""
        bound = self.limit(model)
        return None if bound is None else throughput(model, bound, self.samples)


@dataclass(slots=True, kw_only=True)
class SimulatedClient:
    """A client with one connection. It sends its requests in order: each when the request is due and the client is no
    longer muted.

    Each request counts under the request percentage, and also under the mutation rate if it has mutations, otherwise
    under the byte rate. The longer wait applies, not the sum. A fetch that has to wait gets an empty answer and does
    not count in the byte rate. Rejected mutations spend no tokens. After the wait, the client repeats the fetch or the
    rejected mutations.
    """

    quotas: Quotas
    closed_loop: bool
    """True if the client pauses between two requests as in its load, so that every wait delays all later requests.
    Otherwise requests queue up while the client is muted.
    """
    starved: bool = False
    """True after the client has given up on a fetch that never gets any data."""
    _fetches: bool = field(init=False)
    _bytes: Throughput | None = field(init=False)
    _requests: Throughput | None = field(init=False)
    _mutations: Mutations | None = field(init=False)
    _free: int = 0
    _moved: int = 0

    def __post_init__(self) -> None:
        quotas, rate = self.quotas, self.quotas.limit(Model.BUCKET)
        self._fetches = any(QUOTA_KEYS[key].fetches for key in quotas.limits)
        self._bytes, self._requests = quotas.throughput(Model.RATE), quotas.throughput(Model.SHARE)
        self._mutations = None if rate is None else Mutations(Bucket(rate=rate, samples=quotas.samples))

    def send(self, request: Request) -> Iterator[Sent]:
        """Yield all attempts until the whole request is accepted. Requests must be in the order of their times.

        A fetch never gets any data if each attempt costs more thread time than the quota adds until the next attempt.
        After a thousand empty answers in a row, the client is `starved`, and sends nothing more.
        """
        if self.starved:
            return
        start = now = max(request.at + self._moved, self._free)
        left, tries = request.bytes, 0
        while True:
            sent = self._tried(request, left, now)
            yield sent
            now += sent.wait_ms
            if not sent.served:
                tries += 1
            elif request.mutations or left <= sent.bytes:
                break
            else:
                # The quota limits the size of a fetch, so the client fetches the rest next.
                left, tries = left - sent.bytes, 0
            if tries == _PATIENCE and not request.mutations:
                self.starved = True
                return
        self._free = now
        if self.closed_loop:
            self._moved += now - start

    def _tried(self, request: Request, left: int, now: int) -> Sent:
        fetches = self._fetches and not request.mutations
        throttle_ms, by = 0, REQUEST
        if self._requests is not None:
            throttle_ms = self._requests.record(percent(request.thread_ms), now)
        if request.mutations:
            wait, served = self._mutated(request.mutations, now)
            # If both waits are equal, a broker reports the request quota.
            throttle_ms, by = (wait, MUTATIONS) if wait > throttle_ms else (throttle_ms, by)
            return Sent(now, 0, request.mutations if served else 0, throttle_ms, by if throttle_ms else None, served)
        size = left
        if self._bytes is not None:
            size = min(left, self._bytes.most) if fetches else left
            wait = self._bytes.record(size, now)
            throttle_ms, by = (wait, BYTE_RATE) if wait > throttle_ms else (throttle_ms, by)
            if fetches and throttle_ms:
                self._bytes.forget(size, now)
        served = not (fetches and throttle_ms)
        return Sent(now, size if served else 0, 0, throttle_ms, by if throttle_ms else None, served)

    def _mutated(self, mutations: int, now: int) -> tuple[int, bool]:
        if self._mutations is None:
            return 0, True
        if not self.quotas.strict:
            return self._mutations.delay(mutations, now), True
        wait = self._mutations.admit(mutations, now)
        return (0, True) if wait is None else (max(1, wait), False)


Admission: TypeAlias = Mutations | Draft
"""A mutation quota as shipped, or a draft of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One request with the next items. An item is the number of partitions of a topic."""

    at: int
    """The time of the request in ms."""
    first: int
    """The index of the first item in the request."""
    admitted: int
    """The number of accepted items."""
    mutations: int
    """The number of accepted mutations."""
    wait_ms: int
    """The time that the client waits after the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """The manner in which a client sends topics. Raises Invalid if `per_request` is less than 1."""

    quotas: Quotas = field(default_factory=Quotas)
    """Only the request percentage, `strict` and `samples` are used."""
    per_request: int | None = None
    """The number of topics in each request, or None for all that remain."""
    thread_ms: float = 0.0
    """The time in ms that each request uses a thread of the broker."""

    def __post_init__(self) -> None:
        if self.per_request is not None:
            must_be_whole(self.per_request, "per_request")


def rounds(items: Sequence[int], quota: Admission, manner: Manner = Manner()) -> Iterator[Round]:
    """Yield each request of a client that sends its remaining items as soon as possible until all are accepted.

    The first request is at 0 ms. Each item is the number of partitions of a topic. All rejected items of a request get
    the same wait (KIP-599). If the wait of the request quota is longer, the client waits that long.
    """
    requests = manner.quotas.throughput(Model.SHARE)
    now, first = 0, 0
    while first < len(items):
        last = min(first + (manner.per_request or len(items)), len(items))
        after, wait = (_admitted if manner.quotas.strict else _let_through)(items, first, last, quota, now)
        if requests is not None:
            wait = throttle_time_ms(requests.record(percent(manner.thread_ms), now), [wait])
        mutations = sum(items[first:after])
        yield Round(at=now, first=first, admitted=after - first, mutations=mutations, wait_ms=wait)
        now, first = now + wait, after


def _admitted(items: Sequence[int], first: int, last: int, quota: Admission, now: int) -> tuple[int, int]:
    for n in range(first, last):
        wait = quota.admit(items[n], now)
        if wait is not None:
            return n, max(1, wait)
    return last, 0


def _let_through(items: Sequence[int], first: int, last: int, quota: Admission, now: int) -> tuple[int, int]:
    wait = 0
    for n in range(first, last):
        wait = quota.delay(items[n], now)
    return last, wait
