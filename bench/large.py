"""Reading a large cluster: 300,000 replicas on 100 brokers, over real sockets (`bench.many_brokers`).

`python -m bench.large` prints the CPU time and the memory of whole processes. It is not a part of `make bench`.
"""

from __future__ import annotations

import statistics
import tempfile
from typing import Final

from tabulate import tabulate

from bench.many_brokers import many_brokers
from bench.race import Cost, cost, kquota, say, spread

BROKERS: Final = 100
PARTITIONS: Final = 100_000
TARGET_SECONDS: Final = 4.0
TARGET_MEGABYTES: Final = 250.0
ROUNDS: Final = 3


def main() -> None:
    """Print one table with the CPU time of each command. The elapsed time would depend on the simulated brokers."""
    with many_brokers(BROKERS, PARTITIONS) as bootstrap, tempfile.TemporaryDirectory(prefix="kquota-bench-") as folder:
        commands = {
            "log-dirs --describe": ["log-dirs", "--describe"],
            "move plan --drain": ["move", "plan", "--drain", "0"],
            "log-dirs --snapshot": ["log-dirs", "--snapshot", folder],
        }
        found = {name: _costs([*words, "--bootstrap-server", bootstrap]) for name, words in commands.items()}
    rows = [[name, *_row(costs)] for name, costs in found.items()]
    target = f"{TARGET_SECONDS:g} s and {TARGET_MEGABYTES:.0f} MB"
    headers = [f"{PARTITIONS * 3:,} replicas on {BROKERS} brokers", "CPU, s", "memory, MB", target]
    print(tabulate(rows, headers=headers, disable_numparse=True))


def _row(costs: list[Cost]) -> tuple[str, str, str]:
    seconds, megabytes = [one.cpu_seconds for one in costs], max(one.megabytes for one in costs)
    kept = statistics.median(seconds) <= TARGET_SECONDS and megabytes <= TARGET_MEGABYTES
    return spread(seconds), f"{megabytes:.0f}", "kept" if kept else "BROKEN"


def _costs(words: list[str]) -> list[Cost]:
    """Return the costs of all rounds but the first, in which the brokers still calculate their answers."""
    say(f"{words[0]} {words[1]}: {ROUNDS} rounds")
    cost(kquota(*words))
    return [cost(kquota(*words)) for _ in range(ROUNDS)]


if __name__ == "__main__":
    main()
