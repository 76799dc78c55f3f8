"""`kquota record`: its commands."""

from __future__ import annotations

from typing import Final

import typer

from kquota.cli import commands
from kquota.cli.help import Group
from kquota.cli.record.share import command as share
from kquota.cli.record.status import command as status
from kquota.cli.record.unshare import command as unshare

EPILOG: Final = """Examples:
  kquota record share --bootstrap-server localhost:9092 --dry-run
  kquota record status --bootstrap-server localhost:9092"""

app = typer.Typer(cls=Group, epilog=EPILOG, no_args_is_help=True)


@app.callback()
def group() -> None:
    """Set up one record of all runs, so that every host can see and continue them and restore their throttles."""


commands.add(app, "share", share.ShareOptions, epilog=share.EPILOG)
commands.add(app, "status", status.StatusOptions, epilog=status.EPILOG)
commands.add(app, "unshare", unshare.UnshareOptions, epilog=unshare.EPILOG)
