"""The answers of `quota probe`: the planned load, and the result for the client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kquota.cli.contract import DONE, NOT_YET
from kquota.cli.output import Answer, JsonObject, hidden, key, rounded, spread
from kquota.cli.quota.sentences import amount, headline, whom, wrapped
from kquota.cli.table import aligned
from kquota.measure import counted, human_bytes, human_rate
from kquota.probe import verdict
from kquota.probe.load import BYTES, KEYS, Kind, Load
from kquota.probe.verdict import GOOD, Reading, Verdict
from kquota.quota.explain import Explanation, KeyAnswer

ExplainedLoad: TypeAlias = tuple[Load, Explanation]
_SAYS: Final[Mapping[Verdict, str]] = {
    Verdict.AS_EXPLAINED: "As expected, within 10%.",
    Verdict.NOT_REACHED: "As expected: the client did not reach its quota, and no broker throttled it.",
    Verdict.MORE: "More than the quota allows. The brokers may be too old for this quota, or a"
    " client.quota.callback.class may apply another limit.",
    Verdict.LESS: "Less than the quota allows, and throttled. Other connections may use the same bucket,"
    " another quota may apply, or this machine may be too busy.",
    Verdict.SLOW: "Less than the client asked for, and no broker throttled it. The bottleneck is the network, the"
    " brokers or this machine, not a quota.",
    Verdict.THROTTLED: "Throttled, but no quota of this kind applies. Another quota throttles the client.",
}


def _name(found: Verdict) -> str:
    return found.name.lower()


def _probe(probed: ExplainedLoad) -> JsonObject:
    """Return the JSON of the load and its quota. `asked` is in bytes per second on each broker, or in mutations per
    second. For requests it is null, and `connections` is the number of connections. The `limit` of the quota is null
    if no known limit applies, or if the brokers ignore it.
    """
    load, explained = probed
    client, quota = explained.client, _answer(load, explained)
    won, requests = quota.winner, load.kind is Kind.REQUESTS
    assert client is not None
    return {
        "client": {"user": client.user, "client_id": client.client_id},
        "load": {
            "kind": load.kind,
            "topic": load.topic,
            "asked": None if requests else load.rate,
            "connections": int(load.rate) if requests else None,
            "warm_seconds": load.warm,
            "seconds": load.seconds,
        },
        "quota": {
            "key": quota.key,
            "unit": quota.row.unit,
            "limit": load.limit,
            "level": None if won is None else won.level,
            "entity": None if won is None else won.entity,
        },
        "other_quotas": {other.key: other.limit for other in _others(load, explained)},
    }


def _reading(load: Load, reading: Reading) -> JsonObject:
    """Return the JSON of one reading. `broker` is null for the controller. Rates are per second, and `difference` is a
    fraction of `expected`.
    """
    expected, throttles = _expected(load), reading.throttles
    return {
        "broker": reading.broker,
        "rate": round(reading.rate, 3),
        "expected": expected,
        "difference": None if expected is None else round(verdict.difference(reading, expected), 4),
        "seconds": round(reading.seconds, 3),
        "thread_ms_per_request": _thread_ms(load, reading),
        "throttled": {
            "count": throttles.count,
            "mean_ms": rounded(1)(throttles.mean_ms),
            "longest_ms": throttles.longest_ms,
            "total_ms": throttles.total_ms,
        },
        "verdict": _name(verdict.of(load, reading)),
    }


def _expected(load: Load) -> float | None:
    return None if load.kind is Kind.REQUESTS else load.expected


def _row(load: Load, reading: Reading) -> list[str]:
    kind, expected, throttles = load.kind, _expected(load), reading.throttles
    got = human_rate(reading.rate) if kind in BYTES else f"{_three(reading.rate)}/s"
    cells = ["controller" if reading.broker is None else str(reading.broker), got]
    if expected is None:
        cost = _thread_ms(load, reading)
        cells.append("" if cost is None else f"{cost:.3g} ms")
    else:
        cells.append(amount(KEYS[kind], expected) if kind in BYTES else f"{expected:.3g}/s")
        cells.append(f"{verdict.difference(reading, expected):+.1%}")
    cells.append(counted(throttles.count, "time") if throttles.count else "never")
    cells.append("" if throttles.mean_ms is None else f"{throttles.mean_ms:.0f} ms")
    cells.append(f"{throttles.longest_ms} ms" if throttles.count else "")
    return cells


def _lines(probed: ExplainedLoad) -> Iterator[str]:
    load, explained = probed
    assert explained.client is not None
    yield from wrapped("client", whom(explained.client))
    yield from wrapped("load", _asked(load))
    when = "" if load.kind is Kind.CREATE_TOPICS else f", after {load.warm:g} s in which the quota windows fill"
    when = when or ", after a full bucket is used up" * (load.limit is not None)
    yield from wrapped("measured", f"{load.seconds:g} s{when}")
    yield from wrapped("quota", headline(_answer(load, explained), explained.cluster))
    for other in _others(load, explained):
        yield from wrapped("other", headline(other, explained.cluster))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlanned(Answer):
    """The load that kquota would run."""

    INDENT = 2

    probe: ExplainedLoad = spread(_probe)
    dry_run: bool = True

    def text(self) -> Iterator[str]:
        yield from _lines(self.probe)
        load, _ = self.probe
        if load.kind is Kind.PRODUCE:
            yield from wrapped("writes", f"{human_bytes(load.expected * load.lasting * len(load.leaders))} in total")
        if load.kind is Kind.CREATE_TOPICS:
            yield from wrapped("topics", f"{load.topic}-0, -1 and so on (temporary). Nothing was created")
        else:
            yield from wrapped("topic", f"{load.topic} (temporary). Nothing was created")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed(Answer):
    """The throughput of the client, and the verdict on this throughput."""

    INDENT = 2

    probe: ExplainedLoad = spread(_probe)
    as_explained: bool
    """True if the result matches the explanation of the quota."""
    verdict: Verdict = key(form=_name)
    """The worst verdict of all readings."""
    readings: Sequence[JsonObject]
    """The JSON of `measured`."""
    measured: Sequence[Reading] = hidden()
    """The throughput of the client on each broker, or on the controller."""

    def text(self) -> Iterator[str]:
        load, explained = self.probe
        yield from _lines(self.probe)
        yield ""
        heads = ["broker", "got", "expected", "difference", "throttled", "mean", "longest"]
        if load.kind is Kind.REQUESTS:
            heads[1:4] = ["requests", "thread time"]
        yield from aligned([_row(load, one) for one in self.measured], heads)
        yield ""
        end = _conclusion(load, self.verdict)
        if not self.as_explained and (shared := _answer(load, explained).shared):
            end += f" The quota has one bucket for {shared}."
        yield from wrapped("", end, indent="")


def probed(load: Load, explained: Explanation, readings: Sequence[Reading]) -> Probed:
    """Return the answer after the load. The exit code is 0 if the result matches the explanation, otherwise 8."""
    result = verdict.worst([verdict.of(load, one) for one in readings])
    return Probed(
        probe=(load, explained),
        as_explained=result in GOOD,
        verdict=result,
        readings=[_reading(load, one) for one in readings],
        measured=readings,
        code=DONE if result in GOOD else NOT_YET,
    )


def _thread_ms(load: Load, reading: Reading) -> float | None:
    """Return the thread time of one request in ms, or None if it is unknown, as for a load of bytes or topics.

    The calculation uses the quota, because a throttled client uses exactly the thread time that its quota allows.
    """
    limit = load.limit
    if load.kind is not Kind.REQUESTS or limit is None or not reading.throttles.count or not reading.rate:
        return None
    return round(limit * 10 / reading.rate, 4)


def _answer(load: Load, explained: Explanation) -> KeyAnswer:
    return next(one for one in explained.answers if one.key == KEYS[load.kind])


def _conclusion(load: Load, found: Verdict) -> str:
    if load.kind is Kind.REQUESTS and found is Verdict.AS_EXPLAINED:
        if load.limit is None:
            return "As expected: never throttled."
        share = f"{load.limit:g}% of one thread's time"
        return (
            f"As expected: throttled. Each broker that throttled the client counted {share}. "
            "The table shows the cost of a request."
        )
    if load.kind is Kind.PRODUCE and found is Verdict.NOT_REACHED and load.limit is not None:
        least = human_rate(load.limit * len(load.leaders))
        return f"{_SAYS[found]} To reach the quota, give a --produce rate above {least}."
    return _SAYS[found]


def _asked(load: Load) -> str:
    brokers = f"each of {len(load.leaders):,} brokers" if len(load.leaders) > 1 else "one broker"
    match load.kind:
        case Kind.REQUESTS:
            many = f"{load.rate:g} connections" if load.rate > 1 else "one connection"
            return f"requests to {brokers}, at the full speed of {many}"
        case Kind.CREATE_TOPICS:
            many = f"{load.partitions:,} partitions" if load.partitions > 1 else "one partition"
            return f"topics with {many}, created and deleted: {load.rate:.3g} mutations/s"
        case _:
            each = human_rate(load.rate)
            return f"{load.kind.value} {human_rate(load.rate * len(load.leaders))} in total, {each} on {brokers}"


def _others(load: Load, explained: Explanation) -> Iterator[KeyAnswer]:
    mattering = (KEYS[Kind.REQUESTS],) if load.kind in BYTES else (KEYS[Kind.CONSUME],)
    for one in explained.answers:
        if load.kind is not Kind.CREATE_TOPICS and one.key in mattering and one.limit is not None:
            yield one


def _three(rate: float) -> str:
    """Format a rate: with three significant digits below 99.5, otherwise as a whole number (never as 1.42e+03)."""
    return f"{rate:,.0f}" if rate >= 99.5 else f"{rate:.3g}"
