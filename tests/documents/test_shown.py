"""How a document shows a command: the rules of docs/writing.md."""

from __future__ import annotations

import pytest

from tests.documents.shown import Command, File, Step, prints, story

STORIES: dict[str, tuple[str, list[Step]]] = {
    "a line is a command": ("```sh\na b\nc\n```", [Command(text="a b", where="D:2"), Command(text="c", where="D:3")]),
    "a comment is none": ("```sh\n# why\n\na\n```", [Command(text="a", where="D:4")]),
    "a continued line": ("```sh\na \\\n  b\n```", [Command(text="a \\\n  b", where="D:2")]),
    "a loop": ("```sh\nfor a in 1\ndo b\ndone\n```", [Command(text="for a in 1\ndo b\ndone", where="D:2")]),
    "a here-document": (
        "```sh\ncat <<E\n$ x\nE\nb\n```",
        [Command(text="cat <<E\n$ x\nE", where="D:2"), Command(text="b", where="D:5")],
    ),
    "its exit": ("```sh\na # exit 8: not yet\n```", [Command(text="a # exit 8: not yet", where="D:2", codes=(8,))]),
    "one of two": ("```sh\na # exit 0 or 8\n```", [Command(text="a # exit 0 or 8", where="D:2", codes=(0, 8))]),
    "asked again": (
        "```sh\na # exit 8 until it is done\n```",
        [Command(text="a # exit 8 until it is done", where="D:2", codes=(8,), until=True)],
    ),
    "what is printed": (
        "```console\n$ a\nb\n\nc\n\n$ d\n```",
        [Command(text="a", where="D:2", output=("b", "", "c")), Command(text="d", where="D:7")],
    ),
    "an exit in a session": (
        "```console\n$ a # exit 8 until it is done\nb\n```",
        [Command(text="a # exit 8 until it is done", where="D:2", codes=(8,), until=True, output=("b",))],
    ),
    "a continued line of a session": (
        "```console\n$ a \\\n> b\nc\n```",
        [Command(text="a \\\nb", where="D:2", output=("c",))],
    ),
    "an exit that is printed": (
        "```console\n$ a\nb\n\n(exit code 8)\n```",
        [Command(text="a", where="D:2", codes=(8,), output=("b",))],
    ),
    "a crontab": (
        "```crontab\n*/5 * * * * a || b\n@daily c\n```",
        [Command(text="a || b", where="D:2", silent=True), Command(text="c", where="D:3", silent=True)],
    ),
    "a unit": (
        "```ini x.service\n[Service]\nExecStart=a b\n```",
        [File(name="x.service", text="[Service]\nExecStart=a b\n"), Command(text="a b", where="D:3")],
    ),
    "a file": ("```yaml quotas.yaml\nversion: 1\n```", [File(name="quotas.yaml", text="version: 1\n")]),
    "no command": ("```python\na\n```\n```\nb\n```", []),
    "in a list": ("1. x\n   ```sh\n   a\n   ```", [Command(text="a", where="D:3")]),
}


@pytest.mark.parametrize(("markdown", "steps"), STORIES.values(), ids=STORIES)
def test_the_steps_of_a_document(markdown: str, steps: list[Step]) -> None:
    assert story("D", markdown) == steps


WRONG = {
    "a command in a fence that is not run": "```\nkquota configs\n```",
    "a command as text": "```text\n$ a\n```",
    "no end": "```sh\na \\\n```",
    "output without a command": "```console\na\n```",
}


@pytest.mark.parametrize("markdown", WRONG.values(), ids=WRONG)
def test_a_command_in_a_wrong_fence_is_reported_with_its_line(markdown: str) -> None:
    with pytest.raises(ValueError, match="D:2"):
        story("D", markdown)


PRINTED = {
    "the same": (("a", "b"), "a\nb\n", True),
    "blanks at the end": (("a",), "a  \n", True),
    "one line less": (("a",), "a\nb\n", False),
    "some text": (("a … c",), "a 17 c\n", True),
    "some text, not some lines": (("a … c",), "a\nc\n", False),
    "some lines": (("a", "…", "d"), "a\nb\nc\nd\n", True),
    "no lines are some": (("a", "…"), "a\n", True),
    "no pattern": (("a.c",), "abc\n", False),
}


@pytest.mark.parametrize(("output", "printed", "same"), PRINTED.values(), ids=PRINTED)
def test_output_matches_the_shown_text(output: tuple[str, ...], printed: str, same: bool) -> None:
    assert prints(output, printed) is same
