"""`kquota sandbox`: registers its commands."""

from __future__ import annotations

from typing import Final

import typer

from kquota.cli import commands
from kquota.cli.help import Group
from kquota.cli.sandbox.demo import command as demo
from kquota.cli.sandbox.down import command as down
from kquota.cli.sandbox.env import command as env
from kquota.cli.sandbox.status import command as status
from kquota.cli.sandbox.up import command as up

EPILOG: Final = """Examples:
  kquota sandbox up
  eval "$(kquota sandbox env)\""""

app = typer.Typer(
    cls=Group, help="Run a real ZooKeeper and real Kafka on this machine.", epilog=EPILOG, no_args_is_help=True
)

commands.add(app, "up", up.UpOptions, epilog=up.EPILOG)
commands.add(app, "status", status.SandboxStatusOptions, epilog=status.EPILOG)
commands.add(app, "env", env.EnvOptions, epilog=env.EPILOG)
commands.add(app, "down", down.DownOptions, epilog=down.EPILOG)
commands.add(app, "demo", demo.DemoOptions, epilog=demo.EPILOG)
