"""Rules about one value: levels that hide it, values that limit nothing, units that got lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from kquota.quota.capacity import AS_SHIPPED, Cluster
from kquota.quota.change import Change
from kquota.quota.entity import Entity
from kquota.quota.finding import Finding
from kquota.quota.limits import SINCE, plain
from kquota.quota.precedence import Quotas, reach
from kquota.quota.redundant import stand_in
from kquota.terms import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE

_KAFKAS_BATCH: Final = 1_048_588


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value among all others."""

    entity: Entity
    key: str
    value: float
    among: Quotas
    cluster: Cluster
    clients_of_default_user: tuple[str, ...] = ()

    def removed(self) -> tuple[Change, ...]:
        """The change that takes this value away."""
        return (Change(entity=self.entity, delete=(self.key,)),)

    def finding(self, rule: str, what: str, why: str, do: str, cure: tuple[Change, ...]) -> Finding:
        """A finding about this value."""
        return Finding(rule=rule, entity=self.entity, key=self.key, what=what, why=why, do=do, cure=cure)


def _unreachable(one: Setting) -> Iterator[Finding]:
    found = reach(one.among, one.entity, one.key)
    if found.hidden_by is None:
        return
    if found.nameless:
        yield one.finding(
            "only-without-client-id",
            "binds only clients that send no client-id",
            f"{found.hidden_by} comes first for every client that sends one",
            "remove it, if all your clients send a client-id",
            one.removed(),
        )
    else:
        yield one.finding(
            "unreachable",
            "can never bind anybody",
            f"{found.hidden_by} comes first for every client",
            "remove it, or what comes first",
            one.removed(),
        )


def _redundant(one: Setting) -> Iterator[Finding]:
    heir = stand_in(one.among, one.entity, one.key, one.clients_of_default_user)
    if heir is not None:
        yield one.finding(
            "redundant",
            "changes nothing",
            f"without it {heir} gives the same limit in the same bucket",
            "remove it, unless it is to stay when the other changes",
            one.removed(),
        )


def _no_limit(one: Setting) -> Iterator[Finding]:
    if math.isfinite(one.value) and one.value > 0:
        return
    if one.value <= 0:
        what, why = "no client can keep to it", "a rate must be more than 0; what brokers do then is not defined"
    else:
        what, why = "is no limit", "it stands in the way of the levels below it, and limits nothing"
    yield one.finding("not-a-rate", what, why, "remove it, or set a rate", one.removed())


def _low_rate(one: Setting) -> Iterator[Finding]:
    window = one.cluster.window
    seconds = (window or AS_SHIPPED).burst_seconds
    batch = one.cluster.largest_batch or _KAFKAS_BATCH
    if one.key not in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE) or not 0 < one.value * seconds < batch:
        return
    assumed = " (Kafka's defaults; what the brokers have is unknown)" if window is None else ""
    yield one.finding(
        "low-rate",
        "is lower than one batch needs; a unit may have been lost",
        f"one batch of message.max.bytes={batch} is more than {seconds} s of it{assumed}",
        "if it was meant in kB/s:",
        (Change(entity=one.entity, add={one.key: one.value * 1000}),),
    )


def _low_percentage(one: Setting) -> Iterator[Finding]:
    if one.key == REQUEST_PERCENTAGE and 0 < one.value < 1:
        yield one.finding(
            "low-percentage",
            "is less than a hundredth of one thread",
            f"request_percentage counts in percent: {plain(one.value)} is {plain(one.value)}% of a thread",
            "if it was meant as a share of a thread:",
            (Change(entity=one.entity, add={one.key: one.value * 100}),),
        )


def _above_capacity(one: Setting) -> Iterator[Finding]:
    if one.key != REQUEST_PERCENTAGE or not one.cluster.brokers:
        return
    known = [broker.request_most for broker in one.cluster.brokers if broker.request_most is not None]
    if len(known) == len(one.cluster.brokers) and one.value > max(known):
        yield one.finding(
            "above-capacity",
            "limits nothing",
            f"no broker has more than {max(known)}%: (num.io.threads + num.network.threads of each listener) x 100",
            "remove it, or set less",
            one.removed(),
        )


def _ignored(one: Setting) -> Iterator[Finding]:
    if one.cluster.ignores(one.key):
        since, release = (".".join(map(str, version)) for version in (SINCE[one.key], one.cluster.release or ()))
        yield one.finding(
            "ignored",
            "limits nobody",
            f"brokers know {one.key} from Kafka {since} on, and these are {release}",
            "remove it, or keep it for the day of the upgrade",
            one.removed(),
        )


Rule: TypeAlias = Callable[[Setting], Iterator[Finding]]
RULES: Final[tuple[Rule, ...]] = (
    _unreachable,
    _redundant,
    _no_limit,
    _low_rate,
    _low_percentage,
    _above_capacity,
    _ignored,
)
