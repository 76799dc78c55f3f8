"""Sets the throttle of an open run while its move is watched. A `MovePace` decides when, and to which rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol, TypeVar

from kquota.cli import clock, world
from kquota.cli.connection import Connection
from kquota.cli.contract import say, without_retry, worded
from kquota.cli.throttle.set import run as setting
from kquota.cli.throttle.set.answer import ThrottleSet
from kquota.cli.throttle.set.command import SetOptions
from kquota.errors import Busy, Conflict, Refused, Unknown, Unreachable
from kquota.list_text import named_brokers
from kquota.measure import ByteRate, human_rates
from kquota.reassign.port import Runs
from kquota.reassign.run import Run, with_id
from kquota.terms import LONGEST_TEXT
from kquota.watch.observation import Observed

_TURN_SECONDS: Final = 15.0
_TURN_STEP: Final = 0.3
_REPEAT_SECONDS: Final = 30.0
"""The seconds until kquota again sets the rates of brokers that missed a change. While a broker is dead, each further
attempt waits twice as long, at most `_LONGEST_REPEAT_SECONDS`, because each attempt is recorded.
"""
_LONGEST_REPEAT_SECONDS: Final = 480.0
_Result = TypeVar("_Result")


class MovePace(Protocol):
    """Changes the throttle of a move's open run."""

    @property
    def interval(self) -> float:
        """The seconds between two readings of `move run`. `move adjust` has the option `--interval` instead."""
        ...

    def after(self, found: Observed) -> None:
        """Change the throttle after a reading of one move that has not ended, if a change is due.

        The caller does not hold the lock.
        """
        ...

    def wait(self, seconds: float) -> None:
        """Wait for `seconds` before the next reading, or longer if the pace measures clients in the meantime."""
        ...


@dataclass(slots=True, kw_only=True)
class RateSetter:
    """Sets the throttle of an open run, as `throttle set --run` does, and again if brokers missed the change."""

    connection: Connection
    state_dir: Path | None
    """The folder of the journals, or None for the user's XDG state folder."""
    reason: str | None
    """The text of `--reason`, or None if it is not given."""
    force: bool
    """If True, kquota does not check whether the copies can catch up under the new throttle."""
    missed: float | None = None
    """The monotonic time of the last attempt, if brokers may still have a rate other than the run's, otherwise None."""
    pause: float = _REPEAT_SECONDS
    """The seconds from `missed` until the next attempt."""

    def set(self, run: Run, wanted: ByteRate, why: str, detail: str = "") -> bool:
        """Set the throttle of a run that has one, record `why` as the reason, and print the change, followed by
        `detail`.

        A `why` that is too long for the record is cut. Return True. If the change fails, or if its effect is unknown,
        print a warning and return False. Also print a warning about dead brokers, which keep their rates.
        """
        before, now = human_rates(run.rate or wanted, wanted)
        asked = self._asked(run, wanted, why[:LONGEST_TEXT])
        try:
            done = in_turn(lambda: setting.run(asked))
        except (Busy, Refused) as error:
            world.warn(f"run {run.id}: the throttle stays at {before}: {without_retry(error)}")
            return False
        except (Conflict, Unknown, Unreachable) as error:
            self.missed, self.pause = clock.SystemClock().monotonic(), _REPEAT_SECONDS
            world.warn(f"run {run.id}: brokers may still use the throttle {before}: {worded(error)}")
            return False
        say(f"run {run.id}: the throttle is now {now}, was {before}{detail}")
        dead = done.dead if isinstance(done, ThrottleSet) else ()
        self.missed, self.pause = clock.SystemClock().monotonic() if dead else None, _REPEAT_SECONDS
        if dead:
            world.warn(
                f"run {run.id}: {named_brokers(dead)} did not answer and may still use another throttle. kquota tries "
                f"again after {_REPEAT_SECONDS:.0f} s, and then less often"
            )
        return True

    def repeat(self, run: Run) -> None:
        """Set the recorded rates of a run again, if brokers may have missed the last change and `pause` seconds have
        passed since the last attempt.

        A broker that was dead during the change still has the old rate when it starts again. After a failed attempt, a
        later call tries again.
        """
        now = clock.SystemClock().monotonic()
        if run.rate is None or self.missed is None or now - self.missed < self.pause:
            return
        self.missed = now
        asked = replace(self._asked(run, run.rate, None), force=True)
        try:
            done = setting.adjusted(asked, lambda found: found)
        except (Busy, Refused, Conflict, Unknown, Unreachable):
            return
        if done.dead:
            self.pause = min(2 * self.pause, _LONGEST_REPEAT_SECONDS)
        else:
            self.missed = None
            say(f"run {run.id}: every broker of the run now has its throttle")

    def _asked(self, run: Run, rate: ByteRate, why: str | None) -> SetOptions:
        return SetOptions(
            connection=self.connection,
            throttle=str(int(rate)),
            run=run.id,
            force=self.force,
            reason=why,
            state_dir=self.state_dir,
        )


def throttled(runs: Runs, run: str | None) -> Run | None:
    """Return the run with this id if the run is open, has a throttle, and is not paused, otherwise None. Raises Refused
    if a journal cannot be read.
    """
    found = with_id(runs.unfinished(), run)
    return None if found is None or found.rate is None or found.paused else found


def in_turn(work: Callable[[], _Result]) -> _Result:
    """Do the work, and try again while another command holds the lock. Usually the other command is `move run`, which
    holds the lock only while it writes.

    Raises Busy if the other command still holds the lock after `_TURN_SECONDS` seconds. Also raises the errors of
    `work`.
    """
    timer = clock.SystemClock()
    deadline = timer.monotonic() + _TURN_SECONDS
    while True:
        try:
            return work()
        except Busy:
            if timer.monotonic() > deadline:
                raise
            timer.sleep(_TURN_STEP)
