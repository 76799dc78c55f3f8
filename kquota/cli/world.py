"""Where a command's cluster is, and the one place that joins the rooms' ports with the stores that implement them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota import folders, library
from kquota.cli.connection import Where as Where
from kquota.cli.connection import where as where
from kquota.cli.contract import say
from kquota.cli.progress import throttled
from kquota.errors import Invalid
from kquota.terms import SEEN_SECONDS

if TYPE_CHECKING:
    from kquota.config.port import Configs
    from kquota.quota.port import Principals
    from kquota.reassign.port import Cluster, ReplicaDirs, Runs
    from kquota.sizes.port import LogDirs
    from kquota.stores.runs import RunFiles
    from kquota.stores.wire.connection import Wire
    from kquota.stores.znodes import Znodes
    from kquota.stores.zookeeper_runs import ZooKeeperRuns
    from kquota.throttle.port import Ports

_SEEN_POLL_SECONDS: Final = 0.05


@contextmanager
def wire(at: Where) -> Iterator[Wire]:
    """An open connection to the brokers. Raises Invalid where only a ZooKeeper is named."""
    bootstrap = brokers(at)
    with library.wire(bootstrap, library.login(at.command_config, warn), throttled()) as opened:
        yield opened


def logins(at: Where, client_config: Path | None) -> library.Logins:
    """Who looks, and who is probed: the same unless --client-config names another login."""
    bootstrap, said = brokers(at), library.login(at.command_config, warn)
    probed = said if client_config is None else library.login(client_config, warn, "--client-config")
    return library.Logins(bootstrap_server=bootstrap, said=said, probed=probed, warned=warn)


def brokers(at: Where) -> str:
    """Where the brokers are. Raises Invalid where only a ZooKeeper is named."""
    if at.bootstrap is None:
        raise Invalid("this needs the brokers: give --bootstrap-server HOST:PORT")
    return at.bootstrap


@contextmanager
def _znodes(at: Where) -> Iterator[Znodes]:
    """An open session with the cluster's ZooKeeper. Raises Invalid where only brokers are named."""
    if at.zookeeper is None:
        raise Invalid("this needs the ZooKeeper: give --zookeeper HOST:PORT")
    from kquota.stores.znodes import Znodes

    how = None
    if at.zk_tls_config_file is not None or at.zk_sasl_config_file is not None or os.environ.get("KAFKA_OPTS"):
        from kquota.stores.zookeeper_access import access

        how = access(at.zk_tls_config_file, at.zk_sasl_config_file, os.environ, warn)
    with Znodes(at.zookeeper, how) as opened:
        yield opened


@contextmanager
def quotas(at: Where, warned: Callable[[str], None] | None = None) -> Iterator[Principals]:
    """The cluster's client quotas. `warned` is told what of them cannot be read, by default on stderr."""
    tell = warned or warn
    if at.zookeeper is not None:
        from kquota.stores.zookeeper import ZooKeeperQuotas

        with _znodes(at) as znodes:
            yield ZooKeeperQuotas(znodes, unreadable=tell)
    else:
        from kquota.stores.wire.quotas import WireQuotas

        with wire(at) as opened:
            yield WireQuotas(opened, unreadable=tell)


@contextmanager
def configs(at: Where) -> Iterator[Configs]:
    """The configs of the cluster's topics and brokers."""
    if at.zookeeper is not None:
        from kquota.stores.zookeeper_configs import ZooKeeperConfigs

        with _znodes(at) as znodes:
            yield ZooKeeperConfigs(znodes, unreadable=warn)
    else:
        from kquota.stores.wire.configs import WireConfigs

        with wire(at) as opened:
            yield WireConfigs(opened)


@contextmanager
def log_dirs(at: Where) -> Iterator[LogDirs]:
    """The log dirs of the cluster's live brokers."""
    from kquota.stores.wire.log_dirs import WireLogDirs

    with wire(at) as opened:
        yield WireLogDirs(opened)


@contextmanager
def topics(at: Where) -> Iterator[library.Cluster]:
    """The topics of a cluster, their configs, and the quotas under which we change them."""
    with library.connect(brokers(at), at.command_config, warned=warn, throttled=throttled()) as cluster:
        yield cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class _MoveStores:
    """The stores of a move, and the connection that they share: one of `wire` and `znodes`, the other is None."""

    cluster: Cluster
    runs: RunFiles | ZooKeeperRuns
    cluster_id: str
    root: Path
    wire: Wire | None = None
    znodes: Znodes | None = None


@contextmanager
def _move_stores(at: Where, state_dir: Path | None, holding: str | None) -> Iterator[_MoveStores]:
    """Open until the end, in the user's XDG state folder unless `state_dir` is another.

    What writes says what it is `holding` them for: every other kquota that does is then kept out. Raises Busy.
    """
    from kquota.stores.runs import RunFiles

    root = state_dir if state_dir is not None else folders.state(os.environ)
    with ExitStack() as stack:
        if at.zookeeper is not None:
            from kquota.stores.zookeeper_moves import ZooKeeperMoves, cluster_id
            from kquota.stores.zookeeper_runs import ZooKeeperRuns

            znodes = stack.enter_context(_znodes(at))
            runs = ZooKeeperRuns(znodes, RunFiles(root, known := cluster_id(znodes)))
            cluster = ZooKeeperMoves(znodes, runs)
            found = _MoveStores(cluster=cluster, runs=runs, cluster_id=known, root=root, znodes=znodes)
        else:
            from kquota.stores.wire.moves import WireMoves

            opened = stack.enter_context(wire(at))
            known = opened.cluster_id
            files = RunFiles(root, known)
            found = _MoveStores(cluster=WireMoves(opened), runs=files, cluster_id=known, root=root, wire=opened)
        if holding is not None:
            stack.enter_context(found.runs.hold(holding))
        yield found


@contextmanager
def moves(at: Where, state_dir: Path | None) -> Iterator[tuple[Cluster, Runs]]:
    """The cluster as a move sees it, and the record of its runs, by default in the user's XDG state folder."""
    with _move_stores(at, state_dir, None) as stores:
        yield stores.cluster, stores.runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """All that a move is made of. Through ZooKeeper nothing tells sizes, and log dirs can be neither read nor moved."""

    cluster: Cluster
    runs: Runs
    log_dirs: LogDirs | None
    dirs: ReplicaDirs | None


@contextmanager
def staged(at: Where, state_dir: Path | None, holding: str | None) -> Iterator[Stage]:
    """The same with what else a move may need, on one connection.

    What writes says what it is `holding` them for: every other kquota that does is then kept out. Raises Busy.
    """
    with _move_stores(at, state_dir, holding) as stores:
        log_dirs: LogDirs | None = None
        dirs: ReplicaDirs | None = None
        if stores.wire is not None:
            from kquota.stores.wire.log_dirs import WireLogDirs
            from kquota.stores.wire.replica_dirs import WireReplicaDirs

            log_dirs, dirs = WireLogDirs(stores.wire), WireReplicaDirs(stores.wire)
        yield Stage(cluster=stores.cluster, runs=stores.runs, log_dirs=log_dirs, dirs=dirs)


@contextmanager
def throttling(at: Where, state_dir: Path | None, holding: str | None = None) -> Iterator[Ports]:
    """All that replication throttles are made of, on one connection; `holding` as for `staged`."""
    from kquota.stores.sightings import SightingsFile
    from kquota.throttle.port import Ports

    with _move_stores(at, state_dir, holding) as stores:
        configs: Configs
        log_dirs: LogDirs | None = None
        if stores.wire is not None:
            from kquota.stores.wire.configs import WireConfigs
            from kquota.stores.wire.log_dirs import WireLogDirs

            configs, log_dirs = WireConfigs(stores.wire), WireLogDirs(stores.wire)
        else:
            from kquota.stores.zookeeper_configs import ZooKeeperConfigs

            assert stores.znodes is not None
            configs = ZooKeeperConfigs(stores.znodes, unreadable=warn)
        memory = SightingsFile(stores.root, stores.cluster_id)
        yield Ports(cluster=stores.cluster, configs=configs, log_dirs=log_dirs, runs=stores.runs, memory=memory)


def warn(line: str) -> None:
    """What a person should know, and a script need not."""
    say(f"warning: {line}")


class SystemClock:
    """This machine's clock. Implements `kquota.reassign.port.Clock`."""

    def now(self) -> datetime:
        """See the port."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """See the port."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """See the port."""
        time.sleep(seconds)


def until_seen(seconds: float = SEEN_SECONDS) -> Iterator[None]:
    """The reads that a read-back may take: at once, then every 50 ms (stale KRaft reads took 0.27 s)."""
    give_up = time.monotonic() + seconds
    yield
    while time.monotonic() < give_up:
        time.sleep(_SEEN_POLL_SECONDS)
        yield
