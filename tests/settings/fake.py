"""Topic and broker configs in memory. Gaps: values are not checked, and reads are never stale."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kquota.errors import Incomplete, Refused
from kquota.settings.change import ConfigChange
from kquota.settings.resource import BROKERS, TOPICS, Entry, Resource, ResourceKind, Synonym
from kquota.terms import DEFAULT

_DEFAULT_BROKER = Resource(kind=BROKERS, name=DEFAULT)


class FakeConfigs:
    """The port on a dict. `held` gives tests direct access, and `static` has the static values of every broker."""

    def __init__(
        self,
        topics: Iterable[str] = (),
        brokers: Iterable[int] = (),
        release: tuple[int, ...] | None = None,
        static: Mapping[str, str] | None = None,
    ) -> None:
        there = [Resource(kind=TOPICS, name=topic) for topic in topics]
        there += [Resource(kind=BROKERS, name=str(broker)) for broker in brokers]
        self.held: dict[Resource, dict[str, str]] = {resource: {} for resource in [*there, _DEFAULT_BROKER]}
        self.static = dict(static or {})
        self._release = release

    def resources(self, kind: ResourceKind) -> tuple[Resource, ...]:
        there = [resource for resource in self.held if resource.kind == kind and resource.name is not DEFAULT]
        return tuple(sorted(there, key=lambda resource: resource.order))

    def configured(self, kind: ResourceKind) -> tuple[Resource, ...]:
        return (*self.resources(kind), *((_DEFAULT_BROKER,) if kind == BROKERS else ()))

    def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
        return {resource: self._entries(resource) for resource in resources if resource in self.held}

    def alter(self, changes: Sequence[ConfigChange]) -> None:
        missing = [str(change.resource) for change in changes if change.resource not in self.held]
        for change in changes:
            if change.resource in self.held:
                kept = {k: v for k, v in self.held[change.resource].items() if k not in change.delete}
                self.held[change.resource] = kept | dict(change.add)
        if missing:
            words = f"{', '.join(missing)} does not exist"
            done = [str(change.resource) for change in changes if change.resource in self.held]
            raise Incomplete(words, done, missing) if done else Refused(words)

    def release(self) -> tuple[int, ...] | None:
        return self._release

    def _entries(self, resource: Resource) -> tuple[Entry, ...]:
        behind = self.static if resource.kind == BROKERS and resource != _DEFAULT_BROKER else {}
        keys = sorted(self.held[resource].keys() | behind.keys())
        return tuple(self._entry(resource, key, behind.get(key)) for key in keys)

    def _entry(self, resource: Resource, key: str, static: str | None) -> Entry:
        own = "DYNAMIC_TOPIC_CONFIG" if resource.kind == TOPICS else "DYNAMIC_BROKER_CONFIG"
        source = "DYNAMIC_DEFAULT_BROKER_CONFIG" if resource == _DEFAULT_BROKER else own
        stand = [(source, self.held[resource].get(key)), ("STATIC_BROKER_CONFIG", static)]
        synonyms = [Synonym(source=where, key=key, value=value) for where, value in stand if value is not None]
        first = synonyms[0]
        return Entry(
            key=key, value=first.value, source=first.source, dynamic=first.source == source, synonyms=tuple(synonyms)
        )
