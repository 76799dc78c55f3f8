"""A change to the limits of one entity, with a check that it is visible."""

from __future__ import annotations

from dataclasses import dataclass, field

from kquota.errors import Invalid
from kquota.quota.entity import Entity
from kquota.quota.limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaChange:
    """Keys to set and keys to delete for one entity. Raises Invalid if there are none, or if a key is in both."""

    entity: Entity
    add: Limits = field(default_factory=dict)
    delete: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.add and not self.delete:
            raise Invalid("nothing to change: no key is set and none is deleted")
        if both := sorted(set(self.add) & set(self.delete)):
            raise Invalid(f"{', '.join(both)}: both added and deleted")

    def seen(self, after: Limits) -> bool:
        """True if `after` shows this change. Other keys are ignored."""
        return all(after.get(key) == value for key, value in self.add.items()) and not set(self.delete) & set(after)
