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
MOST_PATTERNS: Final = 10_000
"""The maximum number of patterns in a scope."""
_MOST_WILDCARDS: Final = 1_000
"""The maximum number of patterns with `*`, `?` or `[`. Compiling each of them takes 0.25 ms and several kB."""
_WILDCARD: Final = re.compile(r"[*?[]")
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
    _names: Mapping[str, frozenset[str]] = field(init=False, compare=False, repr=False)
    _wildcards: Mapping[str, re.Pattern[str]] = field(init=False, compare=False, repr=False)
    _defaults: frozenset[str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Raise Invalid for a pattern in an unknown form, and for too many patterns."""
        if len(self.patterns) > MOST_PATTERNS or len(list(filter(_WILDCARD.search, self.patterns))) > _MOST_WILDCARDS:
            raise Invalid(
                f"has more than {MOST_PATTERNS:,} patterns, or more than {_MOST_WILDCARDS:,} with a wildcard. Use "
                "fewer patterns that match more names"
            )
        names: dict[str, set[str]] = {kind: set() for kind in ENTITY_TYPES}
        wildcards: dict[str, list[str]] = {kind: [] for kind in ENTITY_TYPES}
        defaults = set()
        for written in self.patterns:
            if written in _DEFAULTS:
                defaults.add(_DEFAULTS[written])
                continue
            kinds, pattern = _parsed(written)
            for kind in kinds:
                if _WILDCARD.search(pattern):
                    wildcards[kind].append(fnmatch.translate(pattern))
                else:
                    names[kind].add(pattern)
        object.__setattr__(self, "_names", {kind: frozenset(some) for kind, some in names.items()})
        object.__setattr__(self, "_wildcards", {kind: re.compile("|".join(w)) for kind, w in wildcards.items() if w})
        object.__setattr__(self, "_defaults", frozenset(defaults))

    def owns(self, entity: Entity) -> bool:
        """Return True if the entity's principal is in the scope: its user, or without a user its client-id or IP."""
        return self._has(*next(entity.parts()))

    def touches(self, entity: Entity) -> bool:
        """Return True if any part of the entity is in the scope.

        This is wider than `owns`, because protection of a user or a client-id must cover every quota that names it.
        """
        return any(self._has(kind, name) for kind, name in entity.parts())

    def _has(self, kind: str, name: Name) -> bool:
        if name is DEFAULT:
            return kind in self._defaults
        wildcards = self._wildcards.get(kind)
        return name in self._names[kind] or (wildcards is not None and wildcards.fullmatch(name) is not None)


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


NO_ENTITY: Final = Scope(patterns=())
"""The scope that contains no entity."""

Throttles: TypeAlias = Mapping[Resource, Mapping[str, str]]
"""The replication throttles of each resource: rates in whole bytes per second, and throttled replica lists as Kafka
stores them. An empty list is left out.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The entities and the throttled resources that a document names, each with all its limits or throttles, and the
    scopes of the document.
    """

    limits: Mapping[Entity, Limits]
    owns: Scope | None = None
    """The entities that may be pruned. None if the document does not state them. In this case, no entity may be
    pruned.
    """
    protect: Scope = NO_ENTITY
    """The entities that never change."""
    throttles: Throttles = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    """Descriptions of quotas of a cluster, or of resources in a file, that kquota cannot show as limits and never
    changes.
    """


def order(resource: Resource) -> tuple[object, ...]:
    """Return the sort key of a resource in a document: the default broker is first. The hash of a difference depends on
    this order.
    """
    return (resource.kind, resource.name is not DEFAULT, resource.order)
