"""The only package with options, colors, prompts and exit codes. A command imports the packages for its work only when
it runs.

Each top-level command, and each group of commands, has a folder with the same name (`_` instead of `-`). `command.py`
in this folder defines `app`.
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
