"""`kquota move abort`: undo a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kquota.cli.move.options import RecoveryOptions

EPILOG: Final = """Exit codes: 0 everything is as before the run, 8 replicas are still being copied back: run it again.

Examples:
  kquota move abort --bootstrap-server localhost:9092 --dry-run
  kquota move abort --cluster prod --reassignment-json-file plan.json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortOptions(RecoveryOptions):
    """Undo a run: cancel what moves, copy back what has moved, and restore its throttle."""
