"""A sandbox: real servers under one name. kquota starts, finds and stops them, and tests make them fail on purpose."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kquota import java
from kquota.errors import Invalid, NextStep, Parameter, Refused, StepFor
from kquota.java import Java
from kquota.sandbox import jars, places, readiness, servers
from kquota.sandbox.jars import ReportProgress
from kquota.sandbox.processes import Process, in_folder, named_error, stop_folder
from kquota.sandbox.servers import HOST, SandboxBroker
from kquota.terms import BrokerId

BROKERS: Final = 3
"""The default number of brokers."""
MOST_BROKERS: Final = 9
_PLAN: Final = "cluster.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """The servers of one sandbox, all on loopback."""

    name: str
    kafka: str | None
    """The Kafka version, or None for ZooKeeper only."""
    directory: Path
    zookeeper_port: int | None
    """None on KRaft."""
    controller_port: int | None
    """The port of the KRaft controller, or None on ZooKeeper."""
    brokers: tuple[SandboxBroker, ...]
    properties: Mapping[str, str]
    """The properties that `up` added to the configuration of every broker, or of ZooKeeper if it is the only server."""
    tiered: bool = False
    """True if topics can have `remote.storage.enable`."""
    ready: bool
    """True if all servers have answered once. False while `up` starts them, or if `up` failed or was killed."""

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers, separated by commas. Empty without brokers."""
        return ",".join(broker.address for broker in self.brokers)

    @property
    def metrics(self) -> str:
        """The metrics URLs of the brokers, separated by commas. Empty without exporters."""
        return ",".join(broker.metrics for broker in self.brokers if broker.metrics)

    @property
    def zookeeper(self) -> str | None:
        """The address of ZooKeeper. None on KRaft."""
        return f"{HOST}:{self.zookeeper_port}" if self.zookeeper_port else None

    @property
    def keeper(self) -> Process | None:
        """The process of ZooKeeper. None on KRaft."""
        return Process(name="zookeeper", directory=self.directory) if self.zookeeper_port else None

    @property
    def processes(self) -> tuple[Process, ...]:
        """All servers in the order of their start."""
        keeper = (self.keeper,) if self.keeper else ()
        return (*keeper, *(broker.process for broker in self.brokers))

    @property
    def running(self) -> bool:
        """True if all servers have answered once, and all of them are running."""
        return self.ready and all(process.pid is not None for process in self.processes)

    def broker(self, broker_id: int) -> SandboxBroker:
        """Return the broker with this id. Raises Invalid if there is none."""
        for broker in self.brokers:
            if broker.id == broker_id:
                return broker
        ids = ", ".join(str(broker.id) for broker in self.brokers) or "none"
        raise Invalid(f"sandbox {self.name}: unknown broker {broker_id} (brokers: {ids})")

    def start_broker(self, broker_id: int) -> None:
        """Start one broker on its port, unless it is running. Wait until it sees all live brokers and the controller.

        Raises Invalid for an unknown broker. Raises Refused if Java is missing, if jars are missing and PySpark is not
        installed, if a server ends, or if the broker is not ready in time. Raises Unreachable if missing jars cannot be
        downloaded.
        """
        broker = self.broker(broker_id)
        if broker.pid is None:
            if self.keeper and self.zookeeper_port:
                readiness.unregistered(self.keeper, self.zookeeper_port, broker)
            _start_broker(self, broker, java.find())
        readiness.brokers([b for b in self.brokers if b.pid is not None], [broker])


def silent(_what: str, _share: float | None) -> None:
    """Ignore progress. This is the default callback."""


def up(
    *,
    name: str,
    kafka: str | None = jars.NEWEST,
    brokers: int = BROKERS,
    properties: Mapping[str, str] | None = None,
    tiered: bool = False,
    metrics: bool = False,
    owner_pid: int | None = None,
    report: ReportProgress = silent,
) -> Sandbox:
    """Start a sandbox with this Kafka version, or with only ZooKeeper (None), and wait until every server answers.

    kquota first downloads missing jars, and deletes the data of a stopped sandbox with this name.

    `properties` are added to the configuration of every broker, or of ZooKeeper if it is the only server. `tiered`
    gives the brokers a folder as remote storage, so that topics can have `remote.storage.enable`. `metrics` gives the
    brokers the Prometheus JMX exporter. The servers outlive the caller, unless `owner_pid` is the id of a process. In
    that case, the sandbox is stopped and removed when the process ends. An interrupted start leaves nothing.

    Raises Refused if PySpark or Java is missing, if the sandbox is already running, or if too few ports are free. Also
    raises Refused if a folder cannot be written, if the data of a stopped sandbox cannot be removed, or if a server
    does not start (its log is kept). Raises Busy while another kquota starts or stops the sandbox, and Unreachable if
    jars cannot be downloaded. Raises Invalid for an invalid name, for an unsupported version or number of brokers, and
    for `tiered` with a version that does not support it.
    """
    directory = places.directory(name)
    if kafka is not None:
        jars.release(kafka)
        if not 1 <= brokers <= MOST_BROKERS:
            raise Invalid(Parameter("brokers"), f" {brokers}: a sandbox has 1 to {MOST_BROKERS} brokers")
    if tiered:
        jars.must_have_tiers(kafka)
    with places.alone(name):
        _refuse_running(name)
        where = _java_and_jars(kafka, report, tiered=tiered, metrics=metrics)
        planned = _planned(name, kafka, brokers if kafka else 0, properties or {}, tiered=tiered, metrics=metrics)
        places.remove(directory)
        ready = dataclasses.replace(planned, ready=True)
        try:
            directory.mkdir(parents=True)
            _save(planned)
            if owner_pid is not None:
                _start_owner(planned, owner_pid)
            _start(planned, where, report)
            _save(ready)
        except BaseException as error:
            stop_folder(directory, patience=2.0)
            if isinstance(error, KeyboardInterrupt):
                with contextlib.suppress(Refused):
                    places.remove(directory)
            raise
    return ready


def _java_and_jars(kafka: str | None, report: ReportProgress, *, tiered: bool, metrics: bool) -> Java:
    # Check PySpark first, so that the error names the extra `spark` even if Java is also missing.
    jars.pyspark_jars()
    where = java.find()
    if kafka is not None:
        jars.kafka(kafka, report)
        if tiered:
            jars.tiers(kafka, report)
        if metrics:
            jars.metrics_agent(report)
    return where


def down(name: str) -> bool:
    """Stop every server of a sandbox and remove its data, even after a crash. Return False if there is no sandbox.

    Raises Invalid for an invalid name, Busy while another kquota starts or stops the sandbox, and Refused if its folder
    cannot be removed.
    """
    directory = places.directory(name)
    if not directory.exists():
        return False
    with places.alone(name):
        stop_folder(directory, patience=5.0)
        places.remove(directory)
    return True


def find(name: str) -> Sandbox | None:
    """Return the sandbox of this name, running or not. None if it does not exist.

    Raises Invalid for an invalid name, and Refused for a damaged sandbox file.
    """
    directory = places.directory(name)
    return _read(directory) if (directory / _PLAN).exists() else None


def alive(name: str) -> list[str]:
    """Return the names of the running processes of a sandbox. Raises Invalid for an invalid name."""
    return [process.name for process in in_folder(places.directory(name)) if process.pid is not None]


def kafka_tool(kafka: Sandbox | str, main_class: str, *arguments: str) -> list[str]:
    """Return the command line of a Kafka tool. `kafka` is a version, or a sandbox with Kafka.

    Missing jars are downloaded first. Raises Invalid for a sandbox without Kafka and for an unsupported version. Raises
    Refused if Java is missing, or if jars are missing and PySpark is not installed. Raises Unreachable if a download
    fails.
    """
    version = kafka if isinstance(kafka, str) else kafka.kafka
    if version is None:
        raise Invalid("a ZooKeeper-only sandbox has no Kafka tools")
    return servers.tool_command(java.find().executable, jars.kafka(version, silent), main_class, *arguments)


def _refuse_running(name: str) -> None:
    if running := alive(name):
        raise Refused(
            f"sandbox {name} is already running ({', '.join(running)}). ",
            StepFor(NextStep.USE_SANDBOX, name),
            ", or ",
            StepFor(NextStep.STOP_SANDBOX, name),
        )


def _planned(
    name: str, kafka: str | None, brokers: int, properties: Mapping[str, str], *, tiered: bool, metrics: bool
) -> Sandbox:
    directory = places.directory(name)
    with_zookeeper = kafka is None or jars.release(kafka).on_zookeeper
    first, *rest = servers.free_ports(1 + (2 if metrics else 1) * brokers)
    listeners: list[int] = rest[:brokers]
    exporters: list[int | None] = [*rest[brokers:]] or [None] * brokers
    return Sandbox(
        name=name,
        kafka=kafka,
        directory=directory,
        zookeeper_port=first if with_zookeeper else None,
        controller_port=None if with_zookeeper else first,
        brokers=tuple(
            SandboxBroker(id=BrokerId(n), port=port, directory=directory, metrics_port=exporter)
            for n, (port, exporter) in enumerate(zip(listeners, exporters, strict=True), start=1)
        ),
        properties=dict(properties),
        tiered=tiered,
        ready=False,
    )


def _start(plan: Sandbox, where: Java, report: ReportProgress) -> None:
    """Start ZooKeeper first and then all brokers at once, because a broker that starts before ZooKeeper loses 6 s."""
    report(f"starting {_described(plan)}", None)
    if plan.keeper and plan.zookeeper_port:
        extra = {} if plan.kafka else plan.properties
        _write(servers.zookeeper_files(plan.zookeeper_port, plan.directory, extra))
        plan.keeper.start(servers.zookeeper_command(where.executable, jars.pyspark_jars(), plan.keeper))
        readiness.zookeeper(plan.keeper, plan.zookeeper_port)
    for broker in plan.brokers:
        _write(servers.broker_files(broker, _metadata(plan, broker), plan.properties, tiers=plan.tiered))
    if plan.controller_port:
        _format(plan)
    for broker in plan.brokers:
        _start_broker(plan, broker, where)
    if plan.brokers:
        readiness.brokers(plan.brokers, plan.brokers)
    else:
        _lay_out(plan, where)


def _lay_out(plan: Sandbox, where: Java) -> None:
    """Create the znodes that the first broker creates, so that quotas can be written to ZooKeeper without brokers."""
    assert plan.zookeeper_port
    shell = servers.zookeeper_shell(where.executable, jars.pyspark_jars(), plan.zookeeper_port)
    commands = "".join(f"create {path}\n" for path in servers.KAFKA_NODES)
    answer = subprocess.run(shell, input=commands, capture_output=True, text=True, check=False)
    made = (answer.stdout + answer.stderr).count("Created ")
    if made != len(servers.KAFKA_NODES):
        reason = named_error(answer.stdout + answer.stderr)
        raise Refused(f"sandbox {plan.name}: ZooKeeper's shell could not create Kafka's znodes: {reason}. Try again")


def _described(plan: Sandbox) -> str:
    if plan.kafka is None:
        return "ZooKeeper"
    return f"Kafka {plan.kafka} (brokers: {len(plan.brokers)}) on {'ZooKeeper' if plan.keeper else 'KRaft'}"


def _metadata(plan: Sandbox, broker: SandboxBroker) -> dict[str, Any]:
    if plan.zookeeper:
        return servers.on_zookeeper(broker, plan.zookeeper)
    assert plan.controller_port
    return servers.on_kraft(broker, plan.controller_port)


def _format(plan: Sandbox) -> None:
    cluster_id = servers.new_id()
    controller, *others = plan.brokers
    for broker in others:
        _write(servers.formatted(broker, cluster_id))
    # Only Kafka's tool can write the first metadata of the controller.
    tool = "kafka.tools.StorageTool"
    command = kafka_tool(plan, tool, "format", "-t", cluster_id, "-c", str(controller.configuration))
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        reason = named_error(answer.stdout + answer.stderr)
        raise Refused(
            f"sandbox {plan.name}: Kafka's tool could not format the log dirs of broker {controller.id} in "
            f"{plan.directory}: {reason}. Try again"
        )


def _start_broker(plan: Sandbox, broker: SandboxBroker, where: Java) -> None:
    assert plan.kafka
    kafka = jars.kafka(plan.kafka, silent)
    more = [jars.tiers(plan.kafka, silent)] if plan.tiered else []
    agent = jars.metrics_agent(silent) if broker.metrics_port else None
    broker.process.start(servers.broker_command(where.executable, kafka, broker, *more, agent=agent))


def _start_owner(plan: Sandbox, owner_pid: int) -> None:
    """Start a process that stops and removes the sandbox when process `owner_pid` ends, even by `kill -9`."""
    process = Process(name="owner", directory=plan.directory)
    process.start([sys.executable, "-m", "kquota.sandbox.owner", plan.name, str(owner_pid), process.mark])


def _write(files: Mapping[Path, str]) -> None:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _save(cluster: Sandbox) -> None:
    document = {
        "name": cluster.name,
        "kafka": cluster.kafka,
        "ready": cluster.ready,
        "zookeeper_port": cluster.zookeeper_port,
        "controller_port": cluster.controller_port,
        "brokers": [
            {"id": broker.id, "port": broker.port, "metrics_port": broker.metrics_port} for broker in cluster.brokers
        ],
        "properties": dict(cluster.properties),
        "tiered": cluster.tiered,
    }
    partial = cluster.directory / f"{_PLAN}.partial"
    partial.write_text(json.dumps(document, indent=2) + "\n")
    partial.replace(cluster.directory / _PLAN)


def _read(directory: Path) -> Sandbox:
    try:
        plan = json.loads((directory / _PLAN).read_text())
        brokers = tuple(SandboxBroker(directory=directory, **broker) for broker in plan.pop("brokers"))
        return Sandbox(directory=directory, brokers=brokers, **plan)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        wrong = f"{directory / _PLAN} is not a valid sandbox file ({error}). "
        raise Refused(wrong, StepFor(NextStep.REMOVE_SANDBOX, directory.name)) from error
