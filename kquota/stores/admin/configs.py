"""The Configs port on the Admin API (KIP-226, KIP-339): DescribeConfigs and IncrementalAlterConfigs, since Kafka 2.3.

kquota lists subscriptions to client metrics with ListConfigResources (KIP-714), and groups with both
ListConfigResources (KIP-1142) and ListGroups.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from kafka.protocol.admin.configs import ListConfigResourcesRequest
from kafka.protocol.admin.groups import ListGroupsRequest

from kquota.entity_types import BROKER_LOGGERS, CLIENT_METRICS, GROUPS, RESOURCES
from kquota.errors import Incomplete, KquotaError, NextStep, Refused, StepFor, Unreachable
from kquota.settings.change import ConfigChange
from kquota.settings.resource import BROKERS, TOPICS, Entry, Resource, ResourceKind, Synonym
from kquota.settings.zookeeper_values import is_password
from kquota.stores.admin.connection import ALTER_CONFIGS, HUNG_SECONDS, READERS, Wire, advice_on_rights, kafka_error
from kquota.stores.admin.requests import (
    DELETE,
    SET,
    SOURCES,
    UNKNOWN_TOPIC,
    ConfigOperation,
    alter_request,
    by_resource,
    code_of,
    describe_request,
    on_the_wire,
    own_source,
)
from kquota.terms import DEFAULT, MAYBE_WRITTEN, BrokerId

_MOST_IN_A_REQUEST: Final = 500
"""The maximum number of topics, groups and subscriptions to client metrics in one request. An answer has about 40
configs with synonyms for each topic, so 500 topics take a few megabytes.
"""
_Config: TypeAlias = tuple[str, str | None, int, bool, tuple[tuple[int, str, str | None], ...]]
_DEFAULT_BROKER: Final = Resource(kind=BROKERS, name=DEFAULT)
_SHOW: Final[Mapping[ResourceKind, NextStep]] = {
    TOPICS: NextStep.SHOW_TOPIC_CONFIGS,
    BROKERS: NextStep.SHOW_BROKER_CONFIGS,
    GROUPS: NextStep.SHOW_GROUP_CONFIGS,
    CLIENT_METRICS: NextStep.SHOW_CLIENT_METRICS,
    BROKER_LOGGERS: NextStep.SHOW_LOGGERS,
}


class WireConfigs:
    """The configs of resources through the Admin API. Implements `Configs`.

    kquota asks each broker for its own configs and loggers. For all other configs, kquota asks the live broker with the
    lowest id. This broker never shows the previous value again after a new value, but another broker may. If the broker
    does not answer, kquota asks the next one, and does not return to the earlier broker while another broker answers.
    """

    _NO_READER: ClassVar[str] = "no broker answers. Check that the brokers are running"

    def __init__(self, wire: Wire, must_hold: Callable[[], None] = lambda: None) -> None:
        """`must_hold` is called just before each write, and raises Busy if another kquota has taken over the lock."""
        self._wire = wire
        self._must_hold = must_hold
        self._silent: set[BrokerId] = set()

    def resources(self, kind: ResourceKind) -> tuple[Resource, ...]:
        return tuple(Resource(kind=kind, name=name) for name in self._names(kind))

    def configured(self, kind: ResourceKind) -> tuple[Resource, ...]:
        return (*self.resources(kind), *((_DEFAULT_BROKER,) if kind == BROKERS else ()))

    def _names(self, kind: ResourceKind) -> list[str]:
        if kind in (BROKERS, BROKER_LOGGERS):
            return [str(broker) for broker in self._wire.brokers()]
        if kind == TOPICS:
            return sorted(topic.name for topic in self._wire.metadata(None).topics)
        return sorted(self._groups() if kind == GROUPS else self._listed(kind, oldest=0))

    def _groups(self) -> set[str]:
        found = self._listed(GROUPS, oldest=1)
        for broker, answer in self._wire.ask_each(dict.fromkeys(self._wire.brokers(), ListGroupsRequest())).items():
            if isinstance(answer, KquotaError):
                raise answer
            _must_be_listed(f"groups of broker {broker}", answer)
            found.update(group.group_id for group in answer.groups)
        return found

    def _listed(self, kind: ResourceKind, *, oldest: int) -> set[str]:
        """`oldest` is the first version of the request that supports `kind`."""
        asked = ListConfigResourcesRequest(resource_types=[code_of(kind)], min_version=oldest)
        try:
            answer = self._wire.ask(asked)
        except Refused as error:
            raise Refused(f"{kind}: these brokers cannot list all {kind}. Give a name") from error
        _must_be_listed(kind, answer, advice_on_rights(answer.error_code))
        return {resource.resource_name for resource in answer.config_resources}

    def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
        found: dict[Resource, tuple[Entry, ...]] = {}
        for those in _rounds(resources):
            for resource, answer in self._described(dict.fromkeys(those), synonyms=True):
                if isinstance(answer, KquotaError):
                    raise answer
                if answer.error_code == 0:
                    found[resource] = _entries(resource, answer)
                elif answer.error_code != UNKNOWN_TOPIC:
                    words = kafka_error(answer.error_code, answer.error_message)
                    words += advice_on_rights(answer.error_code)
                    raise Refused(f"describing {resource}: the broker answered {words}")
        return {resource: found[resource] for resource in resources if resource in found}

    def alter(self, changes: Sequence[ConfigChange]) -> None:
        """Check first that there is an active controller, unless all changes are of log levels. Raises NotSent if
        there is none, and Busy if another kquota has taken over the lock.
        """
        from kquota.stores.admin.controllers import must_be_active  # imported here: only writes need it

        # Changing log levels does not need the controllers.
        if any(change.resource.kind != BROKER_LOGGERS for change in changes):
            must_be_active(self._wire)
        wanted = {change.resource: change for change in changes}
        errors: dict[Resource, KquotaError] = {}
        for those in _rounds(wanted):
            answers = self.altered({resource: _operations(wanted[resource]) for resource in those})
            for resource in those:
                if error := _error(wanted[resource], answers.get(resource)):
                    errors[resource] = error
        if errors:
            raise _failure(list(wanted), errors)

    def release(self) -> tuple[int, ...]:
        return self._wire.version()

    def _described(
        self, asked: Mapping[Resource, Sequence[str] | None], *, synonyms: bool
    ) -> Iterator[tuple[Resource, Any | KquotaError]]:
        """Yield each resource with its answer or error. The configs and loggers of dead brokers are left out. `asked`
        has the keys to read, or None for all keys.

        If the broker that is asked for shared resources, such as topics, does not answer, kquota asks the next broker.
        Raises Unreachable if no broker is left to ask for them.
        """
        has_others = len(self._readers()) > 1 and len(self._silent) < READERS
        short = has_others and not any(resource.of_broker for resource in asked)
        sent = self._by_broker(asked)
        requests = {
            broker: describe_request({resource: asked[resource] for resource in those}, synonyms=synonyms)
            for broker, those in sent.items()
        }
        for broker, answer in self._wire.ask_each(requests, HUNG_SECONDS if short else None).items():
            if not isinstance(answer, KquotaError):
                results = by_resource(answer.results)
                yield from ((resource, results[on_the_wire(resource)]) for resource in sent[broker])
                continue
            yield from ((resource, answer) for resource in sent[broker] if resource.of_broker)
            if others := [resource for resource in sent[broker] if not resource.of_broker]:
                self._silent.add(broker)
                yield from self._described({resource: asked[resource] for resource in others}, synonyms=synonyms)

    def altered(
        self, operations: Mapping[Resource, Mapping[str, ConfigOperation]]
    ) -> dict[Resource, Any | KquotaError]:
        """Write the configs, and return the answer or the error for each resource.

        The configs and loggers of dead brokers are left out. Raises Busy if another kquota has taken over the lock.
        """
        sent = self._by_broker(operations)
        requests = {
            broker: alter_request({resource: operations[resource] for resource in those})
            for broker, those in sent.items()
        }
        if requests:
            self._must_hold()
        found: dict[Resource, Any | KquotaError] = {}
        for broker, answer in self._wire.ask_each(requests).items():
            if isinstance(answer, KquotaError):
                found |= dict.fromkeys(sent[broker], answer)
            else:
                results = by_resource(answer.responses)
                found |= {resource: results[on_the_wire(resource)] for resource in sent[broker]}
        return found

    def _by_broker(self, resources: Iterable[Resource]) -> dict[BrokerId, list[Resource]]:
        alive = self._wire.brokers()
        reader = next(iter(self._readers()), None)
        sent: dict[BrokerId, list[Resource]] = {}
        for resource in resources:
            broker = resource.broker if resource.of_broker else reader
            if broker is None:
                # The next call asks every broker again, because an outage may end while this connection is open.
                self._silent.clear()
                raise Unreachable(self._NO_READER)
            if broker in alive:
                sent.setdefault(broker, []).append(resource)
        return sent

    def _readers(self) -> list[BrokerId]:
        """Return the brokers that can answer for shared resources. kquota asks the first one."""
        return [broker for broker in self._wire.brokers() if broker not in self._silent]


def _rounds(resources: Collection[Resource]) -> Iterator[list[Resource]]:
    """Yield the resources of each round: brokers, loggers, up to 500 others at a time, and then the broker default."""
    for kind in RESOURCES:
        if those := [resource for resource in resources if resource.kind == kind and resource.of_broker]:
            yield those
    shared = [resource for resource in resources if not resource.of_broker and resource != _DEFAULT_BROKER]
    for start in range(0, len(shared), _MOST_IN_A_REQUEST):
        yield shared[start : start + _MOST_IN_A_REQUEST]
    if _DEFAULT_BROKER in resources:
        yield [_DEFAULT_BROKER]


def _entries(resource: Resource, answer: Any) -> tuple[Entry, ...]:
    own = SOURCES[own_source(resource)]
    return tuple(sorted((_entry(_hashable(config), own) for config in answer.configs), key=lambda entry: entry.key))


def _hashable(config: Any) -> _Config:
    synonyms = tuple((synonym.source, synonym.name, synonym.value) for synonym in config.synonyms or ())
    return config.name, config.value, config.config_source, config.is_sensitive, synonyms


# Cached, because most topics have the same values.
@functools.lru_cache(maxsize=4096)
def _entry(config: _Config, own: str) -> Entry:
    key, value, source, sensitive, synonyms = config
    return Entry(
        key=key,
        value=value,
        source=_source(source),
        dynamic=_source(source) == own,
        sensitive=sensitive,
        synonyms=tuple(Synonym(source=_source(number), key=name, value=text) for number, name, text in synonyms),
    )


def _must_be_listed(what: str, answer: Any, step: str = "") -> None:
    if answer.error_code:
        raise Refused(f"listing {what}: the broker answered {kafka_error(answer.error_code, None)}{step}")


def _source(number: int) -> str:
    return SOURCES.get(number, "UNKNOWN")


def _operations(change: ConfigChange) -> dict[str, ConfigOperation]:
    set_ = {key: (SET, value) for key, value in sorted(change.add.items())}
    return set_ | dict.fromkeys(sorted(change.delete), (DELETE, None))


def _error(change: ConfigChange, answer: Any | KquotaError | None) -> KquotaError | None:
    """`answer` is None for a dead broker."""
    resource = change.resource
    if answer is None:
        what = "loggers" if resource.kind == BROKER_LOGGERS else "configs"
        words = f"broker '{resource.name}' is dead, and the other brokers cannot change its {what}. Nothing was written"
        return Refused(words)
    if isinstance(answer, Refused):
        return answer
    if isinstance(answer, KquotaError):
        return Unreachable(answer, *_maybe_written(resource))
    code = answer.error_code
    if code == 0:
        return None
    if code == UNKNOWN_TOPIC:
        return Refused(f"{resource} does not exist. Nothing was written")
    words = f"writing {resource}: the broker answered {kafka_error(code, answer.error_message)}"
    words += advice_on_rights(code, ALTER_CONFIGS)
    for key, value in change.add.items():
        if value and is_password(key):
            words = words.replace(value, "[hidden]")
    if code in MAYBE_WRITTEN:
        return Unreachable(words, *_maybe_written(resource))
    return Refused(words)


def _maybe_written(resource: Resource) -> tuple[str, NextStep | StepFor]:
    step: NextStep | StepFor = NextStep.SHOW_BROKER_DEFAULTS
    if resource.name is not DEFAULT:
        step = StepFor(_SHOW[resource.kind], str(resource.name))
    return ". The change may have been written. Check with ", step


def _failure(resources: Sequence[Resource], errors: Mapping[Resource, KquotaError]) -> KquotaError:
    """Return the error to raise. For one resource, this is its own error. For several resources, it is Incomplete if
    any of them was or may have been written, and otherwise Refused.
    """
    if len(resources) == 1:
        return errors[resources[0]]
    first, *others = {str(error): error for error in errors.values()}.values()
    parts = (first, *(part for other in others for part in ("; ", other)))
    if len(errors) == len(resources) and all(isinstance(error, Refused) for error in errors.values()):
        return Refused(*parts)
    done = [str(resource) for resource in resources if resource not in errors]
    return Incomplete(parts, done, [str(resource) for resource in errors])
