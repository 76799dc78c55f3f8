"""What `move estimate` answers: the value that every page of it is written from, and what it is judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kquota.cli.move.estimate.inputs import Source
    from kquota.cli.move.estimate.outlook import Outlook
    from kquota.measure import ByteRate
    from kquota.pace.fetch import Fetch
    from kquota.pace.ratio import MoveTime
    from kquota.pace.share import Pace
    from kquota.pace.waves import Waves
    from kquota.pace.window import Window
    from kquota.spark.estimate import Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One answer of `move estimate`, with where its numbers came from; the throttle may be the one for a deadline.

    `source` is log-dirs, history or cluster, `names` its files; `rates` are who tells the write rates, the first wins.
    `deadline` is in seconds, and `within` the smallest throttle that meets it; None: none asked for, or not known.
    """

    throttle: ByteRate
    for_deadline: bool
    source: str
    names: tuple[str, ...]
    rates: tuple[Source, ...]
    measured: Measured
    kip: MoveTime
    pace: Pace
    window: Window
    fetch: Fetch
    outlook: Outlook
    deadline: float | None = None
    within: ByteRate | None = None

    @property
    def judged(self) -> Pace | Waves:
        """What every verdict is about: the waves where the move has them, else the move at once."""
        return self.outlook.waves or self.pace

    @property
    def late(self) -> bool | None:
        """Whether the deadline is missed; None without one, and while nobody can know."""
        if self.deadline is None:
            return None
        seconds = self.judged.seconds
        if seconds is not None:
            return seconds > self.deadline
        return self.judged.feasible is False or self.judged.least_seconds > self.deadline or None
