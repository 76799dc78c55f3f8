"""`kquota move resume`: continue interrupted runs."""

from __future__ import annotations

from kquota.cli.move import recovery
from kquota.cli.move.resume.command import ResumeOptions


def run(options: ResumeOptions) -> recovery.Recovered:
    """Continue the runs. Raises Invalid if it is not clear which ones."""
    return recovery.recover(options, "resume")
