"""The work of `kquota sandbox up`, `status`, `env` and `down`."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from kquota.cli.contract import DONE, FAILED
from kquota.cli.output import Answer, JsonObject, Lines, each, key
from kquota.cli.progress import downloading
from kquota.cli.sandbox.command import DownOptions, EnvOptions, SandboxStatusOptions, UpOptions
from kquota.errors import Invalid
from kquota.sandbox import cluster, jars, places
from kquota.sandbox.cluster import Sandbox


def _sandbox(found: Sandbox) -> JsonObject:
    """Return the JSON of one sandbox. `kafka` and `bootstrap` are null without brokers, `zookeeper` is null without
    ZooKeeper, and `metrics` is null without exporters.
    """
    return {
        "name": found.name,
        "kafka": found.kafka,
        "running": found.running,
        "bootstrap": found.bootstrap or None,
        "zookeeper": found.zookeeper,
        "metrics": found.metrics or None,
        "directory": str(found.directory),
        "servers": list(_servers(found)),
    }


def _servers(found: Sandbox) -> Iterator[JsonObject]:
    """Yield the JSON of each server. `pid` is null if the server is not running."""
    if (keeper := found.keeper) is not None:
        yield {"server": "zookeeper", "port": found.zookeeper_port, "pid": keeper.pid, "log": str(keeper.log)}
    for broker in found.brokers:
        yield {
            "server": broker.process.name,
            "id": broker.id,
            "rack": broker.rack,
            "port": broker.port,
            "pid": broker.pid,
            "log": str(broker.process.log),
            "log_dirs": [str(folder) for folder in broker.log_dirs],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandboxes(Answer):
    """The answer of `sandbox status`: the sandboxes and their servers."""

    INDENT = 2
    ASCII = True

    sandboxes: tuple[Sandbox, ...] = key(form=each(_sandbox))

    def text(self) -> Iterator[str]:
        for number, sandbox in enumerate(self.sandboxes):
            if number:
                yield ""
            yield f"{sandbox.name}: {'running' if sandbox.running else 'not running'}, {_addresses(sandbox)}"
            for one in _servers(sandbox):
                state = f"pid {one['pid']}" if one["pid"] else "dead"
                rack = f" {one['rack']}" if "rack" in one else ""
                yield f"  {one['server']}{rack} port {one['port']} {state} log {one['log']}"


def status(options: SandboxStatusOptions) -> Sandboxes:
    """Return the named sandbox, or all sandboxes. The exit code is 1 if the named sandbox is not running, otherwise 0.

    Raises Invalid for an invalid name, and Refused for a damaged sandbox file.
    """
    name = options.name
    found = [c for each in ([name] if name else places.names()) if (c := cluster.find(each)) is not None]
    none = "no sandbox exists. Start one with: kquota sandbox up"
    if name:
        none = f"there is no sandbox {name}. Start it with: kquota sandbox up {name}"
    return Sandboxes(
        sandboxes=tuple(found),
        closing_notes=() if found else (none,),
        code=FAILED if name and not any(c.running for c in found) else DONE,
    )


def _addresses(found: Sandbox) -> str:
    kafka = f"Kafka {found.kafka} on {found.bootstrap}" if found.kafka else ""
    zookeeper = f"ZooKeeper on {found.zookeeper}" if found.zookeeper else ""
    metrics = f"metrics on {found.metrics}" if found.metrics else ""
    return ", ".join(filter(None, (kafka, zookeeper, metrics)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedSandbox(Sandboxes):
    """The sandbox that was started. The answer has no text, because a note on stderr describes the sandbox."""

    def text(self) -> Iterator[str]:
        yield from ()


def up(options: UpOptions) -> StartedSandbox:
    """Start a sandbox, after a download if necessary, and wait until its servers answer.

    Raises Invalid for Kafka options with `--zookeeper-only`, and for an invalid `--property`. Also raises the errors of
    `cluster.up`.
    """
    of_kafka = (options.kafka, options.brokers, options.properties, options.tiered or None, options.metrics or None)
    if options.zookeeper_only and any(value is not None for value in of_kafka):
        raise Invalid(
            "--zookeeper-only does not start Kafka. Leave out --kafka, --brokers, --tiered, --metrics and --property"
        )
    with downloading() as report:
        started = cluster.up(
            name=options.name,
            kafka=None if options.zookeeper_only else (options.kafka or jars.NEWEST),
            brokers=cluster.BROKERS if options.brokers is None else options.brokers,
            properties=dict(map(_property, options.properties or [])),
            tiered=options.tiered,
            metrics=options.metrics,
            report=report,
        )
    use = f'Use it with: eval "$(kquota sandbox env {options.name})"'
    return StartedSandbox(sandboxes=(started,), notes=(f"sandbox {options.name} is up: {_addresses(started)}. {use}",))


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key.strip() or not equals or "\n" in text:
        raise Invalid(f"--property {text!r}: not a valid config. Write KEY=VALUE")
    return key.strip(), value


def env(options: EnvOptions) -> Lines:
    """Return the lines that set the variables. Without a running sandbox, return no lines and exit code 1.

    Raises Invalid for an invalid name, and Refused for a damaged sandbox file.
    """
    found = cluster.find(options.name)
    if found is None or not found.running:
        hint = f"sandbox {options.name} is not running. Start it with: kquota sandbox up {options.name}"
        if alive := cluster.alive(options.name):
            hint = (
                f"sandbox {options.name} is not ready, but some of its servers are running ({', '.join(alive)}). "
                f"Restart it with: kquota sandbox down {options.name} && kquota sandbox up {options.name}"
            )
        return Lines(lines=(), notes=(hint,), code=FAILED)
    variables = {
        "KQUOTA_BOOTSTRAP_SERVER": found.bootstrap,
        "KQUOTA_ZOOKEEPER": found.zookeeper,
        "KQUOTA_METRICS": found.metrics,
    }
    return Lines(lines=tuple(f"export {name}={value}" for name, value in variables.items() if value))


def down(options: DownOptions) -> Generator[Lines]:
    """Stop each selected sandbox, remove its data, and yield an answer for it. A sandbox that does not exist also gets
    an answer.

    Raises Invalid for a name together with `--all`, and for an invalid name. Raises Busy while another kquota starts or
    stops the sandbox, and Refused if its folder cannot be removed.
    """
    if options.all_of_them and options.name is not None:
        raise Invalid(f"NAME ({options.name}) and --all both select sandboxes. Nothing was removed. Give one of them")
    for name in places.names() if options.all_of_them else [options.name or "default"]:
        done = f"sandbox {name} is down" if cluster.down(name) else f"there is no sandbox {name}"
        yield Lines(lines=(), notes=(done,))
