"""The answer of `quota explain --all`: each finding with the commands that correct it."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

from kquota.cli.configs.entities import entity_options
from kquota.cli.connection import Connection
from kquota.cli.contract import DONE, NOT_YET
from kquota.cli.formats import printable
from kquota.cli.options import option_name
from kquota.cli.output import Answer, JsonObject, Row, each, key
from kquota.cli.quota.sentences import WIDTH, amount
from kquota.cli.table import COLUMNS, columns
from kquota.measure import counted
from kquota.quota.finding import QuotaFinding
from kquota.quota.limits import QuotaChange, plain
from kquota.quota.precedence import QuotasByEntity

FindingShown: TypeAlias = tuple[QuotaFinding, float | None, tuple[str, ...]]
"""A finding, the affected limit (None if the finding concerns no limit), and the commands that carry out `do`."""


def _finding(shown: FindingShown) -> JsonObject:
    one, value, commands = shown
    return {
        "rule": one.rule,
        "entity": one.entity,
        "key": one.key,
        "value": value,
        "what": one.what,
        "why": one.why,
        "do": one.do,
        "commands": commands,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings(Answer):
    """Mistakes in the quotas, and limits without effect."""

    HEADER = ("rule", *COLUMNS, "key", "value", "what", "why", "do", "commands")
    INDENT = 2

    entities: int
    """The number of entities that were checked."""
    limits: int
    """The number of limits that were checked."""
    findings: tuple[FindingShown, ...] = key(form=each(_finding))

    def text(self) -> Iterator[str]:
        """Yield the number of findings by rule, then a paragraph for each finding. Each command is on one line, so that
        you can paste it.
        """
        among = f"{counted(self.limits, 'limit')} of {counted(self.entities, 'entity')}"
        if not self.findings:
            yield f"no findings among {among}"
            return
        yield f"{counted(len(self.findings), 'finding')} among {among}"
        for rule, count in sorted(Counter(one.rule for one, _, _ in self.findings).items()):
            yield f"  {rule:<24}{count:,}"
        for one, limit, commands in self.findings:
            yield ""
            whom = "the cluster" if one.entity is None else str(one.entity)
            value = "" if one.key is None or limit is None else f" {amount(one.key, limit)}"
            yield from _wrapped("", whom if one.key is None else f"{whom}: {one.key}{value}")
            yield from _wrapped("  what   ", f"{one.what} ({one.rule})")
            yield from _wrapped("  why    ", one.why)
            yield from _wrapped("  do     ", one.do)
            for command in commands:
                yield f"           {command}"

    def rows(self) -> Iterator[Row]:
        """Yield a row for each finding, with its commands joined by `&&`."""
        for one, limit, commands in self.findings:
            value, shell = None if limit is None else plain(limit), " && ".join(commands)
            yield [one.rule, *columns(one.entity), one.key, value, one.what, one.why, one.do, shell]


def findings(found: Sequence[QuotaFinding], quotas: QuotasByEntity, given: Connection) -> Findings:
    """Return the answer, with commands for the cluster that was given on the command line. The exit code is 8 if there
    are findings, otherwise 0.
    """
    shown = (
        (
            one,
            None if one.entity is None or one.key is None else quotas.get(one.entity, {}).get(one.key),
            tuple(_command(change, given) for change in one.cure),
        )
        for one in found
    )
    return Findings(
        entities=len(quotas),
        limits=sum(map(len, quotas.values())),
        findings=tuple(shown),
        code=NOT_YET if found else DONE,
    )


def _command(change: QuotaChange, given: Connection) -> str:
    words = ["kquota", "configs"]
    for field in fields(given):
        if (value := getattr(given, field.name)) is not None:
            words += [option_name(field.name), str(value)]
    words.append("--alter")
    if change.add:
        words += ["--add-config", ",".join(f"{key}={plain(value)}" for key, value in sorted(change.add.items()))]
    if change.delete:
        words += ["--delete-config", ",".join(sorted(change.delete))]
    for kind, name in change.entity.parts():
        words += entity_options(kind, name)
    return " ".join(map(_word, words))


def _word(word: str) -> str:
    """Quote one word for a shell. Unprintable characters must not reach a terminal, so bash's `$'...'` quoting escapes
    them.
    """
    if word.isprintable():
        return shlex.quote(word)
    escaped = "".join(c if c.isprintable() and c not in "\\'" else _octal(c) for c in word)
    return f"$'{escaped}'"


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def _wrapped(head: str, line: str) -> list[str]:
    return textwrap.wrap(
        printable(line),
        width=WIDTH,
        initial_indent=head,
        subsequent_indent=" " * 9,
        break_long_words=False,
        break_on_hyphens=False,
    )
