"""The Configs port on the Admin API (KIP-226, KIP-339): DescribeConfigs and IncrementalAlterConfigs, from Kafka 2.3."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from kquota.config.change import ConfigChange
from kquota.config.resource import BROKERS, TOPICS, Entry, Kind, Resource, Synonym
from kquota.config.unchecked import is_password
from kquota.errors import Incomplete, KquotaError, Refused, Unreachable
from kquota.stores.wire.connection import Wire, kafka_error
from kquota.stores.wire.requests import (
    BROKER,
    DELETE,
    MAYBE_WRITTEN,
    SET,
    SOURCES,
    TOPIC,
    UNKNOWN_TOPIC,
    Operation,
    WireResource,
    alter_request,
    by_resource,
    describe_request,
)
from kquota.terms import DEFAULT, BrokerId, Default

_TOPICS_A_REQUEST: Final = 500
"""An answer holds some 40 configs of each topic, every one with its synonyms: 500 topics are a few megabytes."""
_Told: TypeAlias = tuple[str, str | None, int, bool, tuple[tuple[int, str, str | None], ...]]
_DEFAULT_BROKER: Final = Resource(kind=BROKERS, name=DEFAULT)


class WireConfigs:
    """Topic and broker configs through the Admin API. Implements `Configs`.

    A broker answers for itself. Topics and the default of all brokers are always asked of the same broker, the first
    that answers: one that was seen to know of a write does not forget it, another may not know of it yet.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._silent: set[BrokerId] = set()

    def resources(self, kind: Kind) -> tuple[Resource, ...]:
        """See the port."""
        if kind == BROKERS:
            return tuple(Resource(kind=BROKERS, name=str(broker)) for broker in self._wire.brokers())
        topics = self._wire.metadata(None).topics
        return tuple(Resource(kind=TOPICS, name=name) for name in sorted(topic.name for topic in topics))

    def configured(self, kind: Kind) -> tuple[Resource, ...]:
        """See the port."""
        return (*self.resources(kind), *((_DEFAULT_BROKER,) if kind == BROKERS else ()))

    def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
        """See the port. A broker that is not alive is left out."""
        found: dict[Resource, tuple[Entry, ...]] = {}
        for those in _rounds(resources):
            found |= self._described(those)
        return {resource: found[resource] for resource in resources if resource in found}

    def alter(self, changes: Sequence[ConfigChange]) -> None:
        """See the port. Incremental: the broker changes the keys that are named, and no others."""
        wanted = {change.resource: change for change in changes}
        errors: dict[Resource, KquotaError] = {}
        for those in _rounds(wanted):
            errors |= self._altered({resource: wanted[resource] for resource in those})
        if errors:
            raise _failure(list(wanted), errors)

    def release(self) -> tuple[int, ...]:
        """See the port."""
        return self._wire.version()

    def _described(self, resources: Sequence[Resource]) -> dict[Resource, tuple[Entry, ...]]:
        sent = self._by_broker(resources)
        answers = self._wire.ask_each({broker: _describe(those) for broker, those in sent.items()})
        found: dict[Resource, tuple[Entry, ...]] = {}
        for broker, answer in answers.items():
            if not isinstance(answer, KquotaError):
                found |= _entries(answer, sent[broker])
            elif any(resource.name == str(broker) and resource.kind == BROKERS for resource in sent[broker]):
                raise answer
            else:
                self._silent.add(broker)
                found |= self._described(sent[broker])
        return found

    def _altered(self, changes: Mapping[Resource, ConfigChange]) -> dict[Resource, KquotaError]:
        sent = self._by_broker(changes)
        requests = {
            broker: alter_request({_on_the_wire(r): _operations(changes[r]) for r in those})
            for broker, those in sent.items()
        }
        asked = {resource for those in sent.values() for resource in those}
        errors: dict[Resource, KquotaError] = {
            resource: Refused(f"{resource} is not alive; only a broker itself takes its configs. Nothing was written")
            for resource in changes
            if resource not in asked
        }
        for broker, answer in self._wire.ask_each(requests).items():
            if isinstance(answer, Refused):
                errors |= dict.fromkeys(sent[broker], answer)
            elif isinstance(answer, KquotaError):
                lost = Unreachable(f"{answer}; whether it was written is not known, look with --describe")
                errors |= dict.fromkeys(sent[broker], lost)
            else:
                told = by_resource(answer.responses)
                for resource in sent[broker]:
                    result = told[_on_the_wire(resource)]
                    if result.error_code:
                        errors[resource] = _error(changes[resource], result)
        return errors

    def _by_broker(self, resources: Iterable[Resource]) -> dict[BrokerId, list[Resource]]:
        """Whom to ask for what; a broker that is not alive is left out."""
        alive = self._wire.brokers()
        reader = next((broker for broker in alive if broker not in self._silent), None)
        sent: dict[BrokerId, list[Resource]] = {}
        for resource in resources:
            of_a_broker = resource.kind == BROKERS and isinstance(resource.name, str)
            broker = BrokerId(int(str(resource.name))) if of_a_broker else reader
            if broker is None:
                raise Unreachable("no broker answers any more")
            if broker in alive:
                sent.setdefault(broker, []).append(resource)
        return sent


def _rounds(resources: Collection[Resource]) -> Iterator[list[Resource]]:
    """What may be asked together: no request may name two brokers, the default of all being one."""
    topics = [resource for resource in resources if resource.kind == TOPICS]
    brokers = [resource for resource in resources if resource.kind == BROKERS and resource != _DEFAULT_BROKER]
    if brokers:
        yield brokers
    for start in range(0, len(topics), _TOPICS_A_REQUEST):
        yield topics[start : start + _TOPICS_A_REQUEST]
    if _DEFAULT_BROKER in resources:
        yield [_DEFAULT_BROKER]


def _on_the_wire(resource: Resource) -> WireResource:
    name = "" if isinstance(resource.name, Default) else resource.name
    return (TOPIC if resource.kind == TOPICS else BROKER), name


def _describe(resources: Iterable[Resource]) -> Any:
    return describe_request({_on_the_wire(resource): None for resource in resources}, synonyms=True)


def _entries(answer: Any, asked: Iterable[Resource]) -> dict[Resource, tuple[Entry, ...]]:
    told = by_resource(answer.results)
    found: dict[Resource, tuple[Entry, ...]] = {}
    for resource in asked:
        result = told[_on_the_wire(resource)]
        if result.error_code == 0:
            own = _own_source(resource)
            found[resource] = tuple(
                sorted((_entry(_told(c), own) for c in result.configs), key=lambda entry: entry.key)
            )
        elif result.error_code != UNKNOWN_TOPIC:
            words = kafka_error(result.error_code, result.error_message)
            raise Refused(f"describing {resource}: the broker answered {words}")
    return found


def _own_source(resource: Resource) -> str:
    """The source of a value that was set on this very resource; all others stand behind it."""
    if resource.kind == TOPICS:
        return SOURCES[1]
    return SOURCES[3] if resource.name is DEFAULT else SOURCES[2]


def _told(config: Any) -> _Told:
    synonyms = tuple((synonym.source, synonym.name, synonym.value) for synonym in config.synonyms or ())
    return config.name, config.value, config.config_source, config.is_sensitive, synonyms


# Most topics are set to the same: of ten thousand of them the entries need not be made and kept ten thousand times.
@functools.lru_cache(maxsize=4096)
def _entry(told: _Told, own: str) -> Entry:
    key, value, source, sensitive, synonyms = told
    return Entry(
        key=key,
        value=value,
        source=_source(source),
        dynamic=_source(source) == own,
        sensitive=sensitive,
        synonyms=tuple(Synonym(source=_source(number), key=name, value=text) for number, name, text in synonyms),
    )


def _source(number: int) -> str:
    return SOURCES.get(number, "UNKNOWN")


def _operations(change: ConfigChange) -> dict[str, Operation]:
    set_ = {key: (SET, value) for key, value in sorted(change.add.items())}
    return set_ | dict.fromkeys(sorted(change.delete), (DELETE, None))


def _error(change: ConfigChange, result: Any) -> KquotaError:
    resource, code = change.resource, result.error_code
    if code == UNKNOWN_TOPIC:
        return Refused(f"{resource} does not exist; nothing was written")
    words = f"writing {resource}: the broker answered {kafka_error(code, result.error_message)}"
    for key, value in change.add.items():
        if value and is_password(key):
            words = words.replace(value, "[hidden]")
    if code in MAYBE_WRITTEN:
        return Unreachable(f"{words}; whether it was written is not known, look with --describe")
    return Refused(words)


def _failure(resources: Sequence[Resource], errors: Mapping[Resource, KquotaError]) -> KquotaError:
    """One error for them all: Incomplete as soon as one of several was written, or may have been."""
    words = "; ".join(dict.fromkeys(str(error) for error in errors.values()))
    if len(resources) == 1:
        return errors[resources[0]]
    if len(errors) == len(resources) and all(isinstance(error, Refused) for error in errors.values()):
        return Refused(words)
    done = [str(resource) for resource in resources if resource not in errors]
    return Incomplete(words, done, [str(resource) for resource in errors])
