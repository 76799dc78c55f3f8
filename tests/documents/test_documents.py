"""Every command in a document does what the document shows. Each document runs from top to bottom on one stage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
import typer

from tests.documents.not_run import NOT_RUN
from tests.documents.shown import Command, File, Step, mentions, story
from tests.documents.stage import servers, stage
from tests.documents.test_help import tree

pytestmark = pytest.mark.xdist_group("documents")

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "man" / "prose").rglob("*.md")),
]


def steps_of(document: Path) -> list[Step]:
    return story(str(document.relative_to(ROOT)), document.read_text())


def _marked_documents() -> Sequence[object]:
    """Return the document with the mark of the servers that it needs. Skip a document without commands."""
    told = []
    for document in DOCUMENTS:
        text = document.read_text()
        if "```" in text:
            marks = [pytest.mark.kafka] if servers(text) else []
            told.append(pytest.param(document, id=str(document.relative_to(ROOT)), marks=marks))
    return told


@pytest.mark.parametrize("document", _marked_documents())
def test_every_shown_command_prints_the_shown_output(
    document: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    steps = [step for step in steps_of(document) if isinstance(step, File) or step.bare not in NOT_RUN]
    if not any(isinstance(step, Command) for step in steps):
        return
    fixture = servers("\n".join(step.text for step in steps))
    with stage(tmp_path, request.getfixturevalue(fixture) if fixture else None) as told:
        told.set_out(steps)
        wrong = told.tell(steps)
    assert not wrong, "\n\n".join(wrong)


def test_every_exception_is_still_shown() -> None:
    shown = {step.bare for document in DOCUMENTS for step in steps_of(document) if isinstance(step, Command)}
    assert set(NOT_RUN) <= shown


def unknown(text: str) -> str | None:
    """Return the first word of a command line that is not a command or option of kquota."""
    found, words = tree(), text.split()[1:]
    while hasattr(found, "commands") and words and re.fullmatch("[a-z][a-z-]*", words[0]):
        if words[0] not in found.commands:
            return words[0]
        found = found.commands[words.pop(0)]
    options = {name for param in found.get_params(typer.Context(found)) for name in param.opts}
    asked = (word.strip(",.;:()[]").partition("=")[0] for word in words)
    return next((word for word in asked if word.startswith("-") and word.strip("-") and word not in options), None)


MENTIONING: Final = [*DOCUMENTS, ROOT / "CONTRIBUTING.md"]


def test_every_command_that_a_sentence_mentions_exists() -> None:
    mentioned = [
        *(one for document in MENTIONING for one in mentions(str(document.relative_to(ROOT)), document.read_text())),
        *(Command(text=text, where="not_run.py") for text in NOT_RUN if text.startswith("kquota ")),
    ]
    wrong = [f"{one.where}: {one.text}: {word}" for one in mentioned if (word := unknown(one.text)) is not None]
    assert not wrong, "\n".join(wrong)


WORDS = {
    "kquota configs --user alice": None,
    "kquota move plan --drain ID,…": None,
    "kquota --version": None,
    "kquota move": None,
    "kquota move plans": "plans",
    "kquota configs --usr alice": "--usr",
    "kquota throttle doctor --fix --older-than=1h": None,
}


@pytest.mark.parametrize(("text", "word"), WORDS.items(), ids=WORDS)
def test_unknown_commands_and_options_are_found(text: str, word: str | None) -> None:
    assert unknown(text) == word
