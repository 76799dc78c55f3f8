"""The actions of an operator on a host: the real actions, in the order in which kquota's commands call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Final

from kquota.errors import Busy, Unreachable
from kquota.measure import ByteRate
from kquota.reassign import cancellation, verification
from kquota.reassign.execution import carry_out
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import MoveRequest, prepare, prepare_again
from kquota.reassign.progress import Progress
from kquota.reassign.recovery import backwards, recover
from kquota.reassign.run import Purpose, Run, at_rate
from kquota.reassign.throttle_writes import clear_dead
from kquota.reassign.turns import Turns
from kquota.reassign.verification import Verification
from kquota.reassign.wave import MoveLimits
from kquota.terms import REPLICATION_RATES
from kquota.throttle import actions, doctor_rates, set_and_clear
from kquota.throttle import wanted as throttle_wanted
from kquota.throttle.port import Ports
from tests.hosts.process import Process
from tests.sizes.fake import FakeLogDirs


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`patient` and `take_over` have the same meaning as on the command line. Without `holds`, the work takes the lock
    itself.
    """

    work: Callable[[Process], object]
    patient: bool = False
    take_over: bool = False
    holds: bool = True


def _rate(process: Process) -> ByteRate:
    return ByteRate(process.rng.choice((1000, 2000, 3000)))


def _execute(
    process: Process, *, additional: bool, between: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Plan:
    limits = process.rng.choice((None, None, MoveLimits(partitions=1), MoveLimits(per_broker=1)))
    asked = MoveRequest(
        throttle=process.rng.choice((_rate(process), _rate(process), None)),
        additional=additional,
        whole_topics=process.rng.random() < 0.2,
        limits=limits,
        force=process.rng.random() < 0.1,
    )
    plan = process.rng.choice(process.stage.plans)
    carry_out(prepare(process.ports, plan, asked), between=between)
    return plan


def execute(process: Process) -> None:
    _execute(process, additional=False)


def additional(process: Process) -> None:
    _execute(process, additional=True)


def move_run(process: Process) -> None:
    """Like `kquota.cli.move.run`: it holds the lock to submit each wave, and then for each look."""
    with Turns(process.hold, process.clock, _PATIENCE) as turns:
        plan = _execute(process, additional=False, between=turns.released)
    deadline = process.clock.monotonic() + _PATIENCE
    while True:
        with suppress(Busy, Unreachable):
            with process.hold():
                found = verify_plan(plan, process)
            deadline = process.clock.monotonic() + _PATIENCE
            if found.verdict is not Progress.IN_PROGRESS:
                return
        if process.clock.monotonic() > deadline:
            raise Unreachable("no look has succeeded for a long time")
        process.clock.sleep(2.0)


def verify(process: Process) -> None:
    """Like `reassign-partitions --verify`: it takes the lock only if there is something to write."""
    plan = _plan(process)
    if verification.unless_it_writes(process.ports, plan) is None:
        with process.hold():
            verify_plan(plan, process)


def _plan(process: Process) -> Plan:
    """Usually a plan of a run in the record."""
    of_runs = [run.plan for run in _moves(process)] if process.rng.random() < 0.6 else []
    return process.rng.choice(of_runs or process.stage.plans)


def verify_plan(plan: Plan, process: Process) -> Verification:
    return verification.verify(process.ports, plan)


def cancel(process: Process) -> None:
    plan = _plan(process)
    what = cancellation.cancellable(process.ports, plan, force=False)
    cancellation.cancel(process.ports, what)


def _moves(process: Process) -> list[Run]:
    return [run for run in process.runs.unfinished() if run.purpose is Purpose.MOVE]


def resume(process: Process) -> None:
    for found in _moves(process):
        for run in _moves(process):
            if run.id == found.id:
                _recover(process, run)


def abort(process: Process) -> None:
    if found := _moves(process):
        _recover(process, backwards(process.rng.choice(found)))


def _recover(process: Process, run: Run) -> None:
    prepared = prepare_again(process.ports, run)
    recover(run, prepared, lambda _: None)


def throttle_set(process: Process) -> None:
    rng = process.rng
    known = process.stage.scene
    topics = rng.sample(known.topics, min(len(known.topics), rng.choice((0, 1, 1, 2))))
    brokers = rng.sample(known.brokers, 2)
    rate = _rate(process) if not topics or rng.random() < 0.8 else None
    wanted = throttle_wanted.whole_topics(topics, brokers, rate)
    title = throttle_wanted.title(wanted)
    set_and_clear.prepare(process.ports, title, wanted, rate)
    set_and_clear.bring(process.ports, title, wanted, rate)


def recovering(process: Process) -> None:
    """Like `throttle set --recovering`: it takes the lock for each check. The operator may stop it before the end."""
    rate, found = _rate(process), process.stage.cluster.partitions.values()
    behind = sorted({broker for now in found for broker in set(now.before) - set(now.isr)})
    broker = process.rng.choice(behind or process.stage.scene.brokers)
    going: Run | None = None
    for _ in range(process.rng.randint(1, 20)):
        with process.hold():
            seen = set_and_clear.recover(process.ports, broker, rate, going)
        if seen.done:
            return
        going = seen.run or going
        process.clock.sleep(5.0)


def adjust(process: Process) -> None:
    if found := process.runs.unfinished():
        run = process.rng.choice(found)
        of_one = run.purpose is Purpose.MOVE and run.rates_held and process.rng.random() < 0.3
        only = [process.rng.choice(run.rates_held)] if of_one else ()
        after = at_rate(run, _rate(process), only)
        set_and_clear.adjust(process.ports, run, after)


def pause(process: Process) -> None:
    """Like `move adjust --pause` and `--continue`."""
    if found := [run for run in _moves(process) if run.rate is not None]:
        run = process.rng.choice(found)
        after = replace(run, paused=not run.paused)
        set_and_clear.adjust(process.ports, run, after)


def throttle_clear(process: Process) -> None:
    ending = [run for run in process.runs.unfinished() if run.purpose is Purpose.THROTTLE]
    set_and_clear.restore(process.ports, ending)


def doctor(process: Process) -> None:
    ports = Ports(
        cluster=process.cluster,
        configs=process.configs,
        log_dirs=None if process.znodes is not None else FakeLogDirs(),
        runs=process.runs,
        memory=process.host,
        clock=process.clock,
    )
    throttles = actions.read(ports)
    left = actions.leftovers(ports, throttles, 0.0)
    unread = doctor_rates.removable_unread(throttles.after(left.changes))
    actions.remove(ports, left.changes)
    clear_dead(process.cluster, unread, REPLICATION_RATES)


_PATIENCE: Final = 300.0

COMMANDS: Final[Mapping[str, Command]] = {
    "execute": Command(work=execute),
    "additional": Command(work=additional),
    "throttle set": Command(work=throttle_set),
    "throttle set --recovering": Command(work=recovering, holds=False),
    "throttle set --run": Command(work=adjust),
    "move adjust --pause": Command(work=pause),
    "throttle clear": Command(work=throttle_clear),
    "move run": Command(work=move_run, patient=True, holds=False),
    "verify": Command(work=verify, holds=False),
    "cancel": Command(work=cancel),
    "abort": Command(work=abort, patient=True),
    "resume": Command(work=resume, patient=True),
    "abort --take-over": Command(work=abort, patient=True, take_over=True),
    "resume --take-over": Command(work=resume, patient=True, take_over=True),
    "doctor": Command(work=doctor),
}
OFTEN: Final = (
    *COMMANDS,
    "execute",
    "execute",
    "execute",
    "additional",
    "additional",
    "throttle set",
    "verify",
    "move run",
)
