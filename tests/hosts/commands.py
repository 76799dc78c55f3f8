"""The actions of an operator on a host: the real actions, in the order in which kquota's commands call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kquota.measure import ByteRate
from kquota.reassign import cancellation, verification
from kquota.reassign.execution import carry_out
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import Asked, prepare, prepare_again
from kquota.reassign.recovery import backwards, recover
from kquota.reassign.run import Purpose, Run
from kquota.reassign.verification import Verification
from kquota.terms import BrokerId
from kquota.throttle import actions, set_and_clear
from kquota.throttle import wanted as wishes
from kquota.throttle.port import Ports
from tests.hosts.process import Process
from tests.hosts.stage import ClusterConfigs


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`patient` and `take_over` have the same meaning as on the command line."""

    work: Callable[[Process], object]
    patient: bool = False
    take_over: bool = False


def _rate(process: Process) -> ByteRate:
    return ByteRate(process.rng.choice((1000, 2000, 3000)))


def _execute(process: Process, *, additional: bool) -> None:
    asked = Asked(
        throttle=process.rng.choice((_rate(process), _rate(process), None)),
        additional=additional,
        whole_topics=process.rng.random() < 0.2,
    )
    plan = process.rng.choice(process.stage.plans)
    carry_out(prepare(process.cluster, process.runs, process.clock, plan, asked))


def execute(process: Process) -> None:
    _execute(process, additional=False)


def additional(process: Process) -> None:
    _execute(process, additional=True)


def verify(process: Process) -> None:
    verify_plan(_plan(process), process)


def _plan(process: Process) -> Plan:
    """Usually a plan of a run in the record."""
    of_runs = [run.plan for run in _moves(process)] if process.rng.random() < 0.6 else []
    return process.rng.choice(of_runs or process.stage.plans)


def verify_plan(plan: Plan, process: Process) -> Verification:
    return verification.verify(process.cluster, process.runs, process.clock, plan)


def cancel(process: Process) -> None:
    plan = _plan(process)
    what = cancellation.cancellable(process.cluster, process.runs, plan, force=False)
    cancellation.cancel(process.cluster, process.runs, process.clock, what)


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
    prepared = prepare_again(process.cluster, process.runs, process.clock, run)
    recover(process.cluster, process.runs, process.clock, run, prepared, lambda _: None)


def throttle_set(process: Process) -> None:
    rng = process.rng
    topics = rng.sample("tuv", rng.choice((0, 1, 1, 2)))
    brokers = [BrokerId(n) for n in rng.sample((1, 2, 3, 4), 2)]
    rate = _rate(process) if not topics or rng.random() < 0.8 else None
    wanted = wishes.whole_topics(topics, brokers, rate)
    title = wishes.title(wanted)
    set_and_clear.prepare(process.cluster, process.runs, process.clock, title, wanted, rate)
    set_and_clear.bring(process.cluster, process.runs, process.clock, title, wanted, rate)


def adjust(process: Process) -> None:
    if found := process.runs.unfinished():
        run = process.rng.choice(found)
        set_and_clear.adjust(process.cluster, process.runs, process.clock, run, _rate(process))


def throttle_clear(process: Process) -> None:
    ending = [run for run in process.runs.unfinished() if run.purpose is Purpose.THROTTLE]
    set_and_clear.restore(process.cluster, process.runs, process.clock, ending)


def doctor(process: Process) -> None:
    ports = Ports(
        cluster=process.cluster,
        configs=ClusterConfigs(process.stage.cluster),
        log_dirs=None,
        runs=process.runs,
        memory=process.host,
        clock=process.clock,
    )
    standing = actions.read(ports)
    left = actions.leftovers(ports, standing, process.clock, 0.0)
    actions.remove(ports, process.clock, left.changes)


COMMANDS: Final[Mapping[str, Command]] = {
    "execute": Command(work=execute),
    "additional": Command(work=additional),
    "throttle set": Command(work=throttle_set),
    "throttle set --run": Command(work=adjust),
    "throttle clear": Command(work=throttle_clear),
    "verify": Command(work=verify),
    "cancel": Command(work=cancel),
    "abort": Command(work=abort, patient=True),
    "resume": Command(work=resume, patient=True),
    "abort --take-over": Command(work=abort, patient=True, take_over=True),
    "resume --take-over": Command(work=resume, patient=True, take_over=True),
    "doctor": Command(work=doctor),
}
OFTEN: Final = (*COMMANDS, "execute", "execute", "execute", "additional", "additional", "throttle set", "verify")
