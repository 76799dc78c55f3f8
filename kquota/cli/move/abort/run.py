"""`kquota move abort`: bring a run back to where it began."""

from __future__ import annotations

from kquota.cli.move import recovery
from kquota.cli.move.abort.command import AbortOptions


def run(options: AbortOptions) -> recovery.Recovered:
    """Raises Invalid where it is not clear which run is meant."""
    return recovery.recover(options, "abort")
