"""`kquota move resume`: bring every run that is meant to where an undisturbed one would be."""

from __future__ import annotations

from kquota.cli.move import recovery
from kquota.cli.move.resume.command import ResumeOptions


def run(options: ResumeOptions) -> recovery.Recovered:
    """Raises Invalid where it is not clear which run is meant."""
    return recovery.recover(options, "resume")
