"""`kquota complete`, hidden: the names that completions offer."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.cli.connection import Unrecorded


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteOptions:
    """Print a cluster's topics and brokers for a shell's completions, or nothing: never a question or an error."""

    connection: Unrecorded
