"""Client quotas in memory. Gaps: reads are never stale, no other client writes, nothing fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kquota.quota.entity import Entity, Every, Filter, Name
from kquota.quota.limits import Limits, QuotaChange, Replacement
from kquota.quota.port import Scram
from kquota.quota.scram import ScramChange
from kquota.terms import BrokerId


def matches(wanted: Filter, entity: Entity) -> bool:
    """Return True if `entity` has exactly the parts of the filter, and each part matches."""
    pairs = ((wanted.user, entity.user), (wanted.client_id, entity.client_id), (wanted.ip, entity.ip))
    return all(_fits(part, name) for part, name in pairs)


def _fits(part: Name | Every | None, name: Name | None) -> bool:
    return name is not None if isinstance(part, Every) else name == part


def after(change: QuotaChange, before: Limits) -> dict[str, float]:
    """Return the limits after a change. Keys that are not in the change keep their values."""
    return {key: value for key, value in before.items() if key not in change.delete} | dict(change.add)


class FakeQuotas:
    """The port on a dict. `held` gives tests direct access to it."""

    def __init__(self) -> None:
        self.held: dict[Entity, dict[str, float]] = {}

    def describe(self, wanted: Filter) -> Mapping[Entity, Limits]:
        return {entity: dict(held) for entity, held in self.held.items() if held and matches(wanted, entity)}

    def everything(self) -> Mapping[Entity, Limits]:
        return {entity: dict(held) for entity, held in self.held.items() if held}

    def alter(self, changes: Sequence[QuotaChange]) -> None:
        for change in changes:
            self.held[change.entity] = after(change, self.held.get(change.entity, {}))

    def must_carry(self, entities: Iterable[Entity]) -> None:
        pass

    def replace(self, batch: Sequence[Replacement]) -> Mapping[Entity, str]:
        undone = {r.entity: "changed meanwhile" for r in batch if not r.is_unchanged(self.held.get(r.entity, {}))}
        self.alter([replacement.change for replacement in batch if replacement.entity not in undone])
        return undone


class MemoryPrincipals(FakeQuotas):
    """The quotas of a cluster whose users also have SCRAM credentials. Implements `Principals`."""

    def __init__(self, scram: Mapping[str, Mapping[str, int | None]] | None = None) -> None:
        super().__init__()
        self._scram = dict(scram or {})
        self.alive = frozenset({BrokerId(1)})

    def users(self, name: Name | Every) -> tuple[Mapping[Entity, Limits], Scram]:
        found = {user: told for user, told in self._scram.items() if isinstance(name, Every) or user == name}
        return self.describe(Filter(user=name)), found

    def must_accept_credentials(self) -> None:
        pass

    def alter_credentials(self, change: ScramChange) -> tuple[str, ...]:
        found = dict(self._scram.get(change.user, {}))
        absent = tuple(mechanism for mechanism in change.delete if found.pop(mechanism, None) is None)
        self._scram[change.user] = found | {keys.mechanism: keys.iterations for keys in change.add}
        return absent

    def release(self) -> tuple[int, ...] | None:
        return (4, 3)

    def brokers(self) -> frozenset[BrokerId]:
        return self.alive

    def cluster_id(self) -> str:
        return "in-memory"
