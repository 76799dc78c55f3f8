"""The API for programs: a connected cluster. This module opens the stores that implement the ports, as `cli.world` does
for commands.

It imports a client library only when it connects to a cluster.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota.errors import KquotaError, Unreachable
from kquota.stores.login.arguments import CONTROLLER, OF_A_PROGRAM, ArgumentNames
from kquota.terms import ANONYMOUS, CONTROLLER_MUTATION_RATE, BrokerId

if TYPE_CHECKING:
    from kquota.mutation.port import Topics
    from kquota.probe.behavior import BehaviorRecord
    from kquota.probe.port import ConsumerGroups, Sight, SmallWrites
    from kquota.probe.port import ProbeClient as Traffic
    from kquota.quota.capacity import Capacity
    from kquota.quota.explain import Explanation
    from kquota.quota.port import Principals
    from kquota.quota.precedence import Client
    from kquota.settings.port import Configs
    from kquota.stores.admin.connection import Wire
    from kquota.stores.admin.controller_configs import ControllerConfigs
    from kquota.stores.login.security import Security
    from kquota.stores.state.clusters import NamedCluster

TIMEOUT: Final = 60.0
"""The default of `default.api.timeout.ms`, in seconds."""
_CONTROLLER_SECONDS: Final = 10.0
_REPORTED_SECONDS: Final = 3.0
"""The timeout in seconds for controllers whose addresses the brokers report. It is short, because these controllers may
be unreachable from this host.
"""


def _unheard(_: object) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The topics, configs and quotas of one cluster, on one connection.

    Implements `kquota.mutation.port.MutationCluster` and `kquota.probe.port.ProbeCluster`.
    """

    topics: Topics
    checked: Topics
    """The same topics, but creations and growths are only validated, and deletions are refused."""
    configs: Configs
    quotas: Principals
    sight: Sight
    """The metadata that each broker shows."""
    brokers: tuple[BrokerId, ...]
    """The brokers that were alive when the connection was opened."""
    cluster_id: str
    client: Client | None
    """The user and client-id that brokers see. None if the user is unknown."""
    timeout: float
    """`default.api.timeout.ms`, in seconds."""
    own: Logins
    """The login of this connection."""

    def mutation_rate(self) -> float | None:
        from kquota.quota.precedence import rungs, winner

        if self.client is None:
            return None
        try:
            bound = winner(rungs(self.quotas.everything(), self.client, CONTROLLER_MUTATION_RATE))
        except KquotaError:
            return None
        rate = None if bound is None else bound.value
        # A rate of 0 allows no mutations, so kquota cannot calculate a wait from it. With None, kquota waits as long as
        # the brokers ask.
        return rate if rate is not None and 0 < rate < math.inf else None

    def mutation_burst(self) -> float:
        from kquota.mutation.pace import BURST_SECONDS

        try:
            window = cluster_of(self.configs).mutation_window
        except KquotaError:
            return BURST_SECONDS
        return BURST_SECONDS if window is None else float(window.bucket_seconds)

    def default_partitions(self) -> int:
        try:
            return cluster_of(self.configs).default_partitions or 1
        except KquotaError:
            return 1

    def explained(self, user: str, client_id: str) -> Explanation:
        from kquota.quota.explain import explain
        from kquota.quota.precedence import Client

        brokers = cluster_of(self.configs, self.quotas.release())
        return explain(self.quotas.everything(), brokers, client=Client(user=user, client_id=client_id))

    def logins(self, client_config: Path | str | None = None) -> Logins:
        if client_config is None:
            return self.own
        return replace(self.own, probed=login(Path(client_config), self.own.warned, "client_config"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Logins:
    """The login of kquota and the login to probe. Implements `kquota.probe.port.ProbeLogins`.

    Both logins are already read from their files, because a file may be a pipe, which can be read only once.
    """

    bootstrap_server: str
    security: Security | None
    """The login of kquota. None means no login."""
    probed: Security | None
    """The login to probe. None means no login."""
    warned: Callable[[str], None]
    """Receives warnings, for example about settings without effect."""
    names: ArgumentNames = OF_A_PROGRAM
    """The names of the arguments in errors."""
    connected: Callable[[str], None] = _unheard
    """Receives the cluster id each time `stage` connects."""

    @property
    def user(self) -> str | None:
        return user(self.probed)

    @property
    def client_id(self) -> str:
        return sent_client_id(self.probed)

    @contextmanager
    def stage(self) -> Iterator[Cluster]:
        with _opened(self, self.security) as cluster:
            self.connected(cluster.cluster_id)
            yield cluster

    def stage_as(self, client_id: str) -> AbstractContextManager[Cluster]:
        return _opened(self, self.probed, client_id=client_id)

    def filler(self) -> Traffic:
        return _traffic(self.bootstrap_server, self.security, sent_client_id(self.security))

    def client(self, client_id: str) -> Traffic:
        return _traffic(self.bootstrap_server, self.probed, client_id)

    def small_writes(self, topic: str, partitions: int) -> AbstractContextManager[SmallWrites]:
        from kquota.stores.admin.small_writes import small_writes

        settings = _of_librdkafka(self.security) | {"client.id": sent_client_id(self.security)}
        return small_writes(self.bootstrap_server, settings, topic, partitions)

    @contextmanager
    def groups(self) -> Iterator[ConsumerGroups]:
        from kquota.stores.admin.group_offsets import WireGroups

        with wire(self.bootstrap_server, self.security, names=self.names) as connection:
            yield WireGroups(connection)

    @contextmanager
    def throttle_proxy(self, record: BehaviorRecord) -> Iterator[str]:
        """Run a proxy to a live broker. The proxy records in `record` how a client reacts to throttle times. Yields the
        host:port of the proxy.

        Raises the errors of `wire`.
        """
        from kquota.stores.admin.throttle_proxy import throttle_proxy

        with wire(self.bootstrap_server, self.security, names=self.names) as connection:
            broker = next(iter(connection.brokers().values()))
        with throttle_proxy((broker.host, broker.port), record) as address:
            yield address


def _warned(line: str) -> None:
    warnings.warn(line, stacklevel=2)


@contextmanager
def connect(
    bootstrap_server: str,
    command_config: Path | str | None = None,
    *,
    warned: Callable[[str], None] = _warned,
    throttled: Callable[[float], None] = _unheard,
    names: ArgumentNames = OF_A_PROGRAM,
) -> Iterator[Cluster]:
    """Connect to a cluster through its brokers (host:port, separated by commas), and yield the cluster. The end of the
    context closes the connection.

    `command_config` is a file of Java properties with the login, or None for no login. `names` are the names of the
    arguments in errors. `warned` receives warnings, for example about settings without effect. `throttled` receives
    each wait, in seconds, for a broker that throttles this client (KIP-219). Raises Invalid for a wrong argument or
    login file, Refused if the brokers reject the login, and Unreachable if no broker answers.

        with kquota.connect("localhost:9092") as cluster:
            print([topic.name for topic in cluster.topics.topics(None)])
    """
    # Read the file only once, because it may be a pipe.
    security = login(None if command_config is None else Path(command_config), warned, names.command_config)
    own = Logins(bootstrap_server=bootstrap_server, security=security, probed=security, warned=warned, names=names)
    with _opened(own, security, throttled) as cluster:
        yield cluster


@contextmanager
def _opened(
    at: Logins,
    security: Security | None,
    throttled: Callable[[float], None] = _unheard,
    client_id: str | None = None,
) -> Iterator[Cluster]:
    from kquota.quota.precedence import Client
    from kquota.stores.admin.broker_metadata import WireSight
    from kquota.stores.admin.configs import WireConfigs
    from kquota.stores.admin.quotas import WireQuotas
    from kquota.stores.admin.topics import WireTopics

    name = user(security)
    sent = sent_client_id(security) if client_id is None else client_id
    tuning = {} if security is None else security.tuning
    with wire(at.bootstrap_server, security, throttled, client_id, at.names) as opened:
        yield Cluster(
            topics=WireTopics(opened),
            checked=WireTopics(opened, validate_only=True),
            configs=WireConfigs(opened),
            quotas=WireQuotas(opened, unreadable=at.warned),
            sight=WireSight(opened),
            brokers=tuple(opened.brokers()),
            cluster_id=opened.cluster_id,
            client=None if name is None else Client(user=name, client_id=sent),
            timeout=tuning.get("default.api.timeout.ms", TIMEOUT * 1_000) / 1_000,
            own=replace(at, security=security, probed=security),
        )


def _traffic(bootstrap_server: str, security: Security | None, client_id: str) -> Traffic:
    from kquota.stores.admin.load import RdkafkaClient

    return RdkafkaClient(bootstrap_server, _of_librdkafka(security), client_id)


def _of_librdkafka(security: Security | None) -> dict[str, object]:
    from kquota.stores.login import rdkafka

    return {} if security is None else rdkafka.settings(security)


def cluster_of(configs: Configs, release: tuple[int, ...] | None = None) -> Capacity:
    """Return the settings that determine the effect of quotas, for each live broker in the order of ids. Settings that
    the connection does not report are unknown. `release` is the release of the brokers, or None if it is unknown.

    Raises Unreachable if a server does not answer, and Refused if the cluster refuses the request.
    """
    from kquota.quota.capacity import Capacity, broker
    from kquota.settings.resource import BROKERS

    found = configs.describe(configs.resources(BROKERS))
    brokers = [
        broker(resource.broker, {entry.key: entry.value for entry in entries}) for resource, entries in found.items()
    ]
    return Capacity(brokers=tuple(sorted(brokers, key=lambda one: one.id)), release=release)


def named_cluster(name: str, environment: Mapping[str, str]) -> NamedCluster:
    """Return the entry of a cluster in `config.toml`. Raises Invalid if the file or the entry is missing, or if any
    entry in the file is not valid.
    """
    from kquota.stores.state.clusters import cluster

    return cluster(name, environment)


def login(
    file: Path | None, warned: Callable[[str], None], option: str = OF_A_PROGRAM.command_config
) -> Security | None:
    """Return the client's security settings in the file, or None without a file.

    `warned` receives warnings, for example about settings without effect. Raises Invalid for an unreadable or invalid
    file. The message begins with `option`, or with `KAFKA_OPTS` for a JAAS file.
    """
    if file is None:
        return None
    from kquota.stores.login.security import security

    return security(file, os.environ, warned, option)


def wire(
    bootstrap_server: str,
    security: Security | None,
    throttled: Callable[[float], None] = _unheard,
    client_id: str | None = None,
    names: ArgumentNames = OF_A_PROGRAM,
) -> Wire:
    """Open a connection to the brokers. `client_id` replaces the client-id of the login.

    `throttled` receives each wait, in seconds, for a broker that throttles this client (KIP-219). `names` are the names
    of the arguments in errors. Raises Invalid for a wrong address and for an unusable key store or trust store, Refused
    if the brokers reject the login, and Unreachable if no broker answers.
    """
    from kquota.stores.admin.connection import Wire

    settings = _settings(security)
    if client_id is not None:
        settings["client_id"] = client_id
    if security is not None:
        names = replace(names, command_config=security.option)
    return Wire(bootstrap_server, settings, throttled=throttled, names=names)


@contextmanager
def controllers(
    bootstrap_controller: str,
    security: Security | None,
    throttled: Callable[[float], None] = _unheard,
    names: ArgumentNames = OF_A_PROGRAM,
    seconds: float = _CONTROLLER_SECONDS,
) -> Iterator[ControllerConfigs]:
    """Open the configs of a KRaft cluster through its controllers (host:port, separated by commas), with the login
    `security`.

    Raises Invalid for a wrong address and for an unusable key store or trust store, Refused if the controllers reject
    the login, and Unreachable if no controller answers within about `seconds`.
    """
    from kquota.stores.admin.controller_configs import ControllerConfigs
    from kquota.stores.admin.controllers import ControllerWire

    names = replace(
        names,
        server=CONTROLLER,
        bootstrap_server=names.bootstrap_controller,
        command_config=names.command_config if security is None else security.option,
    )
    with ControllerWire(bootstrap_controller, _settings(security), seconds, throttled, names) as opened:
        yield ControllerConfigs(opened)


@contextmanager
def controllers_of(
    brokers: Wire,
    bootstrap_controller: str | None,
    security: Security | None,
    throttled: Callable[[float], None] = _unheard,
    names: ArgumentNames = OF_A_PROGRAM,
) -> Iterator[ControllerConfigs]:
    """Open the configs of a KRaft cluster through `bootstrap_controller`. None means the controllers that the brokers
    report.

    Raises the errors of `controllers`. Also raises Unreachable if the brokers report no controllers, or if the
    controllers belong to another cluster.
    """
    from kquota.stores.admin.controllers import reported

    addresses = bootstrap_controller or reported(brokers)
    if addresses is None:
        raise Unreachable(f"the brokers report no controllers. On a KRaft cluster, give {names.bootstrap_controller}")
    seconds = _CONTROLLER_SECONDS
    if bootstrap_controller is None:
        seconds = _REPORTED_SECONDS
        names = replace(names, bootstrap_controller="the controllers that the brokers report")
    with controllers(addresses, security, throttled, names, seconds) as found:
        if found.cluster_id != brokers.cluster_id:
            check = f". Check {names.bootstrap_controller}" if bootstrap_controller else ""
            raise Unreachable(f"the controllers at {addresses} belong to another cluster ({found.cluster_id}){check}")
        yield found


def _settings(security: Security | None) -> dict[str, object]:
    if security is None:
        return {}
    from kquota.stores.login import kafka_python

    return dict(kafka_python.settings(security))


def user(security: Security | None) -> str | None:
    """Return the user that brokers derive from a login, or None if only brokers know this user."""
    return ANONYMOUS if security is None else security.user


def sent_client_id(security: Security | None) -> str:
    """Return the client-id that a login sends. A login without a client-id sends kquota's own client-id."""
    from kquota.stores.admin.connection import CLIENT_ID

    return (security and security.client_id) or CLIENT_ID
