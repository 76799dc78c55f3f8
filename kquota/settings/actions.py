"""Reads and writes of configs: describe resources, check a change, write it, and wait until it is visible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kquota.entity_types import BROKER_LOGGERS, ENTITIES
from kquota.errors import NextStep, Refused, StepFor, Unreachable, Unseen
from kquota.settings.change import ConfigChange
from kquota.settings.port import Configs
from kquota.settings.resource import BROKERS, TOPICS, Entry, Resource, ResourceKind
from kquota.terms import dotted


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """The result of a change."""

    absent: tuple[str, ...]
    """The keys to delete that were not set."""
    behind: tuple[Entry, ...]
    """The entries that now apply instead of the deleted ones."""


def describe_all(
    configs: Configs, kind: ResourceKind
) -> tuple[Mapping[Resource, tuple[Entry, ...]], Mapping[Resource, Unreachable]]:
    """Return the entries of every resource that `Configs.configured` lists, in order, and the errors of brokers that
    did not answer.

    For brokers, this includes the broker default. A topic that is deleted in the meantime is left out. So is a
    broker that dies, except over ZooKeeper. Raises Unreachable if no broker answers or, for all kinds except brokers,
    if one request has no answer. Raises Refused if the cluster refuses a request.
    """
    wanted = configs.configured(kind)
    try:
        return configs.describe(wanted), {}
    except Unreachable as error:
        if kind != BROKERS:
            raise
        first = error
    found: dict[Resource, tuple[Entry, ...]] = {}
    lost: dict[Resource, Unreachable] = {}
    for resource in wanted:
        try:
            found |= configs.describe([resource])
        except Unreachable as error:
            lost[resource] = error
    if not found:
        # Raise the first error, because the later calls raise no error for a broker that is no longer alive.
        raise first
    return found, lost


def must_exist(kind: ResourceKind, release: tuple[int, ...] | None) -> None:
    """Raise Refused if the brokers are known to be too old for this kind of resource. `release` is None if it is
    unknown.
    """
    since = ENTITIES[kind].since
    if since and release is not None and release < since:
        raise Refused(
            f"{kind} need Kafka {dotted(since)}, and the brokers run {dotted(release)}. Upgrade the brokers first"
        )


def ready(configs: Configs, change: ConfigChange) -> tuple[Entry, ...]:
    """Return the entries of the resource before a change. Raises the same errors as `entries`, and Refused for loggers
    that the broker does not have.
    """
    before = entries(configs, change.resource)
    if change.resource.kind == BROKER_LOGGERS:
        known = {entry.key for entry in before}
        if unknown := [key for key in (*change.add, *change.delete) if key not in known]:
            broker = str(change.resource.name)
            words = f"Invalid broker logger(s): {','.join(unknown)}. Show the loggers with "
            raise Refused(words, StepFor(NextStep.SHOW_LOGGERS, broker))
    return before


def alter(configs: Configs, change: ConfigChange, attempts: Iterator[object]) -> Altered:
    """Write `change`, then read until it is visible, because on KRaft a read right after a write is often stale.

    Each item of `attempts` allows one read after the write. Another read comes before the write, because kquota must
    not write a value that it cannot read back. Raises the errors of `ready` and of `Configs.alter`, and Unseen if the
    change does not become visible.
    """
    resource = change.resource
    before = ready(configs, change)
    configs.alter([change])
    for _ in attempts:
        after = entries(configs, resource)
        if change.seen(before, after):
            deleted = {entry.key for entry in before if entry.dynamic and entry.key in change.delete}
            # Leave out entries without synonyms, because Kafka 4.3.1 still reports deleted broker rates in this form.
            behind = tuple(e for e in after if e.key in deleted and (e.synonyms or resource.kind != BROKERS))
            return Altered(absent=tuple(key for key in change.delete if key not in deleted), behind=behind)
    raise Unseen(f"{resource}: the change was accepted, but the cluster does not show it yet")


def entries(configs: Configs, resource: Resource) -> tuple[Entry, ...]:
    """Return the entries of a resource, sorted by key.

    Raises Refused if the topic does not exist or the broker is dead. Also raises the errors of `Configs.describe`.
    """
    found = configs.describe([resource])
    if resource not in found:
        if resource.kind == TOPICS:
            raise Refused(f"{resource} does not exist. Check the name")
        alive = ", ".join(str(broker.name) for broker in configs.resources(resource.kind))
        what = "loggers" if resource.kind == BROKER_LOGGERS else "configs"
        raise Refused(
            f"broker '{resource.name}' is dead, and the other brokers cannot show or change its {what}. Start it, or "
            f"choose a live broker ({alive})"
        )
    return found[resource]
