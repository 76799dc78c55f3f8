"""Checks the documents for scripts that any test's command prints against docs/formats.md."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from kquota.cli.formats import TABLES, Output

FOR_SCRIPTS = "|".join(output for output in Output if not output.for_people)
FORMATS = Path(__file__).parents[2] / "docs" / "formats.md"


def must_be_promised(arguments: Sequence[str], out: str) -> None:
    """Check that every top-level key of a document, and every header, is in a row of its command."""
    words = " ".join(arguments)
    if not out or not (asked := re.search(rf"--output[= ]({FOR_SCRIPTS})\b", words)):
        return
    rows = [told for command, told in _rows(asked[1]) if f"{words} ".startswith(f"{command} ")]
    if asked[1] in TABLES:
        assert out.splitlines()[0].split("\t") in [told[0].split() for told in rows if told], out.splitlines()[0]
        return
    watched = any(word in words for word in ("move watch", "--wait", "--deadline 4m", "--between", "--protect"))
    for text in out.splitlines() if watched else [out]:
        if "version" in (document := json.loads(text)):
            missing = document.keys() - {"version"} - {key for told in rows for key in told}
            assert not missing, f"docs/formats.md does not name {sorted(missing)} of: kquota {words}"


@functools.cache
def _rows(form: str) -> tuple[tuple[str, list[str]], ...]:
    """Return the command and the words in backticks of each row in the table of this form."""
    section = FORMATS.read_text().split(f"\n## {form.upper()}\n")[1].split("\n## ")[0]
    return tuple(_documented_commands(section))


def _documented_commands(section: str) -> Iterator[tuple[str, list[str]]]:
    commands: list[str] = []
    for first, second in re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE):
        named = [re.sub(r"(^| )-.*", "", words) for words in re.findall(r"`([^`]+)`", first)]
        # A row that begins with dots continues the command of the previous row.
        commands = commands if "…" in first else [command for command in named if command]
        for command in commands:
            yield command, re.findall(r"`([^`]+)`", second)
