"""Checks of processes that ask the kernel, never kquota."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def until(seen: Callable[[], bool], seconds: float = 120.0) -> None:
    """Returns as soon as the condition holds. Fails after the deadline."""
    deadline = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < deadline, "the expected state was not reached"
        time.sleep(0.01)


def runs(pid: int | None) -> bool:
    """True if a process runs. A zombie, which has ended but was not reaped, does not run."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")
