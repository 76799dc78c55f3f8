"""Preferred leader elections after a move or its undo, for `move run` and `move abort`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kquota.cli import clock
from kquota.cli.contract import worded
from kquota.cli.leader_election.run import still_unhealthy
from kquota.cli.output import Part, hidden
from kquota.cli.reassign_partitions.remarks import election
from kquota.election.actions import BatchRules, ElectionResults, elect
from kquota.election.leaders import needing
from kquota.election.port import Elections, ElectionType
from kquota.errors import KquotaError
from kquota.list_text import few
from kquota.measure import counted
from kquota.reassign.plan import Plan
from kquota.terms import TopicPartition

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadersElected(Part):
    """The results of the preferred leader elections. Partitions are sorted."""

    elected: tuple[TopicPartition, ...]
    failed: tuple[TopicPartition, ...]
    not_sent: tuple[TopicPartition, ...]
    """The partitions for which kquota requested no election, or the brokers refused or did not answer the request."""
    error: str | None = hidden(default=None)
    """The reason why kquota stopped early, or None."""
    batch: int = hidden()
    """The maximum number of partitions in one batch of elections."""

    @property
    def complete(self) -> bool:
        """True if every necessary election has succeeded."""
        return not self.failed and not self.not_sent and self.error is None

    def notes(self, plan: Path | None) -> Iterator[str]:
        """Yield the errors, as lines for people. `plan` is the file for the suggested command, as in `election`."""
        if self.error is not None:
            yield f"error: kquota could not elect all preferred leaders: {self.error}"
        for why, names in (
            ("the preferred leader could not be elected", self.failed),
            ("kquota requested no election, or the brokers refused or did not answer the request", self.not_sent),
        ):
            if names:
                count = counted(len(names), "partition")
                again = election(names, plan, self.batch)
                yield f"error: {count}: {why} ({few(names, _SHOWN)}). Elect the preferred leaders: {again}"


def elected(leaders: Elections, plan: Plan, size: int) -> LeadersElected:
    """Elect the preferred leaders of the plan's partitions that need an election, in batches of at most `size`.

    After each batch except the last, kquota waits until the cluster is as healthy as before and shows the new leaders.
    kquota stops early if this takes longer than `BatchRules.settle`, or after a KquotaError, which is not raised. The
    `error` of the result has the reason.
    """
    results, rules, wrong = ElectionResults(), BatchRules(size=size), None
    try:
        partitions = leaders.partitions()
        names = [name for name in needing(ElectionType.PREFERRED, partitions) if name in plan.targets]
        elect(leaders, clock.SystemClock(), ElectionType.PREFERRED, names, partitions, rules, results)
        if results.unsettled:
            wrong = still_unhealthy(results.unsettled, rules.settle)
    except KquotaError as error:
        wrong = worded(error)
    return LeadersElected(
        elected=tuple(sorted(results.elected)),
        failed=tuple(sorted(results.failed)),
        not_sent=tuple(sorted((*results.left, *results.refused, *results.unknown))),
        error=wrong,
        batch=size,
    )
