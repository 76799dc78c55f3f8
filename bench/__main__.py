"""Times whole processes, in turn, and prints medians, spread and ratios; `--json` prints them as one document."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

from tabulate import tabulate

from kquota.sandbox import cluster as sandbox
from kquota.sandbox import jars
from kquota.sandbox.cluster import kafka_tool
from kquota.stores.wire.connection import Wire
from kquota.stores.wire.quotas import WireQuotas

ROUNDS: Final = 9
USERS: Final = 1_000
PROMISED: Final = 0.25
CONFIGS, LOG_DIRS = "kafka.admin.ConfigCommand", "org.apache.kafka.tools.LogDirsCommand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """One question, asked by both tools; `promised` is the ratio that README states, None where it states none."""

    name: str
    ours: Sequence[str]
    theirs: Sequence[str]
    promised: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Seconds of wall time of each round, in the order run."""

    race: Race
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Our median over theirs."""
        return statistics.median(self.ours) / statistics.median(self.theirs)

    @property
    def kept(self) -> bool:
        """Whether the promised ratio holds."""
        return self.race.promised is None or self.ratio <= self.race.promised


def main() -> int:
    """Print the table (or JSON); 1 when a promised ratio does not hold."""
    say("starting a sandbox ...")
    found = sandbox.up(name="bench", owner_pid=os.getpid())
    try:
        _seed(found.bootstrap)
        results = [_run(race) for race in _races(found)]
    finally:
        sandbox.down("bench")
    print(_document(results) if "--json" in sys.argv[1:] else _table(results))
    return 0 if all(result.kept for result in results) else 1


def _seed(bootstrap: str) -> None:
    from kquota.quota.change import Change
    from kquota.quota.entity import Entity

    with Wire(bootstrap, {}) as wire:
        WireQuotas(wire).alter(
            [Change(entity=Entity(user=f"user-{n}"), add={"producer_byte_rate": 1e6}) for n in range(USERS)]
        )


def _races(found: sandbox.Cluster) -> list[Race]:
    at = ["--bootstrap-server", found.bootstrap]
    one = [*at, "--describe", "--entity-type", "users", "--entity-name", "user-7"]
    every = [*at, "--describe", "--entity-type", "users"]
    return [
        Race(
            name="configs --describe, one user",
            ours=_kquota("configs", *one),
            theirs=kafka_tool(found, CONFIGS, *one),
            promised=PROMISED,
        ),
        Race(
            name=f"configs --describe, {USERS} users",
            ours=_kquota("configs", *every),
            theirs=kafka_tool(found, CONFIGS, *every),
            promised=PROMISED,
        ),
        Race(
            name="log-dirs --describe",
            ours=_kquota("log-dirs", *at, "--describe"),
            theirs=kafka_tool(found, LOG_DIRS, *at, "--describe"),
            promised=None,
        ),
    ]


def _kquota(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kquota", *arguments]


def _run(race: Race) -> Result:
    say(f"{race.name}: {ROUNDS} rounds each")
    for command in (race.ours, race.theirs):
        _seconds(command)
    rounds = [(_seconds(race.ours), _seconds(race.theirs)) for _ in range(ROUNDS)]
    return Result(race=race, ours=tuple(ours for ours, _ in rounds), theirs=tuple(theirs for _, theirs in rounds))


def _seconds(command: Sequence[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def _table(results: Sequence[Result]) -> str:
    rows = [
        [
            result.race.name,
            _spread(result.ours),
            _spread(result.theirs),
            f"{result.ratio:.2f}",
            ""
            if result.race.promised is None
            else f"{result.race.promised:.2f}: {'kept' if result.kept else 'BROKEN'}",
        ]
        for result in results
    ]
    return tabulate(rows, headers=["", "kquota, s", "Kafka's tool, s", "ratio", "promised"], disable_numparse=True)


def _spread(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


def _document(results: Sequence[Result]) -> str:
    return json.dumps(
        {
            "version": 1,
            "kquota": version("kquota"),
            "kafka": jars.NEWEST,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "rounds": ROUNDS,
            "races": [
                {
                    "name": result.race.name,
                    "kquota_seconds": result.ours,
                    "kafka_seconds": result.theirs,
                    "ratio": result.ratio,
                    "promised": result.race.promised,
                }
                for result in results
            ],
        },
        indent=2,
    )


def say(line: str) -> None:
    """Progress, for a person."""
    print(f"bench: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
