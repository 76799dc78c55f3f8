"""The replication throttles of a document, combined with the configs of brokers and topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kquota.cli import world
from kquota.errors import KquotaError, Unreachable
from kquota.quota.throttling import Throttles, Throttling
from kquota.settings import actions, ignored
from kquota.settings.port import Configs
from kquota.settings.resource import BROKERS, THROTTLE_KEYS, TOPICS, Entry, Kind, Resource

_KINDS: Final[tuple[Kind, ...]] = (BROKERS, TOPICS)


def every(configs: Configs) -> Throttles:
    """All throttles that are set. Raises Unreachable if a live broker does not report its own."""
    found: dict[Resource, Mapping[str, str]] = {}
    for kind in _KINDS:
        described, lost = actions.describe_all(configs, kind)
        if lost:
            raise lost[0]
        for resource, entries in described.items():
            if held := _held(resource, entries):
                found[resource] = held
    return found


def of(configs: Configs, named: Iterable[Resource]) -> Throttles:
    """The throttles of the named resources. Raises Refused for a missing topic and a broker that is not alive."""
    return {resource: _held(resource, actions.entries(configs, resource)) for resource in named}


def warnings(configs: Configs, throttlings: Iterable[Throttling]) -> list[str]:
    """Warnings about possible mistakes. Raises Refused for values that these brokers store and ignore."""
    release = configs.release()
    told = [line for throttling in throttlings for line in ignored.must_take_effect(throttling.change, release)]
    return list(dict.fromkeys(told))


def write(configs: Configs, throttlings: Sequence[Throttling]) -> dict[Resource, str]:
    """Write each independently and read it back. Returns the reasons for those that were not written."""
    undone: dict[Resource, str] = {}
    for place, throttling in enumerate(throttlings):
        try:
            actions.alter(configs, throttling.change, world.until_seen())
        except Unreachable as error:
            undone[throttling.entity] = f"unknown: {error}"
            return undone | {left.entity: "not sent" for left in throttlings[place + 1 :]}
        except KquotaError as error:
            undone[throttling.entity] = str(error)
    return undone


def _held(resource: Resource, entries: Iterable[Entry]) -> dict[str, str]:
    """The throttles set on this resource itself. A deleted rate that 4.3.1 still reports has no synonym."""
    return {
        entry.key: entry.value
        for entry in entries
        if entry.key in THROTTLE_KEYS[resource.kind]
        and entry.dynamic
        and entry.value
        and (entry.synonyms or resource.kind == TOPICS)
    }
