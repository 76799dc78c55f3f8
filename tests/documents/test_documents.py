"""Every command that a document shows does what is shown: each document is a story, told from its top on one stage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.documents.not_run import NOT_RUN
from tests.documents.shown import Command, File, Step, story
from tests.documents.stage import servers, stage
from tests.documents.test_help import examples

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def steps_of(document: Path) -> list[Step]:
    return story(str(document.relative_to(ROOT)), document.read_text())


def _told() -> Sequence[object]:
    """With the mark that says which servers it needs; a document without a command is none."""
    told = []
    for document in DOCUMENTS:
        text = document.read_text()
        if "```" in text:
            marks = [pytest.mark.kafka] if servers(text) else []
            told.append(pytest.param(document, id=str(document.relative_to(ROOT)), marks=marks))
    return told


@pytest.mark.parametrize("document", _told())
def test_every_shown_command_does_what_is_shown(document: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    steps = [step for step in steps_of(document) if isinstance(step, File) or step.bare not in NOT_RUN]
    if not any(isinstance(step, Command) for step in steps):
        return
    fixture = servers("\n".join(step.text for step in steps))
    with stage(tmp_path, request.getfixturevalue(fixture) if fixture else None) as told:
        told.set_out(steps)
        wrong = told.tell(steps)
    assert not wrong, "\n\n".join(wrong)


def test_what_is_not_run_is_still_shown() -> None:
    shown = {step.bare for document in DOCUMENTS for step in steps_of(document) if isinstance(step, Command)}
    of_help = {example for of in examples().values() for example in of}
    assert set(NOT_RUN) <= shown | of_help
