"""KIP-73's test plan: the rate at which replicas move between real brokers, as a share of their throttle."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.race import kquota, say
from bench.section import Section
from bench.servers import brokers
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox
from kquota.terms import BrokerId

LEAST: Final = 0.9
MOST: Final = 1.1
PARTITIONS: Final = 100
THROTTLE: Final = 3_000_000
SIZE: Final = 900_000
"""The size of each partition in bytes. A move of all partitions takes about half a minute."""
LOAD: Final = 600_000
"""The bytes per second that producers write."""
FINE: Final = {
    "replica.fetch.response.max.bytes": "1000000",
    "replica.fetch.backoff.ms": "50",
    "replica.fetch.wait.max.ms": "50",
    "replication.quota.window.num": "3",
}
"""With Kafka's defaults, a broker copies the bytes of 11 s at once, and then none for 11 s. A move of half a minute
would then not show the rate.
"""
_POLL: Final = 0.2
_LONGEST: Final = 180.0

Replicas = list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One move of the plan. `here` and `there` are the replicas before and after it, for partitions with an even and an
    odd number.

    All copies to `followers` go through the one broker whose throttle is the bottleneck.
    """

    name: str
    here: tuple[Replicas, Replicas]
    there: tuple[Replicas, Replicas]
    followers: Replicas

    def placed(self, replicas: tuple[Replicas, Replicas]) -> list[Replicas]:
        """Return the replicas of every partition."""
        return [replicas[number % 2] for number in range(PARTITIONS)]


LEGS: Final = (
    Leg(name="one node to another, r=1", here=([1], [1]), there=([2], [2]), followers=[2]),
    Leg(name="and back, r=1", here=([2], [2]), there=([1], [1]), followers=[1]),
    Leg(name="one node to two, r=2", here=([1, 2], [1, 3]), there=([1, 3], [1, 2]), followers=[2, 3]),
    Leg(name="two nodes to one, r=2", here=([1, 2], [2, 1]), there=([1, 3], [2, 3]), followers=[3]),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The share of the throttle that copies and in-sync follower traffic use between 10% and 90% of the bytes."""

    name: str
    share: float

    @property
    def kept(self) -> bool:
        """True if the share is within 10% of the throttle."""
        return LEAST <= self.share <= MOST


def sections() -> list[Section]:
    """Run every leg with and without producers, each time on a separate topic."""
    with brokers("kip73", properties=FINE) as found:
        shares = [_leg(found, leg, load) for leg in LEGS for load in (0, LOAD)]
    return [
        Section(
            name="kip73",
            headers=["KIP-73's test plan", "share of the throttle", f"{LEAST:g} to {MOST:g}"],
            table=[[each.name, f"{each.share:.2f}", "kept" if each.kept else "BROKEN"] for each in shares],
            rows=[{"name": each.name, "share": each.share} for each in shares],
            kept=all(each.kept for each in shares),
        )
    ]


def _leg(found: Sandbox, leg: Leg, load: int) -> Share:
    name = f"{leg.name}, {'with' if load else 'without'} producers"
    say(f"{name}: {PARTITIONS} partitions of {SIZE:,} bytes at {THROTTLE:,} B/s")
    topic = f"kip73-{time.monotonic_ns()}"
    traffic.create(found.bootstrap, topic, leg.placed(leg.here))
    traffic.load(found.bootstrap, topic, PARTITIONS, SIZE * PARTITIONS, lambda _: None)
    producers = traffic.steady(found.bootstrap, topic, PARTITIONS, load) if load else nullcontext()
    with TemporaryDirectory(prefix="kquota-bench-") as folder, producers:
        document = Path(folder) / "plan.json"
        there = dict(enumerate(leg.placed(leg.there)))
        entries = [{"topic": topic, "partition": n, "replicas": replicas} for n, replicas in there.items()]
        document.write_text(json.dumps({"version": 1, "partitions": entries}))
        at = ["--bootstrap-server", found.bootstrap, "--state-dir", folder, "--reassignment-json-file", str(document)]
        copied = Copied(topic, found, leg)
        _kquota("reassign-partitions", *at, "--execute", "--throttle", f"{THROTTLE}B/s")
        points = list(_points(copied, {n: frozenset(replicas) for n, replicas in there.items()}))
        _kquota("reassign-partitions", *at, "--verify")
    client = traffic.admin(found.bootstrap)
    client.delete_topics([topic])[topic].result(30)
    return Share(name=name, share=_rate(points) / THROTTLE)


def _kquota(*arguments: str) -> None:
    subprocess.run(kquota(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)


def _points(copied: Copied, there: Mapping[int, frozenset[int]]) -> Iterator[tuple[float, int]]:
    """Yield pairs of a time in seconds and the bytes copied so far, until every partition has arrived."""
    client, give_up = traffic.admin(copied.servers.bootstrap), time.monotonic() + _LONGEST
    while traffic.replicas(client, copied.topic) != there:
        if time.monotonic() > give_up:
            raise TimeoutError(f"{copied.topic} has not moved within {_LONGEST:.0f} s")
        for _ in range(5):
            copied.count()
            yield time.monotonic(), copied.bytes
            time.sleep(_POLL)


def _rate(points: Sequence[tuple[float, int]]) -> float:
    """Return the bytes per second between 10% and 90% of the bytes."""
    total = points[-1][1]
    (began, first), (ended, last) = (next(p for p in points if p[1] >= share * total) for share in (0.1, 0.9))
    return (last - first) / (ended - began)


@dataclass(slots=True)
class Copied:
    """The bytes that followers have received, measured from the sizes of their files.

    A partition is not counted any more when its old leader has deleted its replica.
    """

    topic: str
    servers: Sandbox
    leg: Leg
    bytes: int = 0
    sizes: dict[tuple[int, int], int] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.count()

    def count(self) -> None:
        """Add the bytes since the last call."""
        for number in set(range(PARTITIONS)) - self.over:
            for broker in self.leg.followers:
                size = self._size(broker, number) or 0
                self.bytes += max(0, size - self.sizes.setdefault((broker, number), size))
                self.sizes[broker, number] = size
            if self._size(self.leg.here[number % 2][0], number) is None:
                self.over.add(number)

    def _size(self, broker: int, number: int) -> int | None:
        """Return the size of the only segment, or None if the broker has no replica."""
        for folder in self.servers.broker(BrokerId(broker)).log_dirs:
            with suppress(FileNotFoundError):
                return (folder / f"{self.topic}-{number}" / f"{0:020}.log").stat().st_size
        return None
