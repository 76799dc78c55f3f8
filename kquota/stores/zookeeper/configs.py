"""The Configs port on ZooKeeper: `/config/topics` and `/config/brokers` (KIP-226), and the checks before a write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

from kquota.errors import Invalid, Refused
from kquota.settings.change import ConfigChange
from kquota.settings.resource import BROKERS, TOPICS, Entry, Resource, ResourceKind, Synonym
from kquota.settings.zookeeper_values import is_password, must_be_sound
from kquota.stores.zookeeper.znode import EVERY_TOPIC, LIVE_BROKERS, Node, ZnodeOperation, config_in
from kquota.stores.zookeeper.znodes import ConfigEdit, Znodes
from kquota.terms import DEFAULT, DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, DYNAMIC_TOPIC, WIRE_DEFAULT

_THERE: Final = {TOPICS: EVERY_TOPIC, BROKERS: LIVE_BROKERS}


class Fence(Protocol):
    """Operations that every transaction of a run must contain."""

    def operations(self) -> Sequence[ZnodeOperation]:
        """Return the operations for the next transaction. Raises Busy if another kquota has taken over the lock."""

    def committed(self) -> None:
        """Record that the transaction was committed."""


class Open:
    """No fence, for commands that hold no lock. Implements `Fence`."""

    def operations(self) -> Sequence[ZnodeOperation]:
        return ()

    def committed(self) -> None:
        return None


class ZooKeeperConfigs:
    """Topic and broker configs in their znodes, without the static configs of the brokers.

    kquota leaves out znodes and values that neither kquota nor the brokers can read, and calls `unreadable` with a note
    about each of them.
    """

    def __init__(self, znodes: Znodes, unreadable: Callable[[Refused], None], fence: Fence | None = None) -> None:
        """With a `fence`, each write is in a transaction that fails if another kquota has taken over the lock."""
        self._znodes = znodes
        self._unreadable = unreadable
        self._fence = fence or Open()

    def resources(self, kind: ResourceKind) -> tuple[Resource, ...]:
        return self._resources(kind, self._znodes.children(_THERE[kind]), _THERE[kind])

    def configured(self, kind: ResourceKind) -> tuple[Resource, ...]:
        return self._resources(kind, self._znodes.children(f"/config/{kind}"), f"/config/{kind}")

    def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
        """Return the configs, including those of dead brokers. The value of a password is None.

        A resource whose znode is not a config that Kafka wrote is left out, with a note. If it is the only one in
        `resources`, the method raises Refused instead.
        """
        paths = {resource: f"/config/{entity_path(resource)}" for resource in resources}
        nodes = self._znodes.read_all(paths.values())
        missing = self._missing([resource for resource, path in paths.items() if nodes[path] is None])
        found: dict[Resource, tuple[Entry, ...]] = {}
        for resource, path in paths.items():
            if resource in missing:
                continue
            try:
                found[resource] = self._entries(resource, nodes[path])
            except Refused as error:
                if len(resources) == 1:
                    raise
                self._unreadable(Refused(error, f". kquota leaves out {resource}"))
        return found

    def alter(self, changes: Sequence[ConfigChange]) -> None:
        """Write the changes in one transaction, and start again if a znode has changed since it was read.

        Also raises Refused for a missing topic and for a config that Kafka did not write, and Busy if another kquota
        has taken over the lock.
        """
        for change in changes:
            must_be_sound(change)
        if missing := self._missing([change.resource for change in changes]):
            do = "does" if len(missing) == 1 else "do"
            raise Refused(f"{', '.join(map(str, missing))} {do} not exist. Nothing was written")
        edits = {entity_path(change.resource): _edit(change) for change in changes}
        self._znodes.alter_configs(edits, also=self._fence.operations)
        self._fence.committed()

    def release(self) -> None:
        """Return None, because ZooKeeper does not store the release."""

    def _resources(self, kind: ResourceKind, nodes: Collection[str], parent: str) -> tuple[Resource, ...]:
        found = []
        for node in nodes:
            try:
                name = DEFAULT if kind == BROKERS and node == WIRE_DEFAULT else node
                found.append(Resource(kind=kind, name=name))
            except Invalid as error:
                self._unreadable(Refused(f"under {parent}: ", error, ". The znode is left out"))
        return tuple(sorted(found, key=lambda resource: resource.order))

    def _missing(self, resources: Collection[Resource]) -> list[Resource]:
        """Return the topics that do not exist. Missing brokers are allowed, and can have configs before they start."""
        topics = {r: f"{_THERE[TOPICS]}/{r.name}" for r in resources if r.kind == TOPICS}
        there = self._znodes.read_all(topics.values())
        return [topic for topic, path in topics.items() if there[path] is None]

    def _entries(self, resource: Resource, node: Node | None) -> tuple[Entry, ...]:
        path = entity_path(resource)
        entries = []
        for key, value in sorted(config_in(node, path).items()):
            if isinstance(value, str):
                entries.append(_entry(resource, key, value))
            else:
                self._unreadable(Refused(f"/config/{path}: {key} is not a string, so it is left out"))
        return tuple(entries)


def entity_path(resource: Resource) -> str:
    """Return the path of the resource's config below `/config`."""
    return f"{resource.kind}/{WIRE_DEFAULT if resource.name is DEFAULT else resource.name}"


def _entry(resource: Resource, key: str, stored: str) -> Entry:
    sensitive = resource.kind == BROKERS and is_password(key)
    value = None if sensitive else stored
    source = DYNAMIC_TOPIC if resource.kind == TOPICS else DYNAMIC_BROKER
    source = DYNAMIC_DEFAULT_BROKER if resource.name is DEFAULT else source
    synonyms = (Synonym(source=source, key=key, value=value),)
    return Entry(key=key, value=value, source=source, dynamic=True, sensitive=sensitive, synonyms=synonyms)


def _edit(change: ConfigChange) -> ConfigEdit:
    def edited(before: Mapping[str, str]) -> Mapping[str, str]:
        return {key: value for key, value in before.items() if key not in change.delete} | dict(change.add)

    return edited
