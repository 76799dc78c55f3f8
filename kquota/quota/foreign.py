"""Quotas in the formats of other tools: the quotas that a format cannot hold, and the printing and parsing of
limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NoReturn

from kquota.quota.document import Document, order
from kquota.quota.document_text import unfit
from kquota.quota.entity import Entity, Name
from kquota.quota.limits import Limits, plain, value
from kquota.quota.yaml_source import Source, YamlNode

_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?", re.A)
_LONGEST: Final = 400
"""The maximum length of a number, in characters. A double needs at most 327 without an exponent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A part of a document that another format cannot hold, and the reason."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignText:
    """A document in the format of another tool. `text` does not contain the parts in `losses`."""

    text: str
    losses: tuple[Loss, ...]


def divided(
    document: Document, wrong: Callable[[Entity, Limits], str | None]
) -> tuple[Mapping[Entity, Limits], tuple[Loss, ...]]:
    """Return the entities that a format can hold, in display order, and the losses.

    `wrong` returns the reason why the format cannot hold an entity, or None. A format holds an entity completely or not
    at all, because other tools remove the limits of an entity that are not in their document.
    """
    broken = dict(unfit(document.limits))
    held: dict[Entity, Limits] = {}
    losses = []
    for entity in sorted(document.limits, key=Entity.order):
        limits = document.limits[entity]
        key = broken.get(entity)
        why = wrong(entity, limits) if key is None else f"{key} is {limits[key]!r}, which is not a valid limit"
        if why is None:
            held[entity] = dict(sorted(limits.items()))
        else:
            losses.append(Loss(what=str(entity), why=why))
    reason = "this format has no replication throttles"
    losses += [Loss(what=str(one), why=reason) for one in sorted(document.throttles, key=order)]
    losses += [Loss(what="a quota that kquota could not read", why=line) for line in document.unreadable]
    return held, tuple(losses)


def digits(limit: float) -> str:
    """Format a limit without an exponent and without loss.

    >>> digits(1048576.0), digits(0.00001)
    ('1048576', '0.00001')
    """
    return plain(limit) if limit.is_integer() else format(Decimal(repr(limit)), "f")


class LimitReader:
    """Reads entities and numbers of a document in YAML or JSON. Errors state the line and the column."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.limits: dict[Entity, Limits] = {}
        self.unreadable: list[str] = []
        """Descriptions of the parts that kquota cannot read as limits."""

    def result(self) -> Document:
        """Return everything that was read."""
        return Document(limits=self.limits, unreadable=tuple(self.unreadable))

    def entity(self, at: YamlNode, **parts: Name) -> Entity:
        """Return the entity with these parts. Raises Invalid for parts that an Entity cannot have."""
        with self._source.at(at):
            return Entity(**parts)

    def add(self, at: YamlNode, entity: Entity, limits: Limits) -> None:
        """Keep the limits of an entity. Raises Invalid if the entity is listed twice."""
        if entity in self.limits:
            self.refuse(at, f"{entity} is listed twice")
        self.limits[entity] = limits

    def number(self, at: YamlNode, whose: str, key: str) -> float:
        """Return the limit at this position, in the unit of `key`. Raises Invalid for text that is not a number, and
        for a limit that is not valid.
        """
        text = self._source.text(at, f"{whose}: {key}")
        if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
            self.refuse(at, f"{whose}: {key}={text[:40]}: not a number. Write a number without a unit")
        with self._source.at(at, f"{whose}: "):
            return value(key, plain(float(text)))

    def refuse(self, at: YamlNode, why: str) -> NoReturn:
        """Raise Invalid for this position."""
        self._source.refuse(at.line, at.column, why)
