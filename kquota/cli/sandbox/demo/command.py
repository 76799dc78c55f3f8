"""`kquota sandbox demo`: a demo on a fresh sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EPILOG: Final = """The demo takes about 90 seconds and removes its sandbox at the end. Exit codes: 0 all steps worked,
8 only the steps without Kafka were shown, because Kafka cannot be downloaded.

Examples:
  kquota sandbox demo
  kquota sandbox demo 2> progress.txt"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """Show kquota on a fresh sandbox: a throttled client, a predicted move, and no throttle left behind."""
