"""A move beside clients whose load steps up and down: no throttle, fixed throttles, and `--protect`.

Each move copies the same partitions on the same brokers, over one narrow network, so that copies delay clients as they
do in a network and not because of this machine's CPU or disk. The baseline is a time without a move.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.clients import fill, quantile
from bench.moves import entry, written
from bench.narrow import narrowed
from bench.race import kquota, say
from bench.section import Section, verdict
from bench.servers import brokers
from kquota.measure import human_rate
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox

NETWORK: Final = 60_000_000
"""The bytes per second of the network that brokers, clients and kquota share."""
STEP_SECONDS: Final = 30
LOADS: Final = (3_000_000, 12_000_000)
"""The bytes per second that the clients write. The two loads alternate."""
PARTITIONS: Final = 4
SIZE: Final = 1_800_000_000
FIXED: Final = (24_000_000, 32_000_000, 40_000_000)
LOWEST: Final = 8_000_000
HIGHEST: Final = 48_000_000
BASELINE_SECONDS: Final = 60.0
PROPERTIES: Final = {
    "replication.quota.window.num": "1",
    "replica.fetch.max.bytes": "50000",
    "replica.fetch.wait.max.ms": "50",
    "log.segment.bytes": str(2**30),
    "log.segment.delete.delay.ms": "1000",
    "log.retention.check.interval.ms": "5000",
}
"""With Kafka's defaults, a broker copies the bytes of 11 s at once, and then none for 11 s. Here, it copies in short
fetches.

Segments have Kafka's default size, because the fsync at the end of a segment delays clients.
"""
MEMORY: Final = Path("/dev/shm")
"""The folder of the log dirs. It is in memory, because all brokers share one disk."""
KEPT: Final = ("segment.bytes=33554432", "retention.bytes=33554432")
"""The configs of the clients' topic, which must not fill the memory."""
HEAP: Final = "-Xms3g -Xmx3g -Xmn2g"
"""The heap of each broker. With the 384 MB of the sandbox, a collection stops a broker for 10 to 40 ms every few
seconds, which delays clients more than a move does.
"""
MOST_SLOWER: Final = 1.5
LEAST_SHARE: Final = 0.95
MOST_LONGER: Final = 1.3
_SETTLING_SECONDS: Final = 4.0
_LOAD: Final = "clients"
_BULK: Final = "bulk"
_NO_MOVE: Final = "no move"
UNTHROTTLED: Final = "no throttle"
PROTECTED: Final = ("--protect", "--protect --max-latency")
MAX_LATENCY: Final = "15ms"
"""The limit for kquota's own writes. The clients wait up to 20 ms for a batch, and may take 1.5 times 28 ms. kquota's
writes usually take 8 ms, and copies raise their latency less than the latency of the clients' larger requests.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The seconds of the clients during a move, or without one, and the report of the move's run."""

    name: str
    began: float
    seconds: float
    clients: Sequence[Mapping[str, Any]]
    report: Mapping[str, Any]

    @property
    def during(self) -> Sequence[Mapping[str, Any]]:
        """The complete seconds of the clients during the move."""
        return [one for one in self.clients if self.began + 1 <= one["second"] <= self.began + self.seconds - 1]

    def share(self, baseline: Mapping[float, float]) -> float:
        """Return the share of the seconds in which the 99th percentile is at most `MOST_SLOWER` times the baseline."""
        good: int = sum(one["p99"] <= MOST_SLOWER * baseline[one["written"]] for one in self.during)
        return good / len(self.during)


def sections() -> list[Section]:
    """Run all moves on the same brokers, in a separate process with a narrow network."""
    command = narrowed(NETWORK, [sys.executable, "-m", "bench.protect"])
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [section([Course(**one) for one in json.loads(ran.stdout)])]


def courses() -> list[Course]:
    """Measure the clients without a move and during each move."""
    os.environ["_JAVA_OPTIONS"] = HEAP  # this variable overrides the options of the sandbox
    with TemporaryDirectory(prefix="kquota-bench-", dir=MEMORY) as folder, ExitStack() as stack:
        os.environ["XDG_STATE_HOME"] = folder  # this process has no other servers
        found = stack.enter_context(brokers("protect", properties=PROPERTIES))
        stage = _Stage(found, Path(folder))
        taken = [stage.course(_NO_MOVE, None), stage.course(UNTHROTTLED, ["--unthrottled"])]
        taken += [stage.course(human_rate(rate), ["--throttle", f"{rate}B/s"]) for rate in FIXED]
        bounds = ["--protect", "--min-rate", f"{LOWEST}B/s", "--max-rate", f"{HIGHEST}B/s"]
        taken.append(stage.course(PROTECTED[0], bounds))
        return [*taken, stage.course(PROTECTED[1], [*bounds, "--max-latency", MAX_LATENCY])]


class _Stage:
    """The brokers, the topic of the clients, and the topic that moves back and forth between brokers 2 and 3."""

    def __init__(self, found: Sandbox, folder: Path) -> None:
        self._found, self._folder, self._at = found, folder, 2
        traffic.create(found.bootstrap, _LOAD, [[1 + n % 3, 1 + (n + 1) % 3] for n in range(6)])
        at = ["--bootstrap-server", found.bootstrap, "--alter", "--entity-type", "topics", "--entity-name", _LOAD]
        for setting in KEPT:
            subprocess.run(kquota("configs", *at, "--add-config", setting), check=True, stdout=subprocess.DEVNULL)
        traffic.create(found.bootstrap, _BULK, [[1, self._at]] * PARTITIONS)
        say(f"writing {SIZE // 10**6:,} MB")
        fill(found.bootstrap, _BULK, PARTITIONS, SIZE)

    def course(self, name: str, options: Sequence[str] | None) -> Course:
        say(f"{name} ...")
        loads = map(str, LOADS)
        command = ["-m", "bench.clients", self._found.bootstrap, _LOAD, "6", str(STEP_SECONDS), *loads]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen([sys.executable, *command], **pipes) as clients:
            time.sleep(_SETTLING_SECONDS)
            began, clock = time.time(), time.monotonic()
            if options is None:
                time.sleep(BASELINE_SECONDS)
            report = {} if options is None else self._moved(options)
            seconds = time.monotonic() - clock
            out, _ = clients.communicate()
        return Course(name=name, began=began, seconds=seconds, clients=json.loads(out), report=report)

    def _moved(self, options: Sequence[str]) -> Mapping[str, Any]:
        self._at = 5 - self._at
        plan = written(self._folder, [entry(_BULK, number, [1, self._at]) for number in range(PARTITIONS)])
        state = str(self._folder / "state")
        at = ["--bootstrap-server", self._found.bootstrap, "--state-dir", state, "--output", "json"]
        run = _answer("move", "run", str(plan), *at, "--force", *options)["run"]
        return _answer("move", "report", run, *at)


def _answer(*command: str) -> Mapping[str, Any]:
    ran = subprocess.run(kquota(*command), capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    found: Mapping[str, Any] = json.loads(ran.stdout)
    return found


def section(courses: Sequence[Course]) -> Section:
    """Return the section: its table, and rows with all values that the picture shows."""
    baseline = _baseline(courses[0])
    shares = {one.name: one.share(baseline) for one in courses}
    moves = {one.name: one.seconds for one in courses[1:]}
    fixed = {name: seconds for name, seconds in moves.items() if name not in (*PROTECTED, UNTHROTTLED)}
    good = {name: seconds for name, seconds in fixed.items() if shares[name] >= LEAST_SHARE}
    best = min(good, key=good.__getitem__) if good else max(fixed, key=shares.__getitem__)
    kept = {
        name: shares[name] >= LEAST_SHARE and moves[name] <= MOST_LONGER * moves[best]
        for name in moves
        if name in PROTECTED
    }
    table = []
    for one in courses:
        promise = f"{LEAST_SHARE:.0%} of the seconds, {MOST_LONGER:g} x {best}" if one.name in kept else ""
        table.append(
            [
                one.name,
                "" if one.name == _NO_MOVE else f"{one.seconds:.0f}",
                f"{shares[one.name]:.0%}",
                f"{quantile([second['p99'] for second in one.during], 0.5) * 1_000:.0f}",
                f"{quantile([second['p99'] for second in one.during], 0.95) * 1_000:.0f}",
                verdict(promise, kept.get(one.name, True)),
            ]
        )
    rows = [
        {
            "name": one.name,
            "seconds": one.seconds,
            "share": shares[one.name],
            "began": one.began,
            "clients": [{key: second[key] for key in ("second", "written", "p50", "p99")} for second in one.during],
            "limits_seconds": {str(int(load)): MOST_SLOWER * value for load, value in baseline.items()},
            "readings": one.report.get("readings", []),
            "changes": one.report.get("changes", []),
            "throttle": one.report.get("throttle"),
            "best": one.name == best,
        }
        for one in courses
    ]
    headers = ["a move beside clients", "seconds", "of them fast", "p99, ms: median", "95%", "promised"]
    return Section(name="protect", headers=headers, table=table, rows=rows, kept=all(kept.values()))


def _baseline(course: Course) -> dict[float, float]:
    """Return the 99th percentile of the latency of all writes without a move, by load."""
    writes: defaultdict[float, list[float]] = defaultdict(list)
    for one in course.during:
        writes[one["written"]] += one["latencies"]
    return {load: quantile(latencies, 0.99) for load, latencies in writes.items()}


if __name__ == "__main__":
    json.dump([asdict(one) for one in courses()], sys.stdout)
