"""Shared by `quota export`, `diff` and `apply`: the cluster, the document, and the changes that it makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from kquota import text_file
from kquota.cli import world
from kquota.cli.connection import Connection
from kquota.cli.hosts import is_ip_or_host
from kquota.cli.quota import throttles
from kquota.errors import Invalid
from kquota.quota import actions, document
from kquota.quota.change import QuotaChange
from kquota.quota.difference import Difference, difference
from kquota.quota.document import Document
from kquota.quota.port import Principals
from kquota.settings.port import Configs
from kquota.terms import WIRE_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaCluster:
    """The quotas of one cluster and, if requested, the configs of its topics and brokers."""

    quotas: Principals
    configs: Configs | None


@contextmanager
def opened(connection: Connection, *, with_configs: bool) -> Iterator[QuotaCluster]:
    """An open connection to the cluster."""
    at = world.where(connection)
    with world.quotas(at) as quotas, world.configs(at) if with_configs else nullcontext() as configs:
        yield QuotaCluster(quotas=quotas, configs=configs)


def read(file: Path, *, prune: bool) -> Document:
    """The document in a file, checked before any connection. Raises Invalid."""
    text, name = text_file.read(file, "a document of quotas")
    found = document.read(text, name)
    if prune and found.owns is None:
        raise Invalid("--prune needs `owns: [patterns]` in the document, which states what may be removed")
    for entity, limits in found.limits.items():
        if isinstance(entity.ip, str) and limits and not is_ip_or_host(entity.ip):
            raise Invalid(
                f"{name}: {entity}: neither an IP address nor a resolvable host. A broker that cannot resolve it may "
                "not start"
            )
    if any(of == WIRE_DEFAULT for entity in found.limits for _, of in entity.parts()):
        world.warn(
            f"{WIRE_DEFAULT} is an ordinary name in a document. Defaults are default-user, default-client, default-ip"
        )
    return found


def compare(cluster: QuotaCluster, wanted: Document, *, prune: bool) -> Difference:
    """The changes that the document makes. Raises Refused and Invalid for a document that cannot be applied."""
    cluster.quotas.must_carry(wanted.limits)
    held = {} if cluster.configs is None else throttles.of(cluster.configs, wanted.throttles)
    return difference(wanted, cluster.quotas.everything(), prune=prune, throttles=held)


def warn_of(cluster: QuotaCluster, found: Difference) -> None:
    """Warn of changes that may be a mistake. Raises Refused for a change that these brokers would store and ignore."""
    warnings = [*_warnings(cluster.quotas, found)]
    if cluster.configs is not None:
        warnings += throttles.warnings(cluster.configs, found.throttlings)
    for line in warnings:
        world.warn(line)


def _warnings(port: Principals, found: Difference) -> Iterator[str]:
    """Warnings for each key that these brokers may not know."""
    first: dict[str, QuotaChange] = {}
    for replacement in found.replacements:
        for key, _, new in replacement.differing():
            if new is not None and key not in first:
                first[key] = QuotaChange(entity=replacement.entity, add={key: new})
    for change in first.values():
        yield from actions.must_take_effect(port, change)
