"""The Principals port on ZooKeeper: client quotas (KIP-55, KIP-124, KIP-612) and SCRAM credentials in entity znodes."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from kquota.errors import Conflict, Invalid, KquotaError, Refused
from kquota.quota.entity import EVERY, Entity, Every, Filter, Name
from kquota.quota.limits import Limits, QuotaChange, Replacement, plain
from kquota.quota.port import Scram
from kquota.quota.scram import MECHANISMS, ScramChange
from kquota.quota_keys import quotas_of
from kquota.stores.zookeeper.topics import cluster_id, plain_id
from kquota.stores.zookeeper.znode import LIVE_BROKERS, NOTIFICATIONS, Node, config_in, decoded, encoded, json_in
from kquota.stores.zookeeper.znodes import ConfigEdit, Znodes
from kquota.terms import CLIENTS, DEFAULT, ENTITY_TYPES, IPS, USERS, WIRE_DEFAULT, BrokerId

_SINCE_2_7: Final = 5  # a broker's znode has this version since Kafka 2.7. During an upgrade, it may still have 4
_ROOTS: Final = tuple(f"/config/{kind}" for kind in ENTITY_TYPES)
_ALONE: Final = (Filter(client_id=EVERY), Filter(user=EVERY), Filter(ip=EVERY))
_LARGEST_TRANSACTION: Final = 900_000  # bytes. ZooKeeper accepts 1,048,575 by default
# Each change leaves a notification for 15 minutes. The names of 149,796 notifications exceed the 4 MB that a broker
# accepts in one answer (KAFKA-13270). The broker then receives no further changes.
_MOST_NOTIFICATIONS: Final = 100_000
_NO_ROOM: Final = (
    f"not sent, because ZooKeeper holds at least {_MOST_NOTIFICATIONS:,} notifications of config changes, and brokers "
    "may be unable to read many more; wait 15 minutes"
)


class ZooKeeperQuotas:
    """Client quotas in `/config/users`, `/config/clients` and `/config/ips`, and SCRAM credentials in `/config/users`.
    Implements `Principals`.

    `unreadable` is called on each read, with a note about every znode and value that kquota leaves out. Brokers
    cannot read these either, except znodes whose names Kafka would write differently.
    """

    def __init__(self, znodes: Znodes, unreadable: Callable[[str], None]) -> None:
        self._znodes = znodes
        self._unreadable = unreadable
        self._known: Mapping[str, Node] | None = None

    def describe(self, wanted: Filter) -> Mapping[Entity, Limits]:
        paths = _paths(self._entities(wanted))
        return self._limited(paths, self._configs(paths, self._read(paths)))

    def everything(self) -> Mapping[Entity, Limits]:
        paths = _paths(entity for wanted in _ALONE for entity in self._entities(wanted))
        known = self._znodes.read_all([*_ROOTS, *(f"/config/{path}" for path in paths.values())])
        # Read only the clients of users whose znode has children. Reading those of all users would double the time.
        parents = {
            entity.user: f"{path}/{CLIENTS}"
            for entity, path in paths.items()
            if entity.user is not None and (node := known[f"/config/{path}"]) is not None and node.children
        }
        nested = _paths(self._nested(parents))
        known |= self._znodes.read_all(f"/config/{path}" for path in (*parents.values(), *nested.values()))
        self._known = {path: node for path, node in known.items() if node is not None}
        paths |= nested
        return self._limited(paths, self._configs(paths, known))

    def users(self, name: Name | Every) -> tuple[Mapping[Entity, Limits], Scram]:
        """Return limits and credentials. The iterations are None, because kquota does not parse stored credentials."""
        paths = _paths(self._entities(Filter(user=name)))
        configs = self._configs(paths, self._read(paths))
        scram: dict[str, dict[str, int | None]] = {}
        for entity, config in configs.items():
            if entity.user is not DEFAULT and (kept := [mechanism for mechanism in MECHANISMS if mechanism in config]):
                scram[str(entity.user)] = dict.fromkeys(kept)
        return self._limited(paths, configs), scram

    def must_accept_credentials(self) -> None:
        """Raise nothing, because every release reads credentials from ZooKeeper."""

    def alter_credentials(self, change: ScramChange) -> tuple[str, ...]:
        """Write the keys as kafka-configs 3.9 does, but start again if the znode has changed since it was read.

        Also raises Refused for a config that Kafka did not write.
        """
        absent: tuple[str, ...] = ()

        def edited(before: Mapping[str, str]) -> Mapping[str, str]:
            nonlocal absent
            absent = tuple(mechanism for mechanism in change.delete if mechanism not in before)
            kept = {key: value for key, value in before.items() if key not in change.delete}
            return kept | {keys.mechanism: keys.stored() for keys in change.add}

        self._znodes.alter_configs({_path(Entity(user=change.user)): edited})
        return absent

    def release(self) -> tuple[int, ...] | None:
        """Return (2, 7) if the registration of every live broker shows this release or a newer one, otherwise None.
        ZooKeeper does not store the release itself.
        """
        nodes = self._znodes.read_all(f"{LIVE_BROKERS}/{broker}" for broker in self._znodes.children(LIVE_BROKERS))
        return (2, 7) if nodes and all(_registered(node) >= _SINCE_2_7 for node in nodes.values()) else None

    def brokers(self) -> frozenset[BrokerId]:
        """Return the live brokers. A znode whose name is not a broker id is left out."""
        names = self._znodes.children(LIVE_BROKERS)
        return frozenset(BrokerId(int(name)) for name in names if plain_id(name))

    def cluster_id(self) -> str:
        return cluster_id(self._znodes)

    def _read(self, paths: Mapping[Entity, str]) -> Mapping[str, Node | None]:
        return self._znodes.read_all(f"/config/{path}" for path in paths.values())

    def _configs(
        self, paths: Mapping[Entity, str], nodes: Mapping[str, Node | None]
    ) -> Mapping[Entity, Mapping[str, str]]:
        configs = {}
        for entity, path in paths.items():
            try:
                configs[entity] = config_in(nodes[f"/config/{path}"], path)
            except Refused:
                self._unreadable(
                    f"/config/{path} is not a config that Kafka wrote, so {entity} is left out. "
                    "Brokers cannot read this config either, and kquota leaves it unchanged"
                )
        return configs

    def _limited(
        self, paths: Mapping[Entity, str], configs: Mapping[Entity, Mapping[str, str]]
    ) -> Mapping[Entity, Limits]:
        return {
            entity: limits
            for entity, config in configs.items()
            if (limits := self._limits(entity, paths[entity], config))
        }

    def alter(self, changes: Sequence[QuotaChange]) -> None:
        """Write all changes in one transaction. Raises Invalid if `must_carry` rejects the entity of an added quota.
        Also raises the errors of `Znodes.alter_configs`.
        """
        must_carry(change.entity for change in changes if change.add)
        self._znodes.alter_configs({_path(change.entity): _edit(change) for change in changes})

    def must_carry(self, entities: Iterable[Entity]) -> None:
        must_carry(entities)

    def replace(self, batch: Sequence[Replacement]) -> Mapping[Entity, str | KquotaError]:
        """Write the changes in one transaction if possible, and return the reason for each change that was not made.

        After a failure, each half is written separately, so that one unwritable znode does not prevent the other
        changes. Changes beyond `_room` are not sent. Raises Unreachable if the session was lost.
        """
        room = self._room()
        undone: dict[Entity, str | KquotaError] = {replacement.entity: _NO_ROOM for replacement in batch[room:]}
        self._replace(batch[:room], undone)
        return undone

    def _room(self) -> int:
        """Return how many more notifications brokers can read, but at least 1, because brokers delete old notifications
        only when a new one arrives.
        """
        changes = self._znodes.read(NOTIFICATIONS)
        return max(1, _MOST_NOTIFICATIONS - (changes.children if changes is not None else 0))

    def _replace(self, batch: Sequence[Replacement], undone: dict[Entity, str | KquotaError]) -> None:
        try:
            edits = {_path(replacement.entity): self._conditional(replacement, undone) for replacement in batch}
            self._znodes.alter_configs(edits, largest=_LARGEST_TRANSACTION, known=self._known)
        except (Conflict, Refused) as error:
            if len(batch) == 1:
                undone[batch[0].entity] = error
                return
            for half in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):
                self._replace(half, undone)

    def _conditional(self, replacement: Replacement, undone: dict[Entity, str | KquotaError]) -> ConfigEdit:
        entity, path, edit = replacement.entity, _path(replacement.entity), _edit(replacement.change)

        def edited(before: Mapping[str, str]) -> Mapping[str, str]:
            if replacement.is_unchanged(self._limits(entity, path, before)):
                undone.pop(entity, None)
                return edit(before)
            undone[entity] = "the limits have changed since kquota read them"
            return before

        return edited

    def _entities(self, wanted: Filter) -> Iterable[Entity]:
        if wanted.ip is not None:
            return [Entity(ip=ip) for ip in self._names(IPS, wanted.ip)]
        if wanted.user is None:
            return [Entity(client_id=client_id) for client_id in self._names(CLIENTS, wanted.client_id)]
        users = list(self._names(USERS, wanted.user))
        if wanted.client_id is None:
            return [Entity(user=user) for user in users]
        if not isinstance(wanted.client_id, Every):
            return [Entity(user=user, client_id=wanted.client_id) for user in users]
        return self._nested({user: f"{_path(Entity(user=user))}/{CLIENTS}" for user in users})

    def _nested(self, parents: Mapping[Name, str]) -> Iterable[Entity]:
        """Yield each client of the users. `parents` has the path above the clients of each user."""
        children = self._znodes.children_all(f"/config/{parent}" for parent in parents.values())
        for user, parent in parents.items():
            for client_id in self._decoded(children[f"/config/{parent}"], parent):
                yield Entity(user=user, client_id=client_id)

    def _names(self, parent: str, wanted: Name | Every | None) -> Iterable[Name]:
        if isinstance(wanted, Every):
            return self._decoded(self._znodes.children(f"/config/{parent}"), parent)
        return [] if wanted is None else [wanted]

    def _decoded(self, nodes: Iterable[str], parent: str) -> list[Name]:
        """Return the names that znodes encode, without invalid names. A znode whose name kquota would encode in another
        way is left out, because a change would write another znode.
        """
        names: list[Name] = []
        kind = parent.rpartition("/")[2]
        for node in nodes:
            try:
                name: Name = DEFAULT if node == WIRE_DEFAULT else decoded(node)
                if (written := _node(kind, name)) != node:
                    raise Invalid(f"Kafka writes the znode {node!r} as {written!r}")
                names.append(name)
            except Invalid as error:
                self._unreadable(f"under /config/{parent}: {error}. The znode is left out")
        return names

    def _limits(self, entity: Entity, path: str, config: Mapping[str, str]) -> Limits:
        limits = {}
        for key in quotas_of([entity_type for entity_type, _ in entity.parts()]):
            if key in config:
                try:
                    limits[key] = _number(config[key])
                except ValueError:
                    self._unreadable(f"/config/{path}: {key} is {config[key]!r}, not a number, so it is left out")
        return limits


def must_carry(entities: Iterable[Entity]) -> None:
    """Raise Invalid for the first entity that cannot have a quota in ZooKeeper."""
    for entity in entities:
        _path(entity)
        if isinstance(entity.ip, str) and _is_ipv6(entity.ip):
            raise Invalid(
                f"{entity}: an IPv6 address cannot have a quota on a ZooKeeper cluster, because its brokers take the "
                f"encoded name {encoded(entity.ip)} as a host name"
            )


def _is_ipv6(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).version == 6
    except ValueError:
        return False


def _registered(node: Node | None) -> int:
    version = json_in(node).get("version")
    return version if type(version) is int else 0


def _number(value: object) -> float:
    """Return the limit in a stored value. Raises ValueError for a value that brokers cannot read."""
    # `float` also accepts JSON numbers and booleans, non-ASCII digits, and underscores as in `1_000`.
    if not isinstance(value, str) or not value.isascii() or "_" in value:
        raise ValueError("it is not a number in a string")
    return float(value)


def _paths(entities: Iterable[Entity]) -> dict[Entity, str]:
    return {entity: _path(entity) for entity in entities}


def _path(entity: Entity) -> str:
    return "/".join(f"{kind}/{_node(kind, name)}" for kind, name in entity.parts())


def _node(kind: str, name: Name) -> str:
    if name is DEFAULT:
        return WIRE_DEFAULT
    # Kafka's tool accepts IPv6 addresses here and does not encode their colons.
    return encoded(str(name)).replace("%3A", ":") if kind == IPS else encoded(str(name))


def _edit(change: QuotaChange) -> ConfigEdit:
    def edited(before: Mapping[str, str]) -> Mapping[str, str]:
        after = {key: value for key, value in before.items() if key not in change.delete}
        return after | {key: plain(value) for key, value in change.add.items() if not _same(after.get(key), value)}

    return edited


def _same(text: str | None, value: float) -> bool:
    """Return True if stored text already means `value`. The Admin API writes 1024 as `1024.0`."""
    try:
        return text is not None and float(text) == value
    except (TypeError, ValueError):
        return False
