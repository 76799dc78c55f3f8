"""A run: one throttled execution of a plan, with everything needed to give back what it took."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kquota.measure import ByteRate
from kquota.reassign.plan import Plan
from kquota.reassign.throttle import Change, Setting, Taken, given_back, handed_over, take


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """`rollback` is the plan back; `rate` bytes per second, None without a throttle; `finished` None while open."""

    id: str
    begun: datetime
    plan: Plan
    rollback: Plan
    rate: ByteRate | None
    taken: Mapping[Setting, Taken]
    finished: datetime | None = None


def held(runs: Sequence[Run], setting: Setting) -> tuple[Taken, ...]:
    """What the runs hold of one setting, in their order."""
    return tuple(run.taken[setting] for run in runs if setting in run.taken)


def taking(
    run: Run,
    wanted: Mapping[Setting, tuple[str, ...]],
    now: Mapping[Setting, str | None],
    others: Sequence[Run],
) -> Run:
    """The run as it must be on record before `wanted` is written over `now`; `others` are open, oldest first."""
    fresh = {
        setting: take(setting, now[setting], values, run.taken.get(setting), held(others, setting))
        for setting, values in wanted.items()
    }
    return replace(run, taken=dict(sorted({**run.taken, **fresh}.items())))


def giving_back(run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[Change, ...]:
    """The changes that end the run's throttle; a setting that is not in `now` (nobody could read it) is left out."""
    changes = (
        Change(setting=setting, before=now[setting], after=given_back(taken, now[setting], held(others, setting)))
        for setting, taken in run.taken.items()
        if setting in now
    )
    return tuple(change for change in changes if change.before != change.after)


def changed_by_others(run: Run, now: Mapping[Setting, str | None], others: Sequence[Run]) -> tuple[Setting, ...]:
    """The rates that the run set and that somebody else changed since: they stay as they are."""
    return tuple(
        setting
        for setting, taken in run.taken.items()
        if not setting.is_list
        and taken.ours
        and setting in now
        and now[setting] not in (*taken.ours, taken.prior)
        and not any(other.ours for other in held(others, setting))
    )


def handing_over(run: Run, now: Mapping[Setting, str | None], other: Run) -> Run:
    """`other`, still open, with the rates of `run` that it now has to give back in its place."""
    shared = {
        setting: handed_over(run.taken[setting], now[setting], taken)
        for setting, taken in other.taken.items()
        if setting in run.taken and setting in now and taken.ours
    }
    return replace(other, taken={**other.taken, **shared})


def covers(plan: Plan, runs: Collection[Run]) -> Run | None:
    """The open run of exactly this plan, if there is one."""
    return next((run for run in runs if run.finished is None and run.plan == plan), None)
