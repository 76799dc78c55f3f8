"""The ports for the quotas and the users of a cluster. The fake and the real stores pass the contract tests in
`tests/quota/contract.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from kquota.errors import KquotaError
from kquota.quota.entity import Entity, Every, Filter, Name
from kquota.quota.limits import Limits, QuotaChange, Replacement
from kquota.quota.scram import ScramChange
from kquota.terms import BrokerId


class ClusterQuotas(Protocol):
    """The client quotas of one cluster.

    Every method except `must_carry` may raise Unreachable if the cluster does not answer in time, and Refused if the
    cluster refuses the request.
    """

    def describe(self, wanted: Filter) -> Mapping[Entity, Limits]:
        """Return the matching entities that have limits. Keys that are not client quotas are left out. The result may
        be stale.
        """

    def everything(self) -> Mapping[Entity, Limits]:
        """Return every entity that has limits, in as few requests as possible. The result may be stale."""

    def alter(self, changes: Sequence[QuotaChange]) -> None:
        """Make every change, whatever was set before, and change nothing else. Each entity has at most one change.

        Raises Invalid for a name that this connection cannot carry (nothing written), and Incomplete if an entity was
        not changed. Raises Unknown if every failed entity may have been changed, and Unreachable if the answer was
        lost. Over ZooKeeper, raises Conflict if other clients write during each attempt.
        """

    def must_carry(self, entities: Iterable[Entity]) -> None:
        """Raise Invalid for the first entity whose name this connection cannot carry. This sends nothing."""

    def replace(self, batch: Sequence[Replacement]) -> Mapping[Entity, str | KquotaError]:
        """Make each replacement independently, without changing other keys. Return the reason for each failed
        replacement: its error, or a text. The text begins with `unknown: ` if the replacement may have been made.

        Over ZooKeeper, a replacement is made only if its `before` is still current when the write arrives. The Admin
        API does not check `before`. Raises Unreachable if the answer was lost. It is then unknown how much of this
        batch was written.
        """


Scram: TypeAlias = Mapping[str, Mapping[str, int | None]]
"""The SCRAM mechanisms (for example `SCRAM-SHA-256`) of each user, with their iterations. None means that the
iterations are unknown.
"""


class Principals(ClusterQuotas, Protocol):
    """The client quotas, users, SCRAM credentials and brokers of one cluster, with its release and its id."""

    def users(self, name: Name | Every) -> tuple[Mapping[Entity, Limits], Scram]:
        """Return the limits and the SCRAM credentials of the user with this name, or of all users.

        The limits leave out users without limits. The credentials leave out users without credentials, and credentials
        that the cluster does not report.
        """

    def must_accept_credentials(self) -> None:
        """Raise Refused if SCRAM credentials cannot be written on this connection."""

    def alter_credentials(self, change: ScramChange) -> tuple[str, ...]:
        """Set and delete SCRAM credentials of a user. Return the mechanisms of `change.delete` that were not set.

        Raises Incomplete if only a part was written, and Refused if nothing was written. Raises Unreachable if the
        answer was lost, and Unknown if the answer does not show whether a credential was written. Over ZooKeeper,
        raises Conflict if other clients write during each attempt.
        """

    def release(self) -> tuple[int, ...] | None:
        """Return the brokers' release, for example (3, 9), never newer than the real one. None if it is unknown."""

    def brokers(self) -> frozenset[BrokerId]:
        """Return the ids of the live brokers."""

    def cluster_id(self) -> str:
        """Return the cluster id, which is the same over brokers and over ZooKeeper."""
