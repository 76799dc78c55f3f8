"""The Principals port on the Admin API: client quotas since Kafka 2.6 (KIP-546), and SCRAM credentials since Kafka 2.7
(KIP-554).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from kafka.protocol.admin.users import DescribeUserScramCredentialsRequest

from kquota.errors import Incomplete, KquotaError, NextStep, Parameter, Refused, Unknown, Unreachable
from kquota.quota.entity import Entity, Every, Filter, Name
from kquota.quota.limits import Limits, QuotaChange, Replacement, plain
from kquota.quota.port import Scram
from kquota.quota.scram import MECHANISMS, ScramChange
from kquota.quota_keys import QUOTA_KEYS
from kquota.stores.admin.connection import ALTER_CONFIGS, Wire, advice_on_rights, kafka_error, was_sent
from kquota.terms import DEFAULT, ENTITY_TYPES, MAYBE_WRITTEN, RESOURCE_NOT_FOUND, WIRE_TYPES, BrokerId, dotted

_USER, _CLIENT_ID, _IP = (WIRE_TYPES[kind] for kind in ENTITY_TYPES)
_EXACT, _DEFAULT, _ANY = 0, 1, 2

_HAS_SCRAM: Final = (2, 7)
"""The first release with SCRAM credentials in the Admin API (KIP-554)."""
_MECHANISMS: Final = {row.code: name for name, row in MECHANISMS.items()}

_Component = DescribeClientQuotasRequest.ComponentData
_Entry = AlterClientQuotasRequest.EntryData


class WireQuotas:
    """Client quotas and SCRAM credentials through the Admin API. Implements `Principals`.

    `unreadable` is called with a note about credentials that the broker does not return. It is also called once for
    each quota of an entity type that Kafka does not have, for example Redpanda's `client-id-prefix`. kquota leaves out
    these quotas, and never changes them.
    """

    def __init__(self, wire: Wire, unreadable: Callable[[str], None] = lambda _: None) -> None:
        self._wire = wire
        self._unreadable = unreadable
        self._reported: set[str] = set()

    def describe(self, wanted: Filter) -> Mapping[Entity, Limits]:
        """Return the limits that one broker has in memory, which can lag behind the controller."""
        parts = ((_USER, wanted.user), (_CLIENT_ID, wanted.client_id), (_IP, wanted.ip))
        components = [_component(kind, name) for kind, name in parts if name is not None]
        return self._described(DescribeClientQuotasRequest(components=components, strict=True))

    def everything(self) -> Mapping[Entity, Limits]:
        return self._described(DescribeClientQuotasRequest(components=[], strict=False))

    def users(self, name: Name | Every) -> tuple[Mapping[Entity, Limits], Scram]:
        """Return the limits and, since Kafka 2.7, the SCRAM credentials. The default user has no credentials."""
        return self.describe(Filter(user=name)), {} if name is DEFAULT else self._scram(name)

    def must_accept_credentials(self) -> None:
        if self._wire.version() < _HAS_SCRAM:
            needed, found = (dotted(number) for number in (_HAS_SCRAM, self._wire.version()))
            words = f"SCRAM credentials need Kafka {needed} or newer, and the connected broker runs {found}. Use "
            raise Refused(words, Parameter("zookeeper"))

    def alter_credentials(self, change: ScramChange) -> tuple[str, ...]:
        """Send one request for each credential."""
        from kquota.stores.admin import scram  # imported here: only writes need it

        return scram.alter(self._wire, change)

    def _scram(self, name: Name | Every) -> Scram:
        if self._wire.version() < _HAS_SCRAM:
            return {}
        # [] and None both request all users, but a broker (4.3.1) that must refuse a request with None never answers.
        asked = [] if isinstance(name, Every) else [DescribeUserScramCredentialsRequest.UserName(name=str(name))]
        answer = self._wire.ask(DescribeUserScramCredentialsRequest(users=asked))
        if not self._answered(answer, "SCRAM credentials"):
            return {}
        return {
            user.user: {
                _MECHANISMS.get(credential.mechanism, f"SCRAM {credential.mechanism}"): credential.iterations
                for credential in user.credential_infos
            }
            for user in answer.results or ()
            if user.error_code != RESOURCE_NOT_FOUND
            and self._answered(user, f"SCRAM credentials of user {user.user!r}")
        }

    def _answered(self, answer: Any, what: str) -> bool:
        if answer.error_code:
            why = kafka_error(answer.error_code, answer.error_message)
            self._unreadable(f"{what} are left out: the broker answered {why}")
        return not answer.error_code

    def release(self) -> tuple[int, ...] | None:
        return self._wire.version()

    def brokers(self) -> frozenset[BrokerId]:
        self._wire.refresh()
        return frozenset(self._wire.brokers())

    def cluster_id(self) -> str:
        return self._wire.cluster_id

    def _described(self, request: DescribeClientQuotasRequest) -> Mapping[Entity, Limits]:
        answer = self._wire.ask(request)
        if answer.error_code:
            words = kafka_error(answer.error_code, answer.error_message)
            raise Refused(f"describing quotas: the broker answered {words}{advice_on_rights(answer.error_code)}")
        found = {}
        for entry in answer.entries or ():
            names = {
                part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in entry.entity
            }
            if names.keys() <= {_USER, _CLIENT_ID, _IP}:
                entity = Entity(user=names.get(_USER), client_id=names.get(_CLIENT_ID), ip=names.get(_IP))
                found[entity] = {value.key: value.value for value in entry.values if value.key in QUOTA_KEYS}
            else:
                self._report_unknown(entry)
        return found

    def _report_unknown(self, entry: Any) -> None:
        parts = sorted((part.entity_type, part.entity_name) for part in entry.entity)
        entity = " ".join(f"{kind} {'default' if name is None else repr(name)}" for kind, name in parts)
        unknown = ", ".join(kind for kind, _ in parts if kind not in (_USER, _CLIENT_ID, _IP))
        limits = ", ".join(f"{value.key}={plain(value.value)}" for value in entry.values)
        if entity not in self._reported:
            self._reported.add(entity)
            self._unreadable(
                f"quota of {entity} ({limits}): kquota does not know the entity type {unknown}. The quota is left out, "
                "and kquota never changes it"
            )

    def alter(self, changes: Sequence[QuotaChange]) -> None:
        """Send incremental changes: the broker changes only the given keys."""
        if not (errors := self._altered(changes)):
            return
        undone = {entity: f"{entity} ({error})" for entity, error in errors.items()}
        refused = [undone[entity] for entity, error in errors.items() if not isinstance(error, Unknown)]
        unknown = [undone[entity] for entity, error in errors.items() if isinstance(error, Unknown)]
        parts: list[str | NextStep] = [f"the broker refused {'; '.join(refused)}"] if refused else []
        if unknown:
            maybe = f"the change may have been written for {'; '.join(unknown)}. Check with "
            parts += ["; "] * bool(refused) + [maybe, NextStep.SHOW_QUOTAS]
        if not refused:
            raise Unknown(*parts)
        done = [str(change.entity) for change in changes if change.entity not in errors]
        raise Incomplete(tuple(parts), done, tuple(undone.values()))

    def must_carry(self, entities: Iterable[Entity]) -> None:
        """Raise nothing, because the Admin API supports every name."""

    def replace(self, batch: Sequence[Replacement]) -> Mapping[Entity, str]:
        """Send all changes with one request."""
        errors = self._altered([replacement.change for replacement in batch])
        return {
            entity: f"unknown: {error}" if isinstance(error, Unknown) else str(error)
            for entity, error in errors.items()
        }

    def _altered(self, changes: Sequence[QuotaChange]) -> dict[Entity, KquotaError]:
        """Send the changes, and return the error of each failed change: Unknown if the change may have been written,
        otherwise Refused.

        Raises Unreachable if the answer was lost. Raises Refused if the broker does not support the request, or if the
        request could not be sent, for example without an active controller.
        """
        from kquota.stores.admin.controllers import must_be_active  # imported here: only writes need it

        request = AlterClientQuotasRequest(entries=[_entry(c) for c in changes], validate_only=False)
        try:
            must_be_active(self._wire)
            answer = self._wire.ask(request)
        except Unreachable as error:
            if was_sent(request, error):
                raise
            raise Refused(error) from error
        results = {_key(result.entity): result for result in answer.entries}
        errors: dict[Entity, KquotaError] = {}
        for change in changes:
            result = results.get(_key(_parts(change.entity)))
            if result is None:
                errors[change.entity] = Unknown("the broker's answer does not mention this entity")
            elif result.error_code:
                kind = Unknown if result.error_code in MAYBE_WRITTEN else Refused
                words = kafka_error(result.error_code, result.error_message)
                errors[change.entity] = kind(words + advice_on_rights(result.error_code, ALTER_CONFIGS))
        return errors


def _component(kind: str, name: Name | Every) -> Any:
    if isinstance(name, Every):
        return _Component(entity_type=kind, match_type=_ANY, match=None)
    if name is DEFAULT:
        return _Component(entity_type=kind, match_type=_DEFAULT, match=None)
    return _Component(entity_type=kind, match_type=_EXACT, match=name)


def _entry(change: QuotaChange) -> Any:
    ops = [_Entry.OpData(key=key, value=value, remove=False) for key, value in sorted(change.add.items())]
    ops += [_Entry.OpData(key=key, value=0.0, remove=True) for key in sorted(change.delete)]
    return _Entry(entity=_parts(change.entity), ops=ops)


def _parts(entity: Entity) -> list[Any]:
    pairs = ((_USER, entity.user), (_CLIENT_ID, entity.client_id), (_IP, entity.ip))
    return [
        _Entry.EntityData(entity_type=kind, entity_name=None if name is DEFAULT else name)
        for kind, name in pairs
        if name is not None
    ]


def _key(parts: Sequence[Any]) -> frozenset[tuple[str, str | None]]:
    return frozenset((part.entity_type, part.entity_name) for part in parts)
