"""`kquota move abort`: undo a run."""

from __future__ import annotations

from kquota.cli.move import recovery
from kquota.cli.move.abort.command import AbortOptions


def run(options: AbortOptions) -> recovery.Recovered:
    """Undo the run. Raises Invalid if it is not clear which one."""
    return recovery.recover(options, "abort")
