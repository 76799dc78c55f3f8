"""`quota probe --find-limit`: the rate that a controller sustains, and a suggested mutation quota (KIP-599)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kquota.cli.contract import DONE, NOT_YET
from kquota.cli.output import Answer, JsonObject, spread
from kquota.cli.quota.sentences import wrapped
from kquota.cli.suggestion import suggested
from kquota.cli.table import aligned
from kquota.probe import ladder
from kquota.probe.ladder import Held, Ladder, Limit, Operation, Step
from kquota.quota.limits import plain
from kquota.terms import CONTROLLER_MUTATION_RATE


def _held(one: Held) -> JsonObject:
    """Return the JSON of the result for one number of partitions per topic. Rates are in mutations per second. `rate`
    is null if the controller sustained no rate. `stopped_at` and `why` are null if it sustained every rate.
    """
    return {
        "partitions_per_topic": one.size,
        "rate": one.rate,
        "stopped_at": None if one.stopped is None else one.stopped.rate,
        "why": None if one.stopped is None else one.stopped.why_not,
    }


def _step(step: Step) -> JsonObject:
    """Return the JSON of one step. Times are in seconds, and rates are in mutations per second."""
    return {
        "operation": step.operation,
        "partitions_per_topic": step.size,
        "rate": step.rate,
        "reached": round(step.reached, 3),
        "latency_p95": round(step.latency, 4),
        "visibility_lag": round(step.lag, 4),
        "holds": step.why_not is None,
    }


def _plan(wanted: Ladder) -> JsonObject:
    """Return the JSON of a plan. `seconds` is the total time if all rates hold, and `rate` is in mutations per second.
    `partitions` is the maximum number of partitions at a time.
    """
    return {
        "seconds": wanted.lasting,
        "partitions": wanted.alive,
        "replication_factor": wanted.replication_factor,
        "steps": [
            {"partitions_per_topic": rung.size, "rate": rung.rate, "topics": rung.topics}
            for of_size in wanted.rungs
            for rung in of_size
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPlanned(Answer):
    """The steps that `--find-limit` would make."""

    INDENT = 2

    dry_run: bool = True
    ladder: Ladder = spread(_plan)

    def text(self) -> Iterator[str]:
        yield f"dry run: {plan(self.ladder)}. Nothing was created"


def _document(limit: Limit) -> JsonObject:
    return {
        "suggested": limit.suggested,
        "tenants": limit.tenants,
        "overcommit": limit.overcommit,
        "suggested_per_tenant": limit.suggested_per_tenant,
        "held": list(map(_held, limit.held)),
        "steps": list(map(_step, limit.steps)),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitFound(Answer):
    """The rates that a controller sustained, and the suggested rate. All rates are in mutations per second."""

    INDENT = 2
    ASCII = True

    limit: Limit = spread(_document)

    def text(self) -> Iterator[str]:
        """Yield lines of at most 80 columns, except for a suggested command, which stays on one line."""
        found = self.limit
        rows: dict[tuple[int, float], list[str]] = {}
        for step in found.steps:
            row = rows.setdefault((step.size, step.rate), [f"{step.size}", f"{step.rate:g}/s"])
            row += [_ms(step.latency), _ms(step.lag)]
        heads = ["partitions", "rate", *(word for one in Operation for word in (one.value, "seen"))]
        yield from aligned(list(rows.values()), heads)
        yield ""
        yield "Each operation has two columns: the 95th percentile of its response times, and"
        yield "`seen`, the time until all brokers showed the last result."
        yield ""
        for one in found.held:
            yield from wrapped("", f"{sized(one.size)}: {_sustained(one)}", indent="  ")
        yield ""
        yield from _advice(found)


def answer(limit: Limit) -> LimitFound:
    """Return the answer. The exit code is 0 with a suggestion, and 8 without one."""
    return LimitFound(limit=limit, code=NOT_YET if limit.suggested is None else DONE)


def plan(wanted: Ladder) -> str:
    """Return as text the steps of the probe, its duration and its partitions."""
    return (
        f"creating, growing and deleting topics for about {wanted.lasting:.0f} s, with at most {wanted.alive:,} "
        "partitions"
        f" at a time and replication factor {wanted.replication_factor}"
    )


def sized(size: int) -> str:
    """Return the words for topics with `size` partitions, for example `topics with 8 partitions`."""
    return f"topics with {size} partitions" if size > 1 else "topics with one partition"


def _sustained(one: Held) -> str:
    if one.stopped is None:
        return f"the controller sustains {one.rate:g}/s, the highest rate that kquota tried for them"
    sustains = "does not sustain even the lowest rate" if one.rate is None else f"sustains {one.rate:g}/s"
    stopped = one.stopped
    return f"the controller {sustains}; at {stopped.rate:g}/s, {stopped.operation.value}: {stopped.why_not}"


def _advice(found: Limit) -> Iterator[str]:
    rate, each, held = found.suggested, found.suggested_per_tenant, found.held
    if rate is None or each is None:
        words = "No suggestion: this controller is busy or slow. Check it before you set a quota."
        yield from wrapped("", words, indent="")
        return
    least = min(one.rate for one in held if one.rate is not None)
    words = (
        f"Suggested: {CONTROLLER_MUTATION_RATE}={plain(rate)} for all clients together (the worst case, {least:g}/s,"
        f" less a reserve of {1 - ladder.SPARE:.0%})."
    )
    if all(one.stopped is None for one in held):
        words += " The controller sustained every rate, so the limit may be higher."
        if least < ladder.RATES[-1]:
            words += " To test this, give a higher --most-partitions or a lower --seconds."
    yield from wrapped("", words, indent="")
    if found.tenants == 1 and found.overcommit == 1:
        yield "Each user has its own bucket. To divide the rate among users, give --tenants N."
        return
    times = f", with overcommit factor {found.overcommit:g}" if found.overcommit > 1 else ""
    whom = "one tenant" if found.tenants == 1 else f"each of {found.tenants} tenants"
    yield f"For {whom}{times}: {CONTROLLER_MUTATION_RATE}={plain(each)}"
    yield ""
    quota = f"{CONTROLLER_MUTATION_RATE}={plain(each)}"
    yield "  " + suggested(f"configs --alter --user-defaults --add-config {quota}").strip("`")


def _ms(seconds: float) -> str:
    return f"{seconds * 1_000:.0f} ms"
