"""The goals of a plan, and the check that they are possible on this cluster."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from kquota.errors import Invalid, Parameter, Refused
from kquota.list_text import joined, named_brokers
from kquota.placement.cluster import ClusterLayout
from kquota.terms import BrokerId

TOLERANCE: Final = Fraction(10, 100)
DISK_LIMIT: Final = Fraction(85, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The goals of one plan. The planner tries to reach all of them at the same time."""

    brokers: frozenset[BrokerId]
    """The brokers that may get replicas, unless they are in `drain`."""
    topics: frozenset[str]
    """The topics to which all goals except `drain` apply."""
    drained_topics: frozenset[str] = frozenset()
    """The topics to which `drain` applies."""
    drain: frozenset[BrokerId] = frozenset()
    add: frozenset[BrokerId] = frozenset()
    replication_factor: int | None = None
    """None leaves all replication factors unchanged."""
    repair_racks: bool = False
    balance: bool = False
    tolerance: Fraction = TOLERANCE
    """The largest distance of a broker's bytes from the mean, as a fraction of the mean."""
    disk_limit: Fraction = DISK_LIMIT
    """The largest used fraction of a broker's volumes when all copies are complete and no old replica is deleted yet.
    """

    @property
    def destinations(self) -> tuple[BrokerId, ...]:
        """The brokers that may get replicas, sorted."""
        return tuple(sorted(self.brokers - self.drain))


def check(goal: Goal, cluster: ClusterLayout) -> None:
    """Raise Refused if a broker to drain is dead and has no replica, or if a broker in `brokers` or `add` is dead or
    accepts no new replicas.

    Raise Invalid if a broker is both drained and added, if an added broker is not in `brokers`, or if no broker is left
    for replicas.
    """
    if unknown := sorted(goal.drain - set(cluster.brokers)):
        do = "does" if len(unknown) == 1 else "do"
        raise Refused(
            f"{named_brokers(unknown)} {do} not exist, and no partition has a replica there (known brokers: "
            f"{joined(cluster.brokers)}). Correct ",
            Parameter("drain"),
        )
    for means, brokers in {Parameter("add"): goal.add, Parameter("brokers"): goal.brokers}.items():
        if dead := sorted(brokers - set(cluster.alive)):
            are = "is" if len(dead) == 1 else "are"
            live = f"Give only live brokers: {joined(cluster.alive)}"
            raise Refused(means, f": {named_brokers(dead)} {are} dead. {live}")
        if closed := sorted(brokers - set(cluster.accepting)):
            accepting = joined(cluster.accepting) or "none"
            they = "the broker accepts" if len(closed) == 1 else "the brokers accept"
            why = f"each log dir is cordoned or offline, so {they} no new replica. Brokers that accept replicas"
            raise Refused(means, f" {joined(closed)}: {why}: {accepting}")
    if both := sorted(goal.drain & goal.add):
        raise Invalid(
            f"{named_brokers(both)}: listed in ",
            Parameter("drain"),
            " and in ",
            Parameter("add"),
            ". List each broker in only one of them",
        )
    if outside := sorted(goal.add - goal.brokers):
        among = f" {joined(sorted(goal.brokers))}. Give the new brokers in both options"
        raise Invalid(Parameter("add"), f" {joined(outside)}: not among ", Parameter("brokers"), among)
    if not goal.brokers:
        raise Invalid(
            "no broker is left for replicas, because no live broker accepts new replicas. Uncordon or repair a log dir "
            "first"
        )
    if not goal.destinations:
        others = set(cluster.accepting) - goal.brokers - goal.drain
        also = (f", or also list {named_brokers(others)} in ", Parameter("brokers")) if others else ()
        raise Invalid(
            "no broker is left for replicas, because ",
            Parameter("drain"),
            f" names every broker that may get replicas ({joined(sorted(goal.brokers))}). Leave at least one of them "
            "out of ",
            Parameter("drain"),
            *also,
        )
