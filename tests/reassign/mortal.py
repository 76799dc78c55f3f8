"""A process that dies, or loses an answer, at its n-th step: a remote call or a line of the journal."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kquota.errors import KquotaError, Unreachable
from kquota.reassign.moves import Replicas
from kquota.reassign.port import Overwritten, Snapshot
from kquota.reassign.run import Run
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.stores.record.runs import RecordedRuns
from kquota.stores.record.shared import Unshared
from kquota.stores.state.runs import RunFiles
from kquota.terms import TopicPartition
from tests.reassign.fake import MemoryCluster

T = TypeVar("T")


class Killed(BaseException):
    """The end of a process by kill -9. No handler of kquota may catch it."""


class Death(enum.Enum):
    """The moment of the death.

    After a lost answer the process lives: the call was carried out, but its caller gets an error.
    """

    BEFORE = "before the step"
    TORN = "in the middle of the step"
    AFTER = "after the step"
    LOST = "the answer is lost"


@dataclass(slots=True)
class Fate:
    """A counter of steps. `death` happens at the n-th step, and `reached` is True if there was such a step."""

    n: int
    death: Death
    steps: int = 0
    reached: bool = False

    def step(self, done: Callable[[], T], torn: Callable[[], None] | None = None) -> T:
        self.steps += 1
        now = self.steps == self.n
        self.reached |= now
        if now and self.death is Death.BEFORE:
            raise Killed
        answer = done()
        if now and self.death is Death.TORN and torn is not None:
            torn()
        if now and self.death is Death.LOST and torn is None:
            raise Unreachable("the answer was lost")
        if now and self.death is not Death.LOST:
            raise Killed
        return answer


@dataclass(slots=True)
class MortalCluster:
    """The fake cluster, in which each call is a step."""

    cluster: MemoryCluster
    fate: Fate

    @property
    def largest_submission(self) -> int | None:
        return self.cluster.largest_submission

    @property
    def stale_seconds(self) -> float:
        return self.cluster.stale_seconds

    def snapshot(self, topics: Collection[str] | None) -> Snapshot:
        return self.fate.step(lambda: self.cluster.snapshot(topics))

    def values(self, settings: Collection[Setting]) -> Mapping[Setting, str | None]:
        return self.fate.step(lambda: self.cluster.values(settings))

    def change(self, changes: Sequence[Change]) -> Mapping[Setting, KquotaError]:
        """Write the changes. A death in the middle leaves half of them written, because no request contains all."""
        half = len(changes) // 2
        if self.fate.death is Death.TORN and self.fate.steps + 1 == self.fate.n:
            self.fate.step(lambda: self.cluster.change(changes[:half]))
        return self.fate.step(lambda: self.cluster.change(changes))

    def overwrite(self, values: Mapping[Setting, str | None]) -> Overwritten:
        return self.fate.step(lambda: self.cluster.overwrite(values))

    def must_permit(self, settings: Collection[Setting], *, moves: bool) -> None:
        self.cluster.must_permit(settings, moves=moves)

    def minimum_in_sync(self, topics: Collection[str]) -> Mapping[str, int]:
        return self.fate.step(lambda: self.cluster.minimum_in_sync(topics))

    def submit(self, targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
        return self.fate.step(lambda: self.cluster.submit(targets))


class MortalRuns(RecordedRuns):
    """The real journal, in which each write is a step. A death in the middle leaves half a line."""

    def __init__(self, root: Path, fate: Fate) -> None:
        super().__init__(RunFiles(root, "cluster"), Unshared("it is a test"))
        self._fate = fate

    def begin(self, run: Run) -> None:
        self._dying(run, lambda: RecordedRuns.begin(self, run))

    def update(self, run: Run) -> None:
        self._dying(run, lambda: RecordedRuns.update(self, run))

    def _dying(self, run: Run, write: Callable[[], None]) -> None:
        path = Path(self._files.place(run))
        before = path.stat().st_size if path.exists() else 0

        def torn() -> None:
            data = path.read_bytes()
            path.write_bytes(data[: before + (len(data) - before) // 2])

        self._fate.step(write, torn)
