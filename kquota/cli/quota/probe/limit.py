"""`quota probe --find-limit`: what a controller can take, and the mutation quota that follows from it (KIP-599)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kquota.cli.contract import DONE, FAILED, NOT_YET, say
from kquota.cli.options import Output
from kquota.cli.quota.probe.options import Given
from kquota.cli.quota.probe.run import Made, remove_older, removed
from kquota.cli.quota.sentences import wrapped
from kquota.cli.table import aligned
from kquota.errors import Invalid
from kquota.probe import ladder, run
from kquota.probe.ladder import Held, Ladder, Limit, Operation, Step
from kquota.probe.preparation import climbing
from kquota.quota.limits import plain
from kquota.terms import CONTROLLER_MUTATION_RATE

if TYPE_CHECKING:
    from kquota.probe.port import Connected, Logins
    from kquota.quota.explain import Explanation

VERSION: Final = 1


def find(who: Logins, stage: Connected, explained: Explanation, client_id: str, given: Given) -> int:
    """Climb, print, and say with the exit code whether there is something to suggest."""
    wanted = climbing(explained, stage.brokers, seconds=given.seconds, most_partitions=given.most_partitions)
    if given.dry_run:
        if given.output is Output.json:
            raise Invalid("--find-limit --dry-run writes text")
        print(_plan(wanted))
        return DONE
    say(f"{_plan(wanted)}; a Ctrl-C ends it and removes them")
    remove_older(stage)
    made = Made()
    with removed(who, made):
        steps = run.steps(who, client_id, wanted, made.names, _told)
    found = Limit(steps=steps, tenants=given.tenants, overcommit=given.overcommit)
    print(WRITE[given.output](found))
    return FAILED if made.left else NOT_YET if found.suggested is None else DONE


def _plan(wanted: Ladder) -> str:
    return (
        f"creating, growing and deleting topics for {wanted.lasting:.0f} s or so, {wanted.alive:,} partitions at a time"
        f" at most, replication factor {wanted.replication_factor}"
    )


def _told(step: Step) -> None:
    if step.operation is Operation.DELETE:
        say(f"{_sized(step.size)}, {step.rate:g} mutations/s: done")


def _document(found: Limit) -> str:
    """The contract with scripts, version 1; seconds, and mutations per second."""
    return json.dumps(
        {
            "version": VERSION,
            "suggested": found.suggested,
            "tenants": found.tenants,
            "overcommit": found.overcommit,
            "suggested_per_tenant": found.suggested_per_tenant,
            "held": [
                {
                    "partitions_per_topic": one.size,
                    "rate": one.rate,
                    "stopped_at": None if one.stopped is None else one.stopped.rate,
                    "why": None if one.stopped is None else one.stopped.why_not,
                }
                for one in found.held
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
                for step in found.steps
            ],
        },
        indent=2,
    )


def _lines(found: Limit) -> Iterator[str]:
    rows: dict[tuple[int, float], list[str]] = {}
    for step in found.steps:
        row = rows.setdefault((step.size, step.rate), [f"{step.size}", f"{step.rate:g}/s"])
        row += [_ms(step.latency), _ms(step.lag)]
    heads = ["partitions", "rate", *(word for one in Operation for word in (one.value, "seen"))]
    yield aligned(list(rows.values()), heads)
    yield ""
    yield "95 of 100 answers came within that time; after the last one, all brokers showed"
    yield "what was done within the time beside it."
    yield ""
    for one in found.held:
        yield from wrapped("", f"{_sized(one.size)}: {_said(one)}", indent="  ")
    yield ""
    yield from _advice(found, found.held)


def _sized(size: int) -> str:
    return f"topics of {size} partitions" if size > 1 else "topics of one partition"


def _said(one: Held) -> str:
    if one.stopped is None:
        return f"{one.rate:g}/s holds, the highest rate that this run tried"
    at = f"at {one.stopped.rate:g}/s, {one.stopped.operation.value}: {one.stopped.why_not}"
    return f"not even the lowest rate holds; {at}" if one.rate is None else f"{one.rate:g}/s holds; {at}"


def _advice(found: Limit, held: Sequence[Held]) -> Iterator[str]:
    rate, each = found.suggested, found.suggested_per_tenant
    if rate is None or each is None:
        words = "Nothing to suggest: this controller is busy, or slow; look at it before you set a quota."
        yield from wrapped("", words, indent="")
        return
    least = min(one.rate for one in held if one.rate is not None)
    words = (
        f"Suggested: {CONTROLLER_MUTATION_RATE}={plain(rate)} for all clients together: the worst case, {least:g}/s,"
        f" and {1 - ladder.SPARE:.0%} to spare."
    )
    if all(one.stopped is None for one in held):
        words += " Nothing gave way: the controller may take more, and a higher --most-partitions tries it."
    yield from wrapped("", words, indent="")
    if found.tenants == 1:
        yield "Every user has a bucket of its own: divide it with --tenants."
        return
    times = f", overcommitted {found.overcommit:g} times" if found.overcommit > 1 else ""
    yield f"For each of {found.tenants} tenants{times}: {CONTROLLER_MUTATION_RATE}={plain(each)}"
    yield ""
    yield f"  kquota configs --alter --user-defaults --add-config {CONTROLLER_MUTATION_RATE}={plain(each)}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1_000:.0f} ms"


def _text(found: Limit) -> str:
    """For people, 80 columns wide."""
    return "\n".join(_lines(found))


WRITE: Final[Mapping[Output, Callable[[Limit], str]]] = {Output.text: _text, Output.json: _document}
