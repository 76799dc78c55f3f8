"""The order of reads and writes for topic and broker configs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kquota.errors import Refused, Unreachable, Unseen
from kquota.settings.change import ConfigChange
from kquota.settings.port import Configs
from kquota.settings.resource import BROKERS, TOPICS, Entry, Kind, Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """What came of a change: the keys to delete that were not set, and what now stands behind those that were."""

    absent: tuple[str, ...]
    behind: tuple[Entry, ...]


def describe_all(configs: Configs, kind: Kind) -> tuple[Mapping[Resource, tuple[Entry, ...]], tuple[Unreachable, ...]]:
    """Every topic, or every broker and the default of all, in order, and why some brokers could not be asked.

    A topic that goes meanwhile is left out. Raises Unreachable when nobody answers.
    """
    wanted = configs.configured(kind)
    try:
        return configs.describe(wanted), ()
    except Unreachable:
        if kind == TOPICS:
            raise
    found: dict[Resource, tuple[Entry, ...]] = {}
    lost = []
    for resource in wanted:
        try:
            found |= configs.describe([resource])
        except Unreachable as error:
            lost.append(error)
    if not found:
        raise lost[0]
    return found, tuple(lost)


def alter(configs: Configs, change: ConfigChange, attempts: Iterator[object]) -> Altered:
    """Write `change`, then read until it is seen: on KRaft a read right after a write is often stale.

    Each item of `attempts` allows one more read. Reads before it writes, so that nobody writes what they may not read
    back. Raises Refused for a resource that does not exist, Unseen if the change was sent and never seen.
    """
    resource = change.resource
    before = entries(configs, resource)
    configs.alter([change])
    for _ in attempts:
        after = entries(configs, resource)
        if change.seen(before, after):
            stood = {entry.key for entry in before if entry.dynamic}
            gone = stood & set(change.delete)
            # A broker of 4.3.1 still tells a rate of its own that was deleted, with no synonym: it is not in force.
            true = (entry for entry in after if entry.synonyms or resource.kind == TOPICS)
            behind = tuple(entry for entry in true if entry.key in gone)
            return Altered(absent=tuple(key for key in change.delete if key not in gone), behind=behind)
    raise Unseen(f"{resource}: the change was sent and accepted, but not seen yet")


def entries(configs: Configs, resource: Resource) -> tuple[Entry, ...]:
    """The entries of a topic that must exist, or of a broker that must be alive: else Refused."""
    found = configs.describe([resource])
    if resource not in found:
        if resource.kind == TOPICS:
            raise Refused(f"{resource} does not exist")
        alive = ", ".join(str(broker.name) for broker in configs.resources(BROKERS))
        raise Refused(
            f"{resource} is not alive, and only the broker itself can show or change its configs. Alive brokers: "
            f"{alive}"
        )
    return found[resource]
