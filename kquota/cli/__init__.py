"""The only room with options, colors, prompts and exit codes. A command imports other rooms only when it runs.

The folder of a command, or of a group of commands, has the name of the command. Its `command.py` defines the `app`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import Typer


def app_of(name: str) -> Typer:
    """Import the command or the group of this name, and return its app."""
    app: Typer = importlib.import_module(f"kquota.cli.{name.replace('-', '_')}.command").app
    return app
