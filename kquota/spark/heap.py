"""How much memory Spark's JVM may have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_MOST: Final = 2 << 30
_LEAST: Final = 512 << 20


def heap() -> int:
    """Bytes of heap: half of what this machine or its cgroup has, and never so much that the process passes 3 GB."""
    return max(_LEAST, min(_MOST, min(_memories()) // 2))


def _memories() -> Iterator[int]:
    yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _limits():
        try:
            text = limit.read_text().strip()
        except OSError:
            continue
        # "max" is a cgroup that limits nothing.
        if text.isdigit():
            yield int(text)


def _limits() -> Iterator[Path]:
    """The files that limit this process's cgroup and those above it, of both versions."""
    try:
        own = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in own:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        inner = Path("/sys/fs/cgroup") / root / path.strip("/")
        # Inside a container the path may be the host's: its root is there in any case.
        yield from (folder / name for folder in (inner, *inner.parents) if folder.is_relative_to("/sys/fs/cgroup"))
