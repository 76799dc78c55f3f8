"""What `quota simulate` prints: a deploy's rounds, a client's figures, those of a trace; with a plot for the eye."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kquota.cli.contract import printable
from kquota.cli.options import Output
from kquota.cli.table import aligned
from kquota.measure import counted, human_bytes, human_duration, human_rate
from kquota.simulate.curve import MOST, Curve, total
from kquota.terms import SAMPLE_MS

if TYPE_CHECKING:
    from kquota.simulate.answer import Deploy, Flow
    from kquota.simulate.load import Quotas, Round
    from kquota.simulate.trace import Answered, Stream

VERSION: Final = 1
UNFINISHED: Final = (
    "under this quota the load takes more than 30 days, or a fetch never gets an answer: is a unit missing, or the "
    "load too long?"
)
_UNKNOWN: Final = "unknown: that is measured after two windows, over one more at least"
_ROWS: Final = 12
_CELLS: Final = 60
"""Of a plot that is not on a terminal."""
_FEWEST: Final = 10
_BARS: Final = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """A deploy under a mutation rate, `found` when it was looked for."""

    items: Sequence[int]
    rate: float
    found: bool
    model: str
    held: Quotas
    answer: Deploy


def deployed(told: Deployed, output: Output) -> str:
    """A deploy's rounds."""
    if output is Output.text:
        return "\n".join(_deploy_lines(told))
    answer = told.answer
    document = {
        "version": VERSION,
        "model": told.model,
        "strict": told.held.strict,
        "controller_mutation_rate": told.rate,
        "request_percentage": told.held.request_percentage,
        "window_num": told.held.samples,
        "topics": len(told.items),
        "mutations": answer.mutations,
        "ms": answer.ms,
        "next_wait_ms": answer.next_wait_ms,
        "requests": len(answer.rounds),
        "rounds": [
            {"ms": r.at, "topics": r.admitted, "mutations": r.mutations, "wait_ms": r.wait_ms} for r in answer.rounds
        ],
    }
    return json.dumps(document)


def _deploy_lines(told: Deployed) -> Iterator[str]:
    items, answer = told.items, told.answer
    window = told.held.samples * SAMPLE_MS / 1_000
    smallest = ", the smallest that is fast enough" if told.found else ""
    burst = f"{told.rate * window:g} at once, {window:g} s of it"
    client = "" if told.held.strict else ", to a client that is only delayed"
    yield f"Quota        {_per_second(told.rate)}{smallest}; {burst} ({told.model}{client})"
    if told.held.request_percentage is not None:
        yield f"             and {told.held.request_percentage:g} % of one thread's time"
    each = f" x {counted(items[0], 'partition')}" if len(set(items)) == 1 else ""
    yield f"Load         {counted(len(items), 'topic')}{each} = {counted(sum(items), 'mutation')}"
    yield f"Done         {_time(answer.ms)} after the first request, {counted(len(answer.rounds), 'request')}"
    if answer.next_wait_ms:
        yield f"And then     whoever comes next waits {_time(answer.next_wait_ms)}"
    yield ""
    yield from _rounds(answer.rounds)
    curve = Curve()
    for one in answer.rounds:
        curve.add(one.at, one.mutations)
    yield from _plot(curve, "mutations")


def _per_second(rate: float) -> str:
    return f"{rate:g} {'mutation' if rate == 1 else 'mutations'} per second"


def _time(ms: int) -> str:
    return human_duration(ms / 1_000)


def _rounds(rounds: Sequence[Round]) -> Iterator[str]:
    rows = [
        (_time(r.at), f"{r.admitted:,}", f"{r.mutations:,}", _time(r.wait_ms) if r.wait_ms else "")
        for r in rounds[:_ROWS]
    ]
    yield aligned(rows, ("after", "topics", "mutations", "then waits"))
    if len(rounds) > _ROWS:
        yield f"... and {counted(len(rounds) - _ROWS, 'request')} more"


def streamed(flow: Flow, held: Quotas, output: Output) -> str:
    """A client that sends or fetches evenly."""
    if output is Output.json:
        return json.dumps({"version": VERSION, **_quotas(held), **_figures(flow), **_cells(flow.bytes_curve, "bytes")})
    return "\n".join([*_quota_lines(held), *_flow_lines(flow), *_plot(flow.bytes_curve, "bytes")])


def traced(found: Sequence[Answered], held: Quotas, output: Output) -> str:
    """The clients of a trace; those who wait longest first."""
    curves = {
        "bytes": total([one.flow.bytes_curve for one in found]),
        "mutations": total([one.flow.mutations_curve for one in found]),
    }
    if output is Output.json:
        streams = [{**one.stream._asdict(), **_figures(one.flow)} for one in found]
        cells = {name: part for what, curve in curves.items() for name, part in _cells(curve, what).items()}
        return json.dumps({"version": VERSION, **_quotas(held), "streams": streams, **cells})
    lines = [*_quota_lines(held), *_trace_lines(found)]
    for what, curve in curves.items():
        lines += _plot(curve, what) if sum(curve.cells) else ()
    return "\n".join(lines)


def _quotas(held: Quotas) -> dict[str, object]:
    return {
        "producer_byte_rate": held.producer_byte_rate,
        "consumer_byte_rate": held.consumer_byte_rate,
        "request_percentage": held.request_percentage,
        "controller_mutation_rate": held.controller_mutation_rate,
        "window_num": held.samples,
    }


def _figures(flow: Flow) -> dict[str, object]:
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


def _cells(curve: Curve, what: str) -> dict[str, object]:
    return {
        f"{what}_curve": {
            "begin_ms": curve.first * curve.seconds * 1_000,
            "seconds": curve.seconds,
            "cells": curve.cells,
        }
    }


def _quota_lines(held: Quotas) -> Iterator[str]:
    limit = held.producer_byte_rate or held.consumer_byte_rate
    quotas = [] if limit is None else [f"{human_rate(limit)} on a broker"]
    if held.request_percentage is not None:
        quotas.append(f"{held.request_percentage:g} % of one thread's time on a broker")
    if held.controller_mutation_rate is not None:
        quotas.append(_per_second(held.controller_mutation_rate))
    yield f"Quota        {' and '.join(quotas)}"


def _flow_lines(flow: Flow) -> Iterator[str]:
    took = _time(flow.end - flow.begin)
    yield f"Load         {counted(flow.admitted, 'request')}, {human_bytes(flow.bytes)}, through in {took}"
    if flow.first_wait is None:
        yield "Throttled    never"
    else:
        empty = f"; {flow.rejected:,} of the fetches were answered empty and sent again" if flow.rejected else ""
        yield (
            f"Throttled    {counted(flow.delayed, 'time')} by its {' and its '.join(flow.by)}, first for "
            f"{flow.first_wait:,} ms, at most for {flow.worst_wait:,} ms{empty}"
        )
    steady = flow.steady_bytes
    yield f"In the long run  {_UNKNOWN if steady is None else human_rate(steady)}"


def _trace_lines(found: Sequence[Answered]) -> Iterator[str]:
    flows = [one.flow for one in found]
    begin, end = min(flow.begin for flow in flows), max(flow.end for flow in flows)
    delayed = [flow for flow in flows if flow.delayed]
    requests = counted(sum(flow.admitted for flow in flows), "request")
    yield f"Load         {counted(len(found), 'client')}, {requests}, through in {_time(end - begin)}"
    if not delayed:
        yield "Throttled    never"
        return
    waited = sum(flow.total_wait for flow in flows)
    waits = sum(flow.delayed for flow in flows)
    yield f"Throttled    {len(delayed):,} of them; {counted(waits, 'wait')} of {_time(waited)} in all"
    yield ""
    worst = sorted((one for one in found if one.flow.delayed), key=lambda one: -one.flow.total_wait)
    rows = [_row(one, begin) for one in worst[:_ROWS]]
    # A column that says nothing would only make the lines longer.
    heads = [head for head in rows[0] if head != "rejected" or any(row[head] for row in rows)]
    yield aligned([[row[head] for head in heads] for row in rows], heads, left=[0])
    if len(worst) > _ROWS:
        yield f"... and {len(worst) - _ROWS:,} more; --output json has all"


def _row(one: Answered, begin: int) -> dict[str, object]:
    flow = one.flow
    assert flow.worst_at is not None
    return {
        "client": name(one.stream),
        "requests": f"{flow.admitted:,}",
        "rejected": f"{flow.rejected:,}" if flow.rejected else "",
        "delayed": f"{flow.delayed:,}",
        "in all": _time(flow.total_wait),
        "worst": _time(flow.worst_wait),
        "after": _time(flow.worst_at - begin),
        "long run": _steady(flow),
        "by": ", ".join(flow.by),
    }


def _steady(flow: Flow) -> str:
    if flow.steady_bytes is None or flow.steady_mutations is None:
        return "unknown"
    told = [human_rate(flow.steady_bytes)] if flow.bytes else []
    return " and ".join([*told, f"{flow.steady_mutations:.3g} mutations/s"] if flow.mutations else told)


def name(stream: Stream) -> str:
    """A client as people know it; what nobody said is left out."""
    who = "/".join(part for part in (stream.user, stream.client_id) if part) or "the client"
    return printable(f"{who} on broker {stream.broker}" if stream.broker else who)


def _plot(curve: Curve, what: str) -> Iterator[str]:
    """One cell a second, or several seconds where there are many."""
    shown = curve.within(_width())
    rates = [cell / shown.seconds for cell in shown.cells]
    most = max(rates, default=0.0)
    bars = "".join(_BARS[min(8, math.ceil(rate * 8 / most)) if most else 0] for rate in rates)
    yield ""
    yield f"{what}/s, at most {most:,.0f}; one cell is {shown.seconds} s"
    yield f"|{bars}|"


def _width() -> int:
    return max(_FEWEST, min(MOST, shutil.get_terminal_size().columns - 2)) if sys.stdout.isatty() else _CELLS
