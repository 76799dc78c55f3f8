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
    """This number of brokers of that version, in a sandbox with the name of its purpose, `tiered` or not."""
    name = f"bench-{of}"
    say(f"starting Kafka {kafka} for {of} ...")
    # Outside of the try: a sandbox that already runs belongs to another process.
    more: dict[str, Any] = {"tiered": True} if tiered else {}
    found = cluster.up(
        name=name, kafka=kafka, brokers=count, properties=properties or {}, owner_pid=os.getpid(), **more
    )
    try:
        yield found
    finally:
        cluster.down(name)
