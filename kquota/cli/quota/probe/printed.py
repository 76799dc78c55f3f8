"""What `quota probe` prints of a load: JSON is a contract with scripts, text is for people, 80 columns wide."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kquota.cli.fields import named
from kquota.cli.options import Output
from kquota.cli.quota.sentences import amount, headline, whom, wrapped
from kquota.cli.table import aligned
from kquota.measure import human_bytes, human_rate
from kquota.probe import verdict
from kquota.probe.load import BYTES, KEYS, Kind, Load
from kquota.probe.meter import Reading
from kquota.probe.verdict import GOOD, Verdict
from kquota.quota.explain import UNITS, Answer, Explanation

VERSION: Final = 1
_SAYS: Final[Mapping[Verdict, str]] = {
    Verdict.AS_EXPLAINED: "As explained, within 10 %.",
    Verdict.NOT_REACHED: "As explained: it got what it asked for, and its quota was not reached.",
    Verdict.MORE: "More than the quota lets through: is the quota newer than its brokers know, or does a"
    " client.quota.callback.class decide?",
    Verdict.LESS: "Less than the quota lets through, and throttled: other clients may spend from the same bucket,"
    " another quota may hold it, or this machine is too busy to keep up.",
    Verdict.SLOW: "Less than it asked for, and no broker throttled it: the network, the brokers or this machine are in"
    " the way, and no quota.",
    Verdict.THROTTLED: "Throttled, and no quota of this kind holds it: another one does.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """A load, what came of it, and what its quotas are."""

    load: Load
    explained: Explanation
    readings: tuple[Reading, ...]

    @property
    def answer(self) -> Answer:
        """The quota that the load was to meet."""
        return answer(self.load, self.explained)

    def of(self, reading: Reading) -> Verdict:
        """What one reading says."""
        return verdict.of(self.load, reading)

    @property
    def verdict(self) -> Verdict:
        """What all of them say."""
        return verdict.worst([self.of(reading) for reading in self.readings])

    @property
    def good(self) -> bool:
        """Whether the client got what is explained."""
        return self.verdict in GOOD


def answer(load: Load, explained: Explanation) -> Answer:
    """The quota that the load is to meet."""
    return next(one for one in explained.answers if one.key == KEYS[load.kind])


def plan(load: Load, explained: Explanation, output: Output) -> str:
    """What would be done."""
    if output is Output.json:
        return json.dumps({"version": VERSION, **_head(load, explained), "dry_run": True}, ensure_ascii=False, indent=2)
    lines = list(_head_lines(load, explained))
    if load.kind is Kind.PRODUCE:
        lines += _line("writes", human_bytes(load.expected * load.lasting * len(load.leaders)) + " in all")
    return "\n".join([*lines, *_line("topic", f"{load.topic}, removed in the end; nothing was made")])


def removal(topics: Sequence[str], output: Output) -> str:
    """What --clean-up would remove. Nothing was."""
    if output is Output.json:
        return json.dumps({"version": VERSION, "dry_run": True, "topics": topics}, ensure_ascii=False, indent=2)
    return "\n".join(f"Would remove topic {topic}." for topic in topics) or "Would remove nothing."


def document(found: Probed) -> str:
    """The contract with scripts, version 1. Rates are per second; null is what there is none of, or nobody knows."""
    load = found.load
    return json.dumps(
        {
            "version": VERSION,
            **_head(load, found.explained),
            "as_explained": found.good,
            "verdict": found.verdict.name.lower(),
            "readings": [_reading(found, reading) for reading in found.readings],
        },
        ensure_ascii=False,
        indent=2,
    )


def _head(load: Load, explained: Explanation) -> dict[str, object]:
    client, its = explained.client, answer(load, explained)
    won = its.winner
    assert client is not None
    return {
        "client": {"user": client.user, "client_id": client.client_id},
        "load": {
            "kind": load.kind.value,
            "topic": load.topic,
            "asked": None if load.kind is Kind.REQUESTS else load.rate,
            "connections": int(load.rate) if load.kind is Kind.REQUESTS else None,
            "warm_seconds": load.warm,
            "seconds": load.seconds,
        },
        "quota": {
            "key": its.key,
            "unit": UNITS[its.key],
            "limit": load.limit,
            "level": None if won is None else won.level,
            "entity": None if won is None or won.entity is None else named(won.entity),
        },
        "other_quotas": {other.key: other.limit for other in _others(load, explained)},
    }


def _reading(found: Probed, reading: Reading) -> dict[str, object]:
    expected = None if found.load.kind is Kind.REQUESTS else found.load.expected
    throttles = reading.throttles
    return {
        "broker": reading.broker,
        "rate": round(reading.rate, 3),
        "expected": expected,
        "difference": None if expected is None else round(verdict.difference(reading, expected), 4),
        "seconds": round(reading.seconds, 3),
        "thread_ms_per_request": _thread_ms(found, reading),
        "throttled": {
            "count": throttles.count,
            "mean_ms": None if throttles.mean_ms is None else round(throttles.mean_ms, 1),
            "longest_ms": throttles.longest_ms,
            "total_ms": throttles.total_ms,
        },
        "verdict": found.of(reading).name.lower(),
    }


def _thread_ms(found: Probed, reading: Reading) -> float | None:
    """What one request cost a thread: while a client is throttled, a broker counts just its quota."""
    limit = found.load.limit
    if found.load.kind is not Kind.REQUESTS or limit is None or not reading.throttles.count or not reading.rate:
        return None
    return round(limit * 10 / reading.rate, 4)


def text(found: Probed) -> str:
    """For people."""
    heads, rows = _rows(found)
    ends = _said(found)
    if not found.good and (shared := found.answer.shared):
        ends += f" One bucket has {shared}."
    lines = [*_head_lines(found.load, found.explained), "", aligned(rows, heads), "", *wrapped("", ends, indent="")]
    return "\n".join(lines)


def _said(found: Probed) -> str:
    if found.load.kind is Kind.REQUESTS and found.verdict is Verdict.AS_EXPLAINED:
        if found.load.limit is None:
            return "As explained: never throttled."
        share = f"{found.load.limit:g}% of one thread's time"
        return f"As explained: throttled. A broker that throttles it counts {share}, so a request costs what is above."
    if found.load.kind is Kind.PRODUCE and found.verdict is Verdict.NOT_REACHED and found.load.limit is not None:
        least = human_rate(found.load.limit * len(found.load.leaders))
        return f"{_SAYS[found.verdict]} It takes a --produce of more than {least}."
    return _SAYS[found.verdict]


def _head_lines(load: Load, explained: Explanation) -> Iterator[str]:
    assert explained.client is not None
    yield from _line("client", whom(explained.client))
    yield from _line("load", _asked(load))
    when = "" if load.kind is Kind.CREATE_TOPICS else f", after {load.warm:g} s in which the quota's windows fill"
    yield from _line(
        "measured", f"{load.seconds:g} s{when or ', once a full bucket is spent' * (load.limit is not None)}"
    )
    yield from _line("quota", headline(answer(load, explained), explained.cluster))
    for other in _others(load, explained):
        yield from _line("besides", headline(other, explained.cluster))


def _asked(load: Load) -> str:
    brokers = f"each of {len(load.leaders)} brokers" if len(load.leaders) > 1 else "one broker"
    match load.kind:
        case Kind.REQUESTS:
            many = f"{load.rate:g} connections" if load.rate > 1 else "one connection"
            return f"requests, as fast as {many} can, to {brokers}"
        case Kind.CREATE_TOPICS:
            many = f"{load.partitions} partitions" if load.partitions > 1 else "one partition"
            return f"topics of {many}, created and deleted: {load.rate:.3g} mutations/s"
        case _:
            each = human_rate(load.rate)
            return f"{load.kind.value} {human_rate(load.rate * len(load.leaders))}, {each} of it on {brokers}"


def _others(load: Load, explained: Explanation) -> Iterator[Answer]:
    """What else may throttle this client."""
    mattering = (KEYS[Kind.REQUESTS],) if load.kind in BYTES else (KEYS[Kind.CONSUME],)
    for one in explained.answers:
        if load.kind is not Kind.CREATE_TOPICS and one.key in mattering and one.limit is not None:
            yield one


def _rows(found: Probed) -> tuple[list[str], list[list[str]]]:
    load = found.load
    unit = "" if load.kind in BYTES else "/s"
    heads = ["broker", "got", "expected", "difference", "throttled", "mean", "longest"]
    if load.kind is Kind.REQUESTS:
        heads[1:4] = ["requests", "thread time"]
    rows = []
    for one in found.readings:
        got = f"{_three(one.rate)}/s" if unit else human_rate(one.rate)
        row = ["controller" if one.broker is None else str(one.broker), got]
        if load.kind is Kind.REQUESTS:
            cost = _thread_ms(found, one)
            row.append("" if cost is None else f"{cost:.3g} ms")
        else:
            expected = amount(KEYS[load.kind], load.expected) if unit == "" else f"{load.expected:.3g}/s"
            row += [expected, f"{verdict.difference(one, load.expected) * 100:+.1f} %"]
        waits = one.throttles
        row.append(f"{waits.count} times" if waits.count else "never")
        row += [
            "" if waits.mean_ms is None else f"{waits.mean_ms:.0f} ms",
            f"{waits.longest_ms} ms" if waits.count else "",
        ]
        rows.append(row)
    return heads, rows


def _three(rate: float) -> str:
    """Three figures, and never as 1.42e+03."""
    return f"{rate:,.0f}" if rate >= 99.5 else f"{rate:.3g}"


def _line(head: str, words: str) -> Iterator[str]:
    yield from wrapped(head, words)


WRITE: Final[Mapping[Output, Callable[[Probed], str]]] = {Output.text: text, Output.json: document}
