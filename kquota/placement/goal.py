"""What a plan is to reach, and what of it cannot be meant for this cluster."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from kquota.errors import Invalid, Parameter, Refused
from kquota.list_text import joined
from kquota.placement.cluster import ClusterLayout
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


def check(goal: Goal, cluster: ClusterLayout) -> None:
    """Raises Refused for brokers that do not exist or are not alive, Invalid for a goal that contradicts itself."""
    if unknown := sorted(goal.drain - set(cluster.brokers)):
        raise Refused(
            Parameter("drain"),
            f" {joined(unknown)}: no such broker, and no partition names one; live are {joined(cluster.alive)}",
        )
    for means, brokers in {Parameter("add"): goal.add, Parameter("brokers"): goal.brokers}.items():
        if dead := sorted(brokers - set(cluster.alive)):
            raise Refused(means, f" {joined(dead)}: not alive; live are {joined(cluster.alive)}")
    if both := sorted(goal.drain & goal.add):
        raise Invalid(f"brokers {joined(both)}: to be drained and to be added at once")
    if outside := sorted(goal.add - goal.brokers):
        among = f" {joined(sorted(goal.brokers))}"
        raise Invalid(Parameter("add"), f" {joined(outside)}: not among ", Parameter("brokers"), among)
    if not goal.destinations:
        raise Invalid(
            "no broker is left that replicas may come to: give ",
            Parameter("brokers"),
            " others than those of ",
            Parameter("drain"),
        )
