"""The shared record: the time of a command with the record and with the journals of one host."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.moves import entry, written
from bench.race import cost, kquota, say, spread
from bench.section import Section, verdict
from bench.servers import brokers
from kquota.measure import ByteRate
from kquota.reassign.plan import Plan
from kquota.reassign.run import Run, Taken
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox
from kquota.settings.resource import Setting
from kquota.stores.admin.connection import Wire
from kquota.stores.record.choose import TOPIC
from kquota.stores.record.sharing import Sharing
from kquota.stores.state.runs import RunFiles
from kquota.terms import LEADER_RATE, BrokerId, TopicPartition

ROUNDS: Final = 15
MOST_SECONDS: Final = 0.06
_ENDED: Final = 50
"""The number of ended runs in the record."""
_PARTITIONS: Final = 100
"""The number of partitions of each run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The seconds of whole processes that ran alternately with the record and without it."""

    name: str
    shared: tuple[float, ...]
    alone: tuple[float, ...]

    @property
    def more(self) -> float:
        """The difference of the medians, in seconds."""
        return statistics.median(self.shared) - statistics.median(self.alone)

    @property
    def ratio(self) -> float:
        """The ratio of the medians."""
        return statistics.median(self.shared) / statistics.median(self.alone)

    @property
    def kept(self) -> bool:
        """True if the promise holds."""
        return self.more <= MOST_SECONDS


def sections() -> list[Section]:
    """Measure with a new record, and then with a record of `_ENDED` ended runs."""
    with brokers("record") as found, TemporaryDirectory(prefix="kquota-bench-") as folder:
        traffic.create(found.bootstrap, "bench-record", [[1, 2]])
        results: list[Compared] = []
        for ended in (0, _ENDED):
            _share(found, Path(folder) / "other", ended)
            with _commands(found, Path(folder)) as commands:
                results += [_compared(f"{name}, {ended} ended runs", *both) for name, both in commands.items()]
        return [_section(results)]


@contextmanager
def _commands(found: Sandbox, folder: Path) -> Iterator[dict[str, tuple[list[str], list[str]]]]:
    """Yield the command lines of each command with the record and without it."""
    plan = written(folder, [entry("bench-record", 0, [1, 2])])
    at = ["--bootstrap-server", found.bootstrap]
    verify = ["reassign-partitions", *at, "--verify", "--reassignment-json-file", str(plan)]
    show = ["throttle", "show", *at, "--no-sample"]
    both = {"reassign-partitions --verify": verify, "throttle show --no-sample": show}
    yield {
        name: (
            kquota(*command, "--state-dir", str(folder / "shared")),
            kquota(*command, "--state-dir", str(folder / "alone"), "--record", "none"),
        )
        for name, command in both.items()
    }


def _share(found: Sandbox, folder: Path, ended: int) -> None:
    """Share the record of a team, with this number of ended runs of another host."""
    with Wire(found.bootstrap, {}) as wire:
        files = RunFiles(folder, wire.cluster_id)
        at = Sharing(wire=wire, znodes=None, files=files, topic=TOPIC)
        runs = at.share(at.plan())
        with runs.hold("bench"):
            for number in range(ended):
                run = _run(number)
                runs.begin(run)
                runs.update(replace(run, finished=run.begun + timedelta(hours=1)))


def _run(number: int) -> Run:
    begun = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    rate = Setting.of_broker(BrokerId(1), LEADER_RATE)
    names = [TopicPartition("bench-record", n) for n in range(_PARTITIONS)]
    return Run(
        id=f"{begun:%Y%m%dT%H%M%SZ}-{number:012x}",
        begun=begun,
        plan=Plan(targets={name: (BrokerId(1), BrokerId(3)) for name in names}),
        rollback=Plan(targets={name: (BrokerId(1), BrokerId(2)) for name in names}),
        rate=ByteRate(50_000_000),
        taken={rate: Taken(setting=rate, prior=None, ours=("50000000",))},
    )


def _compared(name: str, shared: Sequence[str], alone: Sequence[str]) -> Compared:
    """Run both commands alternately, after one round that does not count."""
    say(f"{name}: {ROUNDS} rounds with the record and without")
    for command in (shared, alone):
        cost(command)
    rounds = [(cost(shared).seconds, cost(alone).seconds) for _ in range(ROUNDS)]
    return Compared(name=name, shared=tuple(a for a, _ in rounds), alone=tuple(b for _, b in rounds))


def _section(found: Sequence[Compared]) -> Section:
    most = f"{MOST_SECONDS * 1000:.0f} ms more"
    table = [
        [
            each.name,
            spread(each.shared),
            spread(each.alone),
            f"{each.more * 1000:.0f}",
            f"{each.ratio:.2f}",
            verdict(most, each.kept),
        ]
        for each in found
    ]
    rows = [
        {
            "name": each.name,
            "shared_seconds": each.shared,
            "alone_seconds": each.alone,
            "more_seconds": each.more,
            "ratio": each.ratio,
            "promised_more_seconds": MOST_SECONDS,
        }
        for each in found
    ]
    headers = ["", "with the record, s", "journals only, s", "more, ms", "ratio", "promised"]
    return Section(name="record", headers=headers, table=table, rows=rows, kept=all(each.kept for each in found))
