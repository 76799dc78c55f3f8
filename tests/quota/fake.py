"""Client quotas in memory. Gaps against a real cluster: reads are never stale, nobody else writes, nothing fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kquota.quota.change import Change
from kquota.quota.entity import Entity, Filter
from kquota.quota.limits import Limits
from kquota.quota.replacement import Replacement


class FakeQuotas:
    """The port, on a dict; `held` is the back door."""

    def __init__(self) -> None:
        self.held: dict[Entity, dict[str, float]] = {}

    def describe(self, wanted: Filter) -> Mapping[Entity, Limits]:
        return {entity: dict(held) for entity, held in self.held.items() if held and wanted.matches(entity)}

    def everything(self) -> Mapping[Entity, Limits]:
        return {entity: dict(held) for entity, held in self.held.items() if held}

    def alter(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self.held[change.entity] = change.applied(self.held.get(change.entity, {}))

    def must_carry(self, entities: Iterable[Entity]) -> None:
        pass

    def replace(self, batch: Sequence[Replacement]) -> Mapping[Entity, str]:
        undone = {r.entity: "changed meanwhile" for r in batch if not r.stands(self.held.get(r.entity, {}))}
        self.alter([replacement.change for replacement in batch if replacement.entity not in undone])
        return undone
