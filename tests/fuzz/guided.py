"""Fuzzing that is guided by coverage, with atheris: `python -m tests.fuzz.guided --executions N --seed S`.

The first byte of an input chooses the reader. libFuzzer keeps each input that reaches new code of kquota, and mutates
it further. Half of the mutations are those of `mutated`, which also knows JSON.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import atheris

from tests.fuzz.limit import TooSlow, within_a_second
from tests.fuzz.mutation import LONGEST, mutated

with atheris.instrument_imports(include=["kquota"]):
    from tests.fuzz.readers import READERS, outcome, scratch

_NAMES = tuple(READERS)


def main(arguments: Sequence[str]) -> int:
    """Run until the first defect, or until all executions are done. Return the exit code of libFuzzer: 77 for a defect,
    whose input it prints in base64.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.guided", description=__doc__)
    parser.add_argument("--executions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-corpus-"))
    for number, name in enumerate(_NAMES):
        for at, example in enumerate(READERS[name].examples):
            (folder / f"{number}-{at}").write_bytes(bytes([number]) + example)
    flags = [f"-runs={options.executions}", f"-seed={options.seed}", f"-max_len={LONGEST}", "-print_final_stats=1"]
    done: Counter[str] = Counter()
    left = options.executions

    def one(data: bytes) -> None:
        nonlocal left
        name = _chosen(data)
        done[name] += 1
        left -= 1
        if left == 0:
            least = min(_NAMES, key=done.__getitem__)
            each = f"at least {done[least]:,} of each ({least})"
            print(f"{options.executions:,} executions of {len(_NAMES)} readers, {each}", flush=True)
        try:
            with within_a_second():
                outcome(READERS[name], data[1:])
        except TooSlow as error:
            raise RuntimeError(f"{name}: {error}") from None  # libFuzzer does not see a BaseException

    def mutate(data: bytes, largest: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.5 or not data:
            return bytes(atheris.Mutate(data, largest))
        return (data[:1] + mutated(random, (data[1:], *READERS[_chosen(data)].examples)))[:largest]

    child = os.fork()  # because libFuzzer ends its process without any cleanup
    if child == 0:
        atheris.Setup([sys.argv[0], *flags, str(folder)], one, custom_mutator=mutate)
        atheris.Fuzz()
    _, status = os.waitpid(child, 0)
    for place in (folder, *scratch(os.getpid()).parent.glob(f"fuzz-{child}-*")):
        shutil.rmtree(place, ignore_errors=True)
    return os.waitstatus_to_exitcode(status)


def _chosen(data: bytes) -> str:
    """Return the name of the reader that the first byte of an input chooses."""
    return _NAMES[data[0] % len(_NAMES)] if data else _NAMES[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
