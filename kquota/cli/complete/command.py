"""`kquota complete`: its options, and its registration."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from kquota.cli import commands
from kquota.cli.connection import Unrecorded


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteOptions:
    """Print the topics and brokers of a cluster for shell completions, without prompts or error messages."""

    connection: Unrecorded


app = typer.Typer()
commands.add(app, "complete", CompleteOptions, hidden=True)
