"""The ports, folders, configuration and command line of each server. This module starts no server."""

from __future__ import annotations

import base64
import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kquota.errors import Refused
from kquota.java_properties import text_of
from kquota.measure import counted
from kquota.sandbox.processes import Process
from kquota.terms import BrokerId

HOST: Final = "127.0.0.1"
_RACKS: Final = 3

# Each JVM gets little memory, one collector thread and little optimization, because a small machine runs several JVMs.
_LEAN: Final = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xss512k"]
_PORTS: Final = range(20_000, 32_000)
"""The ports of sandboxes. They are below the ports that systems use for outgoing connections, so that a stopped server
finds its port free again.
"""
_EACH: Final = 32
_held: Final[set[int]] = set()
_EVERY_METRIC: Final = "rules:\n- pattern: '.*'\n"
"""The rules of an exporter that reports every metric under its default name."""
_chosen_ports: Final[set[int]] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxBroker:
    """One broker of a sandbox, running or not."""

    id: BrokerId
    port: int
    directory: Path
    """The folder of the sandbox, with the broker's data, configuration and log."""
    metrics_port: int | None = None
    """The port of the Prometheus JMX exporter, or None without an exporter."""

    @property
    def rack(self) -> str:
        """The rack of the broker. The racks are assigned to the brokers in turn."""
        return f"rack-{(self.id - 1) % _RACKS + 1}"

    @property
    def metrics(self) -> str | None:
        """The URL of the broker's metrics in the text format of Prometheus. None without an exporter."""
        return None if self.metrics_port is None else f"http://{HOST}:{self.metrics_port}/metrics"

    @property
    def address(self) -> str:
        """The `host:port` of the broker's listener."""
        return f"{HOST}:{self.port}"

    @property
    def process(self) -> Process:
        """The process of the broker, running or not."""
        return Process(name=f"broker-{self.id}", directory=self.directory)

    @property
    def pid(self) -> int | None:
        """The process id while the broker is running, otherwise None."""
        return self.process.pid

    @property
    def log_dirs(self) -> tuple[Path, Path]:
        """The log dirs of the broker. There are two, so that replicas can move between them (KIP-113)."""
        return self.directory / f"broker-{self.id}-a", self.directory / f"broker-{self.id}-b"

    @property
    def metadata_dir(self) -> Path:
        """The folder of KRaft's metadata log, outside the log dirs."""
        return self.directory / f"broker-{self.id}-metadata"

    @property
    def configuration(self) -> Path:
        """The configuration file of the broker, Kafka's `server.properties`."""
        return self.directory / f"broker-{self.id}.properties"

    @property
    def exporter(self) -> Path:
        """The configuration file of the broker's Prometheus JMX exporter."""
        return self.directory / f"broker-{self.id}.exporter.yaml"


def free_ports(count: int) -> list[int]:
    """Return `count` different, unused loopback ports. Raises Refused if there are not enough.

    A server listens only after some seconds, and another kquota may look for ports before then. Each process therefore
    reserves its own blocks of ports until it ends, and never gets a port twice.
    """
    found: list[int] = []
    first = os.getpid() * _EACH % len(_PORTS)
    for block in (*_PORTS[first::_EACH], *_PORTS[:first:_EACH]):
        for port in range(block + 1, block + _EACH) if _hold(block) else ():
            if port in _chosen_ports or (bound := _bound(port, shared=True)) is None:
                continue
            bound.close()
            found.append(port)
            _chosen_ports.add(port)
            if len(found) == count:
                return found
    raise Refused(
        f"the sandbox needs {counted(count, 'free port')} from {_PORTS.start} to {_PORTS.stop - 1} on {HOST}, but "
        f"kquota found only {len(found)}. Stop other sandboxes or programs that use these ports"
    )


def _hold(block: int) -> bool:
    """Reserve a block of ports until this process ends, with a socket at the first port of the block. Return True if
    this process holds the block.
    """
    if block not in _held and (lock := _bound(block, shared=False)) is not None:
        lock.detach()  # the socket stays open, but does not listen
        _held.add(block)
    return block in _held


def _bound(port: int, *, shared: bool) -> socket.socket | None:
    """Return a socket at this port, or None if the port is in use. With `shared`, ended connections do not count."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shared)
    try:
        found.bind((HOST, port))
    except OSError:
        found.close()
        return None
    return found


def new_id() -> str:
    """Return a new cluster id or log dir id in Kafka's form: 16 random bytes in URL-safe base64, without a
    leading `-`.
    """
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def zookeeper_files(port: int, directory: Path, extra: Mapping[str, str]) -> dict[Path, str]:
    """Return ZooKeeper's configuration file by its path. `extra` replaces the sandbox's own values.

    Session timeouts are from 1 to 10 s, so that the registration of a killed broker soon ends.
    """
    properties = {
        "dataDir": directory / "zookeeper-data",
        "clientPort": port,
        "clientPortAddress": HOST,
        "tickTime": 500,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
    }
    return {directory / "zookeeper.cfg": text_of(properties | dict(extra))}


def zookeeper_command(java: Path, jars: Path, process: Process) -> list[str]:
    """Return the command that starts ZooKeeper from PySpark's jars.

    ZooKeeper does not force its log to disk, because sandbox data need not survive a power failure.
    """
    options = ["-Xmx256m", *_LEAN, "-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=1024", "-Dlog4j2.level=INFO"]
    main = ["org.apache.zookeeper.server.ZooKeeperServerMain", str(process.directory / "zookeeper.cfg")]
    return [str(java), *options, process.mark, "-cp", f"{jars}/*", *main]


# Znodes that a broker creates when it first starts. kquota recognizes Kafka's ZooKeeper by two of them.
KAFKA_NODES: Final = (
    "/brokers",
    "/brokers/ids",
    "/brokers/topics",
    "/config",
    "/config/changes",
    *(f"/config/{kind}" for kind in ("brokers", "clients", "ips", "topics", "users")),
)


def zookeeper_shell(java: Path, jars: Path, port: int) -> list[str]:
    """Return the command line of ZooKeeper's shell, which reads commands from stdin."""
    main = ["org.apache.zookeeper.ZooKeeperMain", "-server", f"{HOST}:{port}"]
    return [str(java), "-Xmx64m", *_LEAN, "-Dlog4j2.level=OFF", "-cp", f"{jars}/*", *main]


_LISTENERS: Final = ("listeners", "advertised.listeners", "listener.security.protocol.map")


def _tiered(broker: SandboxBroker) -> dict[str, Any]:
    """Return the properties for tiered topics (KIP-405). Segments are copied and deleted soon, because a sandbox exists
    only for minutes.
    """
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.manager.impl.prefix": "rsm.config.",
        "rsm.config.dir": broker.directory / "remote-storage",
        "remote.log.metadata.manager.class.name": (
            "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
        ),
        "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
        "rlmm.config.remote.log.metadata.topic.num.partitions": 4,
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "remote.log.manager.task.interval.ms": 1000,
        "log.retention.check.interval.ms": 1000,
    }


def broker_files(
    broker: SandboxBroker, metadata: Mapping[str, Any], extra: Mapping[str, str], *, tiers: bool
) -> dict[Path, str]:
    """Return a broker's configuration files by path: Kafka's defaults, except where a small cluster that starts fast
    needs other values. A broker with metrics also has the configuration of its exporter.

    `metadata` has the properties of `on_kraft` or `on_zookeeper`. With `tiers`, topics can have remote storage.
    Listeners in `extra` are added to the sandbox's own listeners, which kquota needs to find the broker again. Every
    other property in `extra` replaces the sandbox's own value.
    """
    properties = {
        "broker.rack": broker.rack,
        "listeners": f"PLAINTEXT://{broker.address}",
        "advertised.listeners": f"PLAINTEXT://{broker.address}",
        "log.dirs": ",".join(map(str, broker.log_dirs)),
        "log.segment.bytes": 64 * 2**20,
        # After some changes, for example of message.max.bytes, a broker starts a second log cleaner. Two buffers with
        # Kafka's default of 128 MiB do not fit into the heap. Without memory, a broker on ZooKeeper applies no later
        # change.
        "log.cleaner.dedupe.buffer.size": 4 * 2**20,
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        "group.initial.rebalance.delay.ms": 0,
        "controlled.shutdown.retry.backoff.ms": 500,
    }
    ours = properties | (_tiered(broker) if tiers else {}) | dict(metadata)
    listeners = {key: f"{ours[key]},{extra[key]}" for key in _LISTENERS if key in ours and key in extra}
    exporter = {} if broker.metrics_port is None else {broker.exporter: _EVERY_METRIC}
    return {broker.configuration: text_of(ours | dict(extra) | listeners), **exporter}


def on_zookeeper(broker: SandboxBroker, zookeeper: str) -> dict[str, Any]:
    """Return the properties that a broker needs to find its cluster through ZooKeeper, before Kafka 4.0."""
    return {
        "broker.id": broker.id,
        "zookeeper.connect": zookeeper,
        "zookeeper.session.timeout.ms": 9000,
        "zookeeper.connection.timeout.ms": 60_000,
    }


def on_kraft(broker: SandboxBroker, controller_port: int) -> dict[str, Any]:
    """Return the properties that a broker needs to find its cluster without ZooKeeper.

    Broker 1 is also the controller.
    """
    kraft: dict[str, Any] = {
        "node.id": broker.id,
        "process.roles": "broker",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "metadata.log.dir": broker.metadata_dir,
        "broker.heartbeat.interval.ms": 1000,
    }
    if broker.id == 1:
        listeners = f"PLAINTEXT://{broker.address},CONTROLLER://{HOST}:{controller_port}"
        kraft |= {"process.roles": "broker,controller", "listeners": listeners}
    return kraft


def broker_command(java: Path, jars: Path, broker: SandboxBroker, *more: Path, agent: Path | None) -> list[str]:
    """Return the command that starts a broker. The broker logs at INFO to stderr. Its classes are in `jars` and `more`.

    `agent` is the Prometheus JMX exporter, for a broker with a `metrics_port`.
    """
    options = ["-Xmx384m", *_LEAN, *_logging("info"), broker.process.mark]
    if agent is not None:
        options.append(f"-javaagent:{agent}={HOST}:{broker.metrics_port}:{broker.exporter}")
    classes = os.pathsep.join(f"{folder}/*" for folder in (jars, *more))
    return [str(java), *options, "-cp", classes, "kafka.Kafka", str(broker.configuration)]


def formatted(broker: SandboxBroker, cluster_id: str) -> dict[Path, str]:
    """Return the files that format the folders of a KRaft broker that is not the controller: Kafka's `meta.properties`.

    kquota does not use Kafka's tool here, because the tool takes more than a second for each broker.
    """
    folders = (*broker.log_dirs, broker.metadata_dir)
    return {
        folder / "meta.properties": text_of(
            {"version": 1, "cluster.id": cluster_id, "node.id": broker.id, "directory.id": new_id()}
        )
        for folder in folders
    }


def tool_command(java: Path, jars: Path, main_class: str, *arguments: str) -> list[str]:
    """Return the command line of a Kafka tool, as its shell script would start it, with logging off."""
    return [str(java), "-Xmx256m", *_LEAN, *_logging("off"), "-cp", f"{jars}/*", main_class, *arguments]


def _logging(level: str) -> list[str]:
    prefix = "-Dorg.slf4j.simpleLogger"
    stamp = [f"{prefix}.showDateTime=true", f"{prefix}.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS"]
    return [f"{prefix}.defaultLogLevel={level}", *stamp]
