"""What `quota simulate` prints: the rounds of a deploy, or a client's seconds, with a plot for the eye."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kquota.cli.options import Output
from kquota.measure import human_bytes, human_duration, human_rate
from kquota.simulate.rate import SAMPLE_MS, SAMPLES

if TYPE_CHECKING:
    from kquota.simulate.answer import Flow
    from kquota.simulate.load import Admission, Round

VERSION: Final = 1
_ROWS: Final = 12
_CELLS: Final = 60
_BARS: Final = " ▁▂▃▄▅▆▇█"


def deployed(
    topics: int, partitions: int, rate: float, model: str, quota: Admission, output: Output, *, found: bool
) -> str:
    """A deploy of so many topics under a mutation quota; `found` when the rate was looked for."""
    from kquota.simulate.answer import deploy

    answer = deploy([partitions] * topics, quota)
    if output is Output.json:
        return json.dumps(
            {
                "version": VERSION,
                "model": str(model),
                "controller_mutation_rate": rate,
                "topics": topics,
                "partitions": partitions,
                "mutations": answer.mutations,
                "ms": answer.ms,
                "requests": len(answer.rounds),
                "rounds": [
                    {"ms": r.at, "topics": r.admitted, "mutations": r.mutations, "wait_ms": r.wait_ms}
                    for r in answer.rounds
                ],
            }
        )
    return "\n".join(_deploy_lines(topics, partitions, rate, model, answer.rounds, answer.ms, found=found))


def _deploy_lines(
    topics: int, partitions: int, rate: float, model: str, rounds: Sequence[Round], ms: int, *, found: bool
) -> Iterator[str]:
    window = SAMPLES * SAMPLE_MS / 1_000
    smallest = ", the smallest that is fast enough" if found else ""
    burst = f"{rate * window:g} at once, {window:g} s of it"
    yield f"Quota        {rate:g} mutations per second{smallest}; {burst} ({model})"
    yield f"Load         {topics} topics x {partitions} partitions = {topics * partitions} mutations"
    yield f"Done         {human_duration(ms / 1_000)} after the first request, {len(rounds)} requests"
    yield ""
    yield from _table(rounds)
    seconds = [0] * (ms // 1_000 + 1)
    for one in rounds:
        seconds[one.at // 1_000] += one.mutations
    yield ""
    yield from _plot(seconds, "mutations")


def _table(rounds: Sequence[Round]) -> Iterator[str]:
    from tabulate import tabulate

    rows = [
        (human_duration(r.at / 1_000), r.admitted, r.mutations, human_duration(r.wait_ms / 1_000) if r.wait_ms else "")
        for r in rounds[:_ROWS]
    ]
    heads = ("after", "topics", "mutations", "the rest waits")
    yield str(tabulate(rows, heads, tablefmt="plain", disable_numparse=True, colalign=("right",) * 4))
    if len(rounds) > _ROWS:
        yield f"... and {len(rounds) - _ROWS} more requests"


def streamed(answer: Flow, limit: float | None, percentage: float | None, output: Output) -> str:
    """A client that is slowed."""
    if output is Output.json:
        return json.dumps(
            {
                "version": VERSION,
                "byte_rate": limit,
                "request_percentage": percentage,
                "requests": answer.requests,
                "throttled": answer.throttled,
                "throttled_by": list(answer.by),
                "first_wait_ms": answer.first_wait,
                "longest_wait_ms": answer.longest_wait,
                "ms": answer.ms,
                "steady_bytes_per_second": answer.steady,
                "bytes_of_each_second": list(answer.seconds),
            }
        )
    return "\n".join(_flow_lines(answer, limit, percentage))


def _flow_lines(answer: Flow, limit: float | None, percentage: float | None) -> Iterator[str]:
    quotas = [] if limit is None else [f"{human_rate(limit)} on a broker"]
    quotas += [] if percentage is None else [f"{percentage:g} % of one thread's time on a broker"]
    yield f"Quota        {' and '.join(quotas)}"
    total = sum(answer.seconds)
    yield f"Load         {answer.requests} requests, {human_bytes(total)}, sent in {human_duration(answer.ms / 1_000)}"
    if answer.first_wait is None:
        yield "Throttled    never"
    else:
        yield (
            f"Throttled    {answer.throttled} times by its {' and its '.join(answer.by)}, first for "
            f"{answer.first_wait} ms, at most for {answer.longest_wait} ms"
        )
    steady = "unknown: the load ended within two windows" if answer.steady is None else human_rate(answer.steady)
    yield f"In the long run  {steady}"
    yield ""
    yield from _plot(answer.seconds, "bytes")


def _plot(seconds: Sequence[int], what: str) -> Iterator[str]:
    """One cell a second, or several seconds where there are many."""
    width = -(-len(seconds) // _CELLS)
    cells = [sum(seconds[n : n + width]) / width for n in range(0, len(seconds), width)]
    most = max(cells, default=0.0)
    bars = "".join(_BARS[min(8, math.ceil(cell * 8 / most)) if most else 0] for cell in cells)
    yield f"{what}/s, at most {most:,.0f}; one cell is {width} s"
    yield f"|{bars}|"
