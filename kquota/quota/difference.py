"""The changes that a document makes to the current quotas and throttles, and a hash that identifies them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from kquota.errors import Invalid, Refused
from kquota.list_text import few
from kquota.measure import counted
from kquota.quota.document import Document, Throttles, order
from kquota.quota.entity import Entity
from kquota.quota.limits import Limits, Replacement
from kquota.settings.change import ConfigChange
from kquota.settings.resource import Resource
from kquota.settings.throttled_lists import entries
from kquota.terms import DEFAULT, THROTTLE_LISTS

_DIGITS: Final = 16
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """The throttles of a broker, the default broker or a topic, before and after a document is applied. They are never
    pruned.
    """

    entity: Resource
    before: Mapping[str, str]
    after: Mapping[str, str]
    pruned: Literal[False] = False

    def differing(self) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield (key, old, new) for each key that changes, sorted. None means not set. A different order of list
        entries is not a change.
        """
        for key in sorted({*self.before, *self.after}):
            old, new = self.before.get(key), self.after.get(key)
            if not _same(key, old, new):
                yield key, old, new

    @property
    def change(self) -> ConfigChange:
        """The keys to set and the keys to delete. Raises Invalid if nothing changes."""
        keys = list(self.differing())
        return ConfigChange(
            resource=self.entity,
            add={key: new for key, _, new in keys if new is not None},
            delete=tuple(key for key, _, new in keys if new is None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The entities and resources that change, in display order, and the protected entities that pruning keeps."""

    replacements: tuple[Replacement, ...]
    kept: tuple[Entity, ...]
    throttlings: tuple[Throttling, ...]

    @property
    def changes(self) -> tuple[Replacement | Throttling, ...]:
        """Everything that changes, quotas first."""
        return (*self.replacements, *self.throttlings)

    @property
    def hash(self) -> str:
        """`sha256:` and 16 hexadecimal digits, calculated from the entity, key, old value and new value of every
        change.

        Apart from an unlikely collision, different changes have different hashes.
        """
        digest = hashlib.sha256()
        for change in self.changes:
            parts = [[kind, None if name is DEFAULT else name] for kind, name in change.entity.parts()]
            digest.update(json.dumps([parts, *change.differing()]).encode() + b"\n")
        return f"sha256:{digest.hexdigest()[:_DIGITS]}"


def difference(
    document: Document, current: Mapping[Entity, Limits], *, prune: bool, throttles: Throttles | None = None
) -> Difference:
    """Return the changes that a document makes to the current limits, which are in `current`, and to `throttles`.

    A named entity gets exactly the limits in the document, and its other limits are removed. With `prune`, an entity
    that is not named loses all limits if `owns` covers it and `protect` does not. Otherwise it stays unchanged.
    `throttles` are the current throttles of the brokers and topics that the document names. Other throttles never
    change. Raises Refused if a protected entity in the document would change, and Invalid for `prune` without `owns`.
    """
    wanted: dict[Entity, Limits] = dict(document.limits)
    kept = []
    if prune:
        if document.owns is None:
            raise Invalid(
                "`prune` needs `owns: [patterns]` in the document. The patterns name the entities that kquota may prune"
            )
        for entity in sorted(current.keys() - wanted.keys(), key=Entity.order):
            if current[entity] and document.owns.owns(entity):
                if document.protect.touches(entity):
                    kept.append(entity)
                else:
                    wanted[entity] = {}
    every = (
        Replacement(
            entity=entity,
            before=current.get(entity, {}),
            after=wanted[entity],
            pruned=entity not in document.limits,
        )
        for entity in sorted(wanted, key=Entity.order)
    )
    replacements = tuple(replacement for replacement in every if any(replacement.differing()))
    _must_not_be_protected(document, replacements)
    return Difference(
        replacements=replacements, kept=tuple(kept), throttlings=throttlings(document.throttles, throttles or {})
    )


def _must_not_be_protected(document: Document, replacements: tuple[Replacement, ...]) -> None:
    touched = [str(r.entity) for r in replacements if document.protect.touches(r.entity)]
    if touched:
        raise Refused(
            f"the document would change {counted(len(touched), 'protected entity')}: {few(touched, _SHOWN)}. "
            "Nothing was written. Remove protected entities from the document, or change `protect:`"
        )


def throttlings(wanted: Throttles, current: Throttles) -> tuple[Throttling, ...]:
    """Return the changes that turn the throttles in `current` into `wanted`, for the resources in `wanted`, in display
    order.
    """
    every = (
        Throttling(entity=resource, before=current.get(resource, {}), after=wanted[resource])
        for resource in sorted(wanted, key=order)
    )
    return tuple(throttling for throttling in every if any(throttling.differing()))


def _same(key: str, old: str | None, new: str | None) -> bool:
    if old is None or new is None or key not in THROTTLE_LISTS:
        return old == new
    return set(entries(old)) == set(entries(new))
