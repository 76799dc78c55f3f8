"""Measures every figure in kquota's documents in one run: medians, spread, ratios, and whether promises hold.

`python -m bench` runs the parts of `make bench`, `python -m bench PART…` any. `--into FOLDER` also writes bench.json,
bench.txt and pictures; parts that are not run keep their results. The exit code is 1 if a promise does not hold.
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Self

import kquota
from bench.quoted import JSON, PICTURES, TEXT, tables, text
from bench.race import say
from bench.section import Section
from kquota import java
from kquota.sandbox import jars

PARTS: Final = (
    "quotas",
    "moves",
    "record",
    "planning",
    "kip73",
    "truth",
    "start",
    "history",
    "fleet",
    "mutation",
    "curve",
    "protect",
    "pacing",
)
"""The parts of the bench. Each is a module with a function `sections`."""
BESIDE: Final = frozenset({"protect", "pacing"})
"""The parts that run only if they are named. They take many minutes, and protect needs Linux network namespaces."""
_PLOTTED: Final = {"curve": "plot", "protect": "protect_plot"}
"""The module that draws the picture of a section, by the name of the section."""
_LIBRARIES: Final = ("confluent-kafka", "kafka-python", "kazoo", "pyspark", "duckdb", "polars")


def main(arguments: Sequence[str]) -> int:
    """Run the parts and print their tables on stdout. Return 1 if a promise does not hold, and exit with 2 for an
    unknown argument.
    """
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, allow_abbrev=False)
    which = f"one of {', '.join(PARTS)}; without one, all but {' and '.join(sorted(BESIDE))}"
    parser.add_argument("parts", metavar="PART", nargs="*", help=which)
    parser.add_argument("--into", metavar="FOLDER", type=Path, help="where bench.json, bench.txt and pictures go")
    asked = parser.parse_args(arguments)
    if unknown := sorted({*asked.parts} - {*PARTS}):
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    kept = Kept.read(asked.into) if asked.into else None
    # pip compiles kquota when it installs kquota. A checkout can lack this bytecode.
    compileall.compile_dir(str(Path(kquota.__file__).parent), quiet=2)
    started = time.monotonic()
    held = True
    for name in asked.parts or [part for part in PARTS if part not in BESIDE]:
        for section in importlib.import_module(f"bench.{name}").sections():
            held &= section.kept
            print(f"{section.text()}\n", flush=True)
            # Parts are run separately, because all of them take most of an hour.
            if kept is not None:
                kept.add(section)
    say(f"{(time.monotonic() - started) / 60:.0f} min{f'; written into {asked.into}' if asked.into else ''}")
    return 0 if held else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The files of a run, with the results and the time of each section. Sections that are not run again stay
    unchanged.
    """

    folder: Path
    machine: Mapping[str, Any]
    found: dict[str, Any]
    texts: dict[str, str]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the earlier run in this folder, or an empty run. Exit if the earlier run was on another machine or
        with other versions.
        """
        machine = _machine()
        if not (folder / JSON).exists():
            return cls(folder=folder, machine=machine, found={}, texts={})
        told = json.loads((folder / JSON).read_text())
        found = told.pop("sections", {})
        if other := sorted(key for key in {*told, *machine} if told.get(key) != machine.get(key)):
            sys.exit(f"{folder}: is of another {' and '.join(other)}; name an empty folder")
        return cls(folder=folder, machine=machine, found=found, texts=tables((folder / TEXT).read_text()))

    def add(self, section: Section) -> None:
        """Write the results of a section into the files. Each file is replaced completely or not at all."""
        self.found[section.name] = {"taken": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "rows": section.rows}
        self.texts[section.name] = section.text()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write(JSON, f"{json.dumps({**self.machine, 'sections': self.found}, indent=2)}\n")
        self._write(TEXT, text(self.texts))
        if section.name in PICTURES:
            module = importlib.import_module(f"bench.{_PLOTTED[section.name]}")
            module.draw([dict(row) for row in section.rows], self.folder / PICTURES[section.name])

    def _write(self, name: str, text: str) -> None:
        new = self.folder / f"{name}.new"
        new.write_text(text)
        new.replace(self.folder / name)


def _machine() -> dict[str, Any]:
    versions = {name: _version(name) for name in ("kquota", *_LIBRARIES)}
    versions |= {"python": platform.python_version(), "java": str(java.find().version), "kafka": jars.NEWEST}
    return {
        "version": 3,
        "versions": versions,
        "cores": os.cpu_count(),
        # The memory is rounded, because it differs by a few kB between equal machines.
        "memory_bytes": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), -8),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    # The requests to servers must not depend on the cluster in this shell's environment.
    for name in [name for name in os.environ if name.startswith("KQUOTA_")]:
        del os.environ[name]
    sys.exit(main(sys.argv[1:]))
