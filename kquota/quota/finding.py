"""A finding: a quota that an operator should check."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.quota.change import QuotaChange
from kquota.quota.entity import Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFinding:
    """A quota to check: its entity and key (None: the whole entity, or the brokers), and how to correct it.

    `cure` are the changes that carry out `do`, in order; () if only a person can know what was intended.
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
        """The finding for a znode or value that the store could not read and left out."""
        return cls(
            rule="unreadable",
            entity=None,
            key=None,
            what=line,
            why="brokers do not enforce a quota that they cannot read, and kquota cannot check it",
            do="check it manually",
        )
