"""Connects commands with clusters: the only module that joins the rooms' ports with the stores."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from kquota import folders, library
from kquota.cli import confirmation, connection
from kquota.cli.clock import SystemClock
from kquota.cli.connection import Connection
from kquota.cli.connection import Where as Where
from kquota.cli.contract import not_installed, say, worded
from kquota.cli.progress import throttled
from kquota.errors import Invalid, KquotaError
from kquota.stores.login.arguments import Access, ArgumentNames

if TYPE_CHECKING:
    from kquota.election.port import Elections
    from kquota.errors import Unreachable
    from kquota.quota.entity import Entity
    from kquota.quota.port import Principals
    from kquota.reassign.moves import PartitionReplicas
    from kquota.reassign.port import MoveCluster, ReplicaDirs
    from kquota.reassign.run import Run
    from kquota.settings.port import Configs
    from kquota.sizes.port import LogDirs
    from kquota.stores.admin.connection import Wire
    from kquota.stores.admin.controller_configs import ControllerConfigs
    from kquota.stores.exporters import BrokerMetrics
    from kquota.stores.login.security import Security
    from kquota.stores.record.choose import Choice, DoubleFence
    from kquota.stores.record.memory import Remembered
    from kquota.stores.record.runs import RecordedRuns
    from kquota.stores.record.sharing import Condition as Condition
    from kquota.stores.record.sharing import Sharing
    from kquota.stores.record.sharing import SharingPlan as SharingPlan
    from kquota.stores.state.completion import CompletionFile
    from kquota.stores.state.past_moves import PastMovesFile as PastMovesFile
    from kquota.stores.zookeeper.znodes import Znodes
    from kquota.terms import BrokerId, TopicPartition
    from kquota.throttle.port import Ports
    from kquota.watch.observation import WatchPorts
    from kquota.watch.port import LogReader

NAMES: Final = ArgumentNames(
    bootstrap_server="--bootstrap-server",
    command_config="--command-config",
    zookeeper="--zookeeper",
    zk_tls_config_file="--zk-tls-config-file",
    zk_sasl_config_file="--zk-sasl-config-file",
    bootstrap_controller="--bootstrap-controller",
)
"""The names of the arguments of a connection, as errors show them."""


def where(options: Connection, *, both: bool = False, alone: str | None = None) -> Where:
    """Return the cluster, like `connection.where`. Raises Invalid also if config.toml wants a confirmation that this
    command cannot ask for.
    """
    at = connection.where(options, both=both, alone=alone)
    confirmation.must_be_possible(at)
    return at


@contextmanager
def wire(at: Where) -> Iterator[Wire]:
    """Open a connection to the brokers. Raises Invalid if only a ZooKeeper is given."""
    with _wire(at, _login(at)) as opened:
        yield opened


@contextmanager
def _wire(at: Where, security: Security | None) -> Iterator[Wire]:
    with library.wire(brokers(at), security, throttled(), names=NAMES) as opened:
        confirmation.names(at, opened.cluster_id)
        yield opened


def logins(at: Where, client_config: Path | None) -> library.Logins:
    """Return the login of kquota and the login to probe. They are the same unless --client-config names another."""
    bootstrap, security = brokers(at), _login(at)
    probed = security if client_config is None else library.login(client_config, warn, "--client-config")
    return library.Logins(
        bootstrap_server=bootstrap,
        security=security,
        probed=probed,
        warned=warn,
        names=NAMES,
        connected=partial(confirmation.names, at),
    )


def _login(at: Where) -> Security | None:
    return library.login(at.command_config, warn, NAMES.command_config)


def brokers(at: Where) -> str:
    """Return the addresses of the brokers. Raises Invalid if only a ZooKeeper is given."""
    if at.bootstrap is None:
        raise Invalid("this command needs the brokers. Give --bootstrap-server HOST:PORT")
    return at.bootstrap


def only_controllers(at: Where) -> bool:
    """True if --bootstrap-controller replaces the brokers."""
    return at.controllers is not None and at.bootstrap is None


@contextmanager
def _controllers(at: Where) -> Iterator[ControllerConfigs]:
    """Open a connection to the controllers instead of the brokers."""
    assert at.controllers is not None
    with library.controllers(at.controllers, _login(at), throttled(), NAMES) as found:
        confirmation.names(at, found.cluster_id)
        yield found


@contextmanager
def _znodes(at: Where) -> Iterator[Znodes]:
    """Open a session with the cluster's ZooKeeper. Raises Invalid if only brokers are given."""
    if at.zookeeper is None:
        raise Invalid("this command needs ZooKeeper. Give --zookeeper HOST:PORT")
    from kquota.stores.zookeeper.znodes import Znodes

    how = Access(names=NAMES)
    if at.zk_tls_config_file is not None or at.zk_sasl_config_file is not None or os.environ.get("KAFKA_OPTS"):
        from kquota.stores.login.zookeeper import access

        how = access(at.zk_tls_config_file, at.zk_sasl_config_file, os.environ, warn, NAMES)
    with Znodes(at.zookeeper, how) as opened:
        confirmation.names(at, opened.cluster_id)
        yield opened


@contextmanager
def quotas(at: Where, warned: Callable[[str], None] | None = None) -> Iterator[Principals]:
    """Open the cluster's client quotas. `warned` receives values that cannot be read. By default they go to stderr."""
    tell = warned or warn
    if at.zookeeper is not None:
        from kquota.stores.zookeeper.quotas import ZooKeeperQuotas

        with _znodes(at) as znodes:
            yield ZooKeeperQuotas(znodes, unreadable=tell)
    else:
        from kquota.stores.admin.quotas import WireQuotas

        with wire(at) as opened:
            yield WireQuotas(opened, unreadable=tell)


UsageReader: TypeAlias = "Callable[[], list[BrokerMetrics | Unreachable]]"
"""Reads the quota metrics of all brokers once."""


def usage_reader(metrics: str | None, prometheus: str | None) -> UsageReader:
    """Return a reader of these exporters, separated by commas, or of a Prometheus server. Raises Invalid, and Refused
    without the library.
    """
    try:
        from kquota.stores import exporters
        from kquota.stores import prometheus as server
    except ModuleNotFoundError as error:
        raise not_installed("--prometheus" if metrics is None else "--metrics", error.name, "metrics") from error
    if metrics is not None:
        return partial(exporters.read, exporters.urls(metrics, "--metrics"))
    assert prometheus is not None
    return partial(server.read, server.server(prometheus, "--prometheus"))


def must_carry(at: Where, entity: Entity) -> None:
    """Raise Invalid for an entity that cannot have a quota on this connection. This needs no open connection."""
    if at.zookeeper is not None:
        from kquota.stores.zookeeper.quotas import must_carry

        must_carry([entity])


@contextmanager
def configs(at: Where) -> Iterator[Configs]:
    """Open the configs of the cluster's topics and brokers."""
    if at.zookeeper is not None:
        from kquota.stores.zookeeper.configs import ZooKeeperConfigs

        with _znodes(at) as znodes:
            yield ZooKeeperConfigs(znodes, unreadable=warn)
    elif only_controllers(at):
        with _controllers(at) as found:
            yield found
    else:
        from kquota.stores.admin.configs import WireConfigs

        with wire(at) as opened:
            yield WireConfigs(opened)


@contextmanager
def log_dirs(at: Where) -> Iterator[LogDirs]:
    """Open the log dirs of the cluster's live brokers."""
    from kquota.stores.admin.log_dirs import WireLogDirs

    with wire(at) as opened:
        yield WireLogDirs(opened)


def dead_brokers(at: Where) -> frozenset[BrokerId]:
    """Return the brokers that are registered but not alive, if the cluster reports them (KRaft, from Kafka 4.0)."""
    from kquota.stores.admin.broker_metadata import fenced

    with wire(at) as opened:
        return fenced(opened)


@contextmanager
def log_dirs_and_moves(at: Where) -> Iterator[tuple[LogDirs, MoveCluster]]:
    """Open the log dirs of the cluster's live brokers, and its moves, on one connection."""
    from kquota.stores.admin.log_dirs import WireLogDirs
    from kquota.stores.admin.moves import WireMoves

    with wire(at) as opened:
        yield WireLogDirs(opened), WireMoves(opened)


@contextmanager
def topics(at: Where) -> Iterator[library.Cluster]:
    """Open the topics of a cluster, their configs, and the quotas that apply when this client changes them."""
    with library.connect(brokers(at), at.command_config, warned=warn, throttled=throttled(), names=NAMES) as cluster:
        confirmation.names(at, cluster.cluster_id)
        yield cluster


@contextmanager
def elections(at: Where) -> Iterator[Elections]:
    """Open the leaders of a cluster."""
    from kquota.stores.admin.elections import WireElections

    with wire(at) as opened:
        yield WireElections(opened)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Why a command that writes locks the cluster, and how it treats another holder of the lock.

    `patient` waits for a holder whose heartbeat has stopped. `take_over` replaces even a holder that may be alive.
    `cautious` is the same as for `Choice`. With `later`, the command first reads, and takes the lock by `Stage.hold` if
    it has to write.
    """

    doing: str
    patient: bool = False
    take_over: bool = False
    cautious: bool = False
    later: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _MoveStores:
    """The stores of a move, and their shared connection. `wire` is None over ZooKeeper.

    `cluster` and `configs` are one store, so that both use the same broker.
    """

    cluster: MoveCluster
    configs: Configs
    runs: RecordedRuns
    cluster_id: str
    root: Path
    clock: SystemClock
    wire: Wire | None = None
    fence: DoubleFence | None = None

    @contextmanager
    def hold(self, holding: Hold) -> Iterator[None]:
        """Lock the cluster against every other kquota that writes. Raises Busy."""
        with ExitStack() as stack:
            stack.enter_context(self.runs.hold(holding.doing, take_over=holding.take_over))
            if self.fence is not None:
                stack.enter_context(self.fence.hold(holding.doing, take_over=holding.take_over))
            yield


@contextmanager
def _move_stores(at: Where, state_dir: Path | None, holding: Hold | None) -> Iterator[_MoveStores]:
    """Open the stores, in the user's XDG state folder or in `state_dir`. Raises Busy.

    While a command is `holding` the cluster, no other kquota can write.
    """
    root = state_dir if state_dir is not None else folders.state(os.environ)
    with ExitStack() as stack:
        opened = _over_zookeeper if at.zookeeper is not None else _over_brokers
        found = opened(stack, at, root, holding)
        if holding is not None and not holding.later:
            stack.enter_context(found.hold(holding))
        yield found


def _choice(at: Where, holding: Hold | None) -> Choice:
    from kquota.stores.record.choose import Choice

    waiting = say if holding is not None and holding.patient else None
    cautious = holding is not None and holding.cautious
    return Choice(name=at.record, writes=holding is not None, cautious=cautious, warned=_warn_of, waiting=waiting)


def _over_brokers(stack: ExitStack, at: Where, root: Path, holding: Hold | None) -> _MoveStores:
    from kquota.stores.admin.moves import WireMoves

    # Read once, because the file may be a pipe.
    security = _login(at)
    opened = stack.enter_context(_wire(at, security))
    runs = _recorded(stack, at, opened, root, holding)

    @functools.cache
    def controllers() -> ControllerConfigs:
        return stack.enter_context(library.controllers_of(opened, at.controllers, security, throttled(), NAMES))

    store = WireMoves(opened, runs.must_hold, controllers)
    return _MoveStores(
        cluster=store,
        configs=store,
        runs=runs,
        cluster_id=opened.cluster_id,
        root=root,
        clock=SystemClock(runs.keep_alive),
        wire=opened,
    )


def _recorded(stack: ExitStack, at: Where, opened: Wire, root: Path, holding: Hold | None) -> RecordedRuns:
    """Open the record of runs over brokers. If the record needs a session with ZooKeeper, the session ends with the
    stack.
    """
    from kquota.stores.record import choose
    from kquota.stores.record.runs import RecordedRuns
    from kquota.stores.state.runs import RunFiles

    def znodes(known: Remembered) -> Znodes:
        files = (known.zk_tls_config_file, known.zk_sasl_config_file)
        tls, sasl = (None if name is None else Path(name) for name in files)
        return stack.enter_context(
            _znodes(replace(at, zookeeper=known.zookeeper, zk_tls_config_file=tls, zk_sasl_config_file=sasl))
        )

    files = RunFiles(root, opened.cluster_id)
    return RecordedRuns(files, choose.over_brokers(opened, files, _choice(at, holding), znodes), warn)


def _over_zookeeper(stack: ExitStack, at: Where, root: Path, holding: Hold | None) -> _MoveStores:
    from kquota.stores.record import choose
    from kquota.stores.record.memory import RecordMemory
    from kquota.stores.record.runs import RecordedRuns
    from kquota.stores.record.topic import TopicRecord
    from kquota.stores.record.znodes import ZnodeLock, ZnodeRecord
    from kquota.stores.state.runs import RunFiles
    from kquota.stores.zookeeper.moves import ZooKeeperMoves
    from kquota.stores.zookeeper.topics import cluster_id

    znodes = stack.enter_context(_znodes(at))
    files = RunFiles(root, cluster_id(znodes))

    def brokers_of() -> Wire:
        from kquota.stores.zookeeper.topics import endpoints

        return stack.enter_context(wire(replace(at, zookeeper=None, bootstrap=endpoints(znodes))))

    shared = choose.over_zookeeper(znodes, files, _choice(at, holding), brokers_of)
    runs = RecordedRuns(files, shared, warn)
    double = choose.DoubleFence(shared, ZnodeLock(znodes)) if isinstance(shared, TopicRecord) else None
    store = ZooKeeperMoves(znodes, warn, double or (shared if isinstance(shared, ZnodeRecord) else None))
    if holding is not None:
        paths = (at.zk_tls_config_file, at.zk_sasl_config_file)
        tls, sasl = (None if path is None else str(path.absolute()) for path in paths)
        memory = RecordMemory(files.folder)
        memory.keep(replace(memory.recall(), zookeeper=at.zookeeper, zk_tls_config_file=tls, zk_sasl_config_file=sasl))
    return _MoveStores(
        cluster=store,
        configs=store,
        runs=runs,
        cluster_id=files.cluster_id,
        root=root,
        clock=SystemClock(runs.keep_alive),
        fence=double,
    )


@contextmanager
def moves(at: Where, state_dir: Path | None) -> Iterator[tuple[MoveCluster, RecordedRuns]]:
    """Open the cluster as a move sees it, and the record of its runs, by default in the user's XDG state folder."""
    with _move_stores(at, state_dir, None) as stores:
        yield stores.cluster, stores.runs


@contextmanager
def running(at: Where) -> Iterator[tuple[Mapping[TopicPartition, PartitionReplicas], Callable[[], Sequence[Run]]]]:
    """Open the running moves, and a reader of the open runs. Through the controllers, it reads only the journals of
    this host.
    """
    root = folders.state(os.environ)
    with ExitStack() as stack:
        if only_controllers(at):
            controllers = stack.enter_context(_controllers(at))
            yield controllers.running(), lambda: _journals(root, controllers.cluster_id).unfinished()
        elif at.zookeeper is not None:
            cluster, runs = stack.enter_context(moves(at, None))
            yield cluster.snapshot(()).running, runs.unfinished
        else:
            from kquota.stores.admin.running import in_motion, moving

            opened = stack.enter_context(wire(at))
            yield in_motion(moving(opened)), lambda: _recorded(stack, at, opened, root, None).unfinished()


def _journals(root: Path, cluster_id: str) -> RecordedRuns:
    from kquota.stores.record.runs import RecordedRuns
    from kquota.stores.record.shared import Unshared
    from kquota.stores.state.runs import RunFiles

    return RecordedRuns(RunFiles(root, cluster_id), Unshared("controllers serve no topics"), warn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Everything that a move needs. ZooKeeper does not store sizes, and cannot read or move log dirs."""

    cluster: MoveCluster
    runs: RecordedRuns
    clock: SystemClock
    past_moves: PastMovesFile
    log_dirs: LogDirs | None
    dirs: ReplicaDirs | None
    hold: Callable[[], AbstractContextManager[None]] = nullcontext
    """Take the lock of the command, if it takes the lock later."""


@contextmanager
def staged(at: Where, state_dir: Path | None, holding: Hold | None) -> Iterator[Stage]:
    """Open the stores of a move with everything else that it needs, on one connection. `holding` is as for
    `_move_stores`.
    """
    from kquota.stores.state.past_moves import PastMovesFile

    with _move_stores(at, state_dir, holding) as stores:
        log_dirs: LogDirs | None = None
        dirs: ReplicaDirs | None = None
        if stores.wire is not None:
            from kquota.stores.admin.log_dirs import WireLogDirs
            from kquota.stores.admin.replica_dirs import WireReplicaDirs

            log_dirs, dirs = WireLogDirs(stores.wire), WireReplicaDirs(stores.wire, stores.runs.must_hold)
        hold = nullcontext if holding is None else partial(stores.hold, holding)
        yield Stage(
            cluster=stores.cluster,
            runs=stores.runs,
            clock=stores.clock,
            past_moves=PastMovesFile(stores.root, stores.cluster_id),
            log_dirs=log_dirs,
            dirs=dirs,
            hold=hold,
        )


def past_moves(state_dir: Path | None, cluster_id: str | None) -> PastMovesFile | None:
    """Return the past moves of a cluster, or None if its id is unknown or not valid."""
    from kquota.stores.state.past_moves import past_moves

    return past_moves(state_dir if state_dir is not None else folders.state(os.environ), cluster_id)


@contextmanager
def throttling(at: Where, state_dir: Path | None, holding: Hold | None = None) -> Iterator[Ports]:
    """Open the stores that commands for replication throttles need, on one connection. `holding` is as for `staged`."""
    from kquota.stores.state.doctor_memory import SightingsFile
    from kquota.throttle.port import Ports

    with _move_stores(at, state_dir, holding) as stores:
        log_dirs: LogDirs | None = None
        if stores.wire is not None:
            from kquota.stores.admin.log_dirs import WireLogDirs

            log_dirs = WireLogDirs(stores.wire)
        memory = SightingsFile(stores.root, stores.cluster_id)
        yield Ports(
            cluster=stores.cluster,
            configs=stores.configs,
            log_dirs=log_dirs,
            runs=stores.runs,
            memory=memory,
            clock=stores.clock,
            alone=stores.runs.alone,
            hidden=stores.runs.hidden,
        )


@contextmanager
def watching(at: Where, state_dir: Path | None) -> Iterator[tuple[WatchPorts, RecordedRuns]]:
    """Open the stores that a watch of moves needs, on one connection, and the record of runs.

    A watch writes nothing.
    """
    from kquota.watch.observation import WatchPorts

    with _move_stores(at, state_dir, None) as stores:
        logs: LogReader | None = None
        if stores.wire is not None:
            from kquota.stores.admin.replica_logs import WireReplicaLogs

            logs = WireReplicaLogs(stores.wire)
        yield WatchPorts(cluster=stores.cluster, runs=stores.runs, logs=logs, clock=stores.clock), stores.runs


@contextmanager
def record(options: Connection, state_dir: Path | None) -> Iterator[Sharing]:
    """Open a cluster whose shared record is created, read or deleted, over its brokers, and its ZooKeeper if given."""
    from kquota.stores.record import choose
    from kquota.stores.record.sharing import Condition as Condition
    from kquota.stores.record.sharing import Sharing
    from kquota.stores.record.sharing import SharingPlan as SharingPlan
    from kquota.stores.state.runs import RunFiles

    at = where(options, both=True)
    if at.record == choose.NONE:
        raise Invalid(f"--record {choose.NONE}: this command needs the name of a topic")
    root = state_dir if state_dir is not None else folders.state(os.environ)
    with ExitStack() as stack:
        znodes = stack.enter_context(_znodes(at)) if at.zookeeper is not None else None
        opened = stack.enter_context(wire(at))
        files = RunFiles(root, opened.cluster_id)
        yield Sharing(wire=opened, znodes=znodes, files=files, topic=at.record or choose.TOPIC)


def completion_file(named: Sequence[str]) -> CompletionFile:
    """Return the cached names that completions offer for the cluster of these options."""
    from kquota.stores.state.completion import completion_file

    return completion_file(os.environ, named)


def unseen(alone: KquotaError | None) -> tuple[str, ...]:
    """Return a note if runs of other hosts are not visible. `alone` is the reason, or None if they are visible."""
    return () if alone is None else (f"note: runs of other hosts are not seen: {worded(alone)}",)


def warn(line: str) -> None:
    """Print a warning for people."""
    say(f"warning: {line}")


def _warn_of(reason: KquotaError) -> None:
    warn(worded(reason))
