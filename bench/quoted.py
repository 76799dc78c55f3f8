"""Quotes the tables of `make bench` in the documents word for word, so that all figures are from one run.

`python -m bench.quoted bench-results` keeps a run in docs/bench, and puts each of its tables into the fence after
`<!-- bench: NAME -->` in the documents.
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
"""The file of the picture of a section, by the name of the section."""
_SECTION: Final = re.compile(r"^== (?P<name>[^\n]+) ==\n(?P<table>.*?)(?=\n*^== |\n*\Z)", re.DOTALL | re.MULTILINE)
_QUOTED: Final = re.compile(
    r"(?P<head><!-- bench: (?P<name>.+?) -->\n+```text\n)(?P<table>.*?)(?P<foot>\n```)", re.DOTALL
)


def tables(text: str) -> dict[str, str]:
    """Return the sections of a bench.txt by their names."""
    return {found["name"]: found["table"] for found in _SECTION.finditer(text)}


def text(found: Mapping[str, str]) -> str:
    """Return a bench.txt with these sections, in the form that `tables` reads."""
    return "\n".join(f"== {name} ==\n{table}\n" for name, table in found.items())


def quotes(document: str) -> Iterator[tuple[str, str]]:
    """Return the name of the section and the content of each fence that quotes one."""
    return ((found["name"], found["table"]) for found in _QUOTED.finditer(document))


def documents() -> list[Path]:
    """Return every page that can quote a section."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main(run: Path) -> None:
    """Keep the files of the run, and quote its sections. Exit without a write unless each section is quoted and each
    fence has its section.
    """
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
