"""A tree of znodes in memory, for readers of znodes. It only reads: writes are tested on a real ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import cast

from kquota.stores.zookeeper.znode import Node
from kquota.stores.zookeeper.znodes import Znodes


def planted(tree: Mapping[str, object]) -> Znodes:
    """Znodes with this data: bytes as they are, any other value as JSON."""
    return cast(Znodes, _Planted(tree))


class _Planted:
    class names:
        bootstrap_server = "--bootstrap-server"

    def __init__(self, tree: Mapping[str, object]) -> None:
        self._tree = {
            path: data if isinstance(data, bytes) else json.dumps(data).encode() for path, data in tree.items()
        }

    def read(self, path: str) -> Node | None:
        if path not in self._tree:
            return None
        # A submission is newer than the topics that it moves.
        made = 2 if path.startswith("/admin") else 1
        return Node(data=self._tree[path], version=0, children=len(self.children(path)), made=made)

    def read_all(self, paths: Iterable[str]) -> dict[str, Node | None]:
        return {path: self.read(path) for path in paths}

    def children(self, path: str) -> list[str]:
        below = (each.removeprefix(f"{path}/") for each in self._tree if each.startswith(f"{path}/"))
        return sorted({each.partition("/")[0] for each in below})

    def children_all(self, paths: Iterable[str]) -> dict[str, list[str]]:
        return {path: self.children(path) for path in paths}
