"""`make torture`: plays random rounds, prints what they covered, and names what they never reached.

The seed of round n is SEED + n. It alone determines the round, so `--seed` of a failed round with `--runs 1` repeats
it and prints its steps. The exit code is 1 if a promise was broken, and 2 if the time was not enough for all rounds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections.abc import Iterator, Sequence

from tests.hosts.round import Batch, batch

_BATCH = 20
_TOLD = 1000
"""The number of rounds after which a line of progress is printed on stderr."""
_SHOWN = 3
"""The maximum number of violations whose steps are printed."""


def batches(first: int, runs: int, workers: int) -> Iterator[Batch]:
    """Play all rounds, and yield their results in the order of their seeds."""
    seeds = [range(n, min(n + _BATCH, first + runs)) for n in range(first, first + runs, _BATCH)]
    if workers == 1:
        yield from map(batch, seeds)
        return
    # A new interpreter for each worker, so that no worker starts with a copy of another state.
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap(batch, seeds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the rounds and print the results."""
    parser = argparse.ArgumentParser(prog="python -m tests.hosts", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="the number of rounds")
    parser.add_argument("--seed", type=int, help="the seed of the first round; random by default")
    parser.add_argument("--seconds", type=float, default=600.0, help="start no further rounds after this time")
    parser.add_argument("--workers", type=int, default=2, help="the number of processes")
    parser.add_argument("--cells", action="store_true", help="also name each unreached state x fault x operator")
    parser.add_argument("--first", action="store_true", help="stop after the first violation")
    options = parser.parse_args(arguments)
    seed = random.randrange(10**9) if options.seed is None else options.seed
    print(f"torture: {options.runs:,} runs from seed {seed}, {options.workers} processes", flush=True)
    began, whole = time.monotonic(), Batch()
    for done in batches(seed, options.runs, options.workers):
        whole.met.join(done.met)
        whole.digests += done.digests
        whole.broken += done.broken
        whole.cpu += done.cpu
        for played in done.broken:
            print(f"VIOLATION in seed {played.seed}: {played.violation}", flush=True)
        if len(whole.digests) % _TOLD == 0:
            print(f"{len(whole.digests):,} runs, {len(whole.broken)} violations", file=sys.stderr, flush=True)
        if time.monotonic() - began > options.seconds or (options.first and whole.broken):
            break
    _report(whole, seed, options.runs, time.monotonic() - began, cells=options.cells)
    if whole.broken:
        return 1
    return 0 if len(whole.digests) == options.runs else 2


def _report(whole: Batch, seed: int, runs: int, seconds: float, *, cells: bool) -> None:
    played = len(whole.digests)
    for broken in whole.broken if runs == 1 else whole.broken[:_SHOWN]:
        print(f"\nseed {broken.seed}: {broken.violation}\n" + "\n".join(broken.trace))
        print(f"repeat it with: python -m tests.hosts --seed {broken.seed} --runs 1")
    print(f"\n{whole.met.table()}\n")
    for name, missing in whole.met.never().items():
        shown = "; ".join(missing) if cells or len(missing) <= 20 else "--cells lists them"
        print(f"never reached, {name}: {len(missing)}" + (f" ({shown})" if missing else ""))
    digest = whole.digests[-1][1] if whole.digests else "none"
    print(
        f"\n{played:,} of {runs:,} runs from seed {seed} in {seconds:.1f} s "
        f"({played / whole.cpu:.1f} runs per second of one core), "
        f"{len(whole.broken)} violations; steps of the last run: {digest}"
    )


if __name__ == "__main__":
    sys.exit(main())
