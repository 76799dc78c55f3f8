"""The answers of `kquota configs` about resources, in the words of kafka-configs.

Over brokers, these are the words of Kafka 4.3.1. Over ZooKeeper, they are the words of Kafka 2.8.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kquota.cli.configs.answer import HIDDEN, name_of, named_resource
from kquota.cli.output import Answer, JsonObject, Row, hidden, key
from kquota.settings.resource import BROKERS, Entry, Resource
from kquota.terms import DEFAULT

Described: TypeAlias = Mapping[Resource, Sequence[Entry]]


def _resources(found: Described) -> list[JsonObject]:
    return [{**named_resource(resource), "configs": list(map(_config, entries))} for resource, entries in found.items()]


def _config(entry: Entry) -> JsonObject:
    """Return a config. `value` is null if the config is `sensitive`, or if the broker does not report the value."""
    secret = entry.sensitive
    return {
        "key": entry.key,
        "value": None if secret else entry.value,
        "source": entry.source,
        "sensitive": secret,
        "synonyms": [{"source": s.source, "key": s.key, "value": None if secret else s.value} for s in entry.synonyms],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConfigs(Answer):
    """Configs of resources. `everything` is True if static and default configs are included.

    `absent` is the requested resource if it does not exist or, except over ZooKeeper, is a dead broker. Otherwise, it
    is None.
    """

    HEADER = ("type", "name", "key", "value", "source", "sensitive")
    INDENT = 2

    resources: Described = key(form=_resources)
    absent: Resource | None = hidden()
    everything: bool = hidden()
    over_zookeeper: bool = hidden()

    def text(self) -> Iterator[str]:
        for resource, entries in self.resources.items():
            if self.over_zookeeper:
                yield _zookeeper_line(resource, entries)
            else:
                yield from _admin_lines(resource, entries, "All" if self.everything else "Dynamic")
        if self.absent is not None and self.absent not in self.resources:
            yield absence(self.absent)

    def rows(self) -> Iterator[Row]:
        for resource, entries in self.resources.items():
            for entry in entries:
                value = None if entry.sensitive else entry.value
                sensitive = _java(entry.sensitive)
                yield [resource.kind[:-1], name_of(resource), entry.key, value, entry.source, sensitive]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredConfigs(Answer):
    """The resource whose configs were altered."""

    HEADER = ("type", "name")

    altered: Resource = key(form=named_resource)
    over_zookeeper: bool = hidden()

    def text(self) -> Iterator[str]:
        resource = self.altered
        if self.over_zookeeper:
            yield f"Completed updating config for entity: {_resource_words(resource)}."
        elif resource.name is DEFAULT:
            yield f"Completed updating default config for {resource.kind} in the cluster."
        else:
            yield f"Completed updating config for {resource.kind[:-1]} {resource.name}."

    def rows(self) -> Iterator[Row]:
        yield [self.altered.kind[:-1], name_of(self.altered)]


def absence(resource: Resource) -> str:
    """Return Kafka's sentence for a missing resource or a dead broker."""
    return f"The {resource.kind[:-1]} '{resource.name}' doesn't exist and doesn't have dynamic config."


def shown_value(entry: Entry) -> str:
    """Return the value as Java prints it, or a placeholder for a secret."""
    return _java(HIDDEN if entry.sensitive and entry.value else entry.value)


def _admin_lines(resource: Resource, entries: Sequence[Entry], which: str) -> Iterator[str]:
    """Yield the lines of --describe over brokers or controllers, as Kafka 4.3.1 prints them."""
    if resource.name is DEFAULT:
        yield f"Default configs for {resource.kind} in the cluster are:"
    else:
        yield f"{which} configs for {resource.kind[:-1]} {resource.name} are:"
    for entry in entries:
        synonyms = ", ".join(
            f"{s.source}:{s.key}={_java(HIDDEN if entry.sensitive and s.value else s.value)}" for s in entry.synonyms
        )
        yield (f"  {entry.key}={shown_value(entry)} sensitive={_java(entry.sensitive)} synonyms={{{synonyms}}}")


def _zookeeper_line(resource: Resource, entries: Sequence[Entry]) -> str:
    """Return the line of --describe over --zookeeper, as Kafka 2.8 prints it, but without passwords."""
    pairs = ",".join(f"{entry.key}={HIDDEN if entry.sensitive else entry.value}" for entry in entries)
    return f"Configs for {_resource_words(resource)} are {pairs}"


def _resource_words(resource: Resource) -> str:
    """Return a topic or broker in the words of Kafka 2.8's tool for ZooKeeper."""
    kind = "brokers" if resource.kind == BROKERS else "topic"
    return f"default {kind}" if resource.name is DEFAULT else f"{kind} '{resource.name}'"


def _java(value: str | bool | None) -> str:
    """Format a value as Java prints it. Brokers report null for a secret, and Kafka's tool prints that null."""
    if value is None:
        return "null"
    return value if isinstance(value, str) else str(value).lower()
