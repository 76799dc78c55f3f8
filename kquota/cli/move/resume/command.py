"""`kquota move resume`: continue interrupted runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from kquota.cli.move.options import RecoveryOptions, run_option

EPILOG: Final = """Exit codes: 0 the runs are done; 8 they are still moving: run it again; 1 replicas are not where the
plan wants them.

Examples:
  kquota move resume --bootstrap-server localhost:9092 --dry-run
  kquota move resume --cluster prod --reassignment-json-file plan.json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOptions(RecoveryOptions):
    """Continue interrupted runs from where they stopped: all open runs, or the one that you name."""

    run: Annotated[str | None, run_option("all open runs")] = None
