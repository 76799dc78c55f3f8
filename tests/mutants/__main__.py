"""`make mutants`: plants one deliberate bug after the other in a copy of kquota, and prints which test finds it.

The exit code is 1 if a mutant survives, or if the tests also fail without a mutant.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
COPIED = ("kquota", "tests", "man", "completions", "pyproject.toml")
ROUNDS = "--runs", "200", "--seed", "0", "--workers", "1", "--seconds", "60", "--first"
_PATIENCE = 900.0
NOT_FOUND = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The first test that fails, and the first round. None means that the tests pass."""

    test: str | None
    round: str | None

    @property
    def found(self) -> bool:
        return self.test is not None or self.round is not None


def tried(mutant: Mutant, into: Path, *, quick: bool) -> Finding:
    """Run the tests and the rounds on a copy with this bug. With `quick`, run the rounds only if the tests pass."""
    _copy(into)
    path = into / "kquota" / mutant.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, mutant.name
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    found = _tested(into, mutant.tests)
    played = not mutant.unplayed and not (quick and found)
    return Finding(test=found, round=_played(into) if played else None)


def unchanged(mutants: Sequence[Mutant], into: Path, *, quick: bool) -> Finding:
    """Run the tests of all these mutants, and the rounds, on a copy without a bug. They must find nothing."""
    _copy(into)
    files = sorted({test.partition("::")[0] for mutant in mutants for test in mutant.tests})
    return Finding(test=_tested(into, files), round=None if quick else _played(into))


def _copy(into: Path) -> None:
    for name in COPIED:
        source, target = ROOT / name, into / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)


def _tested(into: Path, tests: Sequence[str]) -> str | None:
    options = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=quick")
    servers = "not kafka and not zookeeper and not spark"
    code, said = _run(into, ["-m", "pytest", *options, "-m", servers, *tests])
    if code == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) ([^\s\[]+(?:\[.*?\])?)", said, re.MULTILINE)
    return failed[1].removeprefix("tests/") if failed else f"exit code {code}: {said.strip()[-200:]}"


def _played(into: Path) -> str | None:
    code, said = _run(into, ["-m", "tests.hosts", *ROUNDS])
    if code in (0, 2):
        return None
    failed = re.search(r"VIOLATION in seed (\d+): (.{0,60})", said)
    return f"seed {failed[1]}: {failed[2]}" if failed else f"exit code {code}: {said.strip()[-100:]}"


def _run(into: Path, arguments: Sequence[str]) -> tuple[int | str, str]:
    environment = {**os.environ, "PYTHONPATH": str(into), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    try:
        done = subprocess.run(command, cwd=into, env=environment, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return "timeout", f"no end within {_PATIENCE:.0f} s"
    return done.returncode, done.stdout + done.stderr


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the mutants, and print one line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--first", type=int, default=1, help="the number of the first mutant to try")
    parser.add_argument("--last", type=int, default=len(MUTANTS), help="the number of the last mutant to try")
    parser.add_argument("--quick", action="store_true", help="play rounds only if the tests find nothing")
    options = parser.parse_args(arguments)
    chosen = list(enumerate(MUTANTS, 1))[options.first - 1 : options.last]
    survived = []
    with TemporaryDirectory(prefix="kquota-mutant-") as folder:
        finding = unchanged([mutant for _, mutant in chosen], Path(folder), quick=options.quick)
    if finding.found:
        print(f"without a mutant: {finding.test or finding.round}")
        return 1
    columns = ["", "deliberate bug", *(["found by"] if options.quick else ["found by the test", "found by the round"])]
    print(_row(columns), _row(["---"] * len(columns)), sep="\n", flush=True)
    for number, mutant in chosen:
        began = time.monotonic()
        with TemporaryDirectory(prefix="kquota-mutant-") as folder:
            finding = tried(mutant, Path(folder), quick=options.quick)
        test = None if finding.test is None else f"`{finding.test}`"
        found = [test or finding.round] if options.quick else [test, finding.round]
        print(_row([str(number), mutant.name, *(one or NOT_FOUND for one in found)]), flush=True)
        print(f"{number}: {time.monotonic() - began:.0f} s", file=sys.stderr)
        if not finding.found:
            survived.append(mutant.name)
    print(f"\n{len(chosen) - len(survived)} of {len(chosen)} mutants found")
    for name in survived:
        print(f"SURVIVED: {name}")
    return 1 if survived else 0


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
