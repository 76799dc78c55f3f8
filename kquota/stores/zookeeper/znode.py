"""One znode of Kafka's: its name, the config in it, and what a transaction may do to it. Knows no client."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote_plus

from kquota.errors import Invalid, Parameter, Refused

LIVE_BROKERS: Final = "/brokers/ids"
EVERY_TOPIC: Final = "/brokers/topics"
NOTIFICATIONS: Final = "/config/changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A znode's data, the version that a conditional write must name, how many children it has, and which transaction
    made it: of two znodes the one with the greater number is the newer.
    """

    data: bytes
    version: int
    children: int = 0
    made: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """In a transaction: a new znode, protected as the nearest above it is; an `ephemeral` one ends with the session."""

    path: str
    data: bytes
    sequence: bool = False
    ephemeral: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetData:
    """In a transaction: new data for a znode that is still at `version`."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """In a transaction: nothing of it is done unless this znode is still at `version`."""

    path: str
    version: int
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """In a transaction: a znode that is still at `version` goes."""

    path: str
    version: int
    data: bytes = b""


Operation: TypeAlias = Create | SetData | Check | Delete


def encoded(name: str) -> str:
    """A quota entity's name as Kafka's Sanitizer writes it: Java's URLEncoder, then `+` and `*` as percent codes.

    Raises Invalid for what no znode can be called: the empty name, `.` and `..`.
    """
    if name in ("", ".", ".."):
        unfit = f"the name {name!r} cannot be stored in ZooKeeper; use "
        raise Invalid(unfit, Parameter("bootstrap_server"), " or another name")
    return quote(name, safe="").replace("~", "%7E")


def decoded(node: str) -> str:
    """The name in a znode's name, as Kafka's Sanitizer reads it. Raises Invalid where it is not percent-coded UTF-8."""
    try:
        return unquote_plus(node, errors="strict")
    except UnicodeDecodeError as error:
        raise Invalid(f"the znode {node!r} is not percent-coded UTF-8") from error


def config_in(node: Node | None, entity_path: str) -> dict[str, str]:
    """The config in a node's data. Raises Refused where it is not as Kafka writes it: we must not replace that."""
    if node is None or not node.data:
        return {}
    document = json_in(node.data)
    config = document.get("config", {})
    if document.get("version") != 1 or not isinstance(config, dict):
        raise Refused(
            f"/config/{entity_path} is not a config that Kafka wrote; look at it by hand. Nothing was written"
        )
    return config


def config_written(path: str, node: Node | None, config: Mapping[str, str]) -> Operation:
    """The write that makes `config` the node's, new where there is none; what else is in it stays."""
    document = json_in(node.data) if node is not None and node.data else {}
    data = _dumped({"version": 1} | document | {"config": dict(config)})
    return Create(path=path, data=data) if node is None else SetData(path=path, data=data, version=node.version)


def size(operations: Sequence[Operation]) -> int:
    """About the bytes of a transaction: an ACL of usual size and the framing take the rest of each operation."""
    return sum(len(operation.path) + len(operation.data) + 100 for operation in operations)


def notification(entity_path: str) -> Operation:
    """The write that tells every broker to read an entity's config again."""
    data = _dumped({"version": 2, "entity_path": entity_path})
    return Create(path=f"{NOTIFICATIONS}/config_change_", data=data, sequence=True)


def parents_of(entity_path: str) -> list[str]:
    """The znodes between /config and an entity's own."""
    parts = entity_path.split("/")
    return ["/config/" + "/".join(parts[:depth]) for depth in range(1, len(parts))]


def _dumped(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def json_in(data: bytes) -> dict[str, Any]:
    """The JSON object in a znode's data; {} where it holds none."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
