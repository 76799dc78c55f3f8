"""The requests of a broker in memory about quotas and credentials, for `WireQuotas`. Gaps: only changes of entities in
`errors` and of mechanisms in `scram_errors` fail. No user has credentials, so every deletion finds none.

Unlike Kafka, it also stores entity types of other servers, like Redpanda.
"""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kafka.protocol.admin.users import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponse,
)

_Described = DescribeClientQuotasResponse.EntryData
_Altered = AlterClientQuotasResponse.EntryData
_Credential = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
_DEFAULT, _ANY = 1, 2
_NOT_SET = 91
Parts = frozenset[tuple[str, str | None]]
"""The parts of an entity as pairs (entity type, name). A name of None means the default."""


class QuotaBroker:
    """The limits of each entity. With `lenient`, an answer also has entities of types that are not in the filter."""

    def __init__(self, *, lenient: bool = False) -> None:
        self.held: dict[Parts, dict[str, float]] = {}
        self.errors: dict[Parts, tuple[int, str | None]] = {}
        self.scram_errors: dict[int, int] = {}
        """The error codes, by the code of a mechanism."""
        self.has_controller = True
        self.controller = 1
        self._lenient = lenient

    def version(self) -> tuple[int, ...]:
        return (4, 1)

    def ask(self, request: Any, _broker: int | None = None, _seconds: float | None = None) -> Any:
        if isinstance(request, DescribeClientQuotasRequest):
            found = {parts: held for parts, held in self.held.items() if held and self._matches(request, parts)}
            entries = [_Described(entity=_entity(_Described, p), values=_values(held)) for p, held in found.items()]
            return DescribeClientQuotasResponse(throttle_time_ms=0, error_code=0, error_message=None, entries=entries)
        if isinstance(request, AlterClientQuotasRequest):
            return AlterClientQuotasResponse(throttle_time_ms=0, entries=[self._alter(one) for one in request.entries])
        if isinstance(request, AlterUserScramCredentialsRequest):
            results = [self._credential(one, 0) for one in request.upsertions]
            results += [self._credential(one, _NOT_SET) for one in request.deletions]
            return AlterUserScramCredentialsResponse(throttle_time_ms=0, results=results)
        return DescribeUserScramCredentialsResponse(throttle_time_ms=0, error_code=0, error_message=None, results=[])

    def _credential(self, one: Any, otherwise: int) -> Any:
        code = self.scram_errors.get(one.mechanism, otherwise)
        return _Credential(user=one.name, error_code=code, error_message=None)

    def _matches(self, request: Any, parts: Parts) -> bool:
        names = dict(parts)
        fits = all(_fits(component, names) for component in request.components)
        if self._lenient and not names.keys() <= {"user", "client-id", "ip"}:
            return True
        return fits and (not request.strict or len(names) == len(request.components))

    def _alter(self, entry: Any) -> Any:
        parts = frozenset((part.entity_type, part.entity_name) for part in entry.entity)
        if parts in self.errors:
            code, message = self.errors[parts]
            return _Altered(error_code=code, error_message=message, entity=_entity(_Altered, parts))
        held = self.held.setdefault(parts, {})
        for op in entry.ops:
            if op.remove:
                held.pop(op.key, None)
            else:
                held[op.key] = op.value
        return _Altered(error_code=0, error_message=None, entity=_entity(_Altered, parts))


def _fits(component: Any, names: dict[str, str | None]) -> bool:
    if component.entity_type not in names:
        return False
    name = names[component.entity_type]
    if component.match_type == _ANY:
        return True
    return name is None if component.match_type == _DEFAULT else name == component.match


def _entity(of: Any, parts: Parts) -> list[Any]:
    return [of.EntityData(entity_type=kind, entity_name=name) for kind, name in sorted(parts)]


def _values(held: dict[str, float]) -> list[Any]:
    return [_Described.ValueData(key=key, value=value) for key, value in sorted(held.items())]
