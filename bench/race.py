"""Races of two commands: whole processes on one cluster, which run alternately."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.section import Section, verdict

ROUNDS: Final = 9
_METER: Final = Path(__file__).with_name("meter.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """The same task for both tools. `promised` is the ratio in the README, or None without a promise.

    `megabytes` is the promised maximum memory of kquota, or None without a promise.
    """

    name: str
    ours: Sequence[str]
    theirs: Sequence[str]
    promised: float | None
    megabytes: float | None = None
    rounds: int = ROUNDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one process: wall time, maximum memory (ru_maxrss), and the CPU time of itself and its children."""

    seconds: float
    megabytes: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The costs of the two commands in each round, in order."""

    race: Race
    ours: tuple[Cost, ...]
    theirs: tuple[Cost, ...]

    @property
    def ratio(self) -> float:
        """kquota's median wall time divided by that of Kafka's tool."""
        ours, theirs = (statistics.median(cost.seconds for cost in costs) for costs in (self.ours, self.theirs))
        return ours / theirs

    @property
    def megabytes(self) -> float:
        """The maximum memory of kquota in any round."""
        return max(cost.megabytes for cost in self.ours)

    @property
    def kept(self) -> bool:
        """True if the promises hold."""
        race = self.race
        fast = race.promised is None or self.ratio <= race.promised
        return fast and (race.megabytes is None or self.megabytes <= race.megabytes)


def run(race: Race) -> Result:
    """Run both commands alternately, after one round that does not count."""
    say(f"{race.name}: {race.rounds} rounds each")
    for command in (race.ours, race.theirs):
        cost(command)
    rounds = [(cost(race.ours), cost(race.theirs)) for _ in range(race.rounds)]
    return Result(race=race, ours=tuple(ours for ours, _ in rounds), theirs=tuple(theirs for _, theirs in rounds))


def raced(name: str, results: Sequence[Result], theirs: str = "Kafka's tool") -> Section:
    """Return the results of one part as a section."""
    table = [
        [
            result.race.name,
            spread([cost.seconds for cost in result.ours]),
            spread([cost.seconds for cost in result.theirs]),
            f"{result.ratio:.2f}",
            f"{result.megabytes:.0f}",
            verdict(_promise(result.race), result.kept),
        ]
        for result in results
    ]
    rows = [
        {
            "name": result.race.name,
            "kquota_seconds": [cost.seconds for cost in result.ours],
            "their_seconds": [cost.seconds for cost in result.theirs],
            "ratio": result.ratio,
            "kquota_megabytes": result.megabytes,
            "promised_ratio": result.race.promised,
            "promised_megabytes": result.race.megabytes,
        }
        for result in results
    ]
    headers = ["", "kquota, s", f"{theirs}, s", "ratio", "kquota, MB", "promised"]
    return Section(name=name, headers=headers, table=table, rows=rows, kept=all(result.kept for result in results))


def _promise(race: Race) -> str:
    if race.promised is None:
        return ""
    return f"{race.promised:.2f}" + ("" if race.megabytes is None else f" and {race.megabytes:.0f} MB")


def cost(command: Sequence[str]) -> Cost:
    """Run one process and return its cost. Raises CalledProcessError if it fails."""
    metered = subprocess.run(
        [sys.executable, "-I", "-S", str(_METER), *command], stdout=subprocess.PIPE, text=True, check=True
    )
    seconds, kilobytes, code, cpu_seconds = metered.stdout.split()
    if int(code):
        raise subprocess.CalledProcessError(int(code), command)
    return Cost(seconds=float(seconds), megabytes=int(kilobytes) / 1024, cpu_seconds=float(cpu_seconds))


def kquota(*arguments: str) -> list[str]:
    """Return the command line of kquota in this environment."""
    return [sys.executable, "-m", "kquota", *arguments]


def spread(seconds: Sequence[float]) -> str:
    """Return the median as text and, for several values, also the range."""
    median = f"{statistics.median(seconds):.2f}"
    return median if len(seconds) == 1 else f"{median} ({min(seconds):.2f} to {max(seconds):.2f})"


def say(line: str) -> None:
    """Print a line of progress on stderr."""
    print(f"bench: {line}", file=sys.stderr, flush=True)
