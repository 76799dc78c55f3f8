"""Times whole processes, in turn, and prints medians, spread and ratios; `--json` prints them as one document.

`python -m bench quotas`, `moves`, `planning`, `kip73`, `truth`, `start`, `history`, `fleet` or `mutation` runs that
part alone.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Final

from tabulate import tabulate

from bench import document, fleet, history, kip73, moves, mutation, planning, start, truth
from bench.document import CONFIGS, ENTITIES, Measured
from bench.race import ROUNDS, Race, Result, kquota, run, say, spread
from kquota.quota.change import Change
from kquota.quota.entity import Entity
from kquota.sandbox import cluster as sandbox
from kquota.sandbox import jars
from kquota.sandbox.cluster import kafka_tool
from kquota.stores.wire.connection import Wire
from kquota.stores.wire.quotas import WireQuotas

ONE: Final = 0.25
EVERY: Final = 0.35
MEGABYTES: Final = 60.0
PARTS: Final = ("quotas", "moves", "planning", "kip73", "truth", "start", "history", "fleet", "mutation")
LOG_DIRS: Final = "org.apache.kafka.tools.LogDirsCommand"


def main() -> int:
    """Print the tables (or JSON); 1 when a promise does not hold."""
    named = [argument for argument in sys.argv[1:] if argument != "--json"]
    if unknown := set(named) - set(PARTS):
        say(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
        return 2
    parts = named or PARTS
    results, measured = _on_brokers(parts) if {"quotas", "moves", "start"} & set(parts) else ([], [])
    if "quotas" in parts:
        measured += document.in_zookeeper()
    if "moves" in parts:
        measured += moves.scale()
    if "planning" in parts:
        measured += planning.plans()
    if "fleet" in parts:
        measured += fleet.fleet()
    shares = kip73.plan() if "kip73" in parts else []
    outcomes = truth.outcomes() if "truth" in parts else []
    answers = history.answers() if "history" in parts else []
    mutations = mutation.outcomes() if "mutation" in parts else []
    if "--json" in sys.argv[1:]:
        print(_json(results, measured, shares, outcomes, answers, mutations))
    else:
        tables = [
            _races_table(results),
            _table(measured),
            _shares_table(shares),
            truth.table(outcomes),
            history.table(answers),
            mutation.table(mutations),
        ]
        print("\n\n".join(table for table in tables if table))
    kept = [*(result.kept for result in results), *(each.kept for each in measured)]
    kept += [*(each.kept for each in shares), *(each.kept for each in outcomes), *(each.kept for each in answers)]
    kept += [each.kept for each in mutations]
    return 0 if all(kept) else 1


def _on_brokers(parts: Sequence[str]) -> tuple[list[Result], list[Measured]]:
    say("starting a sandbox ...")
    found = sandbox.up(name="bench", owner_pid=os.getpid())
    results: list[Result] = []
    measured: list[Measured] = []
    try:
        if "quotas" in parts:
            measured += document.through_the_admin_api(found)
            _seed(found.bootstrap)
            results += [run(race) for race in _races(found)]
        if "moves" in parts:
            with moves.races(found) as races:
                results += [run(race) for race in races]
        if "start" in parts:
            with start.races(found) as races:
                results += [run(race) for race in races]
    finally:
        sandbox.down("bench")
    return results, measured


def _seed(bootstrap: str) -> None:
    with Wire(bootstrap, {}) as wire:
        for first in range(0, ENTITIES, 1_000):
            users = [Entity(user=f"user-{n}") for n in range(first, first + 1_000)]
            WireQuotas(wire).alter([Change(entity=user, add={"producer_byte_rate": 1e6}) for user in users])


def _races(found: sandbox.Cluster) -> list[Race]:
    at = ["--bootstrap-server", found.bootstrap]
    one = [*at, "--describe", "--entity-type", "users", "--entity-name", "user-7"]
    every = [*at, "--describe", "--entity-type", "users"]
    return [
        Race(
            name="configs --describe, one user",
            ours=kquota("configs", *one),
            theirs=kafka_tool(found, CONFIGS, *one),
            promised=ONE,
        ),
        Race(
            name=f"configs --describe, {ENTITIES} users",
            ours=kquota("configs", *every),
            theirs=kafka_tool(found, CONFIGS, *every),
            promised=EVERY,
            megabytes=MEGABYTES,
        ),
        Race(
            name="log-dirs --describe",
            ours=kquota("log-dirs", *at, "--describe"),
            theirs=kafka_tool(found, LOG_DIRS, *at, "--describe"),
            promised=None,
        ),
    ]


def _races_table(results: Sequence[Result]) -> str:
    rows = [
        [
            result.race.name,
            spread([cost.seconds for cost in result.ours]),
            spread([cost.seconds for cost in result.theirs]),
            f"{result.ratio:.2f}",
            f"{result.megabytes:.0f}",
            _promise(result),
        ]
        for result in results
    ]
    headers = ["", "kquota, s", "Kafka's tool, s", "ratio", "kquota, MB", "promised"]
    return tabulate(rows, headers=headers, disable_numparse=True) if rows else ""


def _promise(result: Result) -> str:
    race = result.race
    if race.promised is None:
        return ""
    memory = "" if race.megabytes is None else f" and {race.megabytes:.0f} MB"
    return f"{race.promised:.2f}{memory}: {'kept' if result.kept else 'BROKEN'}"


def _table(measured: Sequence[Measured]) -> str:
    rows = [
        [
            each.name,
            spread(each.ours),
            "" if each.theirs is None else f"{each.theirs * ENTITIES:.0f} = {ENTITIES} x {each.theirs:.2f}",
            "" if each.megabytes is None else f"{each.megabytes:.0f}",
            _kept(each),
        ]
        for each in measured
    ]
    headers = ["", "kquota, s", f"Kafka's tool, s (median of {document.CALLS})", "kquota, MB", "promised"]
    return tabulate(rows, headers=headers, disable_numparse=True) if rows else ""


def _shares_table(shares: Sequence[kip73.Share]) -> str:
    rows = [[each.name, f"{each.share:.2f}", "kept" if each.kept else "BROKEN"] for each in shares]
    headers = ["KIP-73's test plan", "share of the throttle", f"{kip73.LEAST:g} to {kip73.MOST:g}"]
    return tabulate(rows, headers=headers, disable_numparse=True) if rows else ""


def _kept(each: Measured) -> str:
    if each.promised is None:
        return ""
    memory = "" if each.promised_megabytes is None else f" and {each.promised_megabytes:.0f} MB"
    return f"{each.promised:g} s{memory}: {'kept' if each.kept else 'BROKEN'}"


def _json(
    results: Sequence[Result],
    measured: Sequence[Measured],
    shares: Sequence[kip73.Share],
    outcomes: Sequence[truth.Outcome],
    answers: Sequence[history.Answered],
    mutations: Sequence[mutation.Outcome],
) -> str:
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
                    "kquota_seconds": [cost.seconds for cost in result.ours],
                    "kafka_seconds": [cost.seconds for cost in result.theirs],
                    "ratio": result.ratio,
                    "kquota_megabytes": result.megabytes,
                    "promised": result.race.promised,
                    "promised_megabytes": result.race.megabytes,
                }
                for result in results
            ],
            "measured": [
                {
                    "name": each.name.strip(),
                    "kquota_seconds": each.ours,
                    "kafka_seconds_a_call": each.theirs,
                    "promised_seconds": each.promised,
                    "kquota_megabytes": each.megabytes,
                    "promised_megabytes": each.promised_megabytes,
                }
                for each in measured
            ],
            "kip73": [{"name": each.name, "share": each.share} for each in shares],
            "truth": truth.rows(outcomes),
            "history": [asdict(each) for each in answers],
            "mutation": mutation.rows(mutations),
        },
        indent=2,
    )


if __name__ == "__main__":
    sys.exit(main())
