"""What this room needs of a cluster. `tests/settings/contract.py` defines it; the fake and the real stores pass it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from kquota.settings.change import ConfigChange
from kquota.settings.resource import Entry, Kind, Resource


class Configs(Protocol):
    """The configs of one cluster's topics and brokers."""

    def resources(self, kind: Kind) -> tuple[Resource, ...]:
        """The topics that exist, by name, or the brokers that are alive, by id (without the default of all)."""
        ...

    def configured(self, kind: Kind) -> tuple[Resource, ...]:
        """What a description of all is about, in order, the brokers' default last.

        Through the Admin API the resources that exist, in ZooKeeper those that have configs there: a broker that is
        not alive, too.
        """
        ...

    def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
        """The entries of each, sorted by key: through the Admin API all in force, in ZooKeeper those set there.

        A resource that does not exist is left out; one without entries has (). May be stale.
        """
        ...

    def alter(self, changes: Sequence[ConfigChange]) -> None:
        """Set and delete the keys that are named and touch no other, whatever stood before.

        Raises Refused with the cluster's words when it took nothing, Incomplete when it took a part, Unreachable when
        the answer was lost.
        """
        ...

    def release(self) -> tuple[int, ...] | None:
        """The brokers' release, for example (3, 9), never newer than it is; None where it cannot be known."""
        ...
