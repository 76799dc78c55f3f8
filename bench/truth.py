"""`move estimate` before real moves, and their actual duration, with throttles, producers and in-sync replicas."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.race import kquota, say
from bench.section import Section
from bench.servers import brokers
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox
from kquota.terms import BrokerId

MOST_MISSED: Final = 0.1
PARTITIONS: Final = 8
_MB: Final = 1_000_000
_FORGOTTEN: Final = 13.0
"""Seconds after which no quota's window contains the previous move, because unused quota passes at once."""
_SAMPLE: Final = 10
"""Seconds of traffic that an estimate samples, because producers write in bursts."""
_POLL: Final = 0.1
_LONGEST: Final = 240.0
_WATCHED: Final = (10.0, 40.0)
"""Seconds after which a move that never ends is checked."""

Replicas = list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One move: the replicas of partition 0, 1, … before and after, alternating. Sizes and rates are in megabytes."""

    name: str
    here: tuple[Replicas, ...]
    there: tuple[Replicas, ...]
    size: int
    throttle: int
    load: int = 0
    partitions: int = PARTITIONS

    def placed(self, replicas: Sequence[Replicas]) -> list[Replicas]:
        """The replicas of every partition."""
        return [replicas[number % len(replicas)] for number in range(self.partitions)]


CASES: Final = (
    Case(name="nobody stays", here=([1],), there=([3],), size=400, throttle=10),
    Case(name="nobody stays, producers", here=([1],), there=([3],), size=600, throttle=20, load=3),
    Case(name="followers stay", here=([1, 2],), there=([1, 3],), size=1600, throttle=40),
    Case(name="followers stay, producers", here=([1, 2],), there=([1, 3],), size=240, throttle=10, load=2),
    Case(name="followers stay, producers", here=([1, 2],), there=([1, 3],), size=700, throttle=20, load=2),
    Case(name="two leaders, one destination", here=([1], [2]), there=([3], [3]), size=800, throttle=20),
    Case(
        name="one of two destinations",
        here=([1], [1], [1], [2]),
        there=([3], [3], [3], [1]),
        size=800,
        throttle=20,
    ),
    Case(name="IN < T, and it takes longer", here=([1, 2],), there=([1, 3],), size=91, throttle=8, load=3),
    Case(name="IN < T, and it never ends", here=([1, 2],), there=([1, 3],), size=91, throttle=5, load=3),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A case and its result in seconds; None is never. `bottleneck` (predicted) and `last` (observed) are brokers."""

    case: Case
    expected: float | None
    low: float | None
    high: float | None
    actual: float | None
    bottleneck: int
    last: frozenset[int]

    @property
    def error(self) -> float | None:
        """The error of the prediction as a share of the real duration."""
        return None if self.expected is None or self.actual is None else self.expected / self.actual - 1

    @property
    def kept(self) -> bool:
        """Within 10 % and in the band, and the last copy used the bottleneck; or both are never."""
        if self.error is None or self.actual is None or self.low is None:
            return self.expected is None and self.actual is None
        held = self.low <= self.actual <= (self.actual if self.high is None else self.high)
        return abs(self.error) <= MOST_MISSED and held and self.bottleneck in self.last


def sections() -> list[Section]:
    """Every case on a separate topic, with Kafka's default settings."""
    with brokers("truth") as found:
        outcomes = [_outcome(found, case) for case in CASES]
    headers = ["move", "expected, s", "90 %", "actual, s", "error", "bottleneck", f"within {MOST_MISSED:.0%}"]
    kept = all(each.kept for each in outcomes)
    return [Section(name="truth", headers=headers, table=_table(outcomes), rows=_rows(outcomes), kept=kept)]


def _table(found: Sequence[Outcome]) -> list[list[str]]:
    return [
        [
            f"{each.case.name}: {each.case.size} MB at {each.case.throttle} MB/s"
            + (f", {each.case.load} MB/s written" if each.case.load else ""),
            _seconds(each.expected),
            f"{_seconds(each.low)} to {_seconds(each.high)}" if each.low is not None else "",
            _seconds(each.actual),
            "" if each.error is None else f"{each.error:+.1%}",
            str(each.bottleneck),
            "kept" if each.kept else "BROKEN",
        ]
        for each in found
    ]


def _rows(found: Sequence[Outcome]) -> list[dict[str, object]]:
    """Megabytes, megabytes per second, seconds; null is never."""
    return [
        {
            "name": each.case.name,
            "size": each.case.size,
            "throttle": each.case.throttle,
            "load": each.case.load,
            "expected": each.expected,
            "low": each.low,
            "high": each.high,
            "actual": each.actual,
            "bottleneck": each.bottleneck,
            "last": sorted(each.last),
        }
        for each in found
    ]


def _seconds(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f}"


def _outcome(found: Sandbox, case: Case) -> Outcome:
    say(f"{case.name}: {case.size} MB at {case.throttle} MB/s, {case.load} MB/s written")
    with _topic(found, case) as topic, TemporaryDirectory(prefix="kquota-bench-") as folder:
        there = dict(enumerate(case.placed(case.there)))
        plan = Path(folder) / "plan.json"
        entries = [{"topic": topic, "partition": n, "replicas": replicas} for n, replicas in there.items()]
        plan.write_text(json.dumps({"version": 1, "partitions": entries}))
        at = ["--bootstrap-server", found.bootstrap, "--reassignment-json-file", str(plan)]
        throttle = ["--throttle", f"{case.throttle}MB/s"]
        moving = ["reassign-partitions", *at, "--state-dir", folder]
        time.sleep(_FORGOTTEN)
        sample = ["--sample", str(_SAMPLE), "--output", "json"]
        told = _kquota("move", "estimate", *at, *throttle, *sample, accepted=(0, 1))
        expected = json.loads(told)
        _kquota(*moving, "--execute", "--force", *throttle)
        move = Move(case=case, topic=topic, servers=found, there={n: frozenset(r) for n, r in there.items()})
        if move.wait() if expected["feasible"] else move.gains() and move.wait():
            _kquota(*moving, "--verify")
        else:
            _kquota(*moving, "--cancel")
    band = expected["band"] or {"low_seconds": None, "high_seconds": None}
    outcome = Outcome(
        case=case,
        expected=expected["expected_seconds"],
        low=band["low_seconds"],
        high=band["high_seconds"],
        actual=max(move.ended.values()) if move.over else None,
        bottleneck=expected["bottleneck"]["broker"],
        last=move.last(),
    )
    say(f"  expected {_seconds(outcome.expected)}, was {_seconds(outcome.actual)}")
    return outcome


@contextmanager
def _topic(found: Sandbox, case: Case) -> Iterator[str]:
    """A loaded topic with steady producers, which is deleted at the end."""
    topic = f"truth-{time.monotonic_ns()}"
    traffic.create(found.bootstrap, topic, case.placed(case.here))
    traffic.load(found.bootstrap, topic, case.partitions, case.size * _MB, lambda _: None)
    steady = traffic.steady(found.bootstrap, topic, case.partitions, case.load * _MB) if case.load else nullcontext()
    with steady:
        yield topic
    client = traffic.admin(found.bootstrap)
    client.delete_topics([topic])[topic].result(30)


def _kquota(*arguments: str, accepted: tuple[int, ...] = (0,)) -> str:
    ran = subprocess.run(kquota(*arguments), capture_output=True, text=True, check=False)
    if ran.returncode not in accepted:
        raise RuntimeError(f"kquota {' '.join(arguments)} ended with {ran.returncode}: {ran.stderr.strip()}")
    return ran.stdout


@dataclass(slots=True)
class Move:
    """A move that was submitted a moment ago. `ended` is the time at which each partition arrived."""

    case: Case
    topic: str
    servers: Sandbox
    there: Mapping[int, frozenset[int]]
    began: float = field(default_factory=time.monotonic)
    ended: dict[int, float] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """True if every partition has arrived."""
        return len(self.ended) == len(self.there)

    def wait(self) -> bool:
        """Waits until every partition has arrived; False if that takes too long."""
        client: Any = traffic.admin(self.servers.bootstrap)
        while not self.over and (now := time.monotonic() - self.began) < _LONGEST:
            seen = traffic.replicas(client, self.topic)
            self.ended |= {n: now for n, r in self.there.items() if n not in self.ended and seen.get(n) == r}
            time.sleep(_POLL)
        return self.over

    def gains(self) -> bool:
        """Whether fewer bytes are missing at the second of two checks."""
        missing = []
        for moment in _WATCHED:
            time.sleep(max(0.0, self.began + moment - time.monotonic()))
            missing.append(self._missing())
        return missing[1] < missing[0]

    def last(self) -> frozenset[int]:
        """The leader and the destinations of the partitions that arrived last, within a second."""
        latest = [n for n, moment in self.ended.items() if moment > max(self.ended.values()) - 1]
        here = self.case.placed(self.case.here)
        return frozenset(broker for n in latest for broker in {here[n][0], *(self.there[n] - set(here[n]))})

    def _missing(self) -> int:
        """Bytes that the leaders have and the copies do not."""
        here = self.case.placed(self.case.here)
        return sum(
            self._length(here[n][0], n) - self._length(broker, n)
            for n, replicas in self.there.items()
            for broker in replicas - set(here[n])
        )

    def _length(self, broker: int, number: int) -> int:
        folders = (log_dir / f"{self.topic}-{number}" for log_dir in self.servers.broker(BrokerId(broker)).log_dirs)
        return sum(segment.stat().st_size for folder in folders for segment in folder.glob("*.log"))
