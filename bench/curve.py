"""Cost against size: describe, apply, verify, plan and estimate with growing input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.document import CONFIGS, applied, one_call
from bench.fleet import PARQUET, estimated, inputs
from bench.moves import TOOL, entry, written
from bench.planning import drained
from bench.quotas import seed
from bench.race import cost, kquota, say, spread
from bench.section import Section
from bench.servers import brokers
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox, kafka_tool

ROUNDS: Final = 3
QUOTAS: Final = (10, 100, 1_000, 10_000)
MOVED: Final = (1, 10, 100, 1_000)
PLANNED: Final = (1_000, 10_000, 100_000)
ESTIMATED: Final = (1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The seconds of each round for one command and one size, which is a number of quotas or partitions.

    `theirs` has the seconds of Kafka's tool, and is empty if Kafka has no such tool. With `estimated`, Kafka's tool ran
    for a single quota, and its time was multiplied by the size.
    """

    command: str
    of: str
    size: int
    ours: Sequence[float]
    theirs: Sequence[float] = ()
    estimated: bool = False


def sections() -> list[Section]:
    """Measure whole processes, except for the planner, which gets a cluster in memory."""
    points = [*_on_brokers(), *_planned(), *_estimated()]
    table = [
        [
            each.command,
            f"{each.size:,} {each.of}",
            spread(each.ours),
            f"{spread(each.theirs)}{' (estimated)' if each.estimated else ''}" if each.theirs else "",
        ]
        for each in points
    ]
    headers = ["cost against size", "of", "kquota, s", "Kafka's tool, s"]
    return [Section(name="curve", headers=headers, table=table, rows=[asdict(each) for each in points], kept=True)]


def _on_brokers() -> Iterator[Point]:
    with brokers("curve") as found:
        yield from _described(found)
        yield from _applied(found)
        yield from _verified(found)


def _described(found: Sandbox) -> Iterator[Point]:
    ask = ["--bootstrap-server", found.bootstrap, "--describe", "--entity-type", "users"]
    there = 0
    for size in QUOTAS:
        say(f"configs --describe, {size:,} quotas")
        seed(found.bootstrap, range(there, size))
        there = size
        ours, theirs = _both(kquota("configs", *ask), kafka_tool(found, CONFIGS, *ask))
        yield Point(command="configs --describe", of="quotas", size=size, ours=ours, theirs=theirs)


def _applied(found: Sandbox) -> Iterator[Point]:
    a_call = one_call(found)
    for size in QUOTAS:
        say(f"quota apply, {size:,} quotas")
        ours = [applied(found, size) for _ in range(ROUNDS)]
        yield Point(command="quota apply", of="quotas", size=size, ours=ours, theirs=[size * a_call], estimated=True)


def _verified(found: Sandbox) -> Iterator[Point]:
    traffic.create(found.bootstrap, "bench-curve", [[1 + n % 3] for n in range(max(MOVED))])
    for size in MOVED:
        say(f"reassign-partitions --verify, {size:,} partitions")
        with TemporaryDirectory(prefix="kquota-bench-") as folder:
            plan = written(Path(folder), [entry("bench-curve", n, [1 + n % 3]) for n in range(size)])
            ask = ["--bootstrap-server", found.bootstrap, "--verify", "--reassignment-json-file", str(plan)]
            ours, theirs = _both(kquota("reassign-partitions", *ask), kafka_tool(found, TOOL, *ask))
        yield Point(command="reassign-partitions --verify", of="partitions", size=size, ours=ours, theirs=theirs)


def _planned() -> Iterator[Point]:
    for size in PLANNED:
        say(f"move plan, {size:,} partitions")
        ours = [drained(size) for _ in range(ROUNDS)]
        yield Point(command="move plan, the planner", of="partitions", size=size, ours=ours)


def _estimated() -> Iterator[Point]:
    with inputs(*ESTIMATED) as folder:
        for size in ESTIMATED:
            say(f"move estimate, {size:,} partitions")
            ours = [estimated(folder / str(size), PARQUET)[0] for _ in range(ROUNDS)]
            yield Point(command="move estimate", of="partitions", size=size, ours=ours)


def _both(ours: Sequence[str], theirs: Sequence[str]) -> tuple[list[float], list[float]]:
    rounds = [(cost(ours).seconds, cost(theirs).seconds) for _ in range(ROUNDS)]
    return [mine for mine, _ in rounds], [other for _, other in rounds]
