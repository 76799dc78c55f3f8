"""Lint rules for quotas: each finds one kind of mistake, or limits that have no effect."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from kquota.quota import lint_names
from kquota.quota.capacity import AS_SHIPPED, Capacity
from kquota.quota.entity import Entity
from kquota.quota.finding import QuotaFinding
from kquota.quota.limits import QuotaChange, plain
from kquota.quota.precedence import Client, QuotasByEntity, Rung, applicability, bucket, rungs, winner
from kquota.quota_keys import QUOTA_KEYS, Model
from kquota.terms import DEFAULT, dotted

_KAFKAS_BATCH: Final = 1_048_588
_UNITS: Final = {"kB/s": 1_000, "MB/s": 1_000_000}
"""The units that a rate may lack, with their bytes per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedValue:
    """One limit to check, with all quotas and the settings of the brokers for comparison.

    `clients_of_default_user` are the client-ids that have a limit with the same key under the default user.
    """

    entity: Entity
    key: str
    value: float
    among: QuotasByEntity
    cluster: Capacity
    clients_of_default_user: tuple[str, ...]

    def removed(self) -> tuple[QuotaChange, ...]:
        """Return the change that removes this limit."""
        return (QuotaChange(entity=self.entity, delete=(self.key,)),)

    def raised(self, value: float) -> tuple[QuotaChange, ...]:
        """Return the change that replaces this limit with `value`."""
        return (QuotaChange(entity=self.entity, add={self.key: value}),)

    def finding(self, rule: str, what: str, why: str, do: str, cure: tuple[QuotaChange, ...]) -> QuotaFinding:
        """Return a finding about this value."""
        return QuotaFinding(rule=rule, entity=self.entity, key=self.key, what=what, why=why, do=do, cure=cure)


def _unreachable(one: LintedValue) -> Iterator[QuotaFinding]:
    found = applicability(one.among, one.entity, one.key)
    if found.hidden_by is None:
        return
    if found.nameless:
        yield one.finding(
            "only-without-client-id",
            "applies only to clients that send no client-id",
            f"{found.hidden_by} takes precedence for every client that sends a client-id",
            "remove it if all your clients send a client-id",
            one.removed(),
        )
    else:
        yield one.finding(
            "unreachable",
            "never applies to any client",
            f"{found.hidden_by} takes precedence for every client",
            "remove it or the limit that takes precedence",
            one.removed(),
        )


def _redundant(one: LintedValue) -> Iterator[QuotaFinding]:
    fallback = _stand_in(one.among, one.entity, one.key, one.clients_of_default_user)
    if fallback is not None:
        yield one.finding(
            "redundant",
            "changes nothing",
            f"without it, {fallback} gives the same limit in the same bucket",
            "remove it, unless it must still apply after the other limit changes",
            one.removed(),
        )


def _stand_in(quotas: QuotasByEntity, entity: Entity, key: str, client_ids: Iterable[str]) -> Entity | None:
    """Return the entity that would give every client of this limit the same limit and the same bucket if this limit
    were removed, or None. An entity with another bucket does not count, because other clients share that bucket.

    `client_ids` are the client-ids that have a limit with this key under the default user. Such a limit may apply
    instead.
    """
    if entity.ip is not None:
        default = Entity(ip=DEFAULT)
        same_ip = entity != default and quotas[entity].get(key) == quotas.get(default, {}).get(key)
        return default if same_ip else None
    client = Client.of(entity)
    fallback = _fallback(quotas, entity, key, client)
    if fallback is None:
        return None
    others = () if client.client_id is not None else (replace(client, client_id=each) for each in client_ids)
    same = all(_binds_others(quotas, entity, key, other) or _fallback(quotas, entity, key, other) for other in others)
    return fallback if same else None


def _binds_others(quotas: QuotasByEntity, entity: Entity, key: str, client: Client) -> bool:
    won = winner(rungs(quotas, client, key))
    return won is None or won.entity != entity


def _fallback(quotas: QuotasByEntity, entity: Entity, key: str, client: Client) -> Entity | None:
    """Return the entity that would apply to this client instead, with the same limit and bucket, or None."""
    found = rungs(quotas, client, key)
    won = winner(found)
    if won is None or won.entity != entity:
        return None
    below: Rung | None = next((rung for rung in found[won.level :] if rung.value is not None), None)
    if below is None or below.value != won.value or bucket(below.level, client) != bucket(won.level, client):
        return None
    return below.entity


def _no_limit(one: LintedValue) -> Iterator[QuotaFinding]:
    if math.isfinite(one.value) and one.value > 0:
        return
    if one.value <= 0:
        what, why = (
            "is not a valid rate",
            "a rate must be more than 0; for other values, the effect is not defined",
        )
    else:
        what, why = (
            "does not limit anything",
            "it takes precedence over the levels below it, so their limits do not apply either",
        )
    yield one.finding("not-a-rate", what, why, "remove it, or set a rate", one.removed())


def _low_rate(one: LintedValue) -> Iterator[QuotaFinding]:
    reported = {"message.max.bytes": one.cluster.largest_batch, "quota window": one.cluster.window}
    seconds = (one.cluster.window or AS_SHIPPED).burst_seconds
    batch = _KAFKAS_BATCH if one.cluster.largest_batch is None else one.cluster.largest_batch
    if not QUOTA_KEYS[one.key].in_bytes or not 0 < one.value * seconds < batch:
        return
    defaults = " and ".join(name for name, value in reported.items() if value is None)
    assumed = f" (Kafka's default {defaults}, because the brokers' values are unknown or differ)" if defaults else ""
    rates = {unit: float(math.ceil(_exact(one.value, size))) for unit, size in _UNITS.items()}
    enough = next(((unit, rate) for unit, rate in rates.items() if rate * seconds >= batch), None)
    yield one.finding(
        "low-rate",
        "is too low for one batch, so a unit may be missing",
        f"at this rate, one batch of message.max.bytes={batch} takes more than {seconds} s{assumed}",
        "remove it, or set a higher rate" if enough is None else f"if the unit should be {enough[0]}:",
        one.removed() if enough is None else one.raised(enough[1]),
    )


def _exact(value: float, times: int) -> float:
    """Return the product that an operator would write: 4.1 times 1,000,000 is 4,100,000."""
    return float(Decimal(repr(value)) * times)


def _low_percentage(one: LintedValue) -> Iterator[QuotaFinding]:
    if QUOTA_KEYS[one.key].model is Model.SHARE and 0 < one.value < 1:
        percent = _exact(one.value, 100)
        yield one.finding(
            "low-percentage",
            "is less than a hundredth of one thread",
            f"{one.key} is in percent of one thread, so {plain(one.value)} means {plain(one.value)}%",
            "if the value should be a fraction of one thread:" if percent >= 1 else "remove it, or set a higher value",
            one.raised(percent) if percent >= 1 else one.removed(),
        )


def _above_capacity(one: LintedValue) -> Iterator[QuotaFinding]:
    if QUOTA_KEYS[one.key].model is not Model.SHARE or not one.cluster.brokers:
        return
    known = [broker.request_most for broker in one.cluster.brokers if broker.request_most is not None]
    if len(known) == len(one.cluster.brokers) and one.value > max(known):
        yield one.finding(
            "above-capacity",
            "limits nothing",
            f"no broker has more than {max(known)}%: (num.io.threads + num.network.threads of each listener) x 100",
            "remove it, or set a lower value",
            one.removed(),
        )


def _ignored(one: LintedValue) -> Iterator[QuotaFinding]:
    if one.cluster.ignores(one.key):
        since, release = dotted(QUOTA_KEYS[one.key].since), dotted(one.cluster.release or ())
        yield one.finding(
            "ignored",
            "has no effect",
            f"{one.key} needs Kafka {since}, and the brokers run {release}",
            "remove it, or keep it for the upgrade",
            one.removed(),
        )


RULES: Final = (_unreachable, _redundant, _no_limit, _low_rate, _low_percentage, _above_capacity, _ignored)


def lint(quotas: QuotasByEntity, cluster: Capacity) -> tuple[QuotaFinding, ...]:
    """Return all findings: first about the whole cluster, then by entity in display order, and by key."""
    found = [*_callback(cluster), *_of_values(quotas, cluster)]
    for entity, limits in quotas.items():
        found += [finding for rule in lint_names.RULES for finding in rule(entity, limits, quotas)]
    found += [finding for rule in lint_names.SET_RULES for finding in rule(quotas)]
    return tuple(sorted(found, key=_order))


def _order(finding: QuotaFinding) -> tuple[object, ...]:
    return (() if finding.entity is None else finding.entity.order(), finding.key or "", finding.rule)


def _of_values(quotas: QuotasByEntity, cluster: Capacity) -> Iterator[QuotaFinding]:
    clients: dict[str, list[str]] = defaultdict(list)
    for entity in sorted(quotas, key=Entity.order):
        if entity.user is DEFAULT and isinstance(entity.client_id, str):
            for key in quotas[entity]:
                clients[key].append(entity.client_id)
    named = {key: tuple(ids) for key, ids in clients.items()}
    for entity, limits in quotas.items():
        for key, value in limits.items():
            setting = LintedValue(
                entity=entity,
                key=key,
                value=value,
                among=quotas,
                cluster=cluster,
                clients_of_default_user=named.get(key, ()),
            )
            for rule in RULES:
                yield from rule(setting)


def _callback(cluster: Capacity) -> Iterator[QuotaFinding]:
    if cluster.callback is not None:
        yield QuotaFinding(
            rule="quota-callback",
            entity=None,
            key=None,
            what=f"the brokers have client.quota.callback.class={cluster.callback}",
            why="this class decides instead of Kafka, and may ignore these quotas (KIP-257)",
            do="read the documentation of the class. The other findings describe Kafka without it",
        )
