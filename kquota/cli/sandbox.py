"""`kquota sandbox`: real servers on this machine."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kquota.cli.contract import DONE, FAILED, NOT_YET, say
from kquota.cli.help import Command, Group
from kquota.cli.options import Output, OutputFormat
from kquota.errors import Invalid

if TYPE_CHECKING:
    from kquota.sandbox.cluster import Cluster
    from kquota.sandbox.jars import Tell

EPILOG: Final = """Examples:
  kquota sandbox up
  eval "$(kquota sandbox env)\""""

EPILOGS: Final = {
    "up": """The first start of a Kafka downloads it (40 MB), unless --zookeeper-only is given.

Examples:
  kquota sandbox up
  kquota sandbox up zk --zookeeper-only""",
    "status": """Exit code 1: the sandbox that is named does not run.

Examples:
  kquota sandbox status
  kquota sandbox status zk --output json""",
    "env": """It sets KQUOTA_BOOTSTRAP_SERVER and KQUOTA_ZOOKEEPER, so that commands need not name the cluster. Exit
code 1: it does not run.

Examples:
  eval "$(kquota sandbox env)"
  kquota sandbox env zk""",
    "down": """Examples:
  kquota sandbox down zk
  kquota sandbox down --all""",
    "demo": """It takes about 90 seconds, and removes its sandbox in the end. Exit codes: 0 all of it held, 8 as much as
could be shown without Kafka, where that cannot be downloaded.

Examples:
  kquota sandbox demo
  kquota sandbox demo 2> progress.txt""",
}

app = typer.Typer(
    cls=Group, help="A real ZooKeeper and real Kafka on this machine.", epilog=EPILOG, no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The sandbox's name.")]


@app.command(cls=Command, epilog=EPILOGS["up"])
def up(
    name: Name = "default",
    kafka: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="4.3.1 (KRaft), 3.9.1 or 2.8.2 (on ZooKeeper).  [default: 4.3.1]"),
    ] = None,
    brokers: Annotated[int | None, typer.Option(metavar="N", help="How many brokers, 1 to 9.  [default: 3]")] = None,
    zookeeper_only: Annotated[bool, typer.Option("--zookeeper-only", help="No Kafka, and no download.")] = False,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="KEY=VALUE",
            help="A setting of every broker, repeatable.",
        ),
    ] = None,
    output: OutputFormat = Output.text,
) -> None:
    """Start real servers on loopback; they stay until `sandbox down`."""
    from kquota.sandbox import cluster, jars

    if zookeeper_only and (kafka is not None or brokers is not None or properties):
        raise Invalid("--zookeeper-only starts no Kafka: leave out --kafka, --brokers and --property")
    with _progress() as tell:
        started = cluster.up(
            name=name,
            kafka=None if zookeeper_only else (kafka or jars.NEWEST),
            brokers=cluster.BROKERS if brokers is None else brokers,
            properties=dict(map(_property, properties or [])),
            tell=tell,
        )
    say(f'sandbox {name} is up: {_addresses(started)}; use it with: eval "$(kquota sandbox env {name})"')
    if output is Output.json:
        print(json.dumps(_document([started]), indent=2))


@app.command(cls=Command, epilog=EPILOGS["status"])
def status(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The sandbox's name.  [default: all of them]")
    ] = None,
    output: OutputFormat = Output.text,
) -> int:
    """Show which sandboxes run, and where."""
    from kquota.sandbox import cluster, places

    found = [c for each in ([name] if name else places.names()) if (c := cluster.find(each)) is not None]
    if output is Output.json:
        print(json.dumps(_document(found), indent=2))
    elif found:
        print("\n\n".join(map(_paragraph, found)))
    if not found:
        say(f"there is no sandbox {name}" if name else "there is no sandbox")
    return FAILED if name and not any(c.running for c in found) else DONE


@app.command(cls=Command, epilog=EPILOGS["env"])
def env(name: Name = "default") -> int:
    """Print what makes a shell use a sandbox."""
    from kquota.sandbox import cluster

    found = cluster.find(name)
    if found is None or not found.running:
        say(f"sandbox {name} does not run; start it with: kquota sandbox up {name}")
        return FAILED
    if found.bootstrap:
        print(f"export KQUOTA_BOOTSTRAP_SERVER={found.bootstrap}")
    if found.zookeeper:
        print(f"export KQUOTA_ZOOKEEPER={found.zookeeper}")
    return DONE


@app.command(cls=Command, epilog=EPILOGS["down"])
def down(
    name: Name = "default",
    all_of_them: Annotated[bool, typer.Option("--all", help="Every sandbox there is.")] = False,
) -> None:
    """Stop the servers of a sandbox and remove its data, also after a crash."""
    from kquota.sandbox import cluster, places

    for each in places.names() if all_of_them else [name]:
        say(f"sandbox {each} is down" if cluster.down(each) else f"there is no sandbox {each}")


@app.command(cls=Command, epilog=EPILOGS["demo"])
def demo() -> int:
    """Tell the whole story on a fresh sandbox: a throttled client, a predicted move, and no throttle left behind."""
    from kquota.sandbox.demo import Story
    from kquota.sandbox.demo import demo as whole_story

    with _progress() as tell:
        return DONE if whole_story(Story(line=lambda text: print(text, flush=True), progress=tell)) else NOT_YET


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key.strip() or not equals or "\n" in text:
        raise Invalid(f"--property {text!r}: write KEY=VALUE")
    return key.strip(), value


@contextlib.contextmanager
def _progress() -> Iterator[Tell]:
    """On a terminal a bar while a share is known; elsewhere one line for each new thing that is done."""
    if not sys.stderr.isatty():
        said: set[str] = set()

        def line(what: str, _share: float | None) -> None:
            if what not in said:
                said.add(what)
                say(what)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("kquota: {task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, share: bar.update(task, description=what, total=share and 1.0, completed=share or 0.0)


def _addresses(cluster: Cluster) -> str:
    kafka = f"Kafka {cluster.kafka} on {cluster.bootstrap}" if cluster.kafka else ""
    zookeeper = f"ZooKeeper on {cluster.zookeeper}" if cluster.zookeeper else ""
    return ", ".join(filter(None, (kafka, zookeeper)))


def _servers(cluster: Cluster) -> list[dict[str, Any]]:
    servers: list[dict[str, Any]] = []
    if (keeper := cluster.keeper) is not None:
        servers.append(
            {"server": "zookeeper", "port": cluster.zookeeper_port, "pid": keeper.pid, "log": str(keeper.log)}
        )
    for broker in cluster.brokers:
        process = broker.process
        servers.append(
            {
                "server": process.name,
                "id": broker.id,
                "rack": broker.rack,
                "port": broker.port,
                "pid": process.pid,
                "log": str(process.log),
                "log_dirs": [str(folder) for folder in broker.log_dirs],
            }
        )
    return servers


def _document(clusters: list[Cluster]) -> dict[str, Any]:
    sandboxes = [
        {
            "name": cluster.name,
            "kafka": cluster.kafka,
            "running": cluster.running,
            "bootstrap": cluster.bootstrap or None,
            "zookeeper": cluster.zookeeper,
            "directory": str(cluster.directory),
            "servers": _servers(cluster),
        }
        for cluster in clusters
    ]
    return {"version": 1, "sandboxes": sandboxes}


def _paragraph(cluster: Cluster) -> str:
    rows = [f"{cluster.name}: {'running' if cluster.running else 'not running'}, {_addresses(cluster)}"]
    for server in _servers(cluster):
        state = f"pid {server['pid']}" if server["pid"] else "dead"
        rack = f" {server['rack']}" if "rack" in server else ""
        rows.append(f"  {server['server']}{rack} port {server['port']} {state} log {server['log']}")
    return "\n".join(rows)
