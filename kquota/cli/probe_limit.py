"""`quota probe --find-limit`: what a controller can take, and the mutation quota that follows from it (KIP-599)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kquota.cli import probe_run, world
from kquota.cli.contract import DONE, FAILED, NOT_YET, say
from kquota.cli.options import Output
from kquota.cli.probe_options import Given
from kquota.cli.reasons import wrapped
from kquota.cli.table import aligned
from kquota.errors import Invalid, Refused
from kquota.probe import ladder, scratch
from kquota.probe.climb import climb
from kquota.probe.ladder import Held, Operation, Step
from kquota.quota.limits import plain
from kquota.terms import CONTROLLER_MUTATION_RATE

if TYPE_CHECKING:
    from kquota.cli.probe_run import Made
    from kquota.cli.probe_stage import Logins, Stage
    from kquota.quota.explain import Explanation

VERSION: Final = 1
_REPLICAS: Final = 3
_SHARES: Final = 4
"""Of a rung: creating, growing as many, and deleting all of them, which counts twice as many."""


def find(who: Logins, stage: Stage, explained: Explanation, client_id: str, given: Given) -> int:
    """Climb, print, and say with the exit code whether there is something to suggest."""
    bound = next(one for one in explained.answers if one.key == CONTROLLER_MUTATION_RATE)
    if bound.limit is not None and not explained.cluster.ignores(bound.key):
        raise Refused(
            f"this client has a {bound.key} of {bound.limit:g}, which would be all that is measured: take it away for"
            " the time, or give --client-config or --client-id of a client that has none"
        )
    seconds = ladder.SECONDS if given.seconds is None else given.seconds
    rungs = [ladder.rungs(size, seconds, given.most_partitions) for size in ladder.SIZES]
    if not any(rungs):
        raise Invalid(f"--most-partitions {given.most_partitions}: not one rung of {seconds:g} s fits; allow more")
    factor = min(_REPLICAS, len(stage.brokers))
    lasts = sum(_SHARES * seconds * len(of_size) for of_size in rungs)
    most = max(rung.alive for of_size in rungs for rung in of_size)
    plan = (
        f"creating, growing and deleting topics for {lasts:.0f} s or so, {most:,} partitions at a time at most,"
        f" replication factor {factor}"
    )
    if given.dry_run:
        if given.output is Output.json:
            raise Invalid("--find-limit --dry-run writes text")
        print(plan)
        return DONE
    say(f"{plan}; a Ctrl-C ends it and removes them")
    probe_run.remove_older(stage)
    base = scratch.name(datetime.now(UTC), 2 * lasts, secrets.token_hex(4))
    made, steps = probe_run.Made(), list[Step]()
    with probe_run.removed(who, made), who.stage(client_id) as own:
        for of_size in rungs:
            steps += _told(climb(own.topics, own.sight, world.SystemClock(), of_size, _names(base, made), factor))
    found = ladder.held(steps)
    print(WRITE[given.output](steps, found, given))
    return FAILED if made.left else NOT_YET if ladder.suggested(found) is None else DONE


def _names(base: str, made: Made) -> Iterator[str]:
    """Names of topics, each on record before it is used."""
    while True:
        made.names.append(f"{base}-{len(made.names)}")
        yield made.names[-1]


def _told(steps: Iterator[Step]) -> Iterator[Step]:
    for step in steps:
        if step.operation is Operation.DELETE:
            say(f"{_sized(step.size)}, {step.rate:g} mutations/s: done")
        yield step


def _document(steps: Sequence[Step], found: Sequence[Held], given: Given) -> str:
    """The contract with scripts, version 1; seconds, and mutations per second."""
    rate = ladder.suggested(found)
    return json.dumps(
        {
            "version": VERSION,
            "suggested": rate,
            "tenants": given.tenants,
            "overcommit": given.overcommit,
            "suggested_per_tenant": None if rate is None else ladder.divided(rate, given.tenants, given.overcommit),
            "held": [
                {
                    "partitions_per_topic": one.size,
                    "rate": one.rate,
                    "stopped_at": None if one.stopped is None else one.stopped.rate,
                    "why": None if one.stopped is None else one.stopped.why_not,
                }
                for one in found
            ],
            "steps": [
                {
                    "operation": step.operation.value,
                    "partitions_per_topic": step.size,
                    "rate": step.rate,
                    "reached": round(step.reached, 3),
                    "latency_p95": round(step.latency, 4),
                    "visibility_lag": round(step.lag, 4),
                    "holds": step.why_not is None,
                }
                for step in steps
            ],
        },
        indent=2,
    )


def _lines(steps: Sequence[Step], found: Sequence[Held], given: Given) -> Iterator[str]:
    rows: dict[tuple[int, float], list[str]] = {}
    for step in steps:
        row = rows.setdefault((step.size, step.rate), [f"{step.size}", f"{step.rate:g}/s"])
        row += [_ms(step.latency), _ms(step.lag)]
    heads = ["partitions", "rate", *(word for one in Operation for word in (one.value, "seen"))]
    yield aligned(list(rows.values()), heads)
    yield ""
    yield "95 of 100 answers came within that time; after the last one, all brokers showed"
    yield "what was done within the time beside it."
    yield ""
    for one in found:
        yield from wrapped("", f"{_sized(one.size)}: {_said(one)}", indent="  ")
    yield ""
    yield from _advice(found, given)


def _sized(size: int) -> str:
    return f"topics of {size} partitions" if size > 1 else "topics of one partition"


def _said(one: Held) -> str:
    if one.stopped is None:
        return f"{one.rate:g}/s holds, the highest rate that this run tried"
    at = f"at {one.stopped.rate:g}/s, {one.stopped.operation.value}: {one.stopped.why_not}"
    return f"not even the lowest rate holds; {at}" if one.rate is None else f"{one.rate:g}/s holds; {at}"


def _advice(found: Sequence[Held], given: Given) -> Iterator[str]:
    rate = ladder.suggested(found)
    if rate is None:
        words = "Nothing to suggest: this controller is busy, or slow; look at it before you set a quota."
        yield from wrapped("", words, indent="")
        return
    least = min(one.rate for one in found if one.rate is not None)
    words = (
        f"Suggested: {CONTROLLER_MUTATION_RATE}={plain(rate)} for all clients together: the worst case, {least:g}/s,"
        f" and {1 - ladder.SPARE:.0%} to spare."
    )
    if all(one.stopped is None for one in found):
        words += " Nothing gave way: the controller may take more, and a higher --most-partitions tries it."
    yield from wrapped("", words, indent="")
    if given.tenants == 1:
        yield "Every user has a bucket of its own: divide it with --tenants."
        return
    each = plain(ladder.divided(rate, given.tenants, given.overcommit))
    times = f", overcommitted {given.overcommit:g} times" if given.overcommit > 1 else ""
    yield f"For each of {given.tenants} tenants{times}: {CONTROLLER_MUTATION_RATE}={each}"
    yield ""
    yield f"  kquota configs --alter --user-defaults --add-config {CONTROLLER_MUTATION_RATE}={each}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1_000:.0f} ms"


def _text(steps: Sequence[Step], found: Sequence[Held], given: Given) -> str:
    """For people, 80 columns wide."""
    return "\n".join(_lines(steps, found, given))


WRITE: Final[Mapping[Output, Callable[[Sequence[Step], Sequence[Held], Given], str]]] = {
    Output.text: _text,
    Output.json: _document,
}
