"""Builds one page as Markdown, from the app and from the text in `prose`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from man.command import Command, every, root

PROSE: Final = Path(__file__).with_name("prose")
SECTIONS: Final = (
    *("NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "FORMAT"),
    *("EXIT STATUS", "ENVIRONMENT", "FILES", "NOTES", "EXAMPLES", "SEE ALSO"),
)
"""The sections in the order of man-pages(7)."""
_LISTS: Final = ("EXIT STATUS", "FILES", "ENVIRONMENT")
_PAGE: Final = re.compile(r"(?<![\w`*-])(kquota[\w.-]*|crontab|systemd\.timer)\((\d)\)")


def of_command(command: Command) -> str:
    """Return the page of one command, with its sections in the order of `SECTIONS`."""
    summary, told = read(PROSE / f"{command.page}.md")
    own = {
        "NAME": f"{command.page} - {summary}",
        "SYNOPSIS": command.synopsis(),
        "COMMANDS": _commands(command),
        "OPTIONS": command.described(),
        "ENVIRONMENT": _variables(command),
        "EXAMPLES": command.examples(),
        "SEE ALSO": "" if command is root() else "kquota(1)",
    }
    fragments = [
        read(path)[1] for path in sorted((PROSE / "with").glob("*.md")) if f"--{path.stem}" in command.options()
    ]
    return _joined(told, own, *fragments)


def of_file(name: str) -> str:
    """Return the page of a file that kquota reads. Its text comes only from `prose`."""
    summary, told = read(PROSE / f"{name}.md")
    return _joined(told, {"NAME": f"{name} - {summary}"})


def read(path: Path) -> tuple[str, dict[str, str]]:
    """Return the summary (the first line) of a file in `prose`, and its sections by heading."""
    summary, *sections = re.split(r"^# (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return summary.strip(), {name: text.strip() for name, text in zip(sections[::2], sections[1::2], strict=True)}


def _joined(told: Mapping[str, str], *others: Mapping[str, str]) -> str:
    unknown = told.keys() - set(SECTIONS)
    assert not unknown, f"{unknown} have no place among {SECTIONS}"
    sections: dict[str, str] = {}
    for name in SECTIONS:
        texts = [text for source in (told, *others) if (text := source.get(name))]
        if name in _LISTS:
            sections[name] = _one_list(name, texts)
        elif name == "SEE ALSO":
            sections[name] = ", ".join(sorted({page for text in texts for page in text.split(", ")}, key=_section))
        elif name == "SYNOPSIS":
            sections[name] = texts[0]  # The handwritten synopsis takes precedence.
        else:
            sections[name] = "\n\n".join(texts)
    return "\n\n".join(f"# {name}\n\n{_bold(text)}" for name, text in sections.items() if text)


def _bold(text: str) -> str:
    """Return the text with the names of pages in bold, as in manuals."""
    return _PAGE.sub(r"**\1**(\2)", text)


def _one_list(name: str, texts: list[str]) -> str:
    """Return the definitions of several texts as one list. The first definition of a term is used."""
    defined: dict[str, str] = {}
    for text in texts:
        for term, definition in _definitions(text):
            defined.setdefault(term, definition)
    if name == "EXIT STATUS":
        defined = dict(sorted(defined.items(), key=lambda item: int(item[0])))
    elif name == "ENVIRONMENT":
        defined = dict(sorted(defined.items()))
    return "\n\n".join(f"{term}\n{definition}" for term, definition in defined.items())


def _definitions(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"\n\n(?=\S)", text):
        term, _, definition = part.partition("\n")
        yield term, definition


def _section(page: str) -> tuple[str, str]:
    return page[-2], page


def _commands(command: Command) -> str:
    """Return the list of the commands below a group, without groups. It is empty for a single command."""
    below = [c for c in every(command) if not c.subcommands]
    return "\n\n".join(f"{c.page}(1)\n:   {_sentence(c)}" for c in below) if command.subcommands else ""


def _sentence(command: Command) -> str:
    summary = read(PROSE / f"{command.page}.md")[0]
    return f"{summary[0].upper()}{summary[1:]}."


def _variables(command: Command) -> str:
    named = [name for option, names in command.variables().items() for name in names if name == _variable(option)]
    if not named:
        return ""
    terms = ", ".join(f"`{name}`" for name in named)
    return f"{terms}\n:   Used if the option of the same name is not given."


def _variable(option: str) -> str:
    return "KQUOTA_" + option.removeprefix("--").replace("-", "_").upper()
