"""Find mistakes and limits without effect in a whole set of quotas, rule by rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kquota.quota import lint_names, lint_values
from kquota.quota.capacity import Capacity
from kquota.quota.entity import Entity
from kquota.quota.finding import QuotaFinding
from kquota.quota.lint_values import LintedValue
from kquota.quota.precedence import Quotas
from kquota.terms import DEFAULT


def lint(quotas: Quotas, cluster: Capacity) -> tuple[QuotaFinding, ...]:
    """All findings: first those of the whole cluster, then entity by entity in display order, key by key."""
    found = [*_callback(cluster), *_of_values(quotas, cluster)]
    for entity, limits in quotas.items():
        found += [finding for rule in lint_names.RULES for finding in rule(entity, limits, quotas)]
    found += [finding for rule in lint_names.SET_RULES for finding in rule(quotas)]
    return tuple(sorted(found, key=_order))


def _order(finding: QuotaFinding) -> tuple[object, ...]:
    return (() if finding.entity is None else finding.entity.order(), finding.key or "", finding.rule)


def _of_values(quotas: Quotas, cluster: Capacity) -> Iterator[QuotaFinding]:
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
            for rule in lint_values.RULES:
                yield from rule(setting)


def _callback(cluster: Capacity) -> Iterator[QuotaFinding]:
    if cluster.callback is not None:
        yield QuotaFinding(
            rule="quota-callback",
            entity=None,
            key=None,
            what=f"the brokers have client.quota.callback.class={cluster.callback}",
            why="it decides instead of Kafka, and may ignore these quotas (KIP-257)",
            do="read its documentation; the other findings describe what Kafka itself does",
        )
