"""Draws the pictures of the README from real runs; docs/pictures/README.md has the commands.

python docs/pictures/draw.py terminal demo.txt docs/pictures/demo.svg
python docs/pictures/draw.py page move.html docs/pictures/report.png
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

WIDTH: Final = 132
PAGE: Final = (920, 1235)
"""Width and height of the screenshot of a page, in pixels: it ends before the third part of the page."""

_CUT: Final = {
    "record share": "created topic",
    "move estimate": "Throttle",
    "move status": "to broker",
}
"""The line of each command after which its output is cut, up to a line that `_CONTINUED` matches."""
_CONTINUED: Final = re.compile("A second estimate|have the replicas of the plan")
_WHERE: Final = re.compile(r" in /\S+\.journal")
_HEADING: Final = re.compile(r"\d\. |  Predicted")
_FORMAT: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""The format of rich, without its external fonts."""


def terminal(printed: str) -> str:
    """The output of the demo in a terminal, as SVG, with highlighted commands and shortened output."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text("$ make demo", style="bold green"))
    for line in _shortened(printed.splitlines()):
        style = "bold green" if line.startswith("$ ") else "bold" if _HEADING.match(line) else ""
        console.print(Text(line, style=style), overflow="ellipsis", no_wrap=True)
    return console.export_svg(title="kquota", theme=MONOKAI, code_format=_FORMAT)


def photographed(page: Path, picture: Path) -> None:
    """Saves a page as headless Chromium shows it, in the light color scheme."""
    width, height = PAGE
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                f"--window-size={width},{height}",
                f"--screenshot={picture.absolute()}",
                page.absolute().as_uri(),
            ],
            check=True,
            capture_output=True,
        )


def _shortened(lines: list[str]) -> Iterator[str]:
    last, cutting = "", False
    for line in lines:
        if line.startswith("$ "):
            last = next((end for command, end in _CUT.items() if command in line), "")
        if cutting and (line.startswith("$ ") or _CONTINUED.search(line)):
            yield from () if _CONTINUED.search(line) else ("",)
            cutting = False
        if not cutting:
            yield _WHERE.sub(" in …", line)
        if last and last in line:
            yield "  …"
            last, cutting = "", True


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["terminal", source, target]:
            Path(target).write_text(terminal(Path(source).read_text()))
        case ["page", source, target]:
            photographed(Path(source), Path(target))
        case _:
            sys.exit(__doc__)
