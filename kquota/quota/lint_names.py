"""Lint rules for names: names that look like mistakes, host names, names that look alike, and equal addresses."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote, unquote

from kquota.quota.entity import Entity, Name
from kquota.quota.explain import address
from kquota.quota.finding import QuotaFinding
from kquota.quota.limits import Limits, QuotaChange
from kquota.quota.precedence import QuotasByEntity
from kquota.terms import CLIENTS, DEFAULT, IPS, USERS, WIRE_DEFAULT, Default

_ENCODED: Final = re.compile(r"%[0-9A-F]{2}")
_PRINCIPAL: Final = "User:"


def _encoded(entity: Entity, limits: Limits, among: QuotasByEntity) -> Iterator[QuotaFinding]:
    for kind, name in entity.parts():
        meant = _decoded(name) if isinstance(name, str) else None
        if meant is not None:
            who = f"the default {kind[:-1]}" if meant is DEFAULT else f"{kind[:-1]} {meant!r}"
            yield _renamed(
                "looks-encoded",
                entity,
                limits,
                among,
                _with(entity, kind, meant),
                f"is the znode name of {who}",
                "a migrated name that is still encoded as in ZooKeeper matches no client (KAFKA-16222, KAFKA-16411)",
            )


def _typed(entity: Entity, limits: Limits, among: QuotasByEntity) -> Iterator[QuotaFinding]:
    if isinstance(entity.user, str) and (name := entity.user.removeprefix(_PRINCIPAL)) not in ("", entity.user):
        yield _renamed(
            "principal-type",
            entity,
            limits,
            among,
            replace(entity, user=name),
            "has the principal type in its name",
            "quotas use only the name of the principal, for example 'alice' for User:alice",
        )


def _spaced(entity: Entity, limits: Limits, among: QuotasByEntity) -> Iterator[QuotaFinding]:
    why = "brokers compare names character by character"
    for kind, name in entity.parts():
        if not isinstance(name, str) or name == name.strip():
            continue
        if trimmed := name.strip():
            what = f"has white space around the name of its {kind[:-1]}"
            yield _renamed("white-space", entity, limits, among, _with(entity, kind, trimmed), what, why)
        else:
            yield QuotaFinding(
                rule="white-space",
                entity=entity,
                key=None,
                what=f"has only white space in the name of its {kind[:-1]}",
                why=why,
                do="remove its limits, unless this name is intended",
                cure=(QuotaChange(entity=entity, delete=tuple(limits)),),
            )


def _host_names(quotas: QuotasByEntity) -> Iterator[QuotaFinding]:
    for entity, limits in quotas.items():
        if isinstance(entity.ip, str) and address(entity.ip) is None:
            scoped = _is_scoped(entity.ip)
            yield QuotaFinding(
                rule="scoped-address" if scoped else "host-name",
                entity=entity,
                key=None,
                what="is an address with a scope" if scoped else "is a host name, not an address",
                why="a scope names a network interface of one machine, and other brokers may not have it"
                if scoped
                else "each broker resolves the name once, when it receives the quota, and keeps that address",
                do=f"set the quota on the address{' without its scope' if scoped else ''}. Then remove this one:",
                cure=(QuotaChange(entity=entity, delete=tuple(limits)),),
            )


def _is_scoped(ip: str) -> bool:
    plain, percent, _ = ip.partition("%")
    return bool(percent) and ":" in plain and address(plain) is not None


def _renamed(
    rule: str, entity: Entity, limits: Limits, among: QuotasByEntity, meant: Entity, what: str, why: str
) -> QuotaFinding:
    already_set = sorted(set(limits) & set(among.get(meant, {})))
    new = {key: value for key, value in limits.items() if key not in already_set and math.isfinite(value) and value > 0}
    move = (QuotaChange(entity=meant, add=new),) if new else ()
    return QuotaFinding(
        rule=rule,
        entity=entity,
        key=None,
        what=what,
        why=why,
        do=f"{meant} already has {', '.join(already_set)}, so compare the values. To keep those of {meant}:"
        if already_set
        else f"if {meant} is intended, move the limits to it",
        cure=(*move, QuotaChange(entity=entity, delete=tuple(limits))),
    )


def _with(entity: Entity, kind: str, name: Name) -> Entity:
    return replace(entity, **{{USERS: "user", CLIENTS: "client_id", IPS: "ip"}[kind]: name})


def _twins(quotas: QuotasByEntity) -> Iterator[QuotaFinding]:
    for kind in (USERS, CLIENTS):
        seen = {name: e for e in sorted(quotas, key=Entity.order, reverse=True) for k, name in e.parts() if k == kind}
        for name, others in _alike([n for n in seen if isinstance(n, str)]).items():
            if name < others[0]:
                alike = ", ".join(map(repr, others))
                yield QuotaFinding(
                    rule="look-alike",
                    entity=seen[name],
                    key=None,
                    what=f"its {kind[:-1]} {name!r} differs from {alike} only by case, encoding or white space",
                    why="brokers compare names character by character",
                    do="check whether each of these names is intended",
                )


def _same_address(quotas: QuotasByEntity) -> Iterator[QuotaFinding]:
    first: dict[object, Entity] = {}
    for entity in sorted(quotas, key=Entity.order):
        where = address(entity.ip) if isinstance(entity.ip, str) else None
        if where is None:
            continue
        if where in first:
            yield QuotaFinding(
                rule="same-address",
                entity=entity,
                key=None,
                what=f"is the same address as {first[where]}",
                why="brokers keep only the quota that they received last",
                do="keep only one of the two quotas. To remove this one:",
                cure=(QuotaChange(entity=entity, delete=tuple(quotas[entity])),),
            )
        first.setdefault(where, entity)


def _decoded(name: str) -> str | Default | None:
    """Return the name that an encoded znode name represents, or `DEFAULT`. None if the name does not look encoded.

    A migration to KRaft used the znode names of users as user names (KAFKA-16222), and the znode name of the default
    entity as a user name (KAFKA-16411).
    """
    if name == WIRE_DEFAULT:
        return DEFAULT
    if not _ENCODED.search(name):
        return None
    plain = unquote(name, errors="replace")
    if not plain or quote(plain, safe="").replace("~", "%7E") != name:
        return None
    return DEFAULT if plain == WIRE_DEFAULT else plain


def _alike(names: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(unquote(name, errors="replace").strip().casefold(), []).append(name)
    return {one: tuple(n for n in group if n != one) for group in groups.values() for one in group if len(group) > 1}


RULES: Final = (_encoded, _typed, _spaced)
SET_RULES: Final = (_host_names, _twins, _same_address)
