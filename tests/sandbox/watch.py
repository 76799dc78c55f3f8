"""What tests of processes look at: the kernel's own word, never kquota's."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def until(seen: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return as soon as it is seen; fail when it is not in time."""
    deadline = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def runs(pid: int | None) -> bool:
    """Whether a process works: one that has ended and that nobody has asked about yet (a zombie) does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")
