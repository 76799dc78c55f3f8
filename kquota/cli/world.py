"""Connects commands with clusters: opens the stores that implement the ports of other packages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from kquota import folders, library
from kquota.cli import confirmation, connection
from kquota.cli.connection import READ_LOGINS, Connection
from kquota.cli.connection import Where as Where
from kquota.cli.contract import not_installed, say, worded
from kquota.cli.progress import throttled
from kquota.errors import Invalid, KquotaError
from kquota.stores.login.arguments import Access, ArgumentNames
from kquota.terms import BrokerId

if TYPE_CHECKING:
    from kquota.election.port import Elections
    from kquota.errors import Unreachable
    from kquota.quota.entity import Entity
    from kquota.quota.port import Principals
    from kquota.reassign.port import MoveCluster
    from kquota.settings.port import Configs
    from kquota.sizes.port import LogDirs
    from kquota.stores.admin.connection import Wire
    from kquota.stores.admin.controller_configs import ControllerConfigs
    from kquota.stores.login.security import Security
    from kquota.stores.metrics.broker_metrics import BrokerMetrics as BrokerMetrics
    from kquota.stores.record.sharing import Condition as Condition
    from kquota.stores.record.sharing import Removal as Removal
    from kquota.stores.record.sharing import Sharing as Sharing
    from kquota.stores.record.sharing import SharingPlan as SharingPlan
    from kquota.stores.state.completion import CompletionFile
    from kquota.stores.zookeeper.znodes import Znodes

NAMES: Final = ArgumentNames(
    bootstrap_server="--bootstrap-server",
    command_config="--command-config",
    zookeeper="--zookeeper",
    zk_tls_config_file="--zk-tls-config-file",
    zk_sasl_config_file="--zk-sasl-config-file",
    bootstrap_controller="--bootstrap-controller",
)
"""The names of a connection's arguments, as errors show them."""


def where(options: Connection, *, both: bool = False, alone: str | None = None) -> Where:
    """Return the cluster, like `connection.where`.

    Raises the errors of `connection.where`. Also raises Invalid if config.toml requires a confirmation that this
    command cannot ask for.
    """
    at = connection.where(options, both=both, alone=alone)
    confirmation.must_be_possible(at)
    return at


@contextmanager
def wire(at: Where) -> Iterator[Wire]:
    """Open a connection to the brokers with the login of `--command-config`.

    Raises Invalid for an unusable login file, and the errors of `wire_of`.
    """
    with wire_of(at, login(at)) as opened:
        yield opened


@contextmanager
def wire_of(at: Where, security: Security | None) -> Iterator[Wire]:
    """Open a connection to the brokers with this login. If the command writes, print the cluster and ask for
    confirmation as `confirmation.names` does.

    Raises Invalid if no address of a broker is given or the address is wrong. Raises Refused if the brokers reject the
    login or the operator does not confirm, and Unreachable if no broker answers.
    """
    with library.wire(brokers(at), security, throttled(), names=NAMES) as opened:
        confirmation.names(at, opened.cluster_id)
        yield opened


def logins(at: Where, client_config: Path | None) -> library.Logins:
    """Return the login of kquota and the login to probe. Without `--client-config`, they are the same.

    Raises Invalid if no address of a broker is given, and for an unusable login file.
    """
    bootstrap, security = brokers(at), login(at)
    probed = security if client_config is None else library.login(client_config, warn, "--client-config")
    return library.Logins(
        bootstrap_server=bootstrap,
        security=security,
        probed=probed,
        warned=warn,
        names=NAMES,
        connected=partial(confirmation.names, at),
    )


def login(at: Where) -> Security | None:
    """Return the login of `--command-config`, or None without this option. Raises Invalid for an unusable file.

    A regular file is read for each connection, because a password or certificate may be renewed during a long command.
    A command can read a pipe only once.
    """
    file = at.command_config
    if file is None or file.is_file():
        return library.login(file, warn, NAMES.command_config)
    if file not in READ_LOGINS:
        READ_LOGINS[file] = library.login(file, warn, NAMES.command_config)
    found: Security | None = READ_LOGINS[file]
    return found


def brokers(at: Where) -> str:
    """Return the addresses of the brokers. Raises Invalid if no address of a broker is given."""
    if at.bootstrap is None:
        raise Invalid("this command needs the brokers. Give --bootstrap-server HOST:PORT")
    return at.bootstrap


def only_controllers(at: Where) -> bool:
    """Return True if `--bootstrap-controller` replaces the brokers."""
    return at.controllers is not None and at.bootstrap is None


@contextmanager
def controllers(at: Where) -> Iterator[ControllerConfigs]:
    """Open a connection to the controllers of `--bootstrap-controller`. `at` must have their addresses.

    Raises the errors of `login` and `library.controllers`. Also raises Refused if the operator does not confirm.
    """
    assert at.controllers is not None
    with library.controllers(at.controllers, login(at), throttled(), NAMES) as found:
        confirmation.names(at, found.cluster_id)
        yield found


@contextmanager
def znodes(at: Where) -> Iterator[Znodes]:
    """Open a session with the cluster's ZooKeeper.

    Raises Invalid if no ZooKeeper is given, and for an unusable login file. Raises Refused if the operator does not
    confirm. Also raises the errors of `Znodes`.
    """
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
    """Open the cluster's client quotas, in ZooKeeper if its address is given. Raises the errors of `znodes` or `wire`.

    `warned` receives messages about unreadable values. By default, the messages are printed on stderr.
    """
    report = warned or warn
    if at.zookeeper is not None:
        from kquota.stores.zookeeper.quotas import ZooKeeperQuotas

        with znodes(at) as session:
            yield ZooKeeperQuotas(session, unreadable=report)
    else:
        from kquota.stores.admin.quotas import WireQuotas

        with wire(at) as opened:
            yield WireQuotas(opened, unreadable=report)


UsageReader: TypeAlias = "Callable[[], list[BrokerMetrics | Unreachable]]"
"""A function that reads the quota metrics of all brokers once. The list has an Unreachable for each exporter, or for
the Prometheus server, that gives no valid answer.
"""


def usage_reader(metrics: str | None, prometheus: str | None) -> UsageReader:
    """Return a reader of the exporters in `metrics` (URLs separated by commas). If `metrics` is None, return a reader
    of the Prometheus server, which must be given.

    Raises Invalid for an invalid URL, and Refused if the parser of the exporters' text format is not installed.
    """
    if metrics is None:
        from kquota.stores.metrics import prometheus as server

        assert prometheus is not None
        return partial(server.read, server.server(prometheus, "--prometheus"))
    try:
        from kquota.stores.metrics import exporters
    except ImportError as error:
        raise not_installed("--metrics", error.name, "metrics") from error
    return partial(exporters.read, exporters.urls(metrics, "--metrics"))


def usage_history(
    prometheus: str, directory: Path, cluster_id: str, times: tuple[datetime, datetime, timedelta]
) -> int:
    """Write the metrics of a Prometheus server as usage snapshots. `times` are the first time, the last time and the
    step.

    Return the number of rows. Raises Invalid for an invalid URL, if the server lists a broker twice, and if a folder
    cannot be created or read. Raises Unreachable if the server gives no valid answer, and Refused if a snapshot exists
    or cannot be written.
    """
    from kquota.stores.metrics import prometheus as server
    from kquota.stores.state import usage_files

    count = 0
    for time_, brokers in server.history(server.server(prometheus, "--prometheus"), *times):
        _, rows = usage_files.add(directory, cluster_id, time_, (one for each in brokers for one in each.readings()))
        count += rows
    return count


def must_carry(at: Where, entity: Entity) -> None:
    """Raise Invalid for an entity that cannot have a quota on this connection. The check opens no connection."""
    if at.zookeeper is not None:
        from kquota.stores.zookeeper.quotas import must_carry

        must_carry([entity])


@contextmanager
def configs(at: Where) -> Iterator[Configs]:
    """Open the configs of the cluster's topics, brokers and other resources.

    Raises the errors of `znodes`, `controllers` or `wire`, depending on the address that is given.
    """
    if at.zookeeper is not None:
        from kquota.stores.zookeeper.configs import ZooKeeperConfigs

        with znodes(at) as session:
            yield ZooKeeperConfigs(session, unreadable=warn)
    elif only_controllers(at):
        with controllers(at) as found:
            yield found
    else:
        from kquota.stores.admin.configs import WireConfigs

        with wire(at) as opened:
            yield WireConfigs(opened)


@contextmanager
def configs_and_dead(at: Where) -> Iterator[tuple[Configs, Callable[[], frozenset[BrokerId]]]]:
    """Open the configs like `configs`. The second value is a function that returns the dead brokers on the same
    connection, because `--command-config` may be a pipe. Over ZooKeeper or controllers, it returns an empty set.

    Raises the errors of `configs`. The function is like `dead_brokers`, and raises the errors of
    `broker_metadata.fenced`.
    """
    if at.zookeeper is not None or only_controllers(at):
        with configs(at) as found:
            yield found, frozenset[BrokerId]
    else:
        from kquota.stores.admin.broker_metadata import fenced
        from kquota.stores.admin.configs import WireConfigs

        with wire(at) as opened:
            yield WireConfigs(opened), partial(fenced, opened)


BrokerSettings: TypeAlias = Mapping[BrokerId, Mapping[str, str | None]]


def broker_settings(
    at: Where, brokers: Iterable[int] | None = None, what: str = "the brokers' settings for throttles"
) -> BrokerSettings:
    """Return the configs of these brokers, or of each live broker if `brokers` is None. A value that a broker does not
    report is None.

    If kquota cannot read the configs, warn that `what` are unknown, and return an empty mapping.
    """
    from kquota.settings.resource import BROKERS, Resource

    try:
        with configs(at) as found:
            named = None if brokers is None else [Resource(kind=BROKERS, name=str(broker)) for broker in brokers]
            described = found.describe(found.resources(BROKERS) if named is None else named)
    except KquotaError as error:
        say(f"warning: kquota assumes Kafka's defaults, because {what} are unknown: {worded(error)}")
        return {}
    return {resource.broker: {entry.key: entry.value for entry in entries} for resource, entries in described.items()}


@contextmanager
def log_dirs(at: Where) -> Iterator[LogDirs]:
    """Open the log dirs of the cluster's live brokers. Raises the errors of `wire`."""
    from kquota.stores.admin.log_dirs import WireLogDirs

    with wire(at) as opened:
        yield WireLogDirs(opened)


def dead_brokers(at: Where) -> frozenset[BrokerId]:
    """Return the fenced brokers, or an empty set if the cluster does not report them (only Kafka 4.0 or newer does).

    Raises the errors of `wire` and of `broker_metadata.fenced`.
    """
    from kquota.stores.admin.broker_metadata import fenced

    with wire(at) as opened:
        return fenced(opened)


@contextmanager
def log_dirs_and_moves(at: Where) -> Iterator[tuple[LogDirs, MoveCluster]]:
    """Open the log dirs of the cluster's live brokers, and its moves, on one connection.

    Raises the errors of `wire`.
    """
    from kquota.stores.admin.log_dirs import WireLogDirs
    from kquota.stores.admin.moves import WireMoves

    with wire(at) as opened:
        yield WireLogDirs(opened), WireMoves(opened)


@contextmanager
def topics(at: Where) -> Iterator[library.Cluster]:
    """Open the topics of a cluster, their configs, and the quotas that apply when this client changes topics.

    Raises the errors of `wire`.
    """
    with library.connect(brokers(at), at.command_config, warned=warn, throttled=throttled(), names=NAMES) as cluster:
        confirmation.names(at, cluster.cluster_id)
        yield cluster


@contextmanager
def elections(at: Where) -> Iterator[Elections]:
    """Open the leader elections of a cluster. Raises the errors of `wire`."""
    from kquota.stores.admin.elections import WireElections

    with wire(at) as opened:
        yield WireElections(opened)


@contextmanager
def record(options: Connection, state_dir: Path | None) -> Iterator[Sharing]:
    """Open the shared record of a cluster, to create, read or delete the record.

    kquota connects to the brokers and, if its address is given, to ZooKeeper. Raises Invalid for `--record none`, and
    the errors of `where`, `wire` and `znodes`.
    """
    from kquota.stores.record import choose
    from kquota.stores.record.sharing import Sharing
    from kquota.stores.state.runs import RunFiles

    at = where(options, both=True)
    if at.record == choose.NONE:
        raise Invalid(
            f"--record {choose.NONE}: this command uses the topic of the shared record. Give --record with a topic name"
        )
    root = state_dir if state_dir is not None else folders.state(os.environ)
    with ExitStack() as stack:
        session = stack.enter_context(znodes(at)) if at.zookeeper is not None else None
        opened = stack.enter_context(wire(at))
        files = RunFiles(root, opened.cluster_id)
        yield Sharing(wire=opened, znodes=session, files=files, topic=at.record or choose.TOPIC)


def completion_file(named: Sequence[str]) -> CompletionFile:
    """Return the file with the cached names that completions offer. `named` is as for `CompletionFile`."""
    from kquota.stores.state.completion import CompletionFile

    return CompletionFile(folders.cache(os.environ) / "completion", named)


def unseen(alone: KquotaError | None) -> tuple[str, ...]:
    """Return a note if runs of other hosts are not visible. `alone` is the reason, or None if all runs are visible."""
    return () if alone is None else (f"note: kquota cannot see runs of other hosts: {worded(alone)}",)


def warn(problem: str | KquotaError) -> None:
    """Print a warning on stderr."""
    say(f"warning: {problem if isinstance(problem, str) else worded(problem)}")
