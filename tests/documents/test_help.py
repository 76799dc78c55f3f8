"""Each command's help ends with two examples, and each example does what it shows."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from kquota.cli import help as page
from kquota.cli.main import COMMANDS, app, register
from tests.cli.run import kquota_here
from tests.documents.not_run import BEFORE, ENDS, EXAMPLES_NOT_RUN
from tests.documents.shown import Command, command
from tests.documents.stage import servers, stage

pytestmark = pytest.mark.xdist_group("documents")

NAMES: Final = [name for name in COMMANDS if name != "complete"]


@functools.cache
def tree() -> Any:
    """The app with all its commands. Its registrations are removed afterwards, because other tests build it again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "registered_commands", [])
        patch.setattr(app, "registered_groups", [])
        for name in COMMANDS:
            register(name)
        return typer.main.get_command(app)


def below(name: str, of: Any) -> Iterator[tuple[str, Any]]:
    """The runnable commands by their full names, without groups."""
    for word, found in of.commands.items() if hasattr(of, "commands") else ():
        if not found.hidden:
            yield from below(f"{name} {word}".strip(), found)
    if not hasattr(of, "commands"):
        yield name, of


@functools.cache
def examples() -> Mapping[str, list[str]]:
    """The examples of every such command."""
    return {name: page.examples(found.epilog) for name, found in below("", tree())}


def test_every_command_has_two_examples_of_itself() -> None:
    for name, shown in examples().items():
        assert len(shown) == 2, name
        assert all(f"kquota {name}" in example for example in shown), name


def test_a_group_shows_two_examples_of_its_commands() -> None:
    groups = [tree(), *(found for found in tree().commands.values() if hasattr(found, "commands"))]
    shown = {example for of in examples().values() for example in of}
    for group in groups:
        assert len(page.examples(group.epilog)) == 2
        assert set(page.examples(group.epilog)) <= shown


def steps(name: str) -> list[Command]:
    """The previous steps, then the examples, with their exit codes if these are not 0."""
    texts = [*BEFORE.get(name, ()), *examples()[name]]
    ends = {text: f"{text} # {ENDS[text][0]}" if text in ENDS else text for text in texts}
    return [command(f"kquota {name} --help", ends[text], ()) for text in texts if text not in EXAMPLES_NOT_RUN]


@pytest.mark.kafka
@pytest.mark.parametrize("name", NAMES)
def test_every_example_does_what_it_shows(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The examples of one command, or of one group in its order, run on one stage."""
    each = {one: steps(one) for one in examples() if one.split()[0] == name}
    fixture = servers(" ".join(step.text for of in each.values() for step in of))
    with stage(tmp_path, request.getfixturevalue(fixture) if fixture else None) as told:
        wrong = []
        for of in each.values():
            told.set_out(of)
            wrong += told.tell(of)
        # A sandbox outlives the shell that started it.
        wrong += told.tell([command("in the end", "kquota sandbox down --all", ())] if name == "sandbox" else [])
    assert not wrong, "\n\n".join(wrong)


def test_every_exception_is_still_needed() -> None:
    shown = {example for of in examples().values() for example in of}
    assert set(ENDS) | set(EXAMPLES_NOT_RUN) <= shown
    assert set(BEFORE) <= set(examples())


WIDTHS: Final = (80, 60, 40)


def words(commands: Iterable[str], folder: Path) -> str:
    """The words that bash passes to kquota for each command."""
    script = "\n".join(['kquota() { printf "%s\\n" "$@" "" >&2; }', *commands])
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True).stderr


@pytest.mark.parametrize("width", WIDTHS)
def test_a_folded_example_is_the_same_command(width: int, tmp_path: Path) -> None:
    """bash reads it as one command, and it is folded only before an option, a pipe or a redirection."""
    shown = [example for of in examples().values() for example in of]
    folded = [page.folded(example, width) for example in shown]
    assert all(line.lstrip()[0] in "->|" for lines in folded for line in lines[1:])
    assert words(("\n".join(lines) for lines in folded), tmp_path) == words(shown, tmp_path)


@pytest.mark.parametrize("name", ["", *examples()])
def test_help_fits_into_80_columns(name: str) -> None:
    ran = kquota_here(*name.split(), "--help")
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert not [line for line in ran.out.splitlines() if line != line.rstrip()]
