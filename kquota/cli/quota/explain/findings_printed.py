"""What `quota explain --all` prints: each finding with the command that helps; as text, as JSON, as a table."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Final, TypeAlias

from kquota.cli import tsv
from kquota.cli.connection import Connection
from kquota.cli.contract import printable
from kquota.cli.fields import COLUMNS, columns, named, number
from kquota.cli.options import Output
from kquota.cli.quota.sentences import WIDTH, amount
from kquota.measure import counted
from kquota.quota.change import Change
from kquota.quota.finding import Finding
from kquota.quota.limits import plain
from kquota.quota.precedence import Quotas
from kquota.terms import DEFAULT

VERSION: Final = 1
Write: TypeAlias = Callable[[Sequence[Finding], Quotas, Connection], str]


def text(found: Sequence[Finding], quotas: Quotas, given: Connection) -> str:
    """For people: how many of which kind, then one paragraph each. Commands are whole lines, to be copied."""
    return "".join(f"{line}\n" for line in _lines(found, quotas, given))


def _lines(found: Sequence[Finding], quotas: Quotas, given: Connection) -> Iterator[str]:
    values = sum(map(len, quotas.values()))
    among = f"{counted(values, 'limit')} of {counted(len(quotas), 'entity')}"
    if not found:
        yield f"nothing found among {among}"
        return
    yield f"{counted(len(found), 'finding')} among {among}"
    for rule, count in sorted(Counter(one.rule for one in found).items()):
        yield f"  {rule:<24}{count}"
    for one in found:
        yield ""
        whom = "the cluster" if one.entity is None else str(one.entity)
        value = _value(one, quotas)
        limit = "" if one.key is None else f": {one.key}" + ("" if value is None else f" {amount(one.key, value)}")
        yield from _wrapped("", f"{whom}{limit}")
        yield from _wrapped("  what   ", f"{one.what} ({one.rule})")
        yield from _wrapped("  why    ", one.why)
        yield from _wrapped("  do     ", one.do)
        for change in one.cure:
            yield f"           {command(change, given)}"


def document(found: Sequence[Finding], quotas: Quotas, given: Connection) -> str:
    """The contract with scripts, version 1."""
    findings = [
        {
            "rule": one.rule,
            "entity": None if one.entity is None else named(one.entity),
            "key": one.key,
            "value": number(_value(one, quotas)),
            "what": one.what,
            "why": one.why,
            "do": one.do,
            "commands": [command(change, given) for change in one.cure],
        }
        for one in found
    ]
    limits = sum(map(len, quotas.values()))
    head = {"version": VERSION, "entities": len(quotas), "limits": limits, "findings": findings}
    return json.dumps(head, ensure_ascii=False, indent=2) + "\n"


def table(found: Sequence[Finding], quotas: Quotas, given: Connection) -> str:
    """A row for each finding, with the commands that help as one line of shell."""
    rows = []
    for one in found:
        value = _value(one, quotas)
        shell = " && ".join(command(change, given) for change in one.cure)
        shown = None if value is None else plain(value)
        rows.append([one.rule, *columns(one.entity), one.key, shown, one.what, one.why, one.do, shell])
    return tsv.table(("rule", *COLUMNS, "key", "value", "what", "why", "do", "commands"), rows)


def command(change: Change, given: Connection) -> str:
    """The `kquota configs` that makes this change, for a shell, on the cluster that was `given` on the command line."""
    words = ["kquota", "configs"]
    for field in fields(given):
        if (value := getattr(given, field.name)) is not None:
            words += [f"--{field.name.replace('_', '-')}", str(value)]
    words.append("--alter")
    if change.add:
        words += ["--add-config", ",".join(f"{key}={plain(value)}" for key, value in sorted(change.add.items()))]
    if change.delete:
        words += ["--delete-config", ",".join(sorted(change.delete))]
    for kind, name in change.entity.parts():
        words += [f"--{kind[:-1]}-defaults"] if name is DEFAULT else [f"--{kind[:-1]}", str(name)]
    return " ".join(map(_word, words))


def _word(word: str) -> str:
    """One word for a shell; bash's own quoting where it holds what a terminal must not get raw."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = "".join(c if c.isprintable() and c not in "\\'" else _octal(c) for c in word)
    return f"$'{escaped}'"


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def _value(one: Finding, quotas: Quotas) -> float | None:
    return None if one.entity is None or one.key is None else quotas.get(one.entity, {}).get(one.key)


def _wrapped(head: str, line: str) -> list[str]:
    return textwrap.wrap(
        printable(line),
        width=WIDTH,
        initial_indent=head,
        subsequent_indent=" " * 9,
        break_long_words=False,
        break_on_hyphens=False,
    )


WRITE: Final[Mapping[Output, Write]] = {Output.text: text, Output.json: document, Output.tsv: table}
