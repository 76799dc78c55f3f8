"""Client quotas in memory. Gaps against a real cluster: reads are never stale, nobody else writes, nothing fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kquota.quota.change import Change
from kquota.quota.entity import Entity, Filter
from kquota.quota.limits import Limits


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
