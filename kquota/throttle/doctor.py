"""The rules of `doctor`, in the order of the findings: throttles that are left over, have no effect or are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from kquota.reassign.run import Purpose
from kquota.throttle import doctor_lists, doctor_rates
from kquota.throttle.standing import Finding, Remedy, Standing

Rule: TypeAlias = Callable[[Standing], Iterator[Finding]]


def ended_runs(standing: Standing) -> Iterator[Finding]:
    """Report open runs without running moves: all moves have ended, or some partitions were never submitted.

    Runs of `throttle set`, which have no moves, are ignored.
    """
    for run in standing.runs:
        if run.purpose is not Purpose.MOVE or any(name in standing.snapshot.running for name in run.plan.targets):
            continue
        waiting = len(run.waiting)
        yield Finding(
            rule="run-ended",
            where=f"run {run.id}",
            what=f"{waiting} of its {len(run.goal.targets)} partitions were never submitted to the cluster"
            if waiting
            else "all of its moves have ended, but the run is still open",
            effect=f"its throttle is still set on {len({(s.kind, s.name) for s in run.taken})} topics and brokers"
            if run.taken
            else "the run has no throttle to restore, but its record stays open",
            remedy=Remedy.RESUME_RUN if waiting else Remedy.END_RUN,
        )


RULES: Final[tuple[Rule, ...]] = (
    ended_runs,
    doctor_rates.without_lists,
    doctor_lists.without_rates,
    doctor_lists.stale,
    doctor_lists.caught_up,
    doctor_lists.without_move,
    doctor_lists.on_brokers,
    doctor_rates.differ_between_brokers,
    doctor_rates.differ_between_sides,
    doctor_rates.not_in_force,
    doctor_lists.malformed,
    doctor_lists.too_long,
    doctor_lists.wildcard,
)


def findings(standing: Standing) -> tuple[Finding, ...]:
    """Return every finding, ordered by rule, then by broker or topic."""
    return tuple(finding for rule in RULES for finding in rule(standing))
