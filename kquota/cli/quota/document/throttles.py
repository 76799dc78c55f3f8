"""The replication throttles of a document: joined here with the configs of brokers and topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kquota.cli import world
from kquota.config import actions, ignored
from kquota.config.change import ConfigChange
from kquota.config.port import Configs
from kquota.config.resource import BROKERS, TOPICS, Entry, Kind, Resource
from kquota.errors import KquotaError, Unreachable
from kquota.quota.throttled import KEYS, Throttled, Throttles, Throttling

_KINDS: Final[tuple[Kind, ...]] = (BROKERS, TOPICS)


def check(throttled: Throttled, key: str, text: str) -> str:
    """What `kquota configs` would store. Raises Invalid for what it would refuse."""
    return ignored.value(_resource(throttled), key, text)


def every(configs: Configs) -> Throttles:
    """All that stand. Raises Unreachable when a broker that is alive does not tell its own."""
    found: dict[Throttled, Mapping[str, str]] = {}
    for kind in _KINDS:
        described, lost = actions.describe_all(configs, kind)
        if lost:
            raise lost[0]
        for resource, entries in described.items():
            if held := _held(resource, entries):
                found[Throttled(kind=kind, name=resource.name)] = held
    return found


def of(configs: Configs, named: Iterable[Throttled]) -> Throttles:
    """Those of the named. Raises Refused for a topic that does not exist and a broker that is not alive."""
    return {
        throttled: _held(_resource(throttled), actions.entries(configs, _resource(throttled))) for throttled in named
    }


def warnings(configs: Configs, throttlings: Iterable[Throttling]) -> list[str]:
    """What may not be meant. Raises Refused for what these brokers store and ignore."""
    release = configs.release()
    told = [line for throttling in throttlings for line in ignored.must_take_effect(_change(throttling), release)]
    return list(dict.fromkeys(told))


def write(configs: Configs, throttlings: Sequence[Throttling]) -> dict[Throttled, str]:
    """Make each for itself and see it; why each was not made of those that were not."""
    undone: dict[Throttled, str] = {}
    for place, throttling in enumerate(throttlings):
        try:
            actions.alter(configs, _change(throttling), world.until_seen())
        except Unreachable as error:
            undone[throttling.entity] = f"not known: {error}"
            return undone | {left.entity: "not sent" for left in throttlings[place + 1 :]}
        except KquotaError as error:
            undone[throttling.entity] = str(error)
    return undone


def _resource(throttled: Throttled) -> Resource:
    return Resource(kind=throttled.kind, name=throttled.name)


def _change(throttling: Throttling) -> ConfigChange:
    keys = list(throttling.differing())
    return ConfigChange(
        resource=_resource(throttling.entity),
        add={key: new for key, _, new in keys if new is not None},
        delete=tuple(key for key, _, new in keys if new is None),
    )


def _held(resource: Resource, entries: Iterable[Entry]) -> dict[str, str]:
    """What is set on this very resource; a deleted rate that a broker of 4.3.1 still tells has no synonym."""
    return {
        entry.key: entry.value
        for entry in entries
        if entry.key in KEYS[resource.kind]
        and entry.dynamic
        and entry.value
        and (entry.synonyms or resource.kind == TOPICS)
    }
