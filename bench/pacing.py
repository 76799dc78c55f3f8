"""A running move as `move watch` and `move adjust` see it: seconds until a finding, and the accuracy of times."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from confluent_kafka.admin import AdminClient

from bench.moves import entry, written
from bench.race import kquota, say
from bench.section import Section, verdict
from bench.servers import brokers
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox

RELEASES: Final = ("4.3.1", "3.9.1")
PARTITIONS: Final = 4
SIZE: Final = 240_000_000
WRITES: Final = 1_000_000
RATE: Final = 5_000_000
STARVING: Final = 1_000_000
FASTER: Final = 15_000_000
DEADLINE: Final = 60
PROPERTIES: Final = {"replication.quota.window.num": "3"}
"""With Kafka's defaults, a broker copies the bytes of 11 s at once, and then none for 11 s."""
_TOPIC: Final = "bench-pacing"
_LONGEST: Final = 240.0
_LAST_SECONDS: Final = 10.0
"""The last seconds of a move do not count, because a small error is a large share of the time that is left."""

Reading = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One measured value of one release, and the maximum that is promised."""

    release: str
    name: str
    value: float
    most: float
    unit: str

    @property
    def kept(self) -> bool:
        """True if the promise holds."""
        return self.value <= self.most


def sections() -> list[Section]:
    """Measure all values on a release with KRaft and on one with ZooKeeper."""
    found: list[Promise] = []
    for release in RELEASES:
        with brokers("pacing", release, properties=PROPERTIES) as cluster, TemporaryDirectory() as folder:
            traffic.create(cluster.bootstrap, _TOPIC, [[1, 2]] * PARTITIONS)
            traffic.load(cluster.bootstrap, _TOPIC, PARTITIONS, SIZE, lambda _: None)
            with traffic.steady(cluster.bootstrap, _TOPIC, PARTITIONS, WRITES):
                found += _Operator(cluster, Path(folder), release).figures()
    table = [
        [
            one.release,
            one.name,
            f"{one.value:.0f} {one.unit}",
            verdict(f"{one.most:.0f} {one.unit}", one.kept),
        ]
        for one in found
    ]
    rows = [
        {"kafka": one.release, "name": one.name, "value": one.value, "promised": one.most, "unit": one.unit}
        for one in found
    ]
    headers = ["Kafka", "during a move", "measured", "promised"]
    return [Section(name="pacing", headers=headers, table=table, rows=rows, kept=all(one.kept for one in found))]


class _Operator:
    """An operator who moves the topic back and forth between brokers 2 and 3, and watches the moves."""

    def __init__(self, cluster: Sandbox, folder: Path, release: str) -> None:
        self._cluster, self._folder, self._release, self._at = cluster, folder, release, 2
        self._where = ("--bootstrap-server", cluster.bootstrap, "--state-dir", str(folder / "state"))

    def figures(self) -> list[Promise]:
        say(f"{self._release}: time left, a deadline, a new throttle, a starved copy, a stopped broker")
        return [self._time_left(), self._deadline(), self._adjusted(), self._starved(), self._stopped()]

    def _promise(self, name: str, value: float, most: float, unit: str) -> Promise:
        return Promise(release=self._release, name=name, value=value, most=most, unit=unit)

    def _time_left(self) -> Promise:
        plan = self._executed(RATE)
        with self._moved() as moved:
            found = list(self._watched(plan))
        end = moved.result()
        errors = [
            abs(left - (end - at)) / (end - at)
            for at, reading in found
            if end / 4 <= at < end - _LAST_SECONDS and (left := reading["moves"][0]["seconds_left"]) is not None
        ]
        self._verified(plan)
        return self._promise("error of the time left from a quarter of the way on, largest", max(errors) * 100, 20, "%")

    def _deadline(self) -> Promise:
        plan = self._executed(RATE // 2)
        with self._moved() as moved:
            self._kquota("move", "adjust", "--deadline", f"{DEADLINE}s", ended=(0, 8))
        seconds = moved.result()
        self._verified(plan)
        return self._promise("difference of the end from --deadline", abs(seconds / DEADLINE - 1) * 100, 10, "%")

    @contextmanager
    def _moved(self) -> Iterator[Future[float]]:
        """Yield a future for the seconds until the brokers report the replicas of the plan. kquota shows this up to an
        interval later."""
        with ThreadPoolExecutor(1) as thread:
            yield thread.submit(self._seconds_until_moved)

    def _seconds_until_moved(self) -> float:
        began = time.monotonic()
        client = AdminClient({"bootstrap.servers": self._cluster.bootstrap, "log_level": 2})
        while True:
            partitions = client.list_topics(_TOPIC).topics[_TOPIC].partitions.values()
            if all(set(one.replicas) == {1, self._at} for one in partitions):
                return time.monotonic() - began
            time.sleep(_POLL)

    def _adjusted(self) -> Promise:
        plan = self._executed(RATE // 2)
        readings = self._watched(plan)
        next(one for one in readings if one[0] >= 15)
        self._kquota("move", "adjust", f"{FASTER}B/s")
        began = time.monotonic()
        reached = 0.7 * FASTER
        next(one for one in readings if (one[1]["moves"][0]["throughput"] or 0) >= reached or one[1]["ended"])
        seconds = time.monotonic() - began
        list(readings)
        self._verified(plan)
        return self._promise("until the throughput shows a throttle that move adjust has tripled", seconds, 15, "s")

    def _starved(self) -> Promise:
        plan = self._executed(STARVING)
        return self._promise(
            "until a throttle below the write rate is called starved", self._until(plan, "starved"), 30, "s"
        )

    def _stopped(self) -> Promise:
        """Kill the destination of the copies that `_starved` has started. Return the seconds until kquota names it."""
        plan = str(self._folder / "plan.json")
        readings = self._watched(plan)
        next(readings)
        self._cluster.broker(self._at).process.kill()
        began = time.monotonic()
        self._first(readings, "destination down")
        return self._promise("until a killed destination is named", time.monotonic() - began, 15, "s")

    def _until(self, plan: str, finding: str) -> float:
        began = time.monotonic()
        self._first(self._watched(plan), finding)
        return time.monotonic() - began

    @staticmethod
    def _first(readings: Iterator[tuple[float, Reading]], finding: str) -> None:
        for at, reading in readings:
            if any(one["finding"] == finding for one in reading["findings"]):
                return
            if at > _LONGEST:
                break
        raise RuntimeError(f"no finding {finding} in {_LONGEST:.0f} s")

    def _executed(self, rate: int) -> str:
        self._at = 5 - self._at
        entries = [entry(_TOPIC, number, [1, self._at]) for number in range(PARTITIONS)]
        plan = str(written(self._folder, entries))
        words = ("--execute", "--reassignment-json-file", plan, "--throttle", f"{rate}B/s", "--force")
        self._kquota("reassign-partitions", *words)
        return plan

    def _verified(self, plan: str) -> None:
        self._kquota("reassign-partitions", "--verify", "--reassignment-json-file", plan)

    def _watched(self, plan: str) -> Iterator[tuple[float, Reading]]:
        """Yield the readings until the move has ended, each with the seconds since the watch began."""
        began = time.monotonic()
        command = kquota("move", "watch", plan, *self._where, "--interval", f"{_INTERVAL}s", "--output", "json")
        with _stopping(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as process:
            assert process.stdout is not None
            for line in process.stdout:
                yield time.monotonic() - began, json.loads(line)

    def _kquota(self, *words: str, ended: tuple[int, ...] = (0,)) -> None:
        ran = subprocess.run(kquota(*words, *self._where), capture_output=True, text=True, check=False)
        if ran.returncode not in ended:
            raise RuntimeError(ran.stderr)


_INTERVAL: Final = 2
_POLL: Final = 0.2


@contextmanager
def _stopping(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()
