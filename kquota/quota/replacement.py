"""All limits of one entity before and after a document is applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kquota.quota.change import QuotaChange
from kquota.quota.entity import Entity
from kquota.quota.limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """`before` is what was read, `after` what will be set. `pruned`: the document does not name the entity."""

    entity: Entity
    before: Limits
    after: Limits
    pruned: bool = False

    def differing(self) -> Iterator[tuple[str, float | None, float | None]]:
        """(key, old, new) of each key that changes, sorted; None means not set."""
        for key in sorted({*self.before, *self.after}):
            old, new = self.before.get(key), self.after.get(key)
            if old != new:
                yield key, old, new

    @property
    def change(self) -> QuotaChange:
        """The keys to set and the keys to delete. Raises Invalid if nothing changes."""
        keys = list(self.differing())
        return QuotaChange(
            entity=self.entity,
            add={key: new for key, _, new in keys if new is not None},
            delete=tuple(key for key, _, new in keys if new is None),
        )

    def stands(self, now: Limits) -> bool:
        """True if `now` is still what was read. A NaN, which brokers accept, is equal to itself here."""
        return _spelt(now) == _spelt(self.before)

    def seen(self, now: Limits) -> bool:
        """True if `now` is what was to be set."""
        return _spelt(now) == _spelt(self.after)


def _spelt(limits: Limits) -> dict[str, str]:
    return {key: repr(value) for key, value in limits.items()}
