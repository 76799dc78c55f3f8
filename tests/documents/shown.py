"""The steps that a document shows: commands with their output, and files. Nothing is run here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

FENCE: Final = re.compile(r"(?P<indent> *)```(?P<words>[^`]*)")
_COMMENT: Final = re.compile(r"\s+# .*\Z")
_EXIT: Final = re.compile(r"#\s*exit (?P<code>\d+)(?: or (?P<other>\d+)|(?P<until> until\b))?")
_PRINTED_EXIT: Final = re.compile(r"\s*\(exit code (\d+)\)")
_TIMES: Final = re.compile(r"(?:@\w+|(?:\S+\s+){4}\S+)\s+(?P<command>.+)")
_EXEC: Final = re.compile(r"ExecStart=(?P<command>.+)")
_MENTION: Final = re.compile(r"`(kquota [^`]+)`")
_SHOWS_A_COMMAND: Final = re.compile(r"\s*(?:\$ |kquota )")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that a reader types, and the result that the document shows."""

    text: str
    where: str
    """The file and the line."""
    codes: tuple[int, ...] = (0,)
    until: bool = False
    """True if the command is repeated while it exits with one of `codes`, until it exits with 0."""
    output: tuple[str, ...] = ()
    """The output, with `…` for variable text; None if the document does not show it."""
    silent: bool = False
    """True if the command prints nothing if all is well, because cron would mail the output."""

    @property
    def bare(self) -> str:
        """The command without its comment: the key in the tables of exceptions."""
        return _COMMENT.sub("", self.text).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that the reader writes before the next command."""

    name: str
    text: str


Step: TypeAlias = Command | File


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fence:
    words: tuple[str, ...]
    first: int
    """The number of the line after the opening of the fence."""
    lines: tuple[str, ...]


def story(name: str, markdown: str) -> list[Step]:
    """Return the steps of a Markdown document in their order. Raises ValueError for a command in a fence that is not
    run.
    """
    return [step for fence in _fences(markdown) for step in _steps(name, fence)]


def mentions(name: str, markdown: str) -> list[Command]:
    """Return the commands that sentences mention. Readers do not type them as they are, but the commands must exist."""
    lines = markdown.splitlines()
    for fence in _fences(markdown):
        for number in range(fence.first, fence.first + len(fence.lines)):
            lines[number - 1] = ""
    # Text in backticks may continue on the next line.
    text = "\n".join(lines)
    return [
        Command(text=" ".join(found[1].split()), where=f"{name}:{text.count(chr(10), 0, found.start()) + 1}")
        for found in _MENTION.finditer(text)
    ]


def prints(output: Iterable[str], printed: str) -> bool:
    """Return True if the output matches, line by line.

    `…` matches any text, and a line with only `…` matches any number of lines.
    """
    pattern = "".join(
        "(?:.*\n)*" if line.strip() == "…" else ".*".join(map(re.escape, line.rstrip().split("…"))) + "\n"
        for line in output
    )
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed.splitlines())) is not None


def _fences(markdown: str) -> Iterator[_Fence]:
    lines = iter(enumerate(markdown.splitlines(), 1))
    for number, line in lines:
        if opening := FENCE.fullmatch(line):
            indent = len(opening["indent"])
            held = []
            for _, inner in lines:
                if inner.strip() == "```":
                    break
                held.append(inner[indent:] if inner[:indent].isspace() else inner)
            yield _Fence(words=tuple(opening["words"].split()), first=number + 1, lines=tuple(held))


def _steps(name: str, fence: _Fence) -> Iterator[Step]:
    numbered = list(enumerate(fence.lines, fence.first))
    match fence.words:
        case ("sh",):
            yield from _script(name, numbered)
        case ("console",):
            yield from _session(name, numbered)
        case ("crontab",):
            yield from (replace(each, silent=True) for each in _script(name, _found(numbered, _TIMES)))
        case _:
            if len(fence.words) == 2:
                yield File(name=fence.words[1], text="".join(f"{line}\n" for line in fence.lines))
            if fence.words[:1] == ("ini",):
                yield from _script(name, _found(numbered, _EXEC))
            for number, line in numbered:
                if fence.words[:1] in ((), ("text",)) and _SHOWS_A_COMMAND.match(line):
                    raise ValueError(f"{name}:{number}: no test runs this command; call the fence sh or console")


def _found(lines: Iterable[tuple[int, str]], pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    found = ((number, pattern.fullmatch(line)) for number, line in lines if not line.startswith("#"))
    return [(number, match["command"]) for number, match in found if match]


def _script(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[Command]:
    held: list[str] = []
    first = 0
    for number, line in lines:
        if not held and (not line.strip() or line.lstrip().startswith("#")):
            continue
        first = first if held else number
        held.append(line)
        if _complete(text := "\n".join(held)):
            yield command(f"{name}:{first}", text, ())
            held = []
    if held:
        raise ValueError(f"{name}:{first}: this command has no end")


def _session(name: str, lines: list[tuple[int, str]]) -> Iterator[Command]:
    """Yield the commands of a session. `$ ` begins a command, which continues while bash expects more lines. Its output
    follows."""
    held: list[tuple[int, str, list[str]]] = []
    for number, line in lines:
        if line.startswith("$ "):
            held.append((number, line[2:], []))
        elif not held:
            raise ValueError(f"{name}:{number}: what prints this? A console's commands begin with `$ `")
        elif not held[-1][2] and not _complete(held[-1][1]):
            at, text, output = held[-1]
            held[-1] = (at, f"{text}\n{line.removeprefix('> ')}", output)
        else:
            held[-1][2].append(line)
    for number, text, output in held:
        while output and not output[-1].strip():
            output.pop()
        yield command(f"{name}:{number}", text, tuple(output))


def command(where: str, text: str, output: tuple[str, ...]) -> Command:
    """Return a command with its exit code, which a comment or the last line of the output states."""
    if output and (printed := _PRINTED_EXIT.fullmatch(output[-1])):
        kept = output[:-1] if len(output) > 1 and output[-2].strip() else output[:-2]
        return Command(text=text, where=where, codes=(int(printed[1]),), output=kept)
    if not (told := _EXIT.search(text)):
        return Command(text=text, where=where, output=output)
    codes = tuple(int(code) for code in (told["code"], told["other"]) if code is not None)
    return Command(text=text, where=where, codes=codes, until=told["until"] is not None, output=output)


def _complete(text: str) -> bool:
    """True if bash would run it, or would wait for the rest of a loop, a quotation or a here-document."""
    if text.endswith("\\"):
        return False
    asked = subprocess.run(["bash", "-n"], input=text + "\n", capture_output=True, text=True, check=False)
    return not asked.stderr
