"""The interface to configs. `tests/settings/contract.py` defines its behavior for the fake and for the real stores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from kquota.settings.change import ConfigChange
from kquota.settings.resource import Entry, Resource, ResourceKind


class Configs(Protocol):
    """The configs of one cluster's resources. ZooKeeper has only the configs of topics and brokers.

    Every method may raise Unreachable if a server does not answer, and Refused if the cluster refuses the request.
    """

    def resources(self, kind: ResourceKind) -> tuple[Resource, ...]:
        """Return the resources that exist, without the broker default: live brokers by id, other resources by name.

        A group also counts as existing if it only has configs.
        """

    def configured(self, kind: ResourceKind) -> tuple[Resource, ...]:
        """Return the resources to describe if the operator names none, in the order of `resources`, and then the broker
        default.

        Through the Admin API these are the resources that exist. In ZooKeeper they are the resources that have configs,
        including dead brokers.
        """

    def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
        """Return the entries of each resource, sorted by key.

        The Admin API reports all entries in force, and ZooKeeper reports only the entries that are set there. A topic
        that does not exist is left out, and through the Admin API also a dead broker. A resource without entries has an
        empty tuple. The result may be stale.
        """

    def alter(self, changes: Sequence[ConfigChange]) -> None:
        """Set and delete the given keys, whatever their current values are. Other keys do not change.

        Raises Refused with the cluster's message if the cluster accepted nothing. Raises Unreachable if the answer to a
        single change was lost, and Incomplete if only some of several changes were certainly accepted. ZooKeeper stores
        all changes or none. Over ZooKeeper, raises Conflict if other clients keep writing first, and Invalid as
        `zookeeper_values.must_be_sound` does.
        """

    def release(self) -> tuple[int, ...] | None:
        """Return the release of the brokers, for example (3, 9), or None if it is unknown.

        The returned release is never newer than the real one.
        """
