"""`kquota sandbox demo`: the whole story on a fresh sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EPILOG: Final = """It takes about 90 seconds, and removes its sandbox in the end. Exit codes: 0 all of it held, 8 as
much as could be shown without Kafka, where that cannot be downloaded.

Examples:
  kquota sandbox demo
  kquota sandbox demo 2> progress.txt"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """Tell the whole story on a fresh sandbox: a throttled client, a predicted move, and no throttle left behind."""
