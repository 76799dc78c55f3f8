"""Opens the stores of moves and throttles together: the cluster, its configs, and the record of its runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from kquota import folders, library
from kquota.cli import world
from kquota.cli.clock import SystemClock
from kquota.cli.contract import say
from kquota.cli.progress import throttled
from kquota.errors import KquotaError, Refused, Unreachable
from kquota.reassign.port import MovePorts

if TYPE_CHECKING:
    from kquota.reassign.moves import PartitionReplicas
    from kquota.reassign.port import MoveCluster, ReplicaDirs
    from kquota.reassign.run import Run
    from kquota.sizes.port import LogDirs
    from kquota.stores.admin.connection import Wire
    from kquota.stores.admin.controller_configs import ControllerConfigs
    from kquota.stores.admin.moves import WireMoves
    from kquota.stores.record.choose import Choice, DoubleFence
    from kquota.stores.record.memory import Remembered
    from kquota.stores.record.runs import RecordedRuns
    from kquota.stores.state.past_moves import PastMovesFile
    from kquota.stores.zookeeper.moves import ZooKeeperMoves
    from kquota.stores.zookeeper.znodes import Znodes
    from kquota.terms import BrokerId, TopicPartition
    from kquota.throttle.port import Ports
    from kquota.watch.observation import WatchPorts
    from kquota.watch.port import LogReader


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRequest:
    """The way in which a command that writes takes the lock of the cluster."""

    doing: str
    """The name of the command, as other commands report it."""
    patient: bool = False
    """If True, the command waits up to one lease to see whether the heartbeat of the lock's holder has stopped."""
    take_over: bool = False
    """If True, the command takes the lock even from a holder that may be alive."""
    cautious: bool = False
    """If True, the command must not miss a run in ZooKeeper, because it removes settings that no run needs."""
    later: bool = False
    """If True, the command first only reads. It takes the lock with `Stage.hold` if it has to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _MoveStores:
    """The stores of a move, and their shared connection. `wire` is None over ZooKeeper.

    `cluster` is the store of the moves and of the configs, so that kquota reads both from the same broker. `fence` adds
    the lock in ZooKeeper to the lock of the record. It is None unless kquota works through ZooKeeper and the shared
    record is a topic.
    """

    cluster: WireMoves | ZooKeeperMoves
    runs: RecordedRuns
    root: Path
    clock: SystemClock
    wire: Wire | None = None
    fence: DoubleFence | None = None

    @contextmanager
    def hold(self, holding: LockRequest) -> Iterator[None]:
        """Until the block ends, lock the cluster against every other kquota that writes. Raises Busy if another kquota
        holds the lock.
        """
        with ExitStack() as stack:
            stack.enter_context(self.runs.hold(holding.doing, take_over=holding.take_over))
            if self.fence is not None:
                stack.enter_context(self.fence.hold(holding.doing, take_over=holding.take_over))
            yield

    def log_dirs(self) -> LogDirs | None:
        """Return the reader of log dirs, or None over ZooKeeper."""
        from kquota.stores.admin.log_dirs import WireLogDirs

        return None if self.wire is None else WireLogDirs(self.wire)

    def fenced(self) -> frozenset[BrokerId] | KquotaError:
        """Return the dead brokers that the cluster still lists, or the reason why they are unknown. The set is empty
        before Kafka 4.0, and over ZooKeeper.
        """
        from kquota.stores.admin import broker_metadata

        try:
            return frozenset() if self.wire is None else broker_metadata.fenced(self.wire)
        except (Refused, Unreachable) as error:
            return error


@contextmanager
def _move_stores(at: world.Where, state_dir: Path | None, holding: LockRequest | None) -> Iterator[_MoveStores]:
    """Open the stores. The journals are in `state_dir`, or in the user's XDG state folder if `state_dir` is None.

    `holding` is None for a command that only reads. Otherwise the command locks the cluster until the block ends,
    unless `holding.later` is true. Raises Busy if another kquota holds the lock. Also raises the errors of `world.wire`
    and `choose.over_brokers`, or over ZooKeeper those of `world.znodes` and `choose.over_zookeeper`.
    """
    root = state_dir if state_dir is not None else folders.state(os.environ)
    with ExitStack() as stack:
        opened = _over_zookeeper if at.zookeeper is not None else _over_brokers
        found = opened(stack, at, root, holding)
        if holding is not None and not holding.later:
            stack.enter_context(found.hold(holding))
        yield found


def _choice(at: world.Where, holding: LockRequest | None) -> Choice:
    from kquota.stores.record.choose import Choice

    waiting = say if holding is not None and holding.patient else None
    cautious = holding is not None and holding.cautious
    return Choice(name=at.record, writes=holding is not None, cautious=cautious, warned=world.warn, waiting=waiting)


def _over_brokers(stack: ExitStack, at: world.Where, root: Path, holding: LockRequest | None) -> _MoveStores:
    from kquota.stores.admin.moves import WireMoves

    # Read the login file only once, because it may be a pipe.
    security = world.login(at)
    opened = stack.enter_context(world.wire_of(at, security))
    runs = _recorded(stack, at, opened, root, holding)

    @cache
    def controllers() -> ControllerConfigs:
        return stack.enter_context(library.controllers_of(opened, at.controllers, security, throttled(), world.NAMES))

    store = WireMoves(opened, runs.must_hold, controllers)
    return _MoveStores(
        cluster=store,
        runs=runs,
        root=root,
        clock=SystemClock(runs.keep_alive),
        wire=opened,
    )


def _recorded(stack: ExitStack, at: world.Where, opened: Wire, root: Path, holding: LockRequest | None) -> RecordedRuns:
    """Return the record of runs for a connection to the brokers. If the record needs a session with ZooKeeper, the
    session ends with `stack`.
    """
    from kquota.stores.record import choose
    from kquota.stores.record.runs import RecordedRuns
    from kquota.stores.state.runs import RunFiles

    def znodes(known: Remembered) -> Znodes:
        files = (known.zk_tls_config_file, known.zk_sasl_config_file)
        tls, sasl = (None if name is None else Path(name) for name in files)
        return stack.enter_context(
            world.znodes(replace(at, zookeeper=known.zookeeper, zk_tls_config_file=tls, zk_sasl_config_file=sasl))
        )

    files = RunFiles(root, opened.cluster_id)
    return RecordedRuns(files, choose.over_brokers(opened, files, _choice(at, holding), znodes), world.warn)


def _over_zookeeper(stack: ExitStack, at: world.Where, root: Path, holding: LockRequest | None) -> _MoveStores:
    from kquota.stores.record import choose
    from kquota.stores.record.memory import remember
    from kquota.stores.record.runs import RecordedRuns
    from kquota.stores.record.topic import TopicRecord
    from kquota.stores.record.znodes import ZnodeLock, ZnodeRecord
    from kquota.stores.state.runs import RunFiles
    from kquota.stores.zookeeper.moves import ZooKeeperMoves
    from kquota.stores.zookeeper.topics import cluster_id

    znodes = stack.enter_context(world.znodes(at))
    files = RunFiles(root, cluster_id(znodes))

    def brokers_of() -> Wire:
        from kquota.stores.zookeeper.topics import endpoints

        return stack.enter_context(world.wire(replace(at, zookeeper=None, bootstrap=endpoints(znodes))))

    shared = choose.over_zookeeper(znodes, files, _choice(at, holding), brokers_of)
    runs = RecordedRuns(files, shared, world.warn)
    double = choose.DoubleFence(shared, ZnodeLock(znodes)) if isinstance(shared, TopicRecord) else None
    store = ZooKeeperMoves(znodes, world.warn, double or (shared if isinstance(shared, ZnodeRecord) else None))
    if holding is not None:
        paths = (at.zk_tls_config_file, at.zk_sasl_config_file)
        tls, sasl = (None if path is None else str(path.absolute()) for path in paths)
        remember(files.folder, zookeeper=at.zookeeper, zk_tls_config_file=tls, zk_sasl_config_file=sasl)
    return _MoveStores(
        cluster=store,
        runs=runs,
        root=root,
        clock=SystemClock(runs.keep_alive),
        fence=double,
    )


@contextmanager
def moves(at: world.Where, state_dir: Path | None) -> Iterator[tuple[MoveCluster, RecordedRuns]]:
    """Open the partitions and throttles of a cluster, and the record of its runs, without the lock.

    `state_dir` is the folder of the journals, or None for the user's XDG state folder. Raises the errors of
    `_move_stores` except Busy.
    """
    with _move_stores(at, state_dir, None) as stores:
        yield stores.cluster, stores.runs


@contextmanager
def running(
    at: world.Where,
) -> Iterator[tuple[Mapping[TopicPartition, PartitionReplicas], Callable[[], Sequence[Run]]]]:
    """Yield the running moves by partition, and a function that reads the open runs, oldest first.

    Through the controllers, the function sees only the journals of this host. Raises the errors of
    `world.controllers`, `moves` or `world.wire`, depending on the address that is given.
    """
    root = folders.state(os.environ)
    with ExitStack() as stack:
        if world.only_controllers(at):
            controllers = stack.enter_context(world.controllers(at))
            yield controllers.running(), lambda: _journals(root, controllers.cluster_id).unfinished()
        elif at.zookeeper is not None:
            cluster, runs = stack.enter_context(moves(at, None))
            yield cluster.snapshot(()).running, runs.unfinished
        else:
            from kquota.stores.admin.running import moving

            opened = stack.enter_context(world.wire(at))
            yield moving(opened), lambda: _recorded(stack, at, opened, root, None).unfinished()


def _journals(root: Path, cluster_id: str) -> RecordedRuns:
    from kquota.stores.record.runs import RecordedRuns
    from kquota.stores.record.shared import Unshared
    from kquota.stores.state.runs import RunFiles

    return RecordedRuns(
        RunFiles(root, cluster_id),
        Unshared("the shared record is a topic, and controllers do not serve topics"),
        world.warn,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(MovePorts):
    """The stores that a move needs."""

    runs: RecordedRuns
    clock: SystemClock
    past_moves: PastMovesFile
    log_dirs: LogDirs | None
    """The reader of log dirs. None over ZooKeeper, which does not store log dirs."""
    hold: Callable[[], AbstractContextManager[None]] = nullcontext
    """Takes the lock, for a command whose `LockRequest` has `later`. Raises Busy if another kquota holds the lock. Does
    nothing for a command that only reads.
    """
    fenced: Callable[[], frozenset[BrokerId] | KquotaError] = frozenset
    """Returns the dead brokers that the cluster still lists, or the reason why they are unknown. The set is empty
    before Kafka 4.0, and over ZooKeeper.
    """


@contextmanager
def staged(at: world.Where, state_dir: Path | None, holding: LockRequest | None) -> Iterator[Stage]:
    """Open all stores that a move needs. `state_dir` and `holding` are as for `_move_stores`.

    Raises Busy if another kquota holds the lock, Unreachable if the cluster does not answer, and the other errors of
    `_move_stores`.
    """
    from kquota.stores.state.past_moves import PastMovesFile

    with _move_stores(at, state_dir, holding) as stores:
        dirs: ReplicaDirs | None = None
        if stores.wire is not None:
            from kquota.stores.admin.replica_dirs import WireReplicaDirs

            dirs = WireReplicaDirs(stores.wire, stores.runs.must_hold)
        yield Stage(
            cluster=stores.cluster,
            runs=stores.runs,
            clock=stores.clock,
            past_moves=PastMovesFile(stores.root, stores.runs.cluster_id),
            log_dirs=stores.log_dirs(),
            dirs=dirs,
            fenced=stores.fenced,
            hold=nullcontext if holding is None else partial(stores.hold, holding),
        )


@contextmanager
def throttling(at: world.Where, state_dir: Path | None, holding: LockRequest | None = None) -> Iterator[Ports]:
    """Open the stores that commands for replication throttles need. `state_dir` and `holding` are as for
    `_move_stores`.

    Raises Busy if another kquota holds the lock, Unreachable if the cluster does not answer, and the other errors of
    `_move_stores`.
    """
    from kquota.stores.state.doctor_memory import SightingsFile
    from kquota.throttle.port import Ports

    with _move_stores(at, state_dir, holding) as stores:
        memory = SightingsFile(stores.root, stores.runs.cluster_id)
        yield Ports(
            cluster=stores.cluster,
            configs=stores.cluster,
            log_dirs=stores.log_dirs(),
            runs=stores.runs,
            memory=memory,
            clock=stores.clock,
            fenced=stores.fenced,
        )


@contextmanager
def watching(at: world.Where, state_dir: Path | None) -> Iterator[tuple[WatchPorts, RecordedRuns]]:
    """Open the record of runs and the stores that a watch of moves needs.

    A watch writes nothing, so it takes no lock. `state_dir` is as for `_move_stores`. Raises the errors of
    `_move_stores` except Busy.
    """
    from kquota.watch.observation import WatchPorts

    with _move_stores(at, state_dir, None) as stores:
        logs: LogReader | None = None
        if stores.wire is not None:
            from kquota.stores.admin.replica_logs import WireReplicaLogs

            logs = WireReplicaLogs(stores.wire)
        yield WatchPorts(cluster=stores.cluster, runs=stores.runs, logs=logs, clock=stores.clock), stores.runs
