"""Every figure that kquota's documents quote, measured in one run: medians, spread, ratios, and whether promises hold.

`python -m bench` runs all parts, `python -m bench PART…` some. `--into FOLDER` writes bench.json, bench.txt and the
plot of cost against size, too. 1 when a promise does not hold.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from bench.race import say
from bench.section import Section
from kquota import java
from kquota.sandbox import jars

PARTS: Final = (
    "quotas",
    "moves",
    "planning",
    "kip73",
    "truth",
    "start",
    "history",
    "fleet",
    "mutation",
    "curve",
)
"""Each is a module with `sections()`."""
_LIBRARIES: Final = ("confluent-kafka", "kafka-python", "kazoo", "pyspark", "duckdb", "polars")
_INTO: Final = "--into"


def main(arguments: Sequence[str]) -> int:
    """Run the parts; tables on stdout. 2 for an argument that means nothing."""
    words = list(arguments)
    into = None
    if _INTO in words:
        at = words.index(_INTO)
        into = Path(words[at + 1]) if words[at + 1 :] else None
        del words[at : at + 2]
        if into is None:
            say(f"{_INTO} needs a folder")
            return 2
    if unknown := set(words) - set(PARTS):
        say(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
        return 2
    started = time.monotonic()
    sections: list[Section] = []
    for name in words or PARTS:
        for section in importlib.import_module(f"bench.{name}").sections():
            sections.append(section)
            print(f"{section.text()}\n", flush=True)
        # After each part: the whole takes most of an hour.
        if into is not None:
            _write(sections, into)
    say(f"{(time.monotonic() - started) / 60:.0f} min{f'; written into {into}' if into else ''}")
    return 0 if all(section.kept for section in sections) else 1


def _write(sections: Sequence[Section], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    told = _machine() | {section.name: section.rows for section in sections}
    (folder / "bench.json").write_text(f"{json.dumps(told, indent=2)}\n")
    (folder / "bench.txt").write_text("\n\n".join(section.text() for section in sections) + "\n")
    for section in sections:
        if section.name == "curve":
            from bench.plot import draw

            draw([dict(row) for row in section.rows], folder / "cost.svg")


def _machine() -> dict[str, Any]:
    versions = {name: _version(name) for name in ("kquota", *_LIBRARIES)}
    versions |= {"python": platform.python_version(), "java": str(java.find().version), "kafka": jars.NEWEST}
    return {
        "version": 2,
        "taken": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "versions": versions,
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    # What is asked of servers must not depend on whose cluster this shell is about.
    for name in [name for name in os.environ if name.startswith("KQUOTA_")]:
        del os.environ[name]
    sys.exit(main(sys.argv[1:]))
