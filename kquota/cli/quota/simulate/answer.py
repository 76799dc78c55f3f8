"""The answers of `quota simulate`: rounds of topics, the figures of a client or of a trace, and a plot."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kquota.cli.formats import printable
from kquota.cli.output import Answer, JsonObject, each, hidden, key, spread
from kquota.cli.table import aligned
from kquota.measure import agreeing, counted, human_bytes, human_duration, human_rate
from kquota.quota_keys import QUOTA_KEYS, Model
from kquota.simulate.answer import Deploy, Flow
from kquota.simulate.curve import MOST, Curve
from kquota.simulate.load import Quotas, Round
from kquota.simulate.trace import Answered, TraceStream
from kquota.terms import SAMPLE_MS

UNFINISHED: Final = (
    "throttling makes the load last more than 30 days, or a fetch never gets any data. Check the unit of each quota, "
    "the thread time of each request and the length of the load"
)
_UNKNOWN: Final = "unknown, because the load is too short. It must last at least three quota windows"
_ROWS: Final = 12
_CELLS: Final = 60
"""The maximum number of cells in a plot that is not on a terminal."""
_FEWEST: Final = 10
_BARS: Final = " ▁▂▃▄▅▆▇█"


def _quotas(held: Quotas) -> JsonObject:
    limits = {key: held.limits.get(key) for key, row in QUOTA_KEYS.items() if row.simulated}
    return {**limits, "window_num": held.samples}


def _figures(flow: Flow) -> JsonObject:
    """Return the JSON of the figures. Times are in ms. If the client never waits, `worst_wait_ms` is 0, and
    `first_wait_ms`, `first_wait_at_ms` and `worst_wait_at_ms` are null. The steady rates are null if the load is too
    short.
    """
    return {
        "begin_ms": flow.begin,
        "end_ms": flow.end,
        "admitted": flow.admitted,
        "rejected": flow.rejected,
        "delayed": flow.delayed,
        "delayed_by": list(flow.by),
        "bytes": flow.bytes,
        "mutations": flow.mutations,
        "total_wait_ms": flow.total_wait,
        "first_wait_ms": flow.first_wait,
        "first_wait_at_ms": flow.first_at,
        "worst_wait_ms": flow.worst_wait,
        "worst_wait_at_ms": flow.worst_at,
        "steady_bytes_per_second": flow.steady_bytes,
        "steady_mutations_per_second": flow.steady_mutations,
        "unfinished": flow.unfinished,
    }


def _cells(curve: Curve) -> JsonObject:
    return {"begin_ms": curve.first * curve.seconds * 1_000, "seconds": curve.seconds, "cells": curve.cells}


def _deploy_quotas(held: Quotas) -> JsonObject:
    return {
        "strict": held.strict,
        "controller_mutation_rate": held.limit(Model.BUCKET),
        "request_percentage": held.limit(Model.SHARE),
        "window_num": held.samples,
    }


def _deploy(found: Deploy) -> JsonObject:
    return {
        "mutations": found.mutations,
        "ms": found.ms,
        "next_wait_ms": found.next_wait_ms,
        "requests": len(found.rounds),
        "rounds": [
            {"ms": one.at, "topics": one.admitted, "mutations": one.mutations, "wait_ms": one.wait_ms}
            for one in found.rounds
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed(Answer):
    """The requests and the duration of a load of topics under a mutation rate."""

    ASCII = True

    model: str
    """The arithmetic that was used, as a value of `--model`."""
    held: Quotas = spread(_deploy_quotas)
    items: Sequence[int] = key("topics", len)
    """The number of partitions of each topic."""
    found: Deploy = spread(_deploy)
    sought: bool = hidden()
    """True if kquota searched for the smallest rate."""

    def text(self) -> Iterator[str]:
        rate, share = self.held.limit(Model.BUCKET) or 0.0, self.held.limit(Model.SHARE)
        window = self.held.samples * SAMPLE_MS / 1_000
        smallest = ", the smallest rate that is fast enough" if self.sought else ""
        burst = f"up to {rate * window:g} at once, which is the quota for {window:g} s"
        client = "" if self.held.strict else "; brokers only delay the client"
        yield f"Quota        {_per_second(rate)}{smallest}; {burst} ({self.model} model{client})"
        if share is not None:
            yield f"             and {share:g}% of one thread's time"
        size = f" x {counted(self.items[0], 'partition')}" if len(set(self.items)) == 1 else ""
        yield f"Load         {counted(len(self.items), 'topic')}{size} = {counted(sum(self.items), 'mutation')}"
        requests = counted(len(self.found.rounds), "request")
        yield f"Done         {_time(self.found.ms)} after the first request, {requests}"
        if self.found.next_wait_ms:
            yield f"Afterwards   the next request waits {_time(self.found.next_wait_ms)}"
        yield ""
        yield from _rounds(self.found.rounds)
        curve = Curve()
        for one in self.found.rounds:
            curve.add(one.at, one.mutations)
        yield from _plot(curve, "mutations")


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed(Answer):
    """The figures of a client with a steady load."""

    ASCII = True

    held: Quotas = spread(_quotas)
    flow: Flow = spread(_figures)
    bytes_curve: Curve = key(form=_cells)

    def text(self) -> Iterator[str]:
        yield _quota_line(self.held)
        yield from _flow_lines(self.flow)
        yield from _plot(self.bytes_curve, "bytes")


def _stream(one: Answered) -> JsonObject:
    return {**one.stream._asdict(), **_figures(one.flow)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced(Answer):
    """The figures of the clients of a trace."""

    ASCII = True

    held: Quotas = spread(_quotas)
    streams: Sequence[Answered] = key(form=each(_stream))
    bytes_curve: Curve = key(form=_cells)
    mutations_curve: Curve = key(form=_cells)

    def text(self) -> Iterator[str]:
        yield _quota_line(self.held)
        yield from _trace_lines(self.streams)
        for what, curve in (("bytes", self.bytes_curve), ("mutations", self.mutations_curve)):
            if sum(curve.cells):
                yield from _plot(curve, what)


def _per_second(rate: float) -> str:
    return f"{rate:g} {'mutation' if rate == 1 else 'mutations'} per second"


_LIMIT_TEXT: Final[Mapping[Model, Callable[[float], str]]] = {
    Model.RATE: lambda limit: f"{human_rate(limit)} on a broker",
    Model.SHARE: lambda limit: f"{limit:g}% of one thread's time on a broker",
    Model.BUCKET: _per_second,
}


def _time(ms: int) -> str:
    return human_duration(ms / 1_000)


def _rounds(rounds: Sequence[Round]) -> Iterator[str]:
    rows = [
        (_time(r.at), f"{r.admitted:,}", f"{r.mutations:,}", _time(r.wait_ms) if r.wait_ms else "")
        for r in rounds[:_ROWS]
    ]
    yield from aligned(rows, ("after", "topics", "mutations", "then waits"))
    if len(rounds) > _ROWS:
        yield f"... and {counted(len(rounds) - _ROWS, 'more request')}"


def _quota_line(held: Quotas) -> str:
    sentences = (_LIMIT_TEXT[QUOTA_KEYS[key].model](limit) for key, limit in held.limits.items())
    return f"Quota        {' and '.join(sentences)}"


def _flow_lines(flow: Flow) -> Iterator[str]:
    took = _time(flow.end - flow.begin)
    yield f"Load         {counted(flow.admitted, 'request')}, {human_bytes(flow.bytes)}, done in {took}"
    if flow.first_wait is None:
        yield "Throttled    never"
    else:
        again = agreeing(flow.rejected, "fetch request", "was", "were")
        empty = f"; {again} sent again after an empty answer" if flow.rejected else ""
        yield (
            f"Throttled    {counted(flow.delayed, 'time')} by the {' and the '.join(flow.by)}, first for "
            f"{flow.first_wait:,} ms, at most for {flow.worst_wait:,} ms{empty}"
        )
    steady = flow.steady_bytes
    yield f"In the long run  {_UNKNOWN if steady is None else human_rate(steady)}"


def _trace_lines(found: Sequence[Answered]) -> Iterator[str]:
    flows = [one.flow for one in found]
    begin, end = min(flow.begin for flow in flows), max(flow.end for flow in flows)
    delayed = [flow for flow in flows if flow.delayed]
    requests = counted(sum(flow.admitted for flow in flows), "request")
    yield f"Load         {counted(len(found), 'client')}, {requests}, done in {_time(end - begin)}"
    if not delayed:
        yield "Throttled    never"
        return
    waited = sum(flow.total_wait for flow in flows)
    waits = sum(flow.delayed for flow in flows)
    yield f"Throttled    {counted(len(delayed), 'client')}; {counted(waits, 'wait')}, {_time(waited)} in total"
    yield ""
    worst = sorted((one for one in found if one.flow.delayed), key=lambda one: -one.flow.total_wait)
    rows = [_row(one, begin) for one in worst[:_ROWS]]
    # The table leaves out the column `rejected` if it is empty, because the column would only make the lines longer.
    heads = [head for head in rows[0] if head != "rejected" or any(row[head] for row in rows)]
    yield from aligned([[row[head] for head in heads] for row in rows], heads, left=[0])
    if len(worst) > _ROWS:
        yield f"... and {counted(len(worst) - _ROWS, 'more client')}. --output json shows all clients"


def _row(one: Answered, begin: int) -> JsonObject:
    flow = one.flow
    assert flow.worst_at is not None
    return {
        "client": client_name(one.stream),
        "requests": f"{flow.admitted:,}",
        "rejected": f"{flow.rejected:,}" if flow.rejected else "",
        "delayed": f"{flow.delayed:,}",
        "total": _time(flow.total_wait),
        "worst": _time(flow.worst_wait),
        "after": _time(flow.worst_at - begin),
        "long run": _steady(flow),
        "by": ", ".join(flow.by),
    }


def _steady(flow: Flow) -> str:
    if flow.steady_bytes is None or flow.steady_mutations is None:
        return "unknown"
    parts = [human_rate(flow.steady_bytes)] if flow.bytes else []
    return " and ".join([*parts, f"{flow.steady_mutations:.3g} mutations/s"] if flow.mutations else parts)


def client_name(stream: TraceStream) -> str:
    """Return a client as text. Unknown parts are left out."""
    who = "/".join(part for part in (stream.user, stream.client_id) if part) or "the client"
    return printable(f"{who} on broker {stream.broker}" if stream.broker else who)


def _plot(curve: Curve, what: str) -> Iterator[str]:
    width = max(_FEWEST, min(MOST, shutil.get_terminal_size().columns - 2)) if sys.stdout.isatty() else _CELLS
    shown = curve.within(width)
    rates = [cell / shown.seconds for cell in shown.cells]
    most = max(rates, default=0.0)
    bars = "".join(_BARS[min(8, math.ceil(rate * 8 / most)) if most else 0] for rate in rates)
    yield ""
    yield f"{what}/s, at most {most:,.0f}; one cell is {shown.seconds} s"
    yield f"|{bars}|"
