"""`kquota sandbox`: the options of its commands, and their registration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

import typer

from kquota.cli import commands
from kquota.cli.options import Output, OutputFormat, flag, value

EPILOG: Final = """Examples:
  kquota sandbox up
  eval "$(kquota sandbox env)\""""

SandboxName: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Name of the sandbox.")]


UP_EPILOG: Final = """kquota downloads a Kafka release (40 MB) before it starts the release for the first time.
ZooKeeper needs no download.

Examples:
  kquota sandbox up
  kquota sandbox up zk --zookeeper-only"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """Start real servers on the loopback address. They run until `kquota sandbox down` stops them."""

    name: SandboxName = "default"
    kafka: Annotated[
        str | None,
        value(
            "kafka", "VERSION", "Kafka release: 4.3.1 (KRaft), 3.9.1 or 2.8.2 (both on ZooKeeper).  [default: 4.3.1]"
        ),
    ] = None
    brokers: Annotated[int | None, value("brokers", "N", "Number of brokers, 1 to 9.  [default: 3]")] = None
    zookeeper_only: Annotated[bool, flag("zookeeper-only", "Start only ZooKeeper, without a download.")] = False
    tiered: Annotated[
        bool, flag("tiered", "Configure remote storage in a folder, for tiered topics (Kafka 4.3.1 only).")
    ] = False
    metrics: Annotated[
        bool, flag("metrics", "Run the Prometheus JMX exporter in each broker, for `kquota quota top`.")
    ] = False
    properties: Annotated[
        list[str] | None, value("property", "KEY=VALUE", "Config to set on every broker. Repeatable.")
    ] = None
    output: OutputFormat = Output.text


STATUS_EPILOG: Final = """Exit code 1: the named sandbox is not running.

Examples:
  kquota sandbox status
  kquota sandbox status zk --output json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxStatusOptions:
    """Show which sandboxes are running, and their addresses."""

    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the sandbox.  [default: all]")] = None
    output: OutputFormat = Output.text


ENV_EPILOG: Final = """\
The variables are KQUOTA_BOOTSTRAP_SERVER, KQUOTA_ZOOKEEPER and KQUOTA_METRICS. kquota prints only the
variables for which the sandbox has an address. With the variables set, you can leave out the cluster options.
Exit code 1: the sandbox is not running.

Examples:
  eval "$(kquota sandbox env)"
  kquota sandbox env zk"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvOptions:
    """Print environment variables that make kquota use a sandbox."""

    name: SandboxName = "default"


DOWN_EPILOG: Final = """Examples:
  kquota sandbox down zk
  kquota sandbox down --all"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DownOptions:
    """Stop the servers of a sandbox and remove its data, also after a crash."""

    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of the sandbox.  [default: default]", show_default=False)
    ] = None
    all_of_them: Annotated[bool, flag("all", "Stop all sandboxes.")] = False


DEMO_EPILOG: Final = """\
The demo takes about 90 seconds and removes its sandbox at the end. Exit codes: 0 if all steps worked, 8 if only the
steps without Kafka were shown, because Kafka could not be downloaded.

Examples:
  kquota sandbox demo
  kquota sandbox demo 2> progress.txt"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """Show kquota on a new sandbox: throttle a client, estimate and run a move, and restore the throttle."""


app = commands.group("sandbox", EPILOG)

commands.add(app, "up", UpOptions, epilog=UP_EPILOG, work="run.up")
commands.add(app, "status", SandboxStatusOptions, epilog=STATUS_EPILOG, work="run.status")
commands.add(app, "env", EnvOptions, epilog=ENV_EPILOG, work="run.env")
commands.add(app, "down", DownOptions, epilog=DOWN_EPILOG, work="run.down")
commands.add(app, "demo", DemoOptions, epilog=DEMO_EPILOG, work="demo.run")
