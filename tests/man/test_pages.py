"""The man pages match the app: generated again they are identical and complete, and every name in them exists."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from man.command import every, root
from man.generate import HERE, pages
from man.page import PROSE

COMMITTED = sorted(HERE.glob("man?/*"))
SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO")
OF_KAFKA = {"kafka-configs", "kafka-leader-election", "kafka-reassign-partitions", "kafka-topics", "kafka-log-dirs"}


def text(page: Path) -> str:
    """A page without roff's formatting."""
    return re.sub(r"\\f\[\w*\]|\\&", "", page.read_text(encoding="utf-8")).replace("\\-", "-")


def mandoc(*arguments: str) -> str:
    """The findings of mandoc on all pages."""
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed: apt-get install mandoc")
    done = subprocess.run(
        ["mandoc", *arguments, *COMMITTED], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout


def test_generated_pages_are_identical() -> None:
    made = dict(pages())
    stand = {path: path.read_text(encoding="utf-8") for path in COMMITTED}
    differing = {path.name for path in made.keys() | stand if made.get(path) != stand.get(path)}
    assert not differing, "the man pages are out of date: run make man"


def test_each_command_has_its_page_and_its_prose() -> None:
    commands = {command.page for command in every(root())}
    assert {path.stem for path in (HERE / "man1").iterdir()} == commands
    assert {path.stem for path in PROSE.glob("*.md")} == commands | {"kquota.toml"}


def test_every_page_has_the_expected_sections() -> None:
    missing = {}
    for page in COMMITTED:
        headings = re.findall(r"^\.SH (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        if lacks := set(SECTIONS) - set(headings):
            missing[page.name] = lacks
    # The page of a file has neither.
    assert missing == {"kquota.toml.5": {"OPTIONS", "EXIT STATUS"}}


def test_mandoc_reports_nothing() -> None:
    assert mandoc("-T", "lint", "-W", "all") == ""


def test_a_page_fits_80_columns() -> None:
    shown = re.sub(".\b", "", mandoc("-T", "utf8", "-O", "width=80"))
    assert [line for line in shown.splitlines() if len(line) > 80] == []


def test_every_named_option_and_page_exists() -> None:
    options = {option for command in every(root()) for option in command.options()}
    names = {f"{page.stem}({page.suffix[1:]})" for page in COMMITTED}
    for words in map(text, COMMITTED):
        assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", words)) <= options
        assert set(re.findall(r"(?<![\w-])kquota[\w.-]*\(\d\)", words)) <= names
        assert set(re.findall(r"kafka-[a-z-]+", words)) <= OF_KAFKA
