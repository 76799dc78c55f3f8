"""Quotes the tables of `make bench` in the documents word for word, so that all figures are from one run.

`python -m bench.quoted bench-results` keeps a run below docs/bench and puts its tables and its pictures into the
documents: a table in the fence after `<!-- bench: NAME -->`.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
KEPT: Final = ROOT / "docs" / "bench"
JSON: Final = "bench.json"
TEXT: Final = "bench.txt"
PICTURES: Final = {"curve": "cost.svg", "protect": "protect.svg"}
"""The pictures of sections."""
_SECTION: Final = re.compile(r"^== (?P<name>[^\n]+) ==\n(?P<table>.*?)(?=\n*^== |\n*\Z)", re.DOTALL | re.MULTILINE)
_QUOTED: Final = re.compile(
    r"(?P<head><!-- bench: (?P<name>.+?) -->\n+```text\n)(?P<table>.*?)(?P<foot>\n```)", re.DOTALL
)


def tables(text: str) -> dict[str, str]:
    """The sections of a bench.txt by their names."""
    return {found["name"]: found["table"] for found in _SECTION.finditer(text)}


def text(found: Mapping[str, str]) -> str:
    """A bench.txt with these sections, in the form that `tables` reads."""
    return "\n".join(f"== {name} ==\n{table}\n" for name, table in found.items())


def quotes(document: str) -> Iterator[tuple[str, str]]:
    """The section and the content of each fence."""
    return ((found["name"], found["table"]) for found in _QUOTED.finditer(document))


def documents() -> list[Path]:
    """Every page that can have quotes."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main(run: Path) -> None:
    """Keeps the run and quotes it. Exits without a write unless fences and sections match one to one."""
    told = tables((run / TEXT).read_text())
    pages = {page: page.read_text() for page in documents()}
    quoted = {name for said in pages.values() for name, _ in quotes(said)}
    if quoted != set(told):
        sys.exit(f"{run}: not quoted or not run: {', '.join(sorted(quoted ^ set(told)))}")
    KEPT.mkdir(exist_ok=True)
    for name in (JSON, TEXT, PICTURES["curve"]):
        shutil.copyfile(run / name, KEPT / name)
    for page, said in pages.items():
        page.write_text(_QUOTED.sub(lambda found: found["head"] + told[found["name"]] + found["foot"], said))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"{Path(sys.argv[0]).name}: the folder of a run is needed")
    main(Path(sys.argv[1]))
