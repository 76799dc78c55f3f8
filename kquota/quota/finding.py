"""A finding: a quota that an operator should check."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFinding:
    """A quota to check. Without a key, the finding is about the whole entity. Without an entity, it is about the
    brokers, or about something that kquota could not read.

    `cure` has the changes that carry out `do`, in order. It is empty if only a person can decide what to change.
    """

    rule: str
    entity: Entity | None
    key: str | None
    what: str
    why: str
    do: str
    cure: tuple[QuotaChange, ...] = ()

    @classmethod
    def unreadable(cls, line: str) -> QuotaFinding:
        """Return the finding for a znode, a value or an entity type that the store could not read and left out."""
        return cls(
            rule="unreadable",
            entity=None,
            key=None,
            what=line,
            why="kquota cannot check this quota, and brokers enforce it only if they can read it",
            do="check this quota manually",
        )
