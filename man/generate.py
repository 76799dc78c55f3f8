"""Generates man/man1 and man/man5. pandoc converts the Markdown of `page` into roff."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kquota import __version__
from man import page
from man.command import every, root

HERE: Final = Path(__file__).parent
DATE: Final = "2026-11-22"
"""The date of the release. It is not today's date, so that a page that is generated again is identical."""
FILES: Final = ("kquota.toml",)
# Pages are left-aligned and not hyphenated, so that a reader can search and copy the name of an option.
_LAYOUT: Final = (".ad l", ".nh", ".nr HY 0")
# Manuals print literals in bold.
_BOLD: Final = "function Code(code) return pandoc.Strong(code.text) end"


def pages() -> Iterator[tuple[Path, str]]:
    """Yield the path and the roff of every page."""
    with tempfile.TemporaryDirectory() as folder:
        bold = Path(folder) / "bold.lua"
        bold.write_text(_BOLD)
        for command in every(root()):
            yield HERE / "man1" / f"{command.page}.1", _roff(page.of_command(command), command.page, 1, bold)
        for name in FILES:
            yield HERE / "man5" / f"{name}.5", _roff(page.of_file(name), name, 5, bold)


def _roff(text: str, name: str, section: int, bold: Path) -> str:
    import pypandoc

    title = {"title": name.upper(), "section": section, "date": DATE, "footer": f"kquota {__version__}"}
    # Variables are used, because pandoc escapes metadata, and mandoc cannot read a date with escaped dashes.
    variables = [f"--variable={key}:{value}" for key, value in {**title, "header": "kquota manual"}.items()]
    variables += [f"--variable=header-includes:{request}" for request in _LAYOUT]
    made: str = pypandoc.convert_text(
        text, "man", format="markdown-smart", extra_args=["--standalone", f"--lua-filter={bold}", *variables]
    )
    return made


if __name__ == "__main__":
    written = dict(pages())
    for old in {*HERE.glob("man?/*")} - written.keys():
        old.unlink()
    for path, made in written.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(made, encoding="utf-8")
