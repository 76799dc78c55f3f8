"""The answer of `quota advise`: a document of quotas, and the use, the limits and the throttle time of each client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from kquota.cli.output import Answer, JsonObject, Row, each, hidden, named, rounded
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


PredictedLimit: TypeAlias = tuple[ProposedLimit, ThrottledTime | None]
"""A proposed limit, and the predicted throttle time under this limit (None without a prediction)."""


def _client(predicted: PredictedLimit) -> JsonObject:
    """Return the JSON of one client and key. `broker` is the broker with the highest percentile of the use, and `used`
    is this percentile. `longest_seconds` is the longest time of throttling without a break. All other seconds are
    totals of the measured period. `limit` is the current limit, or null if no quota applies. `throttle_seconds` and
    `longest_seconds` are null without a prediction.
    """
    one, waits = predicted
    use = one.use
    return {
        "key": use.bucket.key,
        "user": use.bucket.user,
        "client_id": use.bucket.client_id,
        "broker": use.broker,
        "used": round(use.percentile, 3),
        "most": round(use.most, 3),
        "measured_seconds": use.seconds,
        "throttled_seconds": use.throttled,
        "limit": one.now,
        "proposed": one.limit,
        "throttle_seconds": None if waits is None else round(waits.seconds, 1),
        "longest_seconds": None if waits is None else round(waits.longest, 1),
        "unfinished": waits is not None and waits.unfinished,
    }


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
    """The advice for one cluster, from the use between `begin` and `end`."""

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
    """The value of `--percentile`, from 1 to 100."""
    head_room: float
    """The value of `--head-room` as a fraction, for example 0.5 for 50%."""
    brokers: int | None
    """The current number of brokers, or None if it is unknown."""
    brokers_later: int | None
    """The value of `--brokers`, or None if it is not given."""
    totals: tuple[KeyTotal, ...] = json_key(form=each(_total))
    resized: tuple[Resized, ...] = json_key(form=each(_resized))
    """Limits without measured use that were adjusted to the new number of brokers."""
    clients: tuple[PredictedLimit, ...] = json_key(form=each(_client))
    quotas: Document = hidden()
    """The document that the text shows: all limits of each entity that has a proposed or resized limit, and of its
    user.
    """

    def text(self) -> Iterator[str]:
        yield from (ABOUT + text(self.quotas)).splitlines()

    def rows(self) -> Iterator[Row]:
        for one, waits in self.clients:
            use, times = one.use, (None, None) if waits is None else (waits.seconds, waits.longest)
            numbers = (use.percentile, use.most, one.now, one.limit, *times)
            yield [
                use.bucket.key,
                use.bucket.user or "",
                use.bucket.client_id or "",
                use.broker,
                *(None if number is None else plain(round(float(number), 3)) for number in numbers),
                str(use.throttled),
            ]


def summary(found: Advised) -> Iterator[str]:
    """Yield notes on the measured use and on the clients that the proposed limits would have throttled. kquota does not
    predict the throttle time for keys with a token bucket.
    """
    future = found.brokers_later
    later = "" if future is None else f". The limits are for {counted(future, 'broker')} instead of {found.brokers}"
    yield f"measured from {found.begin:%Y-%m-%d %H:%M} to {found.end:%Y-%m-%d %H:%M} UTC{later}"
    for one in found.totals:
        yield _total_line(one)
    if found.resized:
        resized = counted(len(found.resized), "limit")
        yield f"the document also has {resized} without measured use, adjusted to the new number of brokers"
    if delayed := [one for one, _ in found.clients if one.use.throttled > 0]:
        clients = _clients(delayed)
        yield f"brokers throttled {clients} during the measurement, so the real demand is higher than the measured use"
    yield from _throttled_lines(found.clients)


def _clients(limits: Iterable[ProposedLimit]) -> str:
    """Return the number of clients as text. Each client counts once, although it has a limit for each key."""
    return counted(len({(one.use.bucket.user, one.use.bucket.client_id) for one in limits}), "client")


def _total_line(one: KeyTotal) -> str:
    where = "in the cluster" if QUOTA_KEYS[one.key].model is Model.BUCKET else "on a broker"
    limits = f"{one.key}: {counted(one.clients, 'limit')}, in total {amount(one.key, one.limits)} {where}"
    whole = ""
    if one.capacity is not None and one.share is not None:
        share = "less than 1%" if one.share < 0.01 else f"{one.share:.0%}"
        whole = f" ({share} of its capacity, {amount(one.key, one.capacity)})"
    return f"{limits}{whole}. Total use: {amount(one.key, one.used)}"


def _throttled_lines(clients: Sequence[PredictedLimit]) -> Iterator[str]:
    throttled = [(one, waits) for one, waits in clients if waits is not None and waits.seconds]
    unpredicted = Counter(one.use.bucket.key for one, waits in clients if waits is None and one.throttles)
    if throttled:
        yield from _throttled_table(throttled)
    elif not unpredicted:
        yield "the proposed limits would have throttled no client"
    for key, count in unpredicted.items():
        # For the other keys, kquota predicts the throttle time of most clients, and `run` warns about the rest.
        if QUOTA_KEYS[key].model is Model.BUCKET:
            more = f"{counted(count, 'client')} used more than the proposed {key}"
            yield f"{more}. kquota does not predict the throttle time for this key"


def _throttled_table(throttled: Sequence[tuple[ProposedLimit, ThrottledTime]]) -> Iterator[str]:
    yield f"the proposed limits would have throttled {_clients(one for one, _ in throttled)}:"
    worst = sorted(throttled, key=lambda predicted: -predicted[1].seconds)[:_SHOWN]
    rows = [
        (
            bucket_name(one.use.bucket.user, one.use.bucket.client_id),
            one.use.bucket.key,
            amount(one.use.bucket.key, one.use.most),
            amount(one.use.bucket.key, one.limit),
            human_duration(waits.seconds),
            human_duration(waits.longest),
        )
        for one, waits in worst
    ]
    heads = ("client", "key", "most used", "limit", "throttled", "longest")
    yield from aligned(rows, heads, frozenset({0, 1}))
    if len(throttled) > _SHOWN:
        yield f"... and {counted(len(throttled) - _SHOWN, 'more limit')}. --output tsv shows all limits"
