"""The options that select a cluster. A command declares them with one field, a `Connection`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from kquota.cli.options import Only, hints, option_name, value
from kquota.errors import Invalid
from kquota.terms import wrong_topic_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The options as given on the command line. `where` returns the cluster that they select."""

    bootstrap_server: Annotated[
        str | None,
        value("bootstrap-server", "HOST:PORT,…", "Connect through these brokers. [env: KQUOTA_BOOTSTRAP_SERVER]"),
    ] = None
    bootstrap_controller: Annotated[
        str | None,
        value(
            "bootstrap-controller",
            "HOST:PORT,…",
            "Connect through these KRaft controllers, which also accept configs of dead brokers.",
        ),
    ] = None
    zookeeper: Annotated[
        str | None,
        value(
            "zookeeper", "HOST:PORT,…[/CHROOT]", "Connect through the ZooKeeper of the cluster. [env: KQUOTA_ZOOKEEPER]"
        ),
    ] = None
    cluster: Annotated[
        str | None,
        value("cluster", "NAME", "Connect to this cluster of ~/.config/kquota/config.toml. [env: KQUOTA_CLUSTER]"),
    ] = None
    command_config: Annotated[
        Path | None,
        value(
            "command-config",
            "FILE",
            "Java properties with the client's security settings. [env: KQUOTA_COMMAND_CONFIG]",
        ),
    ] = None
    zk_tls_config_file: Annotated[
        Path | None,
        value(
            "zk-tls-config-file",
            "FILE",
            "Java properties with ZooKeeper's TLS settings. [env: KQUOTA_ZK_TLS_CONFIG_FILE]",
        ),
    ] = None
    zk_sasl_config_file: Annotated[
        Path | None,
        value(
            "zk-sasl-config-file",
            "FILE",
            "JAAS file with ZooKeeper's login. [env: KQUOTA_ZK_SASL_CONFIG_FILE, KAFKA_OPTS]",
        ),
    ] = None
    record: Annotated[
        str | None,
        value(
            "record",
            "TOPIC",
            "Topic of the shared record, or `none` to use only the journals of this host. [env: "
            "KQUOTA_RECORD]  "
            "[default: __kquota_runs, if it exists]",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The addresses and settings of one cluster. At least one of `bootstrap`, `zookeeper` and `controllers` is set.

    None means that an address or a setting is not given.
    """

    bootstrap: str | None
    """The addresses of brokers: HOST:PORT, separated by commas."""
    zookeeper: str | None
    command_config: Path | None = None
    zk_tls_config_file: Path | None = None
    zk_sasl_config_file: Path | None = None
    record: str | None = None
    """The topic of the shared record, or `none` to use only the journals of this host."""
    controllers: str | None = None
    metrics: str | None = None
    """The URLs of the brokers' metrics exporters, separated by commas."""
    prometheus: str | None = None
    """The URL of a Prometheus server."""
    name: str | None = None
    """The name of the cluster in config.toml, or None if the operator did not name the cluster."""
    confirm: bool = False
    """True if config.toml requires a confirmation from every command that writes to this cluster."""


READ_LOGINS: Final[dict[Path, Any]] = {}
"""The logins that the running command has read from pipes, by the path in `--command-config`."""
OPTIONS: Final[Mapping[str, Any]] = hints(Connection)
_RECORD: Final = "record"
CONTROLLERS: Final = "bootstrap_controller"
REACHING: Final = tuple(name for name in OPTIONS if name not in (_RECORD, CONTROLLERS))
"""The options that describe the connection, in the order of `completions/source/complete.awk`."""
Unrecorded: TypeAlias = Annotated[Connection, Only(*REACHING)]
"""The connection of commands that neither read nor write runs."""
Recorded: TypeAlias = Annotated[Connection, Only(*REACHING, _RECORD)]
"""The connection of commands that use runs, and have no `--bootstrap-controller`."""
ThroughControllers: TypeAlias = Annotated[Connection, Only(*REACHING, CONTROLLERS)]
"""The connection of commands that can also work through the controllers alone."""
_ON_ZOOKEEPER: Final = ("zookeeper", "zk_tls_config_file", "zk_sasl_config_file")
ADDRESSES: Final = ("bootstrap_server", "zookeeper")
METRICS: Final = ("metrics", "prometheus")
"""The two sources of metrics. Only some commands have these options, which are also keys of config.toml."""
ThroughBrokers: TypeAlias = Annotated[Connection, Only(*(name for name in REACHING if name not in _ON_ZOOKEEPER))]
"""The connection of commands that work only through the brokers, and have no option for ZooKeeper."""

MovesThroughBrokers: TypeAlias = Annotated[
    Connection, Only(*(name for name in (*REACHING, _RECORD) if name not in _ON_ZOOKEEPER))
]
"""The connection of commands that use runs, but work only through the brokers."""


def where(
    connection: Connection, environment: Mapping[str, str] = os.environ, *, both: bool = False, alone: str | None = None
) -> Where:
    """Return the cluster that the options name, otherwise the cluster that the environment names. With `both`, the
    options may name brokers and a ZooKeeper.

    With `alone`, `--bootstrap-controller` replaces the brokers, and `alone` is Kafka's error message for
    `--bootstrap-controller` together with `--bootstrap-server`. Without `alone`, `--bootstrap-controller` is an
    addition to the brokers.

    For a named cluster (`--cluster` or `KQUOTA_CLUSTER`), config.toml applies instead of the other variables. An option
    may add to config.toml but not contradict it. Without a named cluster, the variable of a missing option applies if
    it fits the connection, and `KQUOTA_BOOTSTRAP_SERVER` takes precedence over `KQUOTA_ZOOKEEPER`. Raises Invalid if no
    cluster or more than one cluster is given, for options that do not fit the cluster, and for an invalid topic name in
    `--record`. Also raises Invalid if config.toml is invalid or does not contain the named cluster.
    """
    given = {f.name: str(v) for f in fields(connection) if (v := getattr(connection, f.name)) is not None}
    if not both and given.get("bootstrap_server") is not None and given.get("zookeeper") is not None:
        raise Invalid("give --bootstrap-server or --zookeeper, not both")
    controllers = given.pop(CONTROLLERS, None)
    if controllers is not None and alone is not None:
        return _controllers(controllers, given, environment, alone)
    name, found, confirm = _described(given, environment)
    bootstrap, zookeeper = found.get("bootstrap_server") or None, found.get("zookeeper") or None
    if bootstrap is None and zookeeper is None:
        raise Invalid(
            "no cluster is given. Give --bootstrap-server HOST:PORT, --cluster NAME or, if the command has it, "
            "--zookeeper HOST:PORT"
        )
    if controllers is not None and zookeeper is not None:
        raise Invalid(
            "--bootstrap-controller is for KRaft. With --zookeeper, leave it out, because ZooKeeper stores the configs"
        )
    return Where(
        bootstrap=bootstrap,
        zookeeper=zookeeper,
        record=_topic(found),
        controllers=controllers,
        metrics=found.get("metrics"),
        prometheus=found.get("prometheus"),
        name=name,
        confirm=confirm,
        **_files(found, zookeeper is not None),
    )


def _described(given: Mapping[str, str], environment: Mapping[str, str]) -> tuple[str | None, Mapping[str, str], bool]:
    """Return the name of the cluster in config.toml (None without a name), the options, and whether config.toml
    requires a confirmation.
    """
    options = dict(given)
    name = options.pop("cluster", None)
    if name is None and not options.keys() & set(ADDRESSES):
        name = _named_by(environment)
    if name is None:
        return None, _of_environment(options, environment), False
    return name, *_of_named(name, options, environment)


def _files(found: Mapping[str, str], zookeeper: bool) -> dict[str, Path]:
    """Return the login files, by field of `Where`. `--command-config` is also valid over ZooKeeper, because kquota can
    read a shared record from the brokers.
    """
    files = {key: Path(value) for key, value in found.items() if key not in (*ADDRESSES, _RECORD, *METRICS)}
    for key in files:
        if key.startswith("zk_") and not zookeeper:
            raise Invalid(f"{option_name(key)} needs --zookeeper. Give both, or leave out {option_name(key)}")
    return files


def _controllers(controllers: str, given: Mapping[str, str], environment: Mapping[str, str], both_words: str) -> Where:
    if "bootstrap_server" in given:
        raise Invalid(both_words)
    if other := next((name for name in (*_ON_ZOOKEEPER, "cluster") if name in given), None):
        raise Invalid(f"--bootstrap-controller cannot be combined with {option_name(other)}. Leave one of them out")
    config = given.get("command_config") or environment.get(variable("command_config"))
    return Where(
        bootstrap=None,
        zookeeper=None,
        command_config=None if not config else Path(config),
        controllers=controllers,
    )


def _topic(found: Mapping[str, str]) -> str | None:
    name = found.get(_RECORD)
    if name is not None and (why := wrong_topic_name(name)):
        raise Invalid(f"--record {name!r}: {why}")
    return name


def names_a_cluster(connection: Connection, environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if an option or an environment variable names a cluster."""
    options = (connection.bootstrap_server, connection.zookeeper, connection.cluster)
    return any(options) or any(environment.get(variable(name)) for name in (*ADDRESSES, "cluster"))


def _named_by(environment: Mapping[str, str]) -> str | None:
    name = environment.get(variable("cluster")) or None
    for other in ADDRESSES:
        if name is not None and environment.get(variable(other)):
            raise Invalid(
                f"KQUOTA_CLUSTER and {variable(other)} both name a cluster. Unset one of them, or give --cluster"
            )
    return name


def _of_environment(given: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    found = dict(given)
    for name in ADDRESSES:
        if not found.keys() & set(ADDRESSES) and (value := environment.get(variable(name))):
            found[name] = value
    for name in (*REACHING, _RECORD, *METRICS):
        fits = "zookeeper" in found or not name.startswith("zk_")
        if name not in (*ADDRESSES, "cluster", *found) and fits and (value := environment.get(variable(name))):
            found[name] = value
    return found


def _of_named(name: str, given: Mapping[str, str], environment: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    from kquota import library  # imported here, because only a named cluster needs it

    entry = library.named_cluster(name, environment)
    found = {key.replace("-", "_"): value for key, value in entry.options.items()}
    for key, text in given.items():
        if key in ADDRESSES and found.get(key) != text:
            raise Invalid(f"--cluster {name} and {option_name(key)} both name a cluster. Give only one of them")
        if found.get(key, text) != text:
            raise Invalid(
                f"{option_name(key)} contradicts config.toml. Leave out the option: cluster {name} already has "
                f"{found[key]}"
            )
    return found | dict(given), entry.confirm


def variable(name: str) -> str:
    """Return the name of an option's environment variable."""
    return f"KQUOTA_{name.upper()}"
