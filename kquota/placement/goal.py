"""What a plan is to reach, and what of it cannot be meant for this cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from kquota.errors import Invalid
from kquota.placement.cluster import Cluster
from kquota.terms import BrokerId

TOLERANCE: Final = Fraction(10, 100)
DISK_LIMIT: Final = Fraction(85, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Goals of one plan; all of them hold at its end.

    `drain` concerns `drained_topics`; every other goal concerns `topics`. Replicas come to `brokers` only. `tolerance`
    is how far from the mean a broker's bytes may stay; `disk_limit` is the share of its volumes that may be used at
    the worst moment, when all copies have come and nothing has gone.
    """

    brokers: frozenset[BrokerId]
    topics: frozenset[str]
    drained_topics: frozenset[str] = frozenset()
    drain: frozenset[BrokerId] = frozenset()
    add: frozenset[BrokerId] = frozenset()
    replication_factor: int | None = None
    repair_racks: bool = False
    balance: bool = False
    tolerance: Fraction = TOLERANCE
    disk_limit: Fraction = DISK_LIMIT

    @property
    def destinations(self) -> tuple[BrokerId, ...]:
        """Where replicas may come to, sorted."""
        return tuple(sorted(self.brokers - self.drain))


def check(goal: Goal, cluster: Cluster) -> None:
    """Raises Invalid for brokers that do not exist, do not live, or are to be drained and filled at once."""
    if unknown := sorted(goal.drain - set(cluster.brokers)):
        raise Invalid(
            f"--drain {_listed(unknown)}: no such broker, and no partition names one; live are {_listed(cluster.alive)}"
        )
    for option, brokers in {"--add": goal.add, "--brokers": goal.brokers}.items():
        if dead := sorted(brokers - set(cluster.alive)):
            raise Invalid(f"{option} {_listed(dead)}: not alive; live are {_listed(cluster.alive)}")
    if both := sorted(goal.drain & goal.add):
        raise Invalid(f"brokers {_listed(both)}: to be drained and to be added at once")
    if outside := sorted(goal.add - goal.brokers):
        raise Invalid(f"--add {_listed(outside)}: not among --brokers {_listed(sorted(goal.brokers))}")
    if not goal.destinations:
        raise Invalid("no broker is left that replicas may come to: give --brokers others than those of --drain")


def _listed(brokers: Iterable[BrokerId]) -> str:
    return ",".join(map(str, brokers))


def shown(brokers: Collection[BrokerId], most: int = 8) -> str:
    """The brokers' ids, the first few when there are many.

    >>> shown([BrokerId(1), BrokerId(2)]), shown([BrokerId(n) for n in range(12)], 2)
    ('1,2', '0,1 and 10 more')
    """
    ordered = sorted(brokers)
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return f"{_listed(ordered[:most])}{more}"
