"""Moves: Kafka's ReassignPartitionsCommand against kquota on a small plan, and the cost of 100,000 partitions."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.document import ROUNDS
from bench.measured import Measured, measured
from bench.race import Race, kquota, raced, run, say
from bench.scale import BROKERS
from bench.section import Section
from bench.servers import brokers
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox, kafka_tool

RATIO: Final = 0.5
PLAN_SECONDS: Final = 0.9
PLAN_MEGABYTES: Final = 120.0
VERIFY_SECONDS: Final = 3.0
TOOL: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
_TOPICS: Final = 1_000
_EACH: Final = 100


def sections() -> list[Section]:
    """Run the races with Kafka's tool, and measure large plans."""
    with brokers("moves") as found, _races(found) as races:
        results = [run(race) for race in races]
    return [raced("moves", results), measured("large plans", _scale())]


@contextmanager
def _races(found: Sandbox) -> Iterator[list[Race]]:
    """Yield races of whole processes, for a plan that is done, while no move is running."""
    at = ["--bootstrap-server", found.bootstrap]
    traffic.create(found.bootstrap, "bench-moves", [[1, 2]])
    with TemporaryDirectory(prefix="kquota-bench-") as folder:
        plan = written(Path(folder), [entry("bench-moves", 0, [1, 2])])
        verify = [*at, "--verify", "--reassignment-json-file", str(plan)]
        yield [
            Race(
                name=f"reassign-partitions {name}",
                ours=kquota("reassign-partitions", *arguments),
                theirs=kafka_tool(found, TOOL, *arguments),
                promised=RATIO,
            )
            for name, arguments in (("--list", [*at, "--list"]), ("--verify, one partition", verify))
        ]


def _scale() -> list[Measured]:
    """Measure kquota's rules for a plan of 100,000 partitions. The cluster's answers are in memory."""
    partitions = _TOPICS * _EACH
    say(f"a plan of {partitions:,} partitions: {ROUNDS} rounds")
    with TemporaryDirectory(prefix="kquota-bench-") as folder:
        chance = random.Random(1)
        plan = written(
            Path(folder),
            [
                entry(f"topic-{n:04d}", number, chance.sample(range(BROKERS), 3))
                for n in range(_TOPICS)
                for number in range(_EACH)
            ],
        )
        costs = [_cost(plan) for _ in range(ROUNDS)]
    return [
        Measured(
            name=f"a plan of {partitions:,}: read, check, moves, lists",
            ours=tuple(cost["plan"] for cost in costs),
            promised=PLAN_SECONDS,
            megabytes=max(cost["megabytes"] for cost in costs),
            promised_megabytes=PLAN_MEGABYTES,
        ),
        Measured(name="  ... the rollback plan and run's id", ours=tuple(cost["record"] for cost in costs)),
        Measured(
            name="  ... verify, after the cluster's answer",
            ours=tuple(cost["verify"] for cost in costs),
            promised=VERIFY_SECONDS,
        ),
    ]


def _cost(plan: Path) -> dict[str, float]:
    ran = subprocess.run([sys.executable, "-m", "bench.scale", str(plan)], stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def written(folder: Path, entries: Sequence[Mapping[str, object]]) -> Path:
    """Write a plan of these entries, and return its file."""
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": entries}, separators=(",", ":")))
    return plan


def entry(topic: str, partition: int, replicas: list[int]) -> dict[str, object]:
    """Return the entry of a plan for one partition."""
    return {"topic": topic, "partition": partition, "replicas": replicas, "log_dirs": ["any"] * len(replicas)}
