"""The entity of a client quota: a user, a client-id, both, an IP, or a default of these (KIP-55, KIP-612)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from kquota.errors import Invalid
from kquota.settings.resource import must_fit
from kquota.terms import CLIENTS, DEFAULT, IPS, USERS, Default

Name: TypeAlias = str | Default


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One quota entity. Each part is a name, `DEFAULT`, or None if absent. All names that a broker accepts are valid,
    including `<default>` and names with the character NUL.

    Raises Invalid if all parts are None, and if a name is empty, too long or not valid UTF-8. Also raises Invalid if an
    IP is combined with a user or a client-id (KIP-612).
    """

    user: Name | None = None
    client_id: Name | None = None
    ip: Name | None = None

    def __post_init__(self) -> None:
        if self.user is None and self.client_id is None and self.ip is None:
            raise Invalid("a quota entity needs a user, a client-id or both, or an IP")
        if self.ip is not None and (self.user is not None or self.client_id is not None):
            raise Invalid("the quota of an IP cannot have a user or a client-id. Set two separate quotas")
        for entity_type, name in self.parts():
            _must_be_a_name(entity_type, name)

    def parts(self) -> Iterator[tuple[str, Name]]:
        """Yield (entity type, name) for each part that is present, in the order of `ENTITY_TYPES`."""
        for entity_type, name in ((USERS, self.user), (CLIENTS, self.client_id), (IPS, self.ip)):
            if name is not None:
                yield entity_type, name

    def order(self) -> tuple[tuple[int, str], ...]:
        """Return the sort key for display: IPs first, then clients, then users. Within each type, the default comes
        before the names.
        """
        return _rank(self.user), _rank(self.client_id), _rank(self.ip)

    def __str__(self) -> str:
        return " ".join(
            f"{entity_type[:-1]} {'default' if name is DEFAULT else repr(name)}" for entity_type, name in self.parts()
        )


def _rank(name: Name | None) -> tuple[int, str]:
    if name is None:
        return (0, "")
    return (1, "") if isinstance(name, Default) else (2, name)


def _must_be_a_name(entity_type: str, name: Name | Every | None) -> None:
    if name == "":
        raise Invalid(f"{entity_type}: the name must not be empty. An empty name does not select the default entity")
    if isinstance(name, str):
        must_fit(entity_type, name)


class Every:
    """A part of a filter that matches every name and the default. The entity must have this part."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "EVERY"


EVERY: Final = Every()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The entities to describe. As in kafka-configs, a part that is None matches only entities without this part.

    Raises Invalid for names that an Entity cannot have.
    """

    user: Name | Every | None = None
    client_id: Name | Every | None = None
    ip: Name | Every | None = None

    def __post_init__(self) -> None:
        for entity_type, name in ((USERS, self.user), (CLIENTS, self.client_id), (IPS, self.ip)):
            _must_be_a_name(entity_type, name)

    def entity(self) -> Entity | None:
        """Return the only entity that this filter can match, or None if it can match several.

        Raises Invalid for a combination of parts that an Entity cannot have.
        """
        if isinstance(self.user, Every) or isinstance(self.client_id, Every) or isinstance(self.ip, Every):
            return None
        return Entity(user=self.user, client_id=self.client_id, ip=self.ip)

    @classmethod
    def of(cls, entity: Entity) -> Filter:
        """Return the filter that matches this entity alone."""
        return cls(user=entity.user, client_id=entity.client_id, ip=entity.ip)
