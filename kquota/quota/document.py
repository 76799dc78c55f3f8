"""The quotas of a cluster as one document for review: its limits and throttles, and the principals that it covers."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kquota.errors import Invalid
from kquota.quota.entity import Entity, Name
from kquota.quota.limits import Limits
from kquota.settings.resource import Resource
from kquota.terms import CLIENTS, DEFAULT, ENTITY_TYPES, IPS, USERS

_KINDS: Final = {"user": USERS, "client": CLIENTS, "ip": IPS}
_DEFAULTS: Final = {f"default-{word}": kind for word, kind in _KINDS.items()}
FORMS: Final = (
    "user:PATTERN, client:PATTERN, ip:PATTERN, a bare PATTERN for all three, default-user, default-client, default-ip"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A set of principals: shell patterns for names (`*`, `?`, `[a-z]`), and words like `default-user`.

    `user:`, `client:` and `ip:` state the kind of the name, as `User:` does in an ACL. A pattern without a kind matches
    all three kinds. A pattern, even `*`, matches only names and never a default entity.
    """

    patterns: tuple[str, ...]
    _names: dict[str, re.Pattern[str]] = field(init=False, compare=False, repr=False)
    _defaults: frozenset[str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Raise Invalid for a pattern in an unknown form."""
        names: dict[str, list[str]] = {kind: [] for kind in ENTITY_TYPES}
        defaults = set()
        for written in self.patterns:
            if written in _DEFAULTS:
                defaults.add(_DEFAULTS[written])
                continue
            kinds, pattern = _parsed(written)
            for kind in kinds:
                names[kind].append(fnmatch.translate(pattern))
        compiled = {kind: re.compile("|".join(some)) for kind, some in names.items() if some}
        object.__setattr__(self, "_names", compiled)
        object.__setattr__(self, "_defaults", frozenset(defaults))

    def owns(self, entity: Entity) -> bool:
        """True if the entity's principal is in the scope: its user if it has one, otherwise its client-id or IP."""
        return self._has(*next(entity.parts()))

    def touches(self, entity: Entity) -> bool:
        """True if any part of the entity is in the scope.

        This is wider than `owns`, because protection of a user or a client-id must cover every quota that names it.
        """
        return any(self._has(kind, name) for kind, name in entity.parts())

    def _has(self, kind: str, name: Name) -> bool:
        if name is DEFAULT:
            return kind in self._defaults
        pattern = self._names.get(kind)
        return pattern is not None and pattern.fullmatch(str(name)) is not None


def _parsed(written: str) -> tuple[tuple[str, ...], str]:
    kinds: tuple[str, ...]
    word, colon, pattern = written.partition(":")
    if not colon:
        kinds, pattern = ENTITY_TYPES, word
    elif (kind := _KINDS.get(word.lower())) is not None:
        kinds = (kind,)
    else:
        raise Invalid(
            f"{written!r}: unknown kind before the colon. Write, for example, user:{written}. Valid forms: {FORMS}"
        )
    if not pattern:
        raise Invalid(f"{written!r}: the pattern is empty. Valid forms: {FORMS}")
    return kinds, pattern


NOBODY: Final = Scope(patterns=())

Throttles: TypeAlias = Mapping[Resource, Mapping[str, str]]
"""The replication throttles of each resource: rates in whole bytes per second, and lists as Kafka stores them. An empty
list is left out.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The entities that a document names, each with all its limits, and the scope of the document.

    `owns` limits the entities that may be pruned. It is None if the document does not state it. Entities in `protect`
    never change. `unreadable` describes quotas of the cluster that kquota cannot show as limits, and that it never
    changes.
    """

    limits: Mapping[Entity, Limits]
    owns: Scope | None = None
    protect: Scope = NOBODY
    throttles: Throttles = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()


def order(resource: Resource) -> tuple[object, ...]:
    """Return the sort key of a resource in a document: the default broker is first. The hash of a difference depends on
    this order.
    """
    return (resource.kind, resource.name is not DEFAULT, resource.order)
