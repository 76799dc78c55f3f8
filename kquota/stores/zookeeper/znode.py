"""One znode of Kafka: its name, its config, and the operations of a transaction. No ZooKeeper client is needed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias
from urllib.parse import quote, unquote_plus

from kquota import bounded
from kquota.errors import ExamineZnode, Invalid, Refused
from kquota.terms import ENTITY_TYPES

LIVE_BROKERS: Final = "/brokers/ids"
EVERY_TOPIC: Final = "/brokers/topics"
NOTIFICATIONS: Final = "/config/changes"
_UNFIT: Final = ("", ".", "..")
"""Names that a znode cannot have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A znode that was read."""

    data: bytes
    version: int
    """The version of the data. A conditional write requires this version."""
    children: int = 0
    """The number of children of the znode."""
    made: int = 0
    """The id of the transaction that created the znode. The newer of two znodes has the higher id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create a znode. `Znodes.commit` chooses its ACL.

    With `sequence`, ZooKeeper appends a number to the path. With `ephemeral`, ZooKeeper deletes the znode when the
    session ends.
    """

    path: str
    data: bytes
    sequence: bool = False
    ephemeral: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetData:
    """Write the data of a znode that still has `version`."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Fail the transaction unless the znode still has `version`."""

    data: ClassVar[bytes] = b""

    path: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete a znode that still has `version`."""

    data: ClassVar[bytes] = b""

    path: str
    version: int


ZnodeOperation: TypeAlias = Create | SetData | Check | Delete


def encoded(name: str) -> str:
    """Encode the name of a quota entity like Kafka's Sanitizer: Java's URLEncoder, then `+` and `*` as percent codes.

    Raises Invalid for names that a znode cannot have: the empty name, `.` and `..`.
    """
    if name in _UNFIT:
        raise Invalid(f"neither kquota nor a broker can store the name {name!r} in ZooKeeper. Use another name")
    return quote(name, safe="").replace("~", "%7E")


def decoded(node: str) -> str:
    """Decode the name of a znode like Kafka's Sanitizer.

    Raises Invalid if it is not percent-encoded UTF-8, or if Kafka cannot write the decoded name.
    """
    try:
        name = unquote_plus(node, errors="strict")
    except UnicodeDecodeError as error:
        raise Invalid(f"the znode {node!r} is not percent-encoded UTF-8") from error
    if name in _UNFIT:
        raise Invalid(f"the znode {node!r} encodes the name {name!r}, which Kafka cannot write as a znode")
    return name


def config_in(node: Node | None, entity_path: str) -> dict[str, str]:
    """Return the config in a znode, or {} if the znode is missing or empty. The types of the values are not checked.

    Raises Refused if Kafka did not write the config, because kquota must not replace it.
    """
    if node is None or not node.data:
        return {}
    document = json_in(node)
    config = document.get("config", {})
    if document.get("version") != 1 or not isinstance(config, dict):
        path = f"/config/{entity_path}"
        raise Refused(f"{path} is not a config that Kafka wrote. ", ExamineZnode(path))
    return config


def config_written(path: str, node: Node | None, config: Mapping[str, str]) -> ZnodeOperation:
    """Return the operation that writes `config` to a znode. If `node` is None, the operation creates the znode.

    Other content of an existing znode does not change.
    """
    document = json_in(node)
    data = _dumped({"version": 1} | document | {"config": dict(config)})
    return Create(path=path, data=data) if node is None else SetData(path=path, data=data, version=node.version)


def size(operations: Sequence[ZnodeOperation]) -> int:
    """Estimate the bytes of a transaction. Each operation counts 100 bytes more for the framing and a typical ACL."""
    return sum(len(operation.path) + len(operation.data) + 100 for operation in operations)


def notification(entity_path: str) -> ZnodeOperation:
    """Return the operation that makes every broker read the config of an entity again."""
    data = _dumped({"version": 2, "entity_path": entity_path})
    return Create(path=f"{NOTIFICATIONS}/config_change_", data=data, sequence=True)


def parents_of(entity_path: str) -> list[str]:
    """Return the paths of the znodes between `/config` and the znode of an entity, the highest first."""
    parts = entity_path.split("/")
    return ["/config/" + "/".join(parts[:depth]) for depth in range(1, len(parts))]


def emptied(changed: Mapping[str, Mapping[str, str]], found: Mapping[str, Node | None]) -> list[Delete]:
    """Return the deletions of quota znodes that have neither a config nor children after a change.

    They include parents that become empty: the `clients` znode of a user, and the user's znode. The deletion of a znode
    comes before that of its parent. `changed` has the new config of each changed entity. `found` has the znodes before
    the change, including the znodes in `parents_of`. Source: KAFKA-14285.
    """
    children = {path: node.children for path, node in found.items() if node is not None}
    for entity_path, after in changed.items():
        path = f"/config/{entity_path}"
        if after and found.get(path) is None and (parent := above(path)) in children:
            children[parent] += 1
    deletes: dict[str, Delete] = {}
    for entity_path in sorted(changed, key=lambda name: -name.count("/")):
        kind, *_ = entity_path.split("/")
        path = f"/config/{entity_path}"
        if kind not in ENTITY_TYPES:
            continue
        while path != f"/config/{kind}" and path not in deletes and _is_empty(path, changed, found, children):
            node = found[path]
            assert node is not None
            deletes[path] = Delete(path=path, version=node.version)
            path = above(path)
            if path in children:
                children[path] -= 1
    return list(deletes.values())


def _is_empty(
    path: str,
    changed: Mapping[str, Mapping[str, str]],
    found: Mapping[str, Node | None],
    children: Mapping[str, int],
) -> bool:
    entity_path = path.removeprefix("/config/")
    node = found.get(path)
    if node is None or children[path]:
        return False
    try:
        return not changed.get(entity_path, config_in(node, entity_path))
    except Refused:
        return False


def above(path: str) -> str:
    """Return the path of a znode's parent. If the parent is the root, the result is ""."""
    return path.rpartition("/")[0]


def _dumped(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def json_in(node: Node | None) -> dict[str, Any]:
    """Return the JSON object in a znode, or {} if the znode is missing or has other data."""
    try:
        return {} if node is None else bounded.json_object(node.data)
    except ValueError:
        return {}
