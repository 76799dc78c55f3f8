"""Three hosts share a record, and random commands die, sleep and lose answers. No throttle of kquota is left.

The seed alone determines a round. `KQUOTA_ROUNDS` sets the number of rounds; `KQUOTA_SEED` runs one round and prints
its steps.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import pytest

from kquota.reassign.plan import Plan
from kquota.reassign.run import Owner
from kquota.stores.record import runs as recorded
from kquota.stores.record import topic as record
from kquota.stores.state import runs as journals
from kquota.stores.state.process import Holder, holder, me
from tests.hosts.commands import COMMANDS, OFTEN, resume, throttle_clear, verify_plan
from tests.hosts.process import Fate, Fault, Process
from tests.hosts.stage import Violation, stage

ROUNDS = int(os.environ.get("KQUOTA_ROUNDS", "200"))
SEED = os.environ.get("KQUOTA_SEED")
ENOUGH = 1000
"""With this number of rounds every command meets every fault."""
_PAIRS = tuple((name, fault) for name in COMMANDS for fault in Fault)
_MEMORY = Path("/dev/shm")
_CYCLES = 6
"""Each check of a host can leave work for its next one; a run that is being reverted needs a few checks."""


@dataclass
class Met:
    """The faults and commands that the rounds have covered."""

    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    hosts: Counter[str] = field(default_factory=Counter)
    results: Counter[tuple[str, str]] = field(default_factory=Counter)
    foreign: Counter[str] = field(default_factory=Counter)

    def table(self) -> str:
        columns = ["none", *(fault.name for fault in Fault)]
        rows = [[name, *(str(self.faults[name, column]) for column in columns)] for name in COMMANDS]
        lines = [" ".join(f"{cell:>9}" if n else f"{cell:18}" for n, cell in enumerate(row)) for row in rows]
        head = " ".join(f"{cell:>9}" if n else f"{cell:18}" for n, cell in enumerate(["", *columns]))
        return "\n".join([head, *lines, f"hosts {dict(self.hosts)}", f"foreign {dict(self.foreign)}", self.ends()])

    def ends(self) -> str:
        words = sorted({result for _, result in self.results})
        return "\n".join(f"{name:18} { ({w: self.results[name, w] for w in words}) }" for name in COMMANDS)

    def must_be_whole(self, rounds: int) -> None:
        """Each fault and each command occurred on each host.

        In many rounds each fault also occurred in each command.
        """
        columns = ["none", *(fault.name for fault in Fault)]
        assert [c for c in columns if not any(self.faults[name, c] for name in COMMANDS)] == []
        assert [name for name in COMMANDS if not any(self.faults[name, c] for c in columns[1:])] == []
        assert min(self.hosts.values()) > rounds
        if rounds >= ENOUGH:
            assert [(name, c) for name in COMMANDS for c in columns if not self.faults[name, c]] == []


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
        try:
            schedule.run(until=moment + 400)
            self._count()
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

    def _count(self) -> None:
        for process in self.processes:
            fault = process.fate.fault.name if process.reached and process.fate else "none"
            self.met.faults[process.doing, fault] += 1
            self.met.hosts[process.host.name] += 1
            self.met.results[process.doing, process.result] += 1
        self.met.foreign += self.stage.seen

    def _now(self, host: int, doing: str, work: Callable[[Process], object]) -> Process:
        """A command without faults, to its end."""
        process = Process(self.stage, self.stage.hosts[host], doing, f"{self.seed}/end", work, patient=True)
        self._begin(process)
        while not process.ended:
            self.stage.schedule.run(until=self.stage.schedule.now + 60)
        self._check()
        return process

    def _free_hosts(self) -> list[int]:
        """The hosts where no process sleeps and holds the folder. On at least one host the process is killed."""
        sleepers = [p for p in self.processes if p.asleep]
        free = [n for n in range(3) if not any(p.host is self.stage.hosts[n] for p in sleepers)]
        if free:
            return free
        for process in sleepers:
            if process.host is self.stage.hosts[0]:
                process.kill()
        return [0]

    def _clean_up(self) -> None:
        """Each host verifies and resumes until every record is closed."""
        self.stage.say("the end")
        hosts = self._free_hosts()
        for _ in range(_CYCLES):
            for host in hosts:
                # A host first updates the record with the lines that it wrote while it was disconnected.
                self._now(host, "status", lambda process: process.runs.every())
                if self.stage.open_runs():
                    self._one_look(host)
            if not self.stage.open_runs():
                break
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
        self.stage.compare()
        writes = self.stage.cluster.writes
        ends: list[object] = []
        verdicts: set[str] = set()
        for host in hosts:
            self._now(host, "resume", resume)
            for plan in self.stage.plans:
                self._now(host, "verify", partial(_verdict, plan, verdicts))
            self._now(host, "status", lambda p: ends.append([(r.id, r.finished, r.aborting) for r in p.runs.every()]))
        if self.stage.cluster.writes != writes:
            raise Violation("something was written after every run had ended")
        if any(end != ends[0] for end in ends):
            raise Violation(f"the hosts do not agree on the ends of runs: {ends}")
        if len(verdicts) > len(self.stage.plans):
            raise Violation(f"the hosts do not agree on what has become of the plans: {verdicts}")

    def _late(self) -> None:
        """A process that slept until the end wakes up and changes nothing. Its host then agrees with the record."""
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


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where the system has one, because a round writes hundreds of journal lines."""
    path = Path(mkdtemp(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def on_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process names its host as its machine."""

    def named(doing: str) -> Holder:
        process = threading.current_thread()
        return process.holder(doing) if isinstance(process, Process) else holder(doing)

    def owner() -> Owner:
        process = threading.current_thread()
        return process.owner if isinstance(process, Process) else me()

    monkeypatch.setattr(record, "holder", named)
    monkeypatch.setattr(recorded, "me", owner)
    monkeypatch.setattr(journals, "me", owner)


def one(seed: int, folder: Path, met: Met) -> None:
    """Runs one round. Raises Violation with the steps that led to it."""
    played = Round(seed, folder / str(seed), met)
    try:
        played.run()
    except BaseException as error:
        trace = "\n".join(played.stage.trace)
        raise Violation(f"KQUOTA_SEED={seed}: {type(error).__name__}: {error}\n{trace}") from error
    finally:
        shutil.rmtree(folder / str(seed), ignore_errors=True)


def test_no_throttle_of_kquota_stays_set(folder: Path, on_machines: None, capsys: pytest.CaptureFixture[str]) -> None:
    met = Met()
    for seed in range(ROUNDS) if SEED is None else [int(SEED)]:
        one(seed, folder, met)
    with capsys.disabled():
        print(f"\n{met.table()}")
    if SEED is None:
        met.must_be_whole(ROUNDS)
