"""Real brokers for one part of the bench. They stop at its end, and also if it is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bench.race import say
from kquota.sandbox import cluster
from kquota.sandbox.cluster import Sandbox
from kquota.sandbox.jars import NEWEST


@contextmanager
def brokers(
    of: str, kafka: str = NEWEST, count: int = 3, properties: Mapping[str, str] | None = None, *, tiered: bool = False
) -> Iterator[Sandbox]:
    """Yield a sandbox with `count` brokers of the version `kafka`. `of` is its purpose, which is part of its name. With
    `tiered`, topics can have remote storage."""
    name = f"bench-{of}"
    say(f"starting Kafka {kafka} for {of} ...")
    # This call is outside the `try`, because a sandbox that is already running belongs to another process.
    more: dict[str, Any] = {"tiered": True} if tiered else {}
    found = cluster.up(
        name=name, kafka=kafka, brokers=count, properties=properties or {}, owner_pid=os.getpid(), **more
    )
    try:
        yield found
    finally:
        cluster.down(name)
