"""One round: random commands of three hosts meet random faults, and the oracle of FAULTS holds at the end.

The seed alone determines a round.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from unittest.mock import patch

from kquota.reassign.plan import Plan
from kquota.reassign.run import Owner
from kquota.stores.record import runs as recorded
from kquota.stores.record import topic as record
from kquota.stores.record import znodes as znode_record
from kquota.stores.state import runs as journals
from kquota.stores.state.process import Holder, holder, me
from kquota.stores.zookeeper import moves, znodes
from tests.hosts.commands import COMMANDS, OFTEN, resume, throttle_clear, verify_plan
from tests.hosts.coverage import Met
from tests.hosts.process import Fate, Fault, Process
from tests.hosts.remembered import decoded_once
from tests.hosts.schedule import current
from tests.hosts.stage import Violation, stage

_PAIRS = tuple((name, fault) for name in COMMANDS for fault in Fault)
_MEMORY = Path("/dev/shm")
_CYCLES = 6
"""The number of checks of each host at the end. A run that is being reverted needs a few checks."""


class Round:
    """One round, from its seed to its end."""

    def __init__(self, seed: int, folder: Path, met: Met) -> None:
        self.rng = random.Random(seed)
        self.seed, self.met = seed, met
        self.stage = stage(self.rng, folder)
        self.processes: list[Process] = []

    def run(self) -> None:
        rng, schedule = self.rng, self.stage.schedule
        moment = schedule.now
        # Each command meets each fault in turn, once there is work for it.
        name, fault = _PAIRS[self.seed % len(_PAIRS)]
        first = rng.choice(("execute", "execute", "throttle set"))
        commands = [self._command(first, None), self._command(name, fault)]
        commands += [self._random_command() for _ in range(rng.randint(4, 10))]
        for command in commands:
            moment += rng.choice((0.5, 3.0, 10.0, 25.0, 60.0)) * rng.random()
            schedule.at(moment, command)
            if rng.random() < 0.35:
                moment += rng.uniform(0, 5)
                schedule.at(moment, self._foreign)
            if rng.random() < 0.2:
                schedule.at(moment + rng.uniform(0, 5), self.stage.topic.compact)
            if rng.random() < 0.08:
                schedule.at(moment + rng.uniform(0, 10), partial(self.stage.broker_dies, rng))
            if rng.random() < 0.05:
                schedule.at(moment + rng.uniform(0, 10), partial(self.stage.clock_jumps, rng))
        try:
            schedule.run(until=moment + 400)
            self.met.add(self.stage, self.processes)
            self._clean_up()
            self._late()
        finally:
            self._stop()

    def _random_command(self) -> Callable[[], None]:
        fault = self.rng.choice((None, None, None, *Fault))
        return self._command(self.rng.choice(OFTEN if fault is None else (*COMMANDS, *OFTEN)), fault)

    def _command(self, name: str, fault: Fault | None) -> Callable[[], None]:
        host, fate = self.rng.choice(self.stage.hosts), None if fault is None else Fate.of(fault, self.rng)
        seed = f"{self.seed}/{self.rng.random()}"

        def begin() -> None:
            command = COMMANDS[name]
            self._begin(
                Process(
                    self.stage,
                    host,
                    name,
                    seed,
                    command.work,
                    fate,
                    patient=command.patient,
                    take_over=command.take_over,
                    holds=command.holds,
                )
            )

        return begin

    def _begin(self, process: Process) -> Process:
        self.processes.append(process)
        process.begin()
        self._check()
        return process

    def _foreign(self) -> None:
        self.stage.foreign(self.rng)

    def _check(self) -> None:
        for process in self.processes:
            if process.failure is not None:
                raise process.failure

    def _now(self, host: int, doing: str, work: Callable[[Process], object]) -> Process:
        """Run a command to its end, without faults."""
        process = Process(self.stage, self.stage.hosts[host], doing, f"{self.seed}/end", work, patient=True)
        self._begin(process)
        while not process.ended:
            self.stage.schedule.run(until=self.stage.schedule.now + 60)
        self._check()
        return process

    def _free_hosts(self) -> list[int]:
        """Return the hosts where no process sleeps in the folder. If there is none, kill the processes of host 0."""
        sleepers = [p for p in self.processes if p.asleep]
        free = [n for n in range(3) if not any(p.host.folder == self.stage.hosts[n].folder for p in sleepers)]
        if free:
            return free
        for process in sleepers:
            if process.host.folder == self.stage.hosts[0].folder:
                process.kill()
        return [0]

    def _clean_up(self) -> None:
        """Let each host verify and resume until every record is closed."""
        self.stage.say("the end")
        self.stage.everyone_returns()
        hosts = self._free_hosts()
        for _ in range(_CYCLES):
            for host in hosts:
                # A host first updates the record with the lines that it wrote while it was disconnected.
                self._now(host, "status", lambda process: process.runs.every())
                if self.stage.open_runs():
                    self._one_look(host)
            if not self.stage.open_runs():
                break
            # A process that still runs holds its lock, and ends only while time passes.
            self.stage.schedule.run(until=self.stage.schedule.now + 60)
        self._must_be_over(hosts)

    def _one_look(self, host: int) -> None:
        self.stage.finish()
        self._now(host, "resume", resume)
        self.stage.finish()
        self._now(host, "throttle clear", throttle_clear)
        for plan in self.stage.plans:
            self._now(host, "verify", partial(verify_plan, plan))

    def _must_be_over(self, hosts: list[int]) -> None:
        if left := [run.id for run in self.stage.open_runs()]:
            raise Violation(f"still open: {left}")
        self.stage.finish()
        self.stage.compare()
        writes = self.stage.cluster.writes
        ends: list[object] = []
        verdicts: set[str] = set()
        for host in hosts:
            self._now(host, "resume", resume)
            for plan in self.stage.plans:
                self._now(host, "verify", partial(_verdict, plan, verdicts))
            self._now(host, "status", lambda p: ends.append(self._ends(p)))
        if self.stage.cluster.writes != writes:
            raise Violation("something was written after every run had ended")
        if any(end != ends[0] for end in ends):
            raise Violation(f"the hosts do not agree on the ends of runs: {ends}")
        if len(verdicts) > len(self.stage.plans):
            raise Violation(f"the hosts do not agree on what has become of the plans: {verdicts}")

    def _ends(self, process: Process) -> list[tuple[str, object, bool]]:
        """Return the ends of the runs that were on record. A journal can also have a run that ended before it was
        recorded.
        """
        known = self.stage.recorded()
        return [(run.id, run.finished, run.aborting) for run in process.runs.every() if run.id in known]

    def _late(self) -> None:
        """Check that a process that slept until the end changes nothing when it wakes up, and that its host then agrees
        with the record.
        """
        if not any(process.asleep for process in self.processes):
            return
        for process in self.processes:
            process.dead |= not process.asked  # it had not begun, and may begin now
        writes = self.stage.cluster.writes
        self.stage.say("the sleepers wake up")
        self.stage.schedule.run()
        self._check()
        if self.stage.cluster.writes != writes:
            raise Violation("a process that had slept through it all wrote to the cluster")
        for host in range(3):
            self._one_look(host)
        self._must_be_over([0, 1, 2])

    def _stop(self) -> None:
        for process in self.processes:
            process.kill()


def _verdict(plan: Plan, verdicts: set[str], process: Process) -> None:
    found = verify_plan(plan, process)
    verdicts.add(f"{plan.targets}: {found.verdict}, {found.pending}, {found.unknown}")


@contextmanager
def folder() -> Iterator[Path]:
    """Yield a folder, in memory where the system has one, because a round writes hundreds of journal lines."""
    path = Path(mkdtemp(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def on_machines() -> Iterator[None]:
    """Let each process name its host as its machine in the block."""

    def named(doing: str) -> Holder:
        process = current()
        return process.holder(doing) if isinstance(process, Process) else holder(doing)

    def owner() -> Owner:
        process = current()
        return process.owner if isinstance(process, Process) else me()

    with ExitStack() as stack:
        for module in (record, znode_record, journals):
            stack.enter_context(patch.object(module, "holder", named))
        for module in (recorded, journals):
            stack.enter_context(patch.object(module, "me", owner))
        for module in (znode_record, znodes, moves):
            stack.enter_context(patch.object(module, "time", VirtualTime))
        stack.enter_context(patch.object(znodes, "random", VirtualTime))
        yield


class VirtualTime:
    """Replaces the modules `time` and `random` in the stores of ZooKeeper."""

    @staticmethod
    def monotonic() -> float:
        return _process().schedule.now

    @staticmethod
    def sleep(seconds: float) -> None:
        _process().wait(seconds)

    @staticmethod
    def uniform(low: float, high: float) -> float:
        return _process().rng.uniform(low, high)


def _process() -> Process:
    process = current()
    assert isinstance(process, Process)
    return process


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A round after its end. `digest` is the hash of its steps, so that two rounds can be compared."""

    seed: int
    violation: str | None
    trace: Sequence[str]
    digest: str


def play(seed: int, folder: Path, met: Met) -> Played:
    """Play one round, and count what it covered."""
    shutil.rmtree(folder / str(seed), ignore_errors=True)
    played = Round(seed, folder / str(seed), met)
    violation = None
    try:
        # kquota defers signals only in the main thread. There, the tasks would restore each other's handlers.
        with decoded_once() as played.stage.remembered, ThreadPoolExecutor(1) as other:
            other.submit(played.run).result()
    except Exception as error:  # noqa: BLE001 - every error of a round is a violation
        violation = f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(folder / str(seed), ignore_errors=True)
    trace = played.stage.trace
    return Played(
        seed=seed,
        violation=violation,
        trace=trace,
        digest=hashlib.sha256("\n".join(trace).encode()).hexdigest()[:12],
    )


@dataclass
class Batch:
    """The result of some rounds. Rounds without a violation come without their steps."""

    met: Met = field(default_factory=Met)
    digests: list[tuple[int, str]] = field(default_factory=list)
    broken: list[Played] = field(default_factory=list)
    cpu: float = 0.0
    """The CPU time in seconds."""


def batch(seeds: Sequence[int]) -> Batch:
    """Play these rounds in this process."""
    done, began = Batch(), time.process_time()
    with folder() as states, on_machines():
        for seed in seeds:
            played = play(seed, states, done.met)
            done.digests.append((seed, played.digest))
            if played.violation is not None:
                done.broken.append(played)
    done.cpu = time.process_time() - began
    return done
