"""The answer of `quota advise`: a document of quotas, and the use, the limits and the throttle time of each client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kquota.cli.output import Answer, JsonObject, Part, Row, each, hidden, named, rounded
from kquota.cli.output import key as json_key
from kquota.cli.quota.answer import HEADER as ABOUT
from kquota.cli.quota.use_text import amount, bucket_name
from kquota.cli.table import aligned
from kquota.measure import counted, human_duration
from kquota.quota.advice import KeyTotal, ProposedLimit, Resized
from kquota.quota.document import Document
from kquota.quota.document_text import text
from kquota.quota.limits import plain
from kquota.quota_keys import QUOTA_KEYS, Model
from kquota.simulate.steady import ThrottledTime

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedClient(Part):
    """The measured use, the limits and the predicted throttle time of one client and key.

    `used` is the percentile of the use on `broker`, where it is highest. `most`, `measured_seconds` and
    `throttled_seconds` are each the largest value of all brokers. `limit` is None if no quota applies to the
    client now. `throttle_seconds` is the total throttle time in the measured period under the proposed limit, and
    `longest_seconds` is the longest time of throttling in a row. Both are None if the proposed limit does not throttle
    the client, or if kquota does not predict the time (`unpredicted`). `unfinished` is True if delayed work would be
    left at the end of the period.
    """

    key: str
    user: str | None
    client_id: str | None
    broker: str
    used: float = json_key(form=rounded(3))
    most: float = json_key(form=rounded(3))
    measured_seconds: int
    throttled_seconds: int
    limit: float | None
    proposed: float
    throttle_seconds: float | None = json_key(form=rounded(1))
    longest_seconds: float | None = json_key(form=rounded(1))
    unfinished: bool
    unpredicted: bool = hidden()


def _total(one: KeyTotal) -> JsonObject:
    return {
        "key": one.key,
        "clients": one.clients,
        "used": round(one.used, 3),
        "limits": round(one.limits, 3),
        "capacity": one.capacity,
        "share": rounded(4)(one.share),
    }


def _resized(one: Resized) -> JsonObject:
    return {**named(one.entity), "key": one.key, "old": one.old, "new": one.new}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised(Answer):
    """The advice for one cluster, from the use between `begin` and `end`. `head_room` is a fraction, for example 0.5.

    `brokers` is None if the number of brokers is unknown. `brokers_later` is None without --brokers.
    """

    HEADER = (
        "key",
        "user",
        "client",
        "broker",
        "used",
        "most",
        "limit",
        "proposed",
        "throttle_seconds",
        "longest_seconds",
        "throttled_seconds",
    )

    cluster: str
    begin: datetime
    end: datetime
    percentile: float
    head_room: float
    brokers: int | None
    brokers_later: int | None
    totals: tuple[KeyTotal, ...] = json_key(form=each(_total))
    resized: tuple[Resized, ...] = json_key(form=each(_resized))
    clients: tuple[AdvisedClient, ...]
    quotas: Document = hidden()

    def text(self) -> Iterator[str]:
        yield from (ABOUT + text(self.quotas)).splitlines()

    def rows(self) -> Iterator[Row]:
        for one in self.clients:
            numbers = (one.used, one.most, one.limit, one.proposed, one.throttle_seconds, one.longest_seconds)
            yield [
                one.key,
                one.user or "",
                one.client_id or "",
                one.broker,
                *(None if number is None else plain(round(float(number), 3)) for number in numbers),
                str(one.throttled_seconds),
            ]


def client(one: ProposedLimit, waits: ThrottledTime | None) -> AdvisedClient:
    """Return a proposal with its predicted throttle time. `waits` is None if kquota did not predict it."""
    use = one.use
    return AdvisedClient(
        key=use.bucket.key,
        user=use.bucket.user,
        client_id=use.bucket.client_id,
        broker=use.broker,
        used=use.percentile,
        most=use.most,
        measured_seconds=use.seconds,
        throttled_seconds=use.throttled,
        limit=one.now,
        proposed=one.limit,
        throttle_seconds=None if waits is None else waits.seconds,
        longest_seconds=None if waits is None else waits.longest,
        unfinished=waits is not None and waits.unfinished,
        unpredicted=waits is None and one.throttles,
    )


def summary(found: Advised) -> Iterator[str]:
    """Yield the measured period, the total of each key, and notes about resized limits and throttled clients.

    Then yield at most `_SHOWN` proposed limits that would have throttled their client, the longest throttle time first.
    kquota never predicts the throttle time for keys with a token bucket. For each such key, yield the number of clients
    that used more than their proposed limit, if there are any.
    """
    future = found.brokers_later
    later = "" if future is None else f", for {counted(future, 'broker')} instead of {found.brokers}"
    yield f"measured from {found.begin:%Y-%m-%d %H:%M} to {found.end:%Y-%m-%d %H:%M} UTC{later}"
    for one in found.totals:
        yield _total_line(one)
    if found.resized:
        resized = counted(len(found.resized), "limit")
        yield f"the document also has {resized} without measured use, adjusted to the new number of brokers"
    if delayed := [one for one in found.clients if one.throttled_seconds > 0]:
        clients = _clients(delayed)
        yield f"brokers throttled {clients} during the measurement, so the real demand is higher than the measured use"
    yield from _throttled_lines(found.clients)


def _clients(rows: Iterable[AdvisedClient]) -> str:
    """Return the number of clients. A client has a row for each key."""
    return counted(len({(one.user, one.client_id) for one in rows}), "client")


def _total_line(one: KeyTotal) -> str:
    where = "in the cluster" if QUOTA_KEYS[one.key].model is Model.BUCKET else "on a broker"
    limits = f"{one.key}: {counted(one.clients, 'limit')}, in total {amount(one.key, one.limits)} {where}"
    whole = "" if one.capacity is None else f" ({one.share:.0%} of its capacity, {amount(one.key, one.capacity)})"
    return f"{limits}{whole}. Total use: {amount(one.key, one.used)}"


def _throttled_lines(clients: Sequence[AdvisedClient]) -> Iterator[str]:
    throttled = [one for one in clients if one.throttle_seconds]
    unpredicted = Counter(one.key for one in clients if one.unpredicted)
    if throttled:
        yield from _throttled_table(throttled)
    elif not unpredicted:
        yield "the proposed limits would have throttled no client"
    for key, count in unpredicted.items():
        # For the other keys, kquota predicts the throttle time of most clients, and `run` warns about the rest.
        if QUOTA_KEYS[key].model is Model.BUCKET:
            more = f"{counted(count, 'client')} used more than the proposed {key}"
            yield f"{more}. kquota does not predict the throttle time for this key"


def _throttled_table(throttled: Sequence[AdvisedClient]) -> Iterator[str]:
    yield f"the proposed limits would have throttled {_clients(throttled)}:"
    worst = sorted(throttled, key=lambda one: -(one.throttle_seconds or 0))[:_SHOWN]
    rows = [
        (
            bucket_name(one.user, one.client_id),
            one.key,
            amount(one.key, one.most),
            amount(one.key, one.proposed),
            human_duration(one.throttle_seconds or 0),
            human_duration(one.longest_seconds or 0),
        )
        for one in worst
    ]
    heads = ("client", "key", "most used", "limit", "throttled", "longest")
    yield from aligned(rows, heads, frozenset({0, 1}))
    if len(throttled) > _SHOWN:
        yield f"... and {counted(len(throttled) - _SHOWN, 'more limit')}. --output tsv shows all limits"
