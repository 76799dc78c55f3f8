"""The order of reads and writes that applies a document to the quotas of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kquota.errors import KquotaError, Unreachable
from kquota.quota.difference import Difference
from kquota.quota.entity import Entity
from kquota.quota.port import ClusterQuotas
from kquota.quota.replacement import Replacement

BATCH: Final = 1_000
"""Entities in one request, well within Kafka's own limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result for each entity, in the order of the difference; `undone` has the reasons."""

    done: tuple[Entity, ...]
    undone: Mapping[Entity, str] = field(default_factory=dict)


def apply(
    quotas: ClusterQuotas, difference: Difference, attempts: Iterator[object], told: Callable[[int], None]
) -> Outcome:
    """Write the difference in batches, then read until all of it is visible.

    Entities are independent: a failure of one does not stop the others. Only a lost connection ends the work. The rest
    is then reported as undone, and it is safe to apply the document again. `told` receives the number of entities sent
    after each batch. Each item of `attempts` allows one more read. Raises Invalid, before any write, for a name that
    the connection cannot carry.
    """
    every = difference.replacements
    quotas.must_carry(replacement.entity for replacement in every)
    undone: dict[Entity, str] = {}
    for start in range(0, len(every), BATCH):
        batch = every[start : start + BATCH]
        try:
            undone |= quotas.replace(batch)
        except Unreachable as error:
            undone |= {replacement.entity: f"unknown: {error}" for replacement in batch}
            undone |= {replacement.entity: "not sent" for replacement in every[start + BATCH :]}
            break
        told(len(batch))
    sent = [replacement for replacement in every if replacement.entity not in undone]
    undone |= _unseen(quotas, sent, attempts)
    return Outcome(
        done=tuple(replacement.entity for replacement in every if replacement.entity not in undone),
        undone={r.entity: undone[r.entity] for r in every if r.entity in undone},
    )


def _unseen(quotas: ClusterQuotas, sent: list[Replacement], attempts: Iterator[object]) -> dict[Entity, str]:
    """Read until everything that was sent is visible; on KRaft a read right after a write is often stale."""
    left = sent
    for _ in attempts:
        if not left:
            break
        try:
            now = quotas.everything()
        except KquotaError as error:
            return {replacement.entity: f"sent and accepted, not seen: {error}" for replacement in left}
        left = [replacement for replacement in left if not replacement.seen(now.get(replacement.entity, {}))]
    return {replacement.entity: "sent and accepted, but not seen yet" for replacement in left}
