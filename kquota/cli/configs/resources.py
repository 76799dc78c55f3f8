"""`kquota configs` for topics and brokers, in the words of kafka-configs: 4.3.1 for brokers, 2.8.2 for ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kquota.cli import world
from kquota.cli.configs.answer import HIDDEN
from kquota.cli.contract import DONE, FAILED, say
from kquota.cli.output import Answer, Part, Row, hidden, key, spread
from kquota.cli.rates import warn_if_low
from kquota.errors import Invalid, KquotaError, Refused
from kquota.measure import human_rate
from kquota.settings import actions, ignored, rates, zookeeper_values
from kquota.settings.actions import Altered
from kquota.settings.change import ConfigChange
from kquota.settings.resource import BROKERS, Entry, Kind, Resource
from kquota.settings.throttled_lists import EmptyValue
from kquota.terms import BYTE_RATES, DEFAULT, Default

Described: TypeAlias = Mapping[Resource, Sequence[Entry]]


def _name(resource: Resource) -> str | None:
    return None if isinstance(resource.name, Default) else resource.name


def _named(resource: Resource) -> Mapping[str, str | int | None]:
    """Return the name for JSON. A broker id is a number there, and null is the default of all brokers."""
    name = _name(resource)
    return {resource.kind[:-1]: int(name) if name is not None and resource.kind == BROKERS else name}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym(Part):
    """A source of a config with its value. None means that the value is secret or not set."""

    source: str
    key: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Part):
    """A config. The `value` of a `sensitive` config is None."""

    key: str
    value: str | None
    source: str
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceConfigs(Part):
    """A topic, a broker or the default of all brokers, with its configs."""

    resource: Resource = spread(_named)
    configs: tuple[Config, ...]


def _resources(found: Described) -> list[ResourceConfigs]:
    return [
        ResourceConfigs(resource=resource, configs=tuple(map(_config, entries))) for resource, entries in found.items()
    ]


def _config(entry: Entry) -> Config:
    synonyms = (
        ConfigSynonym(source=s.source, key=s.key, value=None if entry.sensitive else s.value) for s in entry.synonyms
    )
    return Config(
        key=entry.key,
        value=None if entry.sensitive else entry.value,
        source=entry.source,
        sensitive=entry.sensitive,
        synonyms=tuple(synonyms),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConfigs(Answer):
    """Configs of topics or brokers. `everything` includes static configs. `absent` is a requested resource that does
    not exist.
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
                yield [resource.kind[:-1], _name(resource), entry.key, value, entry.source, sensitive]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredConfigs(Answer):
    """The topic or broker whose configs were altered."""

    HEADER = ("type", "name")

    altered: Resource = key(form=_named)
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
        yield [self.altered.kind[:-1], _name(self.altered)]


def absence(resource: Resource) -> str:
    """Return Kafka's sentence for a topic that does not exist or a broker that is not alive."""
    return f"The {resource.kind[:-1]} '{resource.name}' doesn't exist and doesn't have dynamic config."


def shown_value(entry: Entry) -> str:
    """Return the value as Java prints it, or a placeholder for a secret."""
    return _java(HIDDEN if entry.sensitive and entry.value else entry.value)


def _admin_lines(resource: Resource, entries: Sequence[Entry], which: str) -> Iterator[str]:
    """Yield the lines of --describe on --bootstrap-server, as Kafka 4.3.1 prints them."""
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
    """Return the line of --describe on --zookeeper, as Kafka 2.8 prints it, but without passwords."""
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


def describe(at: world.Where, kind: Kind, name: str | Default | None, everything: bool) -> DescribedConfigs:
    """Return the dynamic configs of one topic or broker, or of all (None). `everything` adds static and default
    configs.

    A broker that does not answer is reported as an error, and the others are still shown.
    """
    resource = None if name is None else Resource(kind=kind, name=name)
    found: Mapping[Resource, Sequence[Entry]]
    lost: Sequence[KquotaError] = ()
    with world.configs(at) as configs:
        if resource is None:
            found, lost = actions.describe_all(configs, kind)
        elif everything:
            found = {resource: actions.entries(configs, resource)}
        else:
            found = configs.describe([resource])
    if resource is not None and resource not in found and _is_unread(at, resource):
        raise Refused(
            f"{resource}: a controller shows only its own configs, so these are unknown here. Use --bootstrap-server "
            "while the broker is alive"
        )
    shown = {r: [entry for entry in entries if entry.dynamic or everything] for r, entries in found.items()}
    absent = resource if resource not in found else None
    if resource is not None and at.zookeeper is not None:
        # Kafka 2.8's tool shows what was requested by name, even if it does not exist.
        shown.setdefault(resource, [])
    return DescribedConfigs(
        resources=shown,
        absent=absent,
        everything=everything,
        over_zookeeper=at.zookeeper is not None,
        data_notes=() if absent is None else (absence(absent),),
        closing_notes=tuple(f"error: {error}" for error in lost),
        code=FAILED if lost else DONE,
    )


def alter(at: world.Where, resource: Resource, add: Mapping[str, str], delete: tuple[str, ...]) -> AlteredConfigs:
    """Set and delete configs of one topic or broker, and wait until they are visible. Warnings go to stderr."""
    try:
        return _altered(at, resource, add, delete)
    except EmptyValue as error:
        raise Invalid(f"{error}. To remove it, use --delete-config {error.key}") from error
    except ignored.OtherKind as error:
        raise Invalid(f"{error}. Use --entity-type {error.kind}") from error
    except zookeeper_values.NeedsBroker as error:
        raise Invalid(f"{error}. Use --bootstrap-server") from error


def _altered(at: world.Where, resource: Resource, add: Mapping[str, str], delete: tuple[str, ...]) -> AlteredConfigs:
    change = ConfigChange(
        resource=resource,
        add={key: ignored.value(resource, key, text) for key, text in add.items()},
        delete=delete,
    )
    if at.zookeeper is not None:
        zookeeper_values.must_be_sound(change)
    for rate in BYTE_RATES:
        if rate in add:
            warn_if_low(f"{rate}={add[rate]}", add[rate], int(change.add[rate]), "throttle")
    _echo(change)
    notes = []
    with world.configs(at) as configs:
        release = configs.release()
        for warning in ignored.must_take_effect(change, release):
            say(f"warning: {warning}")
        if _is_unread(at, resource) and not configs.describe([resource]):
            configs.alter([change])
            notes.append(
                f"{resource}: the controllers accepted the change, but cannot show it. It takes effect when the broker "
                "starts. Then check it with --describe and --bootstrap-server"
            )
            return AlteredConfigs(altered=resource, over_zookeeper=False, notes=tuple(notes))
        altered = actions.alter(configs, change, world.until_seen())
        is_one_broker = resource.kind == BROKERS and resource.name is not DEFAULT
        if at.zookeeper is not None and is_one_broker and resource not in configs.resources(BROKERS):
            notes.append(f"{resource} is not running. The change takes effect when it starts")
    notes += _remarks(resource, altered, release)
    return AlteredConfigs(altered=resource, over_zookeeper=at.zookeeper is not None, notes=tuple(notes))


def _is_unread(at: world.Where, resource: Resource) -> bool:
    """True if the configs of this broker cannot be read, because the connection uses the controllers."""
    return world.only_controllers(at) and resource.kind == BROKERS and resource.name is not DEFAULT


def _remarks(resource: Resource, altered: Altered, release: tuple[int, ...] | None) -> Iterator[str]:
    """Yield the keys that were not set, and the values that now apply instead of the deleted ones."""
    for absent in altered.absent:
        yield f"{resource}: {absent} was not set; nothing to delete"
    for entry in altered.behind:
        if rates.in_force(entry, release):
            yield f"{resource}: {entry.key} is now {shown_value(entry) or 'empty'}, from {entry.source}"


def must_not_be_secret(keys: Iterable[str]) -> None:
    """Raise Invalid for keys of secrets, because every user of the machine can read command lines."""
    if secret := sorted(filter(zookeeper_values.is_password, keys)):
        raise Invalid(
            f"{', '.join(secret)}: a secret on a command line is visible to other users of this machine. Use "
            "--add-config-file"
        )


def _echo(change: ConfigChange) -> None:
    """Print how kquota understood a rate, so that the operator sees a wrong unit immediately."""
    for name in BYTE_RATES:
        if name in change.add:
            rate = change.add[name]
            say(f"{change.resource}: {name} = {rate} bytes per second ({human_rate(int(rate))})")
