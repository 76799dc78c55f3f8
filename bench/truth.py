"""`move estimate` before real moves, and their actual duration: on three releases, with every kind of traffic.

`BENCH_TRUTH='*warm*,3.9.1 small*'` limits the moves to those whose title matches one of the patterns.
"""

from __future__ import annotations

import fnmatch
import itertools
import json
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from bench.race import kquota, say
from bench.section import Section, verdict
from bench.servers import brokers
from bench.truth_cases import CASES, Case
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox
from kquota.terms import BrokerId

MEDIAN_ERROR: Final = 0.05
COVERAGE: Final = 0.9
_MB: Final = 1_000_000
_FORGOTTEN: Final = 12.0
"""The seconds after which no quota window contains the previous move. A window with unused quota lets a burst pass."""
_SAMPLE: Final = 6
"""The seconds of traffic that an estimate samples."""
_READ_SECONDS: Final = 0.5
"""The maximum seconds of the second reading of a measurement."""
_POLL: Final = 0.1
_TRIES: Final = 10
_LONGEST: Final = 120.0
_WATCHED: Final = (12.0, 30.0)
"""The seconds after which a move that never ends is checked: after the first quota window, and later."""
_LOCAL: Final = 25
"""The megabytes that a tiered partition keeps on the brokers."""
_WARM: Final = 0.5
"""The megabytes per second of the throttled traffic before a move."""

ReplicaLogDirs = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """kquota's forecast of a move, in seconds. `seconds` is None if the move never ends."""

    seconds: float | None
    low: float | None
    high: float | None
    bottleneck: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A case, its forecast and its actual time in seconds. None means that the move never ended. `last` are the brokers
    of the last copies.
    """

    case: Case
    forecast: Forecast
    actual: float | None
    last: frozenset[int]

    @property
    def error(self) -> float | None:
        """The error of the forecast as a fraction of the actual time. None if either of them is never."""
        if self.forecast.seconds is None or self.actual is None:
            return None
        return self.forecast.seconds / self.actual - 1

    @property
    def never_right(self) -> bool:
        """True if both the forecast and the actual time are never, or neither is."""
        return (self.forecast.seconds is None) == (self.actual is None)

    @property
    def held(self) -> bool | None:
        """True if the actual time is in the band. None for a move that never ends, and without a band."""
        found = self.forecast
        if self.actual is None or found.low is None:
            return None
        return found.low <= self.actual <= (self.actual if found.high is None else found.high)

    @property
    def bottleneck_right(self) -> bool | None:
        """True if the last copies used the bottleneck. None for a move that never ends."""
        return None if self.actual is None else self.forecast.bottleneck in self.last


def sections() -> list[Section]:
    """Run every case on separate topics, with Kafka's default settings."""
    patterns = os.environ.get("BENCH_TRUTH", "*").split(",")
    chosen = [case for case in CASES if any(fnmatch.fnmatch(case.title, pattern) for pattern in patterns)]
    outcomes: list[Outcome] = []
    for (kafka, tiered), cases in itertools.groupby(sorted(chosen, key=lambda c: c.cluster), lambda c: c.cluster):
        with brokers("truth", kafka, tiered=tiered) as found:
            outcomes += [_outcome(found, case) for case in cases]
    headers = ["move", "expected, s", "90%", "actual, s", "error", "bottleneck", "promised"]
    table, kept = _table(outcomes), True
    for name, told, promise, holds in _promises(outcomes):
        table.append([name, "", "", "", told, "", verdict(promise, holds)])
        kept = kept and holds
    return [Section(name="truth", headers=headers, table=table, rows=_rows(outcomes), kept=kept)]


def _promises(found: Sequence[Outcome]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield the name of each promise, its result, its text, and whether it holds."""
    errors = [abs(each.error) for each in found if each.error is not None]
    if errors:
        median = statistics.median(errors)
        yield "median of the errors", f"{median:.1%}", f"{MEDIAN_ERROR:.0%}", median <= MEDIAN_ERROR
    for name, least, answers in (
        ("times in their 90% band", COVERAGE, [each.held for each in found]),
        ("moves that end, or never do, as expected", 1.0, [each.never_right for each in found]),
        ("moves whose last copies used the bottleneck", 1.0, [each.bottleneck_right for each in found]),
    ):
        known = [answer for answer in answers if answer is not None]
        if known:
            yield name, f"{sum(known)} of {len(known)}", f"{least:.0%}", sum(known) >= least * len(known)


def _table(found: Sequence[Outcome]) -> list[list[str]]:
    return [
        [
            each.case.title,
            _seconds(each.forecast.seconds),
            f"{_seconds(each.forecast.low)} to {_seconds(each.forecast.high)}" if each.forecast.low is not None else "",
            _seconds(each.actual),
            "" if each.error is None else f"{each.error:+.1%}",
            str(each.forecast.bottleneck),
            _wrong(each),
        ]
        for each in found
    ]


def _wrong(found: Outcome) -> str:
    """Return the errors of a forecast in words, or an empty text without an error."""
    answers = {"never": found.never_right, "band": found.held, "bottleneck": found.bottleneck_right}
    return ", ".join(f"{name} wrong" for name, right in answers.items() if right is False)


def _rows(found: Sequence[Outcome]) -> list[dict[str, object]]:
    """Return the rows in megabytes, megabytes per second and seconds. None means never."""
    return [
        {
            "name": each.case.title,
            "kafka": each.case.kafka,
            "size": each.case.size,
            "throttle": each.case.throttle,
            "load": each.case.load,
            "expected": each.forecast.seconds,
            "low": each.forecast.low,
            "high": each.forecast.high,
            "actual": each.actual,
            "bottleneck": each.forecast.bottleneck,
            "last": sorted(each.last),
        }
        for each in found
    ]


def _seconds(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f}"


def _outcome(found: Sandbox, case: Case) -> Outcome:
    say(case.title)
    with _topics(found, case) as (topics, flowing), TemporaryDirectory(prefix="kquota-bench-") as folder:
        if case.within is not None:
            outcome = _within(found, case, topics, Path(folder))
        else:
            outcome = _between(found, case, topics, flowing, Path(folder))
    say(f"  expected {_seconds(outcome.forecast.seconds)}, was {_seconds(outcome.actual)}")
    return outcome


def _between(found: Sandbox, case: Case, topics: Sequence[str], flowing: threading.Event, folder: Path) -> Outcome:
    """Move replicas between brokers.

    Producers pause between the measurement of the estimate and the start of the move, so that topics do not grow while
    commands start. The size of tiered topics does not grow anyway, and would shrink in a pause.
    """
    there = {(topic, n): replicas for topic in topics for n, replicas in enumerate(case.there)}
    plan = folder / "plan.json"
    entries = [{"topic": topic, "partition": n, "replicas": replicas} for (topic, n), replicas in there.items()]
    plan.write_text(json.dumps({"version": 1, "partitions": entries}))
    at = ["--bootstrap-server", found.bootstrap, "--reassignment-json-file", str(plan), "--state-dir", str(folder)]
    throttle = ["--throttle", f"{case.throttle}MB/s"]
    with _warmed(found, case):
        ready = time.monotonic() + _FORGOTTEN
        sample = ["--sample", str(_SAMPLE if case.load else 1), "--output", "json"]
        told = _estimated([*at, *throttle, *sample], None if case.tiered else flowing)
        band = told["band"] or {"low_seconds": None, "high_seconds": None}
        forecast = Forecast(
            seconds=told["expected_seconds"],
            low=band["low_seconds"],
            high=band["high_seconds"],
            bottleneck=told["bottleneck"]["broker"],
        )
        time.sleep(max(0.0, ready - time.monotonic()))
        aims = {place: frozenset(replicas) for place, replicas in there.items()}
        move = Move(case=case, servers=found, there=aims, client=traffic.admin(found.bootstrap))
        move.begin(["reassign-partitions", *at, "--execute", "--force", *throttle], flowing)
        with _restarted(found, case, after=(forecast.seconds or 0.0) / 2):
            ends = move.wait() if told["feasible"] else move.gains() and move.wait()
        _kquota("reassign-partitions", *at, "--verify" if ends else "--cancel")
    actual = max(move.ended.values()) if move.over else None
    return Outcome(case=case, forecast=forecast, actual=actual, last=move.last())


def _estimated(options: Sequence[str], flowing: threading.Event | None) -> Any:
    """Return the JSON of an estimate. Clear the event `flowing` once the estimate has measured write rates."""
    running = subprocess.Popen(
        kquota("move", "estimate", *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    said = []
    for line in running.stderr:
        said.append(line)
        if flowing is not None and line.startswith("kquota: measuring write rates"):
            threading.Timer(_SAMPLE + _READ_SECONDS, flowing.clear).start()
    told = running.communicate()[0]
    if running.returncode not in (0, 1):
        raise RuntimeError(f"kquota move estimate ended with {running.returncode}: {''.join(said)}")
    return json.loads(told)


def _within(found: Sandbox, case: Case, topics: Sequence[str], folder: Path) -> Outcome:
    """Move replicas between log dirs of one broker. All replicas are in the first log dir, and half of them move."""
    assert case.within is not None
    at, rate = ["--bootstrap-server", found.bootstrap], f"{case.throttle}MB/s"
    broker, file = found.broker(BrokerId(case.within)), folder / "plan.json"
    target = ["--balance-log-dirs", str(case.within), "--topics", *topics, "--replica-alter-log-dirs-throttle", rate]
    told = json.loads(_kquota("move", "plan", *at, *target, "--output", "json"))
    file.write_text(json.dumps(told["plan"]))
    ready = {(one["topic"], one["partition"]): Path(one["destination"]) for one in told["moves"]}
    moving = [*at, "--reassignment-json-file", str(file), "--state-dir", str(folder)]
    execute = ["reassign-partitions", *moving, "--execute", "--force", "--replica-alter-log-dirs-throttle", rate]
    running, began = subprocess.Popen(kquota(*execute), stdout=subprocess.DEVNULL), time.monotonic()
    while running.poll() is None and not any(p for d in {*ready.values()} for p in d.glob("truth-*-future")):
        began = time.monotonic()
        time.sleep(_POLL / 2)
    # `move plan` does not measure write rates, and nothing is written here.
    expected = told["time"]["expected_seconds_without_writes"]
    while (now := time.monotonic() - began) < _LONGEST and not all(
        (log_dir / f"{topic}-{n}").is_dir() for (topic, n), log_dir in ready.items()
    ):
        time.sleep(_POLL)
    if running.wait():
        raise RuntimeError(f"kquota {' '.join(execute)} ended with {running.returncode}")
    _kquota("reassign-partitions", *moving, "--verify", accepted=(0, 8))
    # `move plan` has no band yet, so the band of the model applies.
    low, high = (None, None) if expected is None else (expected * 0.9 - 1, expected * 1.1 + 1)
    forecast = Forecast(seconds=expected, low=low, high=high, bottleneck=broker.id)
    return Outcome(case=case, forecast=forecast, actual=now if now < _LONGEST else None, last=frozenset({broker.id}))


@contextmanager
def _topics(found: Sandbox, case: Case) -> Iterator[tuple[list[str], threading.Event]]:
    """Yield the names of loaded topics, which are deleted at the end, and an event. Producers write while it is set."""
    names = [f"truth-{time.monotonic_ns()}-{number}" for number in range(case.topics)]
    with ExitStack() as stack:
        for name in names:
            traffic.create(found.bootstrap, name, case.here)
            if case.tiered:
                _tier(found, name)
            if case.within is not None:
                _into_first_log_dir(found, case, name)
            traffic.load(found.bootstrap, name, case.partitions, case.size * _MB // case.topics, lambda _: None)
        if case.tiered:
            _until_local(found, case, names)
        flowing, period = threading.Event(), 1.0 if case.bursts else 0.05
        flowing.set()
        for name in names if case.load else ():
            rate = case.load * _MB // case.topics
            stack.enter_context(_written(found.bootstrap, name, case.partitions, rate, flowing, period=period))
        yield names, flowing
    client = traffic.admin(found.bootstrap)
    for future in client.delete_topics(names).values():
        future.result(30)


@contextmanager
def _written(
    bootstrap: str, topic: str, partitions: int, rate: int, flowing: threading.Event, *, period: float
) -> Iterator[None]:
    """Write the bytes of each period (in seconds) at its start, but only while the event is set."""
    producer, stop = Producer({"bootstrap.servers": bootstrap, "log_level": 2}), threading.Event()
    payload = os.urandom(traffic.MESSAGE)

    def write() -> None:
        due, sent, owed = time.monotonic(), 0, 0.0
        while not stop.wait(max(0.0, due - time.monotonic())):
            due = max(due + period, time.monotonic() - 1)
            owed += rate * period / traffic.MESSAGE if flowing.is_set() else 0.0
            while owed >= 1:
                producer.produce(topic, payload, partition=sent % partitions)
                sent, owed = sent + 1, owed - 1
            producer.poll(0)
        producer.flush(30)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


@contextmanager
def _warmed(found: Sandbox, case: Case) -> Iterator[None]:
    """Keep throttled traffic on brokers 1 and 3 far below the throttle, with an in-sync follower of a listed topic."""
    if not case.warm:
        yield
        return
    topic, at = f"warm-{time.monotonic_ns()}", ["--bootstrap-server", found.bootstrap, "--alter"]
    traffic.create(found.bootstrap, topic, [[1, 3]])
    keys = ("leader.replication.throttled", "follower.replication.throttled")
    lists, rates = ([f"{key}.{kind}" for key in keys] for kind in ("replicas", "rate"))
    wanted = ",".join(f"{key}={case.throttle * _MB}" for key in rates)
    _kquota("configs", *at, "--topic", topic, "--add-config", ",".join(f"{key}=*" for key in lists))
    for broker in ("1", "3"):
        _kquota("configs", *at, "--broker", broker, "--add-config", wanted)
    with traffic.steady(found.bootstrap, topic, 1, int(_WARM * _MB)):
        yield
    for broker in ("1", "3"):
        _kquota("configs", *at, "--broker", broker, "--delete-config", ",".join(rates))
    client = traffic.admin(found.bootstrap)
    client.delete_topics([topic])[topic].result(30)


@contextmanager
def _restarted(found: Sandbox, case: Case, *, after: float) -> Iterator[None]:
    """Restart the broker of the case after these seconds, if it has one."""
    if case.restarted is None:
        yield
        return
    broker = case.restarted

    def restart() -> None:
        found.broker(broker).process.stop()
        found.start_broker(broker)

    timer = threading.Timer(after, restart)
    timer.start()
    yield
    timer.join()


def _tier(found: Sandbox, topic: str) -> None:
    configs = f"remote.storage.enable=true,segment.bytes={5 * _MB},local.retention.bytes={_LOCAL * _MB // 2}"
    at = ["--bootstrap-server", found.bootstrap, "--alter", "--topic", topic]
    # A broker may not know a topic yet that another broker knows.
    for _ in range(_TRIES):
        if subprocess.run(kquota("configs", *at, "--add-config", f"{configs},file.delete.delay.ms=0")).returncode == 0:
            return
    raise RuntimeError(f"topic {topic} does not become tiered")


def _until_local(found: Sandbox, case: Case, topics: Sequence[str]) -> None:
    """Wait at most a minute until the brokers have stopped deleting local segments."""
    give_up, before = time.monotonic() + 60, -1
    while time.monotonic() < give_up:
        local = sum(_length(found, case.here[n][0], t, n) for t in topics for n in range(case.partitions))
        if local == before and local < case.size * _MB:
            return
        before = local
        time.sleep(4)


def _into_first_log_dir(found: Sandbox, case: Case, topic: str) -> None:
    """Move the replicas of a new topic into the first log dir of the broker."""
    assert case.within is not None
    first = str(found.broker(BrokerId(case.within)).log_dirs[0])
    entries = [
        {"topic": topic, "partition": n, "replicas": [case.within], "log_dirs": [first]} for n in range(case.partitions)
    ]
    with TemporaryDirectory(prefix="kquota-bench-") as folder:
        plan = Path(folder) / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": entries}))
        at = ["--bootstrap-server", found.bootstrap, "--reassignment-json-file", str(plan), "--state-dir", folder]
        _kquota("reassign-partitions", *at, "--execute", "--force")
        while not all((Path(first) / f"{topic}-{n}").is_dir() for n in range(case.partitions)):
            time.sleep(_POLL)
        _kquota("reassign-partitions", *at, "--verify", accepted=(0, 8))


def _kquota(*arguments: str, accepted: tuple[int, ...] = (0,)) -> str:
    ran = subprocess.run(kquota(*arguments), capture_output=True, text=True, check=False)
    if ran.returncode not in accepted:
        raise RuntimeError(f"kquota {' '.join(arguments)} ended with {ran.returncode}: {ran.stderr.strip()}")
    return ran.stdout


@dataclass(slots=True)
class Move:
    """A running move. `began` is the time when its replicas first changed. `ended` has the seconds from then until each
    partition arrived."""

    case: Case
    servers: Sandbox
    there: Mapping[ReplicaLogDirs, frozenset[int]]
    client: AdminClient
    began: float = 0.0
    ended: dict[ReplicaLogDirs, float] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """True if every partition has arrived."""
        return len(self.ended) == len(self.there)

    def begin(self, command: Sequence[str], flowing: threading.Event) -> None:
        """Run the command that submits the move, then let producers write. A short move can end before the command."""
        running = subprocess.Popen(kquota(*command), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        before = self._replicas()
        self.began = time.monotonic()
        while running.poll() is None and self._replicas() == before:
            self.began = time.monotonic()
            time.sleep(_POLL / 2)
        flowing.set()
        while running.poll() is None:
            self._look()
            time.sleep(_POLL)
        if running.wait():
            assert running.stderr is not None
            raise RuntimeError(f"kquota {' '.join(command)} ended with {running.returncode}: {running.stderr.read()}")

    def wait(self) -> bool:
        """Wait until every partition has arrived. Return False if this takes too long."""
        while not self.over and time.monotonic() - self.began < _LONGEST:
            self._look()
            time.sleep(_POLL)
        return self.over

    def _look(self) -> None:
        seen, now = self._replicas(), time.monotonic() - self.began
        self.ended |= {p: now for p, r in self.there.items() if p not in self.ended and seen.get(p) == (r, r)}

    def _replicas(self) -> dict[ReplicaLogDirs, tuple[frozenset[int], frozenset[int]]]:
        """Return the replicas and the in-sync replicas of each partition. Replicas that are still being copied are only
        in the first set.
        """
        known = self.client.list_topics(timeout=30).topics
        return {
            (topic, n): (frozenset(found.replicas), frozenset(found.isrs))
            for topic in {topic for topic, _ in self.there}
            for n, found in known[topic].partitions.items()
        }

    def gains(self) -> bool:
        """Return True if fewer bytes are missing at the second of two checks."""
        missing = []
        for moment in _WATCHED:
            time.sleep(max(0.0, self.began + moment - time.monotonic()))
            missing.append(self._missing())
        return missing[1] < missing[0]

    def last(self) -> frozenset[int]:
        """Return the leaders and destinations of the partitions that arrived in the last second."""
        latest = [place for place, moment in self.ended.items() if moment > max(self.ended.values()) - 1]
        here = self.case.here
        return frozenset(
            broker for place in latest for broker in {here[place[1]][0], *(self.there[place] - set(here[place[1]]))}
        )

    def _missing(self) -> int:
        """Return the bytes that the leaders have, but the copies lack."""
        here = self.case.here
        return sum(
            _length(self.servers, here[n][0], topic, n) - _length(self.servers, broker, topic, n)
            for (topic, n), replicas in self.there.items()
            for broker in replicas - set(here[n])
        )


def _length(servers: Sandbox, broker: int, topic: str, number: int) -> int:
    folders = (log_dir / f"{topic}-{number}" for log_dir in servers.broker(BrokerId(broker)).log_dirs)
    sizes = []
    for segment in (segment for folder in folders for segment in folder.glob("*.log")):
        try:
            sizes.append(segment.stat().st_size)
        except FileNotFoundError:  # deleted by retention in the meantime
            continue
    return sum(sizes)
