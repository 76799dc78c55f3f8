"""Checks of processes that ask the kernel, never kquota."""

from __future__ import annotations

from pathlib import Path


def runs(pid: int | None) -> bool:
    """Return True if a process runs. A zombie, which has ended but was not reaped, does not run."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")
