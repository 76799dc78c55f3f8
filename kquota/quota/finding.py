"""One thing in a set of quotas that somebody should look at."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.quota.change import QuotaChange
from kquota.quota.entity import Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFinding:
    """One thing to look at: of whom and which key (None: of the whole entity, or of the brokers), and what helps.

    `cure` are the changes that would do what `do` says, in order; () where only a person can tell what was meant.
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
        """What the store said of a node or a value that is left out of everything else here."""
        return cls(
            rule="unreadable",
            entity=None,
            key=None,
            what=line,
            why="brokers do not enforce a quota that they cannot read, and kquota cannot check it",
            do="check it manually",
        )
