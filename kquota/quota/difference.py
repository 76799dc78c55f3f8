"""The changes that a document makes to the current limits, and a hash that identifies them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kquota.errors import Invalid, Refused
from kquota.list_text import few
from kquota.quota.document import Document
from kquota.quota.entity import Entity
from kquota.quota.limits import Limits
from kquota.quota.replacement import Replacement
from kquota.quota.throttling import Throttles, Throttling, throttlings
from kquota.terms import DEFAULT

_DIGITS: Final = 16
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The entities that change, in display order, and those that pruning keeps because they are protected."""

    replacements: tuple[Replacement, ...]
    kept: tuple[Entity, ...] = ()
    throttlings: tuple[Throttling, ...] = ()

    @property
    def changes(self) -> tuple[Replacement | Throttling, ...]:
        """Everything that changes, quotas first."""
        return (*self.replacements, *self.throttlings)

    @property
    def hash(self) -> str:
        """`sha256:` and 16 digits over every entity, key, old and new value. Only the same change has this hash."""
        digest = hashlib.sha256()
        for change in self.changes:
            parts = [[kind, None if name is DEFAULT else name] for kind, name in change.entity.parts()]
            digest.update(json.dumps([parts, *change.differing()]).encode() + b"\n")
        return f"sha256:{digest.hexdigest()[:_DIGITS]}"


def difference(
    document: Document, standing: Mapping[Entity, Limits], *, prune: bool, throttles: Throttles | None = None
) -> Difference:
    """The changes that turn `standing` into what `document` says.

    A named entity gets exactly the limits in the document, and its other limits are removed. An entity that is not
    named stays unchanged, unless `prune` is set and `owns` covers it. `throttles` are the current ones of the brokers
    and topics that the document names; others never change. Raises Refused if a protected entity that is named would
    change, and Invalid for `prune` without `owns`.
    """
    wanted: dict[Entity, Limits] = dict(document.limits)
    kept = []
    if prune:
        if document.owns is None:
            raise Invalid("pruning needs `owns: [patterns]` in the document, which states what may be removed")
        for entity in sorted(standing.keys() - wanted.keys(), key=Entity.order):
            if standing[entity] and document.owns.owns(entity):
                if document.protect.touches(entity):
                    kept.append(entity)
                else:
                    wanted[entity] = {}
    every = (
        Replacement(
            entity=entity,
            before=standing.get(entity, {}),
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
            f"the document would change protected entities: {few(touched, _SHOWN)}. Nothing was written. "
            "Remove them from the document or from `protect:`"
        )
