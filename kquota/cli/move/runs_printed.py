"""Runs on record as they are printed: how far each is, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from kquota.cli import fields
from kquota.cli.options import Output
from kquota.cli.reassign_partitions import printed
from kquota.measure import human_rate
from kquota.reassign.port import Snapshot
from kquota.reassign.preparation import Prepared
from kquota.reassign.progress import Progress, statuses
from kquota.reassign.recovery import Recovery, State
from kquota.reassign.run import Run

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An open run, and what the cluster tells of it."""

    run: Run
    state: State
    found: Snapshot
    place: str

    @property
    def done(self) -> int:
        """How many partitions are where the run wants them."""
        found = statuses(self.run.goal, self.found.partitions, self.found.running)
        return sum(status.progress is Progress.DONE for status in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A run that was brought on or back, with the command's exit code for it; only `prepared` in a dry run."""

    run: Run
    prepared: Prepared
    recovery: Recovery | None
    code: int


def text(told: Sequence[Told]) -> str:
    """A few lines a run, the oldest first."""
    return "\n".join(line for one in told for line in _lines(one))


def _lines(told: Told) -> list[str]:
    run = told.run
    rate = "no throttle" if run.rate is None else f"throttle {human_rate(run.rate)}"
    return [
        f"{run.id}  {told.state.value}",
        f"  {told.done} of {len(run.goal.targets)} partitions there, {rate}",
        f"  on record in {told.place}",
    ]


def document(told: Sequence[Told]) -> str:
    """One line of JSON; the throttle in bytes per second, null without one."""
    runs = [
        {
            "run": one.run.id,
            "begun": one.run.begun.isoformat(),
            "state": one.state.name.lower(),
            "throttle": one.run.rate,
            "partitions": len(one.run.goal.targets),
            "done": one.done,
            "record": one.place,
        }
        for one in told
    ]
    return json.dumps({"version": VERSION, "runs": runs})


def recovered_text(done: Sequence[Recovered]) -> str:
    """What --verify prints of each run, or in a dry run what --execute would: of an abort, the way back."""
    parts = []
    for one in done:
        parts.append(f"Run {one.run.id}, {State.ABORTING.value}:" if one.run.aborting else f"Run {one.run.id}:")
        if one.recovery is None:
            parts.append(printed.prepared(one.prepared, Output.text))
        else:
            parts.append(printed.verified(one.recovery.verification, Output.text))
    return "\n".join(parts)


def recovered_document(done: Sequence[Recovered]) -> str:
    """One line of JSON: each run with the document that --verify, or a dry run, prints."""
    runs = []
    for one in done:
        found = (
            printed.prepared(one.prepared, Output.json)
            if one.recovery is None
            else printed.verified(one.recovery.verification, Output.json)
        )
        started = [] if one.recovery is None else one.recovery.execution.started
        names = [fields.partition(name) for name in started]
        runs.append({"run": one.run.id, "started": names, **json.loads(found)})
    return json.dumps({"version": VERSION, "runs": runs})
