"""What a document shows: commands with what comes of them, and files. Nothing is run here."""

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
    """What a reader would type, and what the document says comes of it."""

    text: str
    where: str
    """File and line."""
    codes: tuple[int, ...] = (0,)
    until: bool = False
    """It is asked again while it exits with `codes`, until it is 0."""
    output: tuple[str, ...] = ()
    """What it prints, `…` for whatever changes; nothing where the document does not say."""
    silent: bool = False
    """It prints nothing where all is well: cron would mail it."""

    @property
    def bare(self) -> str:
        """Without the comment behind it: the name under which the tables of exceptions know it."""
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
    """The number of the line after its opening."""
    lines: tuple[str, ...]


def story(name: str, markdown: str) -> list[Step]:
    """The steps of a Markdown document, in its order. Raises ValueError for a command in a fence that is not run."""
    return [step for fence in _fences(markdown) for step in _steps(name, fence)]


def mentions(name: str, markdown: str) -> list[Command]:
    """The commands that stand in a sentence: nobody types them as they are, and yet they are to exist."""
    lines = markdown.splitlines()
    for fence in _fences(markdown):
        for number in range(fence.first, fence.first + len(fence.lines)):
            lines[number - 1] = ""
    # A sentence may go on in the next line within its backticks.
    text = "\n".join(lines)
    return [
        Command(text=" ".join(found[1].split()), where=f"{name}:{text.count(chr(10), 0, found.start()) + 1}")
        for found in _MENTION.finditer(text)
    ]


def prints(output: Iterable[str], printed: str) -> bool:
    """Whether that is what was printed: line by line, `…` for any text, a line of `…` alone for any lines."""
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
                    raise ValueError(f"{name}:{number}: a command that nobody runs; call the fence sh or console")


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
    """`$ ` begins a command; lines belong to it as long as bash wants more, then come those that it prints."""
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
    """A command with its exit, which a comment tells, or what is printed last."""
    if output and (printed := _PRINTED_EXIT.fullmatch(output[-1])):
        kept = output[:-1] if len(output) > 1 and output[-2].strip() else output[:-2]
        return Command(text=text, where=where, codes=(int(printed[1]),), output=kept)
    if not (told := _EXIT.search(text)):
        return Command(text=text, where=where, output=output)
    codes = tuple(int(code) for code in (told["code"], told["other"]) if code is not None)
    return Command(text=text, where=where, codes=codes, until=told["until"] is not None, output=output)


def _complete(text: str) -> bool:
    """Whether bash would run it, or wait for more: of a loop, a quotation, a here-document."""
    if text.endswith("\\"):
        return False
    asked = subprocess.run(["bash", "-n"], input=text + "\n", capture_output=True, text=True, check=False)
    return not asked.stderr
