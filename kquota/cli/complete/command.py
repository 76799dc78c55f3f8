"""`kquota complete`, hidden: the names that completions offer."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.cli.connection import Unrecorded


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteOptions:
    """Print the topics and brokers of a cluster for shell completions, or nothing; it never prompts and never fails."""

    connection: Unrecorded
