"""The only room with options, colors, prompts and exit codes. A command imports the rooms for its work only when it
runs.

Each top-level command, and each group of commands, has a folder with the same name. `command.py` in this folder defines
`app`.
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
