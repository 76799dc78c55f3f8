"""Rules about names: those that look as if another was meant, those that brokers resolve, those that are alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from kquota.quota import names
from kquota.quota.change import Change
from kquota.quota.entity import CLIENTS, IPS, USERS, Entity, Name
from kquota.quota.explain import address
from kquota.quota.finding import Finding
from kquota.quota.limits import Limits
from kquota.quota.precedence import Quotas
from kquota.terms import DEFAULT


def _encoded(entity: Entity, limits: Limits, among: Quotas) -> Iterator[Finding]:
    for kind, name in entity.parts():
        meant = names.decoded(name) if isinstance(name, str) else None
        if meant is not None:
            who = f"the default {kind[:-1]}" if meant is DEFAULT else f"{kind[:-1]} {meant!r}"
            yield _renamed(
                "looks-encoded",
                entity,
                limits,
                among,
                _with(entity, kind, meant),
                f"is how a znode is called for {who}",
                "a name moved out of ZooKeeper as it stood there binds nobody (KAFKA-16222, KAFKA-16411)",
            )


def _typed(entity: Entity, limits: Limits, among: Quotas) -> Iterator[Finding]:
    meant = names.without_type(entity.user) if isinstance(entity.user, str) else None
    if meant is not None:
        yield _renamed(
            "principal-type",
            entity,
            limits,
            among,
            _with(entity, USERS, meant),
            "is named with its principal's type",
            "quotas go by the principal's name alone, as 'alice' in User:alice",
        )


def _spaced(entity: Entity, limits: Limits, among: Quotas) -> Iterator[Finding]:
    why = "brokers compare names to the letter"
    for kind, name in entity.parts():
        meant = names.trimmed(name) if isinstance(name, str) else None
        if meant is not None:
            what = f"has white space around its {kind[:-1]}"
            yield _renamed("white-space", entity, limits, among, _with(entity, kind, meant), what, why)
        elif isinstance(name, str) and not name.strip():
            yield Finding(
                rule="white-space",
                entity=entity,
                key=None,
                what=f"has nothing but white space for its {kind[:-1]}",
                why=why,
                do="remove it, unless somebody is really called so",
                cure=(Change(entity=entity, delete=tuple(limits)),),
            )


def _host_names(quotas: Quotas) -> Iterator[Finding]:
    for entity, limits in quotas.items():
        if isinstance(entity.ip, str) and address(entity.ip) is None:
            yield Finding(
                rule="host-name",
                entity=entity,
                key=None,
                what="is a host name, not an address",
                why="each broker looks it up once, when it learns of the quota, and keeps that one address",
                do="set the quota on the address, and remove this one",
                cure=(Change(entity=entity, delete=tuple(limits)),),
            )


def _renamed(rule: str, entity: Entity, limits: Limits, among: Quotas, meant: Entity, what: str, why: str) -> Finding:
    stands = sorted(set(limits) & set(among.get(meant, {})))
    new = {key: value for key, value in limits.items() if key not in stands and math.isfinite(value) and value > 0}
    move = (Change(entity=meant, add=new),) if new else ()
    return Finding(
        rule=rule,
        entity=entity,
        key=None,
        what=what,
        why=why,
        do=f"{meant} has {', '.join(stands)} already; look which is right" if stands else "if that was meant, move it",
        cure=(*move, Change(entity=entity, delete=tuple(limits))),
    )


def _with(entity: Entity, kind: str, name: Name) -> Entity:
    return replace(entity, **{{USERS: "user", CLIENTS: "client_id", IPS: "ip"}[kind]: name})


def _twins(quotas: Quotas) -> Iterator[Finding]:
    for kind in (USERS, CLIENTS):
        seen = {name: e for e in sorted(quotas, key=Entity.order, reverse=True) for k, name in e.parts() if k == kind}
        for name, others in names.twins([n for n in seen if isinstance(n, str)]).items():
            if name < others[0]:
                alike = ", ".join(map(repr, others))
                yield Finding(
                    rule="look-alike",
                    entity=seen[name],
                    key=None,
                    what=f"its {kind[:-1]} {name!r} differs from {alike} only by case, encoding or white space",
                    why="brokers compare names to the letter",
                    do="look whether both are meant",
                )


def _same_address(quotas: Quotas) -> Iterator[Finding]:
    first: dict[object, Entity] = {}
    for entity in sorted(quotas, key=Entity.order):
        where = address(entity.ip) if isinstance(entity.ip, str) else None
        if where is None:
            continue
        if where in first:
            yield Finding(
                rule="same-address",
                entity=entity,
                key=None,
                what=f"is the same address as {first[where]}",
                why="brokers keep one of the two, whichever they learnt of last",
                do="keep one; to remove this one",
                cure=(Change(entity=entity, delete=tuple(quotas[entity])),),
            )
        first.setdefault(where, entity)


Rule: TypeAlias = Callable[[Entity, Limits, Quotas], Iterator[Finding]]
RULES: Final[tuple[Rule, ...]] = (_encoded, _typed, _spaced)
SET_RULES: Final[tuple[Callable[[Quotas], Iterator[Finding]], ...]] = (_host_names, _twins, _same_address)
