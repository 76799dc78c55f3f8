"""Client quotas in Kafka's words: as 4.3.1's kafka-configs prints them on brokers, as 2.8.2's does on ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kquota.quota.entity import CLIENTS, IPS, USERS, Entity
from kquota.quota.limits import Limits, plain
from kquota.quota.port import Scram
from kquota.terms import DEFAULT

HIDDEN: Final = "[hidden]"
_ADMIN: Final = {USERS: "user-principal", CLIENTS: "client-id", IPS: "ip"}
_ZOOKEEPER: Final = _ADMIN | {IPS: "ips"}


def admin_lines(found: Mapping[Entity, Limits], scram: Scram) -> Iterator[str]:
    """--describe on --bootstrap-server; values as Java prints doubles."""
    for entity, limits in found.items():
        pairs = ", ".join(f"{key}={java_double(value)}" for key, value in limits.items())
        yield f"Quota configs for {_admin_words(entity)} are {pairs}"
    for user, credentials in scram.items():
        pairs = ", ".join(f"{mechanism}=iterations={told}" for mechanism, told in credentials.items())
        yield f"SCRAM credential configs for user-principal '{user}' are {pairs}"


def zookeeper_lines(found: Mapping[Entity, Limits], scram: Scram) -> Iterator[str]:
    """--describe on --zookeeper. Kafka prints SCRAM's salt and keys there; we do not."""
    credentials = {Entity(user=user): mechanisms for user, mechanisms in scram.items()}
    for entity in sorted({*found, *credentials}, key=Entity.order):
        pairs = [f"{mechanism}={HIDDEN}" for mechanism in credentials.get(entity, ())]
        pairs += [f"{key}={plain(value)}" for key, value in found.get(entity, {}).items()]
        yield f"Configs for {zookeeper_words(entity)} are {','.join(pairs)}"


def _admin_words(entity: Entity) -> str:
    return ", ".join(
        f"the default {_ADMIN[kind]}" if name is DEFAULT else f"{_ADMIN[kind]} '{name}'"
        for kind, name in entity.parts()
    )


def zookeeper_words(entity: Entity) -> str:
    """An entity in the words of the ZooKeeper path of Kafka 2.8's tool."""
    return ", ".join(
        f"default {_ZOOKEEPER[kind]}" if name is DEFAULT else f"{_ZOOKEEPER[kind]} '{name}'"
        for kind, name in entity.parts()
    )


def java_double(value: float) -> str:
    """Java's Double.toString: a point always, an exponent from 10^7 and below 10^-3.

    >>> java_double(1024.0), java_double(10_000_000.0), java_double(12.5)
    ('1024.0', '1.0E7', '12.5')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits = mantissa.removesuffix(".0").lstrip("-")
        sign = "-" if value < 0 else ""
        whole, _, part = digits.partition(".")
        return f"{sign}{whole[0]}.{(whole[1:] + part).rstrip('0') or '0'}E{len(whole) - 1}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
