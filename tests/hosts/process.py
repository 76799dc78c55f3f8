"""One command of one host. Every remote call and every line of its journal is a step, at which it can fail."""

from __future__ import annotations

import enum
import json
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from kquota.errors import KquotaError, Unreachable
from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.port import MoveCluster, MovePorts, Overwritten, Snapshot
from kquota.reassign.run import Owner, Run
from kquota.settings.change import Change
from kquota.settings.port import Configs
from kquota.settings.resource import Setting
from kquota.stores.record.choose import DoubleFence
from kquota.stores.record.lease import WRITE_SECONDS, LeaseClock, Sighting
from kquota.stores.record.runs import RecordedRuns
from kquota.stores.record.shared import Unshared
from kquota.stores.record.topic import TopicRecord
from kquota.stores.record.znodes import LOCK, ZnodeLock, ZnodeRecord
from kquota.stores.state.journal import JournaledRun
from kquota.stores.state.log import Item, KeyAndValue
from kquota.stores.state.process import Holder
from kquota.stores.state.runs import RunFiles
from kquota.stores.zookeeper.moves import ZooKeeperMoves
from kquota.stores.zookeeper.topics import SUBMITTED
from kquota.stores.zookeeper.znode import Create, Node, ZnodeOperation
from kquota.terms import BrokerId, TopicPartition
from tests.hosts.schedule import Task
from tests.hosts.stage import JOURNALS, ZNODES, ClusterConfigs, Host, Stage, State, Violation
from tests.hosts.tree import SESSION_SECONDS, MemoryZnodes, TreeCluster
from tests.stores.record import fake
from tests.stores.record.fake import MemoryLog
from tests.stores.record.hosts import TIME

T = TypeVar("T")


class Step(enum.Enum):
    """The kind of a step."""

    JOURNAL = "a line of the journal"
    APPEND = "an append to the record"
    LOOK = "a look into the record"
    READ = "a question to the cluster"
    WRITE = "a write to the cluster"


class Fault(enum.Enum):
    """A failure at a step."""

    BEFORE = "killed before"
    TORN = "killed in its middle"
    AFTER = "killed after"
    LOST = "the answer is lost"
    NOT_SENT = "it is not sent"
    PAUSED = "paused before"
    HANGING = "paused after"
    SLOW = "long under way"
    AWAY = "the record is away"
    ASLEEP = "paused to the end"


AT: Mapping[Fault, tuple[Step, ...]] = {
    Fault.TORN: (Step.JOURNAL, Step.WRITE),
    Fault.LOST: (Step.APPEND, Step.LOOK, Step.READ, Step.WRITE, Step.WRITE),
    Fault.NOT_SENT: (Step.APPEND, Step.LOOK, Step.READ, Step.WRITE),
    Fault.SLOW: (Step.APPEND, Step.WRITE),
    Fault.AWAY: (Step.APPEND, Step.LOOK),
}
"""The kinds of steps at which a fault can happen. A fault that is not listed can happen at every step."""
OFTEN: Mapping[Step, int] = {Step.JOURNAL: 6, Step.APPEND: 8, Step.LOOK: 12, Step.READ: 8, Step.WRITE: 4}
"""The usual number of steps of each kind in a command, from which the step of a fault is chosen."""
PAUSES = (16.0, 35.0, 80.0, 300.0)
"""Pauses in seconds: within a lease, longer than a lease, and longer than several commands of other hosts."""
ASLEEP = 1e6


@dataclass(frozen=True, slots=True)
class Fate:
    """The fault of the n-th step of a kind."""

    fault: Fault
    step: Step
    n: int

    @classmethod
    def of(cls, fault: Fault, rng: random.Random) -> Fate:
        step = rng.choice(AT.get(fault, tuple(Step)))
        most = 2 if fault is Fault.TORN else OFTEN[step]
        return cls(fault, step, min(rng.randint(1, most), rng.randint(1, most)))


class Process(Task):
    """`result` is the outcome: the word "done", or the class of an error. `reached` has the states in which its fate
    has happened.
    """

    def __init__(
        self,
        stage: Stage,
        host: Host,
        doing: str,
        seed: str,
        work: Callable[[Process], object],
        fate: Fate | None = None,
        *,
        patient: bool = False,
        take_over: bool = False,
        holds: bool = True,
    ) -> None:
        super().__init__(stage.schedule)
        self.stage, self.host, self.doing, self.fate = stage, host, doing, fate
        self.rng = random.Random(seed)
        stage.begun += 1
        self._pid = stage.begun
        self._work = work
        self._take_over = take_over
        self._holds = holds
        self._counts = dict.fromkeys(Step, 0)
        self._away_until = 0.0
        self.appended = 0
        self.reached: frozenset[State] = frozenset()
        self.asleep = False
        self.result = "killed"
        self.warned: list[str] = []
        files = ProcessFiles(host.folder, self)
        self.znodes = ProcessZnodes(self) if host.zookeeper else None
        self.record = self._recorded(files, patient=patient)
        self.runs = RecordedRuns(files, self.record, self.warned.append)
        self.fence: DoubleFence | None = None
        self.cluster, self.configs = self._stores()
        self.clock = ActionClock(self)
        self.ports = MovePorts(cluster=self.cluster, runs=self.runs, clock=self.clock)

    def _recorded(self, files: RunFiles, *, patient: bool) -> TopicRecord | ZnodeRecord | Unshared:
        if self.stage.kind == JOURNALS:
            return Unshared("there is no shared record")
        if self.stage.kind == ZNODES:
            assert self.znodes is not None
            return ZnodeRecord(self.znodes, "cluster")
        seen = Sighting(files.folder / "lock.seen", BootClock(self))
        log = ProcessLog(self, self.stage.topic.handle())
        waiting = (lambda _: None) if patient else None
        return TopicRecord(log, "__kquota_runs", "cluster", seen, waiting)

    def _left_out(self, problem: KquotaError) -> None:
        self.warned.append(str(problem))

    def _stores(self) -> tuple[MoveCluster, Configs]:
        """Return the stores of the operator's connection, as `kquota.cli.world` connects them."""
        if self.znodes is None:
            return ProcessCluster(self), ClusterConfigs(self.stage.cluster)
        if isinstance(self.record, TopicRecord):
            self.fence = DoubleFence(self.record, ZnodeLock(self.znodes))
            store = ZooKeeperMoves(self.znodes, self._left_out, self.fence)
        else:
            assert isinstance(self.record, ZnodeRecord)
            store = ZooKeeperMoves(self.znodes, self._left_out, self.record)
        return store, store

    @property
    def who(self) -> str:
        return f"{self.host.name}/{self.doing}"

    @property
    def asked(self) -> bool:
        """True if it requested the lock before any other process."""
        return self.appended > 0

    @property
    def owner(self) -> Owner:
        return Owner(user="alice", host=self.host.name, pid=self._pid, since=TIME)

    def holder(self, doing: str) -> Holder:
        """The lock holder of a machine that no other host can check."""
        return Holder(owner=self.owner, doing=doing, machine=f"{self.host.name}'s boot", started="1")

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Take the locks, like `kquota.cli.move_stores.Stage`."""
        with self.runs.hold(self.doing, take_over=self._take_over), ExitStack() as stack:
            if self.fence is not None:
                stack.enter_context(self.fence.hold(self.doing, take_over=self._take_over))
            yield

    def pause(self, seconds: float) -> None:
        """Wait without a heartbeat. The session with ZooKeeper ends if the wait is too long."""
        if self.znodes is not None and seconds > SESSION_SECONDS:
            self.schedule.at(self.schedule.now + SESSION_SECONDS, self.znodes.expire)
        self.wait(seconds)

    def work(self) -> None:
        self.stage.say(f"{self.who} begins; {self.fate}")
        try:
            with self.hold() if self._holds else nullcontext():
                self._work(self)
            self.result = "done"
        except KquotaError as error:
            self.result = type(error).__name__
            self.stage.say(f"{self.who}: {self.result}: {str(error)[:200]}")
            return
        finally:
            if self.znodes is not None:
                self.znodes.close_at_the_end()
            self.stage.say(f"{self.who} ends{' (killed)' if self.dead else ''}")

    def step(
        self,
        kind: Step,
        done: Callable[[], T],
        *,
        torn: Callable[[], object] | None = None,
        guard: Callable[[], object] = lambda: None,
    ) -> T:
        """Do the step after a moment, unless this process is about to fail."""
        self.must_live()
        self._counts[kind] += 1
        fate = self.fate
        fault = fate.fault if fate and (kind, self._counts[kind]) == (fate.step, fate.n) else None
        if fault is not None and not (fault is Fault.TORN and torn is None):
            self.reached = frozenset(self.stage.states())
            self.stage.say(f"{self.who}: {kind.value}, {fault.value}")
        self.wait(self.rng.uniform(0.01, 0.2))
        self._before(kind, fault)
        guard()
        # Half of a lease covers the time that a request can be in flight.
        self.wait(self.rng.uniform(5, WRITE_SECONDS - 0.1) if fault is Fault.SLOW else 0.01)
        if fault is Fault.TORN and torn is not None:
            torn()
            self.die()
        if fault is Fault.LOST and kind is Step.LOOK:
            # A look whose answer is lost is not taken, because its client has not read the answer.
            raise Unreachable("the answer was lost")
        answer = done()
        if fault is Fault.AFTER:
            self.die()
        if fault is Fault.HANGING:
            self.pause(self.rng.choice(PAUSES))
        if fault is Fault.LOST and (kind in (Step.READ, Step.WRITE) or self.stage.kind == ZNODES):
            raise Unreachable("the answer was lost")
        return answer

    def _before(self, kind: Step, fault: Fault | None) -> None:
        if fault is Fault.AWAY:
            self._away_until = self.schedule.now + self.rng.uniform(1, 60)
        if fault is Fault.BEFORE:
            self.die()
        if fault is Fault.PAUSED:
            self.pause(self.rng.choice(PAUSES))
        if fault is Fault.ASLEEP:
            self.asleep = True
            self.pause(ASLEEP - self.schedule.now)
            self.asleep = False
        if self.znodes is not None and fault in (Fault.PAUSED, Fault.ASLEEP) and self.znodes.ended(kind):
            raise Unreachable("the session was lost")
        if fault is Fault.NOT_SENT and (kind is not Step.APPEND or self.stage.kind == ZNODES):
            raise Unreachable("there is no connection")
        if kind in (Step.APPEND, Step.LOOK) and self.schedule.now < self._away_until:
            raise Unreachable("the record's topic has no leader")

    def arrives(self) -> None:
        """Check a write that has arrived at the cluster: its sender must hold the lock, and no later holder may have
        begun.
        """
        if isinstance(self.record, TopicRecord):
            if self.record._mine is None:
                raise Violation(f"{self.who} writes without the lock")
            self.stage.holds(self.who, self.record._mine.term, writes=True)
        elif self.znodes is not None:
            self.stage.holds(self.who, self.znodes.lock, writes=True)

    def at(self, fault: Fault) -> bool:
        """Return True if this append meets that fault."""
        fate = self.fate
        return (
            fate is not None
            and fate.fault is fault
            and fate.step is Step.APPEND
            and (self._counts[Step.APPEND] == fate.n)
        )


class BootClock(LeaseClock):
    """The record's clock on a host."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def seconds(self) -> float:
        return self._process.schedule.now + self._process.host.boot

    def sleep(self, seconds: float) -> None:
        self._process.wait(seconds)


class ActionClock:
    """Like `kquota.cli.clock.SystemClock`, on a host."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def now(self) -> datetime:
        return TIME + timedelta(seconds=self._process.schedule.now + self._process.host.skew)

    def monotonic(self) -> float:
        return self._process.schedule.now

    def sleep(self, seconds: float) -> None:
        give_up = self.monotonic() + seconds
        self._process.runs.keep_alive()
        while (left := give_up - self.monotonic()) > 1e-6:
            self._process.wait(min(left, 2.0))
            self._process.runs.keep_alive()


class ProcessLog:
    """A process's view of the topic. Implements `Log`."""

    def __init__(self, process: Process, log: MemoryLog) -> None:
        self._process, self._log = process, log

    @property
    def identity(self) -> str:
        return self._log.identity

    @property
    def truncated(self) -> bool:
        return self._log.truncated

    def read(self) -> Sequence[Item]:
        return self._process.step(Step.LOOK, self._log.read)

    def seen(self) -> Sequence[Item]:
        return self._log.seen()

    def offer(self, entries: Sequence[KeyAndValue]) -> None:
        with suppress(KquotaError):
            self.append(entries)

    def append(self, entries: Sequence[KeyAndValue]) -> None:
        def append() -> None:
            topic = self._process.stage.topic
            if self._process.at(Fault.LOST):
                topic.fault = fake.Fault.ANSWER_LOST
            if self._process.at(Fault.NOT_SENT):
                topic.fault = self._process.rng.choice((fake.Fault.NOT_SENT, fake.Fault.NOT_WRITTEN))
            try:
                self._log.append(entries)
                self._process.appended += 1
            finally:
                topic.fault = None

        self._process.step(Step.APPEND, append)


class ProcessFiles(RunFiles):
    """The real journals of a host."""

    def __init__(self, root: Path, process: Process) -> None:
        super().__init__(root, "cluster")
        self._process = process

    def write(self, run: Run, record: str | None, version: int) -> Run:
        path = Path(self.place(run))
        before = path.stat().st_size if path.exists() else 0

        def write() -> Run:
            return RunFiles.write(self, run, record, version)

        def torn() -> None:
            write()
            data = path.read_bytes()
            path.write_bytes(data[: before + (len(data) - before) // 2])

        return self._process.step(Step.JOURNAL, write, torn=torn)

    def _read(self, path: Path) -> tuple[JournaledRun | None, int]:
        key = "journal", path, path.read_bytes()
        found: tuple[JournaledRun | None, int] = self._process.stage.remembered.of(
            key, lambda: RunFiles._read(self, path)
        )
        return found


class ProcessCluster:
    """The cluster as a process sees it. Implements `MoveCluster`. Like the real stores, it checks the lock before each
    write."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._cluster = process.stage.cluster

    @property
    def largest_submission(self) -> int | None:
        return self._cluster.largest_submission

    @property
    def stale_seconds(self) -> float:
        return self._cluster.stale_seconds

    def snapshot(self, topics: Collection[str] | None) -> Snapshot:
        """Send two requests, as over the Admin API: for the running moves and, a moment later, for the metadata."""
        first = self._read(lambda: self._cluster.snapshot(topics))
        self._process.wait(self._process.rng.uniform(0.005, 0.1))
        second = self._cluster.snapshot(topics)
        return replace(
            second,
            partitions={name: _joined(now, first.running.get(name)) for name, now in second.partitions.items()},
            running=first.running,
        )

    def values(self, settings: Collection[Setting]) -> Mapping[Setting, str | None]:
        return self._read(lambda: self._cluster.values(settings))

    def overwrite(self, values: Mapping[Setting, str | None]) -> Overwritten:
        def arrive() -> Overwritten:
            before = dict(self._cluster.configs)
            done = self._cluster.overwrite(values)
            after = {setting: value for setting, value in values.items() if setting not in done.errors}
            self._process.stage.overwritten(self._process.who, before, after)
            return done

        if not self._cluster.controllers:
            return self._read(arrive)

        def write() -> Overwritten:
            self._arrives()
            return arrive()

        return self._process.step(Step.WRITE, write, guard=self._process.runs.must_hold)

    def must_permit(self, settings: Collection[Setting], *, moves: bool) -> None:
        self._cluster.must_permit(settings, moves=moves)

    def minimum_in_sync(self, topics: Collection[str]) -> Mapping[str, int]:
        return self._read(lambda: self._cluster.minimum_in_sync(topics))

    def change(self, changes: Sequence[Change]) -> Mapping[Setting, KquotaError]:
        """Write the changes. A death in the middle leaves half of them written, because no request contains all."""

        def arrive(those: Sequence[Change]) -> Mapping[Setting, KquotaError]:
            self._arrives()
            errors = self._cluster.change(those)
            for change in those:
                if change.setting not in errors:
                    self._process.stage.changed(self._process.who, self._process.doing, change)
            return errors

        return self._process.step(
            Step.WRITE,
            lambda: arrive(changes),
            torn=lambda: arrive(changes[: len(changes) // 2]),
            guard=self._process.runs.must_hold,
        )

    def submit(self, targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
        def arrive() -> Mapping[TopicPartition, str]:
            self._arrives()
            self._process.stage.submitting(self._process.who, self._process.doing, targets)
            refused = self._cluster.submit(targets)
            self._process.stage.moves_end(self._process.rng)
            return refused

        return self._process.step(Step.WRITE, arrive, guard=self._process.runs.must_hold)

    def _read(self, read: Callable[[], T]) -> T:
        answer = self._process.step(Step.READ, read)
        record = self._process.record
        if isinstance(record, TopicRecord) and record._mine is not None:
            self._process.stage.holds(self._process.who, record._mine.term, writes=False)
        return answer

    def _arrives(self) -> None:
        self._process.arrives()


def _joined(now: PartitionReplicas, move: PartitionReplicas | None) -> PartitionReplicas:
    """Return a partition as `kquota.stores.admin.moves` reads it. The metadata names neither added nor removed
    replicas.
    """
    if move is None:
        return replace(now, adding=(), removing=()) if now.moving else now
    return replace(now, replicas=move.replicas, adding=move.adding, removing=move.removing)


class ProcessZnodes(MemoryZnodes):
    """ZooKeeper as a process sees it. A read of several znodes is a step, and so is a transaction."""

    def __init__(self, process: Process) -> None:
        assert isinstance(process.stage.cluster, TreeCluster)
        super().__init__(process.stage.cluster.tree)
        self._process = process
        self._stage_cluster = process.stage.cluster
        self.lock = 0
        """The transaction in which this process took the lock."""

    def expire(self) -> None:
        self._client.tree.expire(self._client.session)

    def ended(self, kind: Step) -> bool:
        """Return True if the session has ended, and its end reaches the request. Otherwise, a new session sends it."""
        if self._client.session in self._client.tree.open:
            return False
        self._client.session = self._client.tree.session()
        return kind in (Step.APPEND, Step.WRITE, Step.READ) and self._process.rng.random() < 0.5

    def close_at_the_end(self) -> None:
        """Close the session when the process ends. The session of a killed process ends later."""
        schedule = self._process.schedule
        schedule.at(schedule.now + (SESSION_SECONDS if self._process.dead else 0.0), self.expire)

    def read_all(self, paths: Iterable[str]) -> dict[str, Node | None]:
        every = list(paths)
        kind = Step.LOOK if all(path.startswith("/kquota") for path in every) else Step.READ
        return self._process.step(kind, lambda: MemoryZnodes.read_all(self, every))

    def commit(self, operations: Sequence[ZnodeOperation]) -> None:
        paths = [operation.path for operation in operations]
        kind = Step.APPEND if all(path.startswith("/kquota") for path in paths) else Step.WRITE
        self._process.step(kind, lambda: self._arrive(operations, kind))

    def _arrive(self, operations: Sequence[ZnodeOperation], kind: Step) -> None:
        process, cluster = self._process, self._stage_cluster
        before = dict(cluster.configs)
        MemoryZnodes.commit(self, operations)
        if kind is Step.APPEND:
            if any(isinstance(one, Create) and one.path == LOCK for one in operations):
                self.lock = cluster.tree.zxid
            process.appended += self.lock > 0  # a process that only created /kquota has not requested the lock
            return
        process.arrives()
        for setting in sorted({*before, *cluster.configs}):
            if before.get(setting) != (after := cluster.configs.get(setting)):
                cluster.writes += 1
                changed = Change(setting=setting, before=before.get(setting), after=after)
                process.stage.changed(process.who, process.doing, changed)
        for one in operations:
            if isinstance(one, Create) and one.path == SUBMITTED:
                cluster.writes += 1
                process.stage.submitting(process.who, process.doing, _submitted(one.data))


def _submitted(data: bytes) -> dict[TopicPartition, Replicas | None]:
    return {
        TopicPartition(one["topic"], one["partition"]): tuple(map(BrokerId, one["replicas"]))
        for one in json.loads(data)["partitions"]
    }
