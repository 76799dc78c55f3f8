"""The long run: `python -m tests.fuzz --executions N --seed S` calls each reader in turn with a mutated example."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.fuzz.limit import SECONDS, TooSlow, within_a_second
from tests.fuzz.mutation import mutated
from tests.fuzz.readers import READERS, outcome, scratch

_ROUND = 1_000
"""The number of inputs that one reader gets before the next reader. The seed of a round repeats it."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--seed", default=str(time.time_ns()))
    parser.add_argument("--reader", action="append", choices=READERS, help="only this reader")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    options = parser.parse_args(arguments)
    names = options.reader or list(READERS)
    try:
        return _run(names, options.executions, options.seed, options.seconds)
    finally:
        shutil.rmtree(scratch(os.getpid()), ignore_errors=True)


def _run(names: Sequence[str], executions: int, seed: str, seconds: float) -> int:
    print(f"seed {seed}, {len(names)} readers, {executions:,} executions", flush=True)
    begun = said = time.monotonic()
    done: Counter[str] = Counter()
    found: dict[tuple[str, str], bytes] = {}
    read: Counter[str] = Counter()
    longest, turn = 0.0, 0
    while (count := done.total()) < executions and time.monotonic() - begun < seconds:
        name = names[turn % len(names)]
        random = Random(f"{seed}/{name}/{turn // len(names)}")
        for _ in range(min(_ROUND, executions - count)):
            data = mutated(random, READERS[name].examples)
            before = time.process_time()
            try:
                with within_a_second():
                    read[name] += outcome(READERS[name], data) is None
            except (Exception, TooSlow) as error:  # noqa: BLE001  # any other exception is a defect
                key = (name, f"{type(error).__name__}: {_place(error)}")
                if key not in found:
                    print(f"{name}: {key[1]}: {error!s:.200}\n  input {data[:2_000]!r}", flush=True)
                if len(data) < len(found.get(key, data + b" ")):
                    found[key] = data
            longest = max(longest, time.process_time() - before)
            done[name] += 1
        turn += 1
        if time.monotonic() - said > 60:
            said = time.monotonic()
            print(f"{done.total():,} executions in {said - begun:.0f} s, {len(found)} defects", flush=True)
    for (name, what), data in found.items():
        print(f"DEFECT {name}: {what}\n  shortest input {data[:5_000]!r}")
    for name in names:
        print(f"{name}: {done[name]:,} executions, {read[name]:,} returned a value")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{done.total():,} executions of {len(names)} readers in {time.monotonic() - begun:.0f} s with seed {seed}: "
        f"{len(found)} defects, longest {longest:.2f} s of {SECONDS:g} s, {memory} MiB"
    )
    return 1 if found else 0


def _place(error: BaseException) -> str:
    """Return the last line of kquota in the traceback, so that each defect is shown once."""
    found, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "/kquota/" in file and "site-packages" not in file:
            found = f"{Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
