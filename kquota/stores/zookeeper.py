"""The Quotas port on ZooKeeper (KIP-55, KIP-124): where each entity lives, and what of its node is a client quota."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from kquota.errors import Conflict, Invalid, Refused
from kquota.quota.change import Change
from kquota.quota.entity import EVERYTHING, Entity, Every, Filter, Name
from kquota.quota.limits import Limits, plain, quotas_of
from kquota.quota.replacement import Replacement
from kquota.stores.znodes import DEFAULT_NODE, ConfigEdit, Znodes, config_in, decoded, encoded
from kquota.terms import DEFAULT

_USERS: Final = "users"
_CLIENTS: Final = "clients"
_IPS: Final = "ips"
_LARGEST_TRANSACTION: Final = 900_000  # bytes; a ZooKeeper takes 1,048,575 unless its operator says otherwise


class ZooKeeperQuotas:
    """Client quotas in `/config/users`, `/config/clients` and `/config/ips`.

    `unreadable` is told, once a describe, of every node and value that no broker could read either; they are left out.
    """

    def __init__(self, znodes: Znodes, unreadable: Callable[[str], None]) -> None:
        self._znodes = znodes
        self._unreadable = unreadable

    def describe(self, wanted: Filter) -> Mapping[Entity, Limits]:
        """See the port."""
        return self._described(dict(self._paths(wanted)))

    def everything(self) -> Mapping[Entity, Limits]:
        """See the port."""
        return self._described({entity: path for wanted in EVERYTHING for entity, path in self._paths(wanted)})

    def _described(self, paths: Mapping[Entity, str]) -> Mapping[Entity, Limits]:
        nodes = self._znodes.read_all(f"/config/{path}" for path in paths.values())
        return {
            entity: limits
            for entity, path in paths.items()
            if (limits := self._limits(entity, path, config_in(nodes[f"/config/{path}"], path)))
        }

    def alter(self, changes: Sequence[Change]) -> None:
        """See the port. One transaction: every entity is changed, or none is."""
        self._znodes.alter_configs({_path(change.entity): _edit(change) for change in changes})

    def must_carry(self, entities: Iterable[Entity]) -> None:
        """See the port."""
        for entity in entities:
            _path(entity)

    def replace(self, batch: Sequence[Replacement]) -> Mapping[Entity, str]:
        """See the port. In as few transactions as ZooKeeper takes: what one node refuses, the others do not feel."""
        undone: dict[Entity, str] = {}
        self._replace(batch, undone)
        return undone

    def _replace(self, batch: Sequence[Replacement], undone: dict[Entity, str]) -> None:
        try:
            edits = {_path(replacement.entity): self._conditional(replacement, undone) for replacement in batch}
            self._znodes.alter_configs(edits, largest=_LARGEST_TRANSACTION)
        except (Conflict, Refused) as error:
            if len(batch) == 1:
                undone[batch[0].entity] = str(error)
                return
            for half in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):
                self._replace(half, undone)

    def _conditional(self, replacement: Replacement, undone: dict[Entity, str]) -> ConfigEdit:
        entity, path, edit = replacement.entity, _path(replacement.entity), _edit(replacement.change)

        def edited(before: Mapping[str, str]) -> Mapping[str, str]:
            if replacement.stands(self._limits(entity, path, before)):
                undone.pop(entity, None)
                return edit(before)
            undone[entity] = "somebody changed its limits meanwhile"
            return before

        return edited

    def _paths(self, wanted: Filter) -> Iterable[tuple[Entity, str]]:
        if wanted.ip is not None:
            yield from ((entity, _path(entity)) for entity in (Entity(ip=ip) for ip in self._names(_IPS, wanted.ip)))
            return
        if wanted.user is None:
            for client_id in self._names(_CLIENTS, wanted.client_id):
                entity = Entity(client_id=client_id)
                yield entity, _path(entity)
            return
        users = list(self._names(_USERS, wanted.user))
        if wanted.client_id is None:
            yield from ((entity, _path(entity)) for entity in (Entity(user=user) for user in users))
            return
        parents = {user: f"{_path(Entity(user=user))}/{_CLIENTS}" for user in users}
        if isinstance(wanted.client_id, Every):
            children = self._znodes.children_all(f"/config/{parent}" for parent in parents.values())
            found = {user: self._decoded(children[f"/config/{parent}"], parent) for user, parent in parents.items()}
        else:
            found = {user: [wanted.client_id] for user in users}
        for user, client_ids in found.items():
            for client_id in client_ids:
                entity = Entity(user=user, client_id=client_id)
                yield entity, _path(entity)

    def _names(self, parent: str, wanted: Name | Every | None) -> Iterable[Name]:
        if isinstance(wanted, Every):
            return self._decoded(self._znodes.children(f"/config/{parent}"), parent)
        return [] if wanted is None else [wanted]

    def _decoded(self, nodes: Iterable[str], parent: str) -> list[Name]:
        names: list[Name] = []
        for node in nodes:
            try:
                names.append(DEFAULT if node == DEFAULT_NODE else decoded(node))
            except Invalid as error:
                self._unreadable(f"under /config/{parent}: {error}; it is left out")
        return names

    def _limits(self, entity: Entity, path: str, config: Mapping[str, str]) -> Limits:
        limits = {}
        for key in quotas_of([entity_type for entity_type, _ in entity.parts()]):
            if key in config:
                try:
                    limits[key] = float(config[key])
                except (TypeError, ValueError):
                    self._unreadable(f"/config/{path}: {key} is {config[key]!r}, not a number; it is left out")
        return limits


def _path(entity: Entity) -> str:
    return "/".join(
        f"{kind}/{DEFAULT_NODE if name is DEFAULT else encoded(str(name))}" for kind, name in entity.parts()
    )


def _edit(change: Change) -> ConfigEdit:
    def edited(before: Mapping[str, str]) -> Mapping[str, str]:
        after = {key: value for key, value in before.items() if key not in change.delete}
        return after | {key: plain(value) for key, value in change.add.items() if not _same(after.get(key), value)}

    return edited


def _same(text: str | None, value: float) -> bool:
    """Whether a stored text already means `value`: `1024.0`, as the Admin API writes it, is no reason to write 1024."""
    try:
        return text is not None and float(text) == value
    except (TypeError, ValueError):
        return False
