"""`move watch` on real brokers: time left under a throttle and writes, a starved copy, and a stopped destination."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kquota.sandbox import cluster as sandbox
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox
from tests.cli.run import kquota, started

pytestmark = pytest.mark.kafka

TOPIC, PARTITIONS = "orders", 4
SLACK = 7.0
"""Seconds. The end is seen up to one interval late, and is read twice. Measured: 4.5 s in the last quarter minute, and
5.7 s on a busy machine.
"""


@pytest.fixture(scope="module")
def servers() -> Iterator[Sandbox]:
    """Brokers with a short quota window, so that a copy of a minute arrives steadily and not in bursts of 11 s."""
    name = f"watch-{os.getpid()}"
    found = sandbox.up(
        name=name, kafka="4.3.1", owner_pid=os.getpid(), properties={"replication.quota.window.num": "3"}
    )
    traffic.create(found.bootstrap, TOPIC, [[1, 2]] * PARTITIONS)
    traffic.load(found.bootstrap, TOPIC, PARTITIONS, 200_000_000, lambda _: None)
    yield found
    sandbox.down(name)


def plan(folder: Path, replicas: list[int]) -> str:
    moves = [{"topic": TOPIC, "partition": number, "replicas": replicas} for number in range(PARTITIONS)]
    path = folder / f"to-{replicas[-1]}.json"
    path.write_text(json.dumps({"version": 1, "partitions": moves}))
    return str(path)


class Operator:
    """Executes plans and watches their moves. It has its own state folder."""

    def __init__(self, servers: Sandbox, folder: Path) -> None:
        self.at = ("--bootstrap-server", servers.bootstrap, "--state-dir", str(folder / "state"))

    def execute(self, file: str, throttle: str) -> None:
        words = ("--execute", "--reassignment-json-file", file, "--throttle", throttle, "--force")
        ran = kquota("reassign-partitions", *self.at, *words)
        assert ran.code == 0, ran.err

    def verify(self, file: str) -> int:
        return kquota("reassign-partitions", *self.at, "--verify", "--reassignment-json-file", file).code

    def watch(self, file: str, until: Callable[[dict[str, Any]], bool], seconds: float) -> list[tuple[float, Any]]:
        """The readings until one of them is `until`, each with the seconds since the watch began."""
        began, found = time.monotonic(), []
        process = started("move", "watch", file, *self.at, "--interval", "2s", "--output", "json")
        assert process.stdout is not None
        for line in process.stdout:
            found.append((time.monotonic() - began, json.loads(line)))
            if until(found[-1][1]) or found[-1][0] > seconds:
                break
        process.terminate()
        process.wait(30)
        return found


@pytest.fixture
def operator(servers: Sandbox, tmp_path: Path) -> Operator:
    return Operator(servers, tmp_path)


def has(finding: str) -> Callable[[dict[str, Any]], bool]:
    return lambda reading: any(one["finding"] == finding for one in reading["findings"])


def test_time_left_then_a_starved_copy_then_a_stopped_destination(
    servers: Sandbox, operator: Operator, tmp_path: Path
) -> None:
    there, back = plan(tmp_path, [1, 3]), plan(tmp_path, [1, 2])
    with traffic.steady(servers.bootstrap, TOPIC, PARTITIONS, 1_000_000):
        operator.execute(there, "5MB/s")
        found = operator.watch(there, lambda reading: bool(reading["ended"]), 200)
        end, last = found[-1]
        assert has("throttle left")(last)
        for at, reading in found:
            if at >= end / 4 and not reading["ended"]:
                left = reading["moves"][0]["seconds_left"]
                assert left is not None
                assert abs(left - (end - at)) <= max(0.2 * (end - at), SLACK), (at, left, end)
        assert operator.verify(there) == 0

        operator.execute(back, "1MB/s")
        found = operator.watch(back, has("starved"), 60)
        assert has("starved")(found[-1][1])
        assert found[-1][0] <= 30

        servers.kill_broker(2)
        found = operator.watch(back, has("destination down"), 60)
        assert has("destination down")(found[-1][1])
        servers.start_broker(2)
