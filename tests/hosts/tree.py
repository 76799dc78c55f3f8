"""A ZooKeeper in memory with a Kafka controller, behind the interface of kazoo's client.

kquota's own stores run on it unchanged: versions, transactions, sessions and notifications are real, and time is
virtual. docs/reliability.md lists its gaps.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Final

from kazoo import exceptions as kazoo_errors
from kazoo.security import OPEN_ACL_UNSAFE

from kquota.reassign.moves import Replicas
from kquota.settings.resource import Setting
from kquota.stores.login.arguments import Access
from kquota.stores.zookeeper.configs import entity_path
from kquota.stores.zookeeper.topics import SUBMITTED
from kquota.stores.zookeeper.znode import EVERY_TOPIC, LIVE_BROKERS, NOTIFICATIONS
from kquota.stores.zookeeper.znodes import Znodes
from kquota.terms import BrokerId, TopicPartition
from tests.reassign.fake import MemoryCluster

SESSION_SECONDS: Final = 10.0
_CONFIG: Final = re.compile(r"/config/(topics|brokers)/([^/]+)")


@dataclass
class Znode:
    data: bytes
    made: int
    version: int = 0
    session: int | None = None


class ZnodesByPath(dict[str, Znode]):
    """The znodes by their paths, with an index of the children, because most reads count them."""

    _index: dict[str, list[str]] | None = None

    def below(self, path: str) -> Sequence[str]:
        """Return the names of the children of a znode."""
        if self._index is None:
            self._index = {}
            for one in self:
                parent, _, name = one.rpartition("/")
                self._index.setdefault(parent, []).append(name)
        return self._index.get(path.rstrip("/"), ())

    def copy(self) -> ZnodesByPath:
        found = ZnodesByPath(self)
        found._index = self._index  # never changed, only built again
        return found

    def __setitem__(self, path: str, node: Znode) -> None:
        if path not in self:
            self._index = None
        super().__setitem__(path, node)

    def __delitem__(self, path: str) -> None:
        self._index = None
        super().__delitem__(path)


@dataclass
class MemoryTree:
    """The znodes, and the sessions that are open. `wrote` is called after each change, with the changed paths."""

    nodes: ZnodesByPath = field(default_factory=ZnodesByPath)
    open: set[int] = field(default_factory=set)
    zxid: int = 0
    sequence: int = 0
    wrote: Callable[[Sequence[str]], None] = lambda _: None
    _sessions: int = 0

    def session(self) -> int:
        self._sessions += 1
        self.open.add(self._sessions)
        return self._sessions

    def expire(self, session: int) -> None:
        """End a session, and delete its ephemeral znodes."""
        self.open.discard(session)
        for path in [path for path, node in self.nodes.items() if node.session == session]:
            del self.nodes[path]

    def put(self, path: str, data: bytes) -> None:
        """Write a znode unconditionally, as Kafka does."""
        now = self.nodes.get(path)
        self.zxid += 1
        if now is None:
            self.nodes[path] = Znode(data, self.zxid)
        else:
            now.data, now.version = data, now.version + 1
        self.wrote([path])

    def notify(self, entity: str) -> None:
        self.sequence += 1
        data = json.dumps({"version": 2, "entity_path": entity}).encode()
        self.put(f"{NOTIFICATIONS}/config_change_{self.sequence:010}", data)

    def commit(self, operations: Sequence[tuple[Any, ...]], session: int) -> list[Any]:
        """Carry out all operations or none, and return kazoo's results."""
        before = self.nodes
        changed: list[str] = []
        self.nodes = before.copy()
        self.zxid += 1
        for n, operation in enumerate(operations):
            try:
                if (path := self._one(operation, session)) is not None:
                    changed.append(path)
            except kazoo_errors.KazooException as error:
                self.nodes = before
                rest = len(operations) - n - 1
                return [*[kazoo_errors.RolledBackError()] * n, error, *[kazoo_errors.RuntimeInconsistency()] * rest]
        self.wrote(changed)
        return [True] * len(operations)

    def _one(self, operation: tuple[Any, ...], session: int) -> str | None:
        kind, path, *rest = operation
        if kind == "create":
            data, sequence, ephemeral = rest
            if sequence:
                self.sequence += 1
                path = f"{path}{self.sequence:010}"
            if path in self.nodes:
                raise kazoo_errors.NodeExistsError
            above = path.rpartition("/")[0]
            if above and above not in self.nodes:
                raise kazoo_errors.NoNodeError
            self.nodes[path] = Znode(data, self.zxid, session=session if ephemeral else None)
            return str(path)
        node = self.nodes.get(path)
        if node is None:
            raise kazoo_errors.NoNodeError
        if rest[-1] not in (-1, node.version):
            raise kazoo_errors.BadVersionError
        if kind == "check":
            return None
        if kind == "delete":
            if self.nodes.below(path):
                raise kazoo_errors.NotEmptyError
            del self.nodes[path]
        else:
            self.nodes[path] = replace(node, data=rest[0], version=node.version + 1)
        return str(path)


@dataclass
class Answer:
    """The result of an asynchronous request of kazoo."""

    value: Callable[[], Any]

    def get(self, timeout: float) -> Any:
        return self.value()


class MemoryTransaction:
    def __init__(self, client: MemoryClient) -> None:
        self._client = client
        self._operations: list[tuple[Any, ...]] = []

    def create(self, path: str, data: bytes, *, acl: object, sequence: bool, ephemeral: bool) -> None:
        self._operations.append(("create", path, data, sequence, ephemeral))

    def set_data(self, path: str, data: bytes, version: int) -> None:
        self._operations.append(("set", path, data, version))

    def check(self, path: str, version: int) -> None:
        self._operations.append(("check", path, version))

    def delete(self, path: str, version: int) -> None:
        self._operations.append(("delete", path, version))

    def commit_async(self) -> Answer:
        return Answer(lambda: self._client.commit(self._operations))


class MemoryClient:
    """The part of KazooClient that Znodes uses."""

    def __init__(self, tree: MemoryTree) -> None:
        self.tree = tree
        self.session = tree.session()

    def transaction(self) -> MemoryTransaction:
        return MemoryTransaction(self)

    def commit(self, operations: Sequence[tuple[Any, ...]]) -> list[Any]:
        return self.tree.commit(operations, self.session)

    def get_async(self, path: str) -> Answer:
        return Answer(lambda: self._get(path))

    def get_children_async(self, path: str) -> Answer:
        return Answer(lambda: self._children(path))

    def get_acls_async(self, path: str) -> Answer:
        return Answer(lambda: (OPEN_ACL_UNSAFE, self._get(path)[1]))

    def _get(self, path: str) -> tuple[bytes, SimpleNamespace]:
        node = Znode(b"", 0) if path == "/" else self.tree.nodes.get(path)
        if node is None:
            raise kazoo_errors.NoNodeError
        children = len(self._children(path))
        return node.data, SimpleNamespace(version=node.version, numChildren=children, czxid=node.made)

    def _children(self, path: str) -> Sequence[str]:
        if path != "/" and path not in self.tree.nodes:
            raise kazoo_errors.NoNodeError
        return self.tree.nodes.below(path)


class MemoryZnodes(Znodes):
    """The real store on the tree."""

    def __init__(self, tree: MemoryTree) -> None:
        self._connect = "memory"
        self._access = Access()
        self._client: Any = MemoryClient(tree)


@dataclass(kw_only=True)
class TreeCluster(MemoryCluster):
    """The cluster whose state is in a tree. `in_force` has the configs that brokers apply."""

    tree: MemoryTree = field(default_factory=MemoryTree)
    in_force: dict[str, Mapping[str, str]] = field(default_factory=dict)
    rng: random.Random = field(default_factory=random.Random)
    later: Callable[[float, Callable[[], None]], None] = lambda _, what: what()
    began: Callable[[], None] = lambda: None
    recorded: Callable[[str, bytes | None], None] = lambda _, __: None
    _read: bytes = b""

    def __post_init__(self) -> None:
        configs = ("/config", NOTIFICATIONS, "/config/topics", "/config/brokers")
        for path in ("/brokers", LIVE_BROKERS, EVERY_TOPIC, *configs, "/admin"):
            self.tree.put(path, b"")
        found, self.configs = self.configs, {}
        self.tree.wrote = self._wrote
        for setting, value in found.items():
            self.write(setting, value)
        self.publish()

    def write(self, setting: Setting, value: str | None) -> None:
        """Write a value as Kafka does: unconditionally, and then the notification."""
        path = entity_path(setting.resource)
        config = {key: v for key, v in self._config(path).items() if key != setting.key}
        if value is not None:
            config[setting.key] = value
        self.tree.put(f"/config/{path}", json.dumps({"version": 1, "config": config}).encode())
        self.tree.notify(path)

    def submit(self, targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
        """Submit moves over brokers."""
        refused = super().submit(targets)
        self.publish()
        return refused

    def stored(self) -> dict[str, Mapping[str, str]]:
        """Return every stored config, by entity."""
        paths = [path.removeprefix("/config/") for path in self.tree.nodes if _CONFIG.fullmatch(path)]
        return {path: config for path in paths if (config := self._config(path))}

    def publish(self) -> None:
        """Write the znodes in which the controller and the brokers store brokers and partitions."""
        for broker in self.alive:
            self._store(f"{LIVE_BROKERS}/{broker}", {"endpoints": [], "rack": None})
        for path in [p for p in self.tree.nodes if p.rpartition("/")[0] == LIVE_BROKERS]:
            if BrokerId(int(path.rpartition("/")[2])) not in self.alive:
                del self.tree.nodes[path]
        for topic in sorted({name.topic for name in self.partitions}):
            own = {str(n.partition): now for n, now in sorted(self.partitions.items()) if n.topic == topic}
            self._store(
                f"{EVERY_TOPIC}/{topic}",
                {
                    "version": 3,
                    "topic_id": self.topic_ids.get(topic, topic),
                    "partitions": {n: list(now.replicas) for n, now in own.items()},
                    "adding_replicas": {n: list(now.adding) for n, now in own.items() if now.adding},
                    "removing_replicas": {n: list(now.removing) for n, now in own.items() if now.removing},
                },
            )
            for n, now in own.items():
                state = {"leader": -1 if now.leader is None else now.leader, "isr": list(now.isr)}
                self._store(f"{EVERY_TOPIC}/{topic}/partitions/{n}/state", state)
        self._clear_submission()

    def _store(self, path: str, document: Mapping[str, Any]) -> None:
        data = json.dumps(document).encode()
        now = self.tree.nodes.get(path)
        if now is None or now.data != data:
            self.tree.put(path, data)

    def _config(self, path: str) -> Mapping[str, str]:
        node = self.tree.nodes.get(f"/config/{path}")
        return {} if node is None else dict(json.loads(node.data or "{}").get("config", {}))

    def _wrote(self, paths: Sequence[str]) -> None:
        for path in paths:
            if found := _CONFIG.fullmatch(path):
                self._sync(*found.groups())
            elif path.startswith(f"{NOTIFICATIONS}/") and path in self.tree.nodes:
                entity = json.loads(self.tree.nodes[path].data)["entity_path"]
                self.in_force.pop(entity, None)
                if config := self._config(entity):
                    self.in_force[entity] = config
            elif path.startswith("/kquota/runs/"):
                node = self.tree.nodes.get(path)
                self.recorded(path.removeprefix("/kquota/runs/"), None if node is None else node.data)
            elif path == SUBMITTED and path in self.tree.nodes:
                # After the death of the controller, the next one reads the submission.
                self.later(self.rng.uniform(0.05, self.rng.choice((1.0, 1.0, 1.0, 1.0, 30.0))), self._controller_reads)

    def _sync(self, kind: str, name: str) -> None:
        config = self._config(f"{kind}/{name}")

        def of(key: str) -> Setting:
            return Setting.of_topic(name, key) if kind == "topics" else Setting.of_broker(BrokerId(int(name)), key)

        for setting in [s for s in self.configs if s.resource == of("any").resource]:
            del self.configs[setting]
        self.configs |= {of(key): value for key, value in config.items()}

    def _controller_reads(self) -> None:
        node = self.tree.nodes.get(SUBMITTED)
        if node is None or self._read == node.data:
            return
        self._read = node.data
        for entry in json.loads(node.data or "{}")["partitions"]:
            name = TopicPartition(entry["topic"], entry["partition"])
            if name in self.partitions:
                self._start(name, tuple(map(BrokerId, entry["replicas"])))
        self.publish()
        self.began()

    def _clear_submission(self) -> None:
        """Delete the submission after the end of its last move, as the controller does."""
        node = self.tree.nodes.get(SUBMITTED)
        if node is None or self._read != node.data:
            return
        names = [TopicPartition(one["topic"], one["partition"]) for one in json.loads(node.data or "{}")["partitions"]]
        if not any(self.partitions[name].moving for name in names if name in self.partitions):
            del self.tree.nodes[SUBMITTED]
            self._read = b""
