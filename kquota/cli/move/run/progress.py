"""The progress of `move run` on stderr: the readings of `move watch`, at intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from kquota.cli.contract import say, worded
from kquota.cli.pacing.setter import MovePace
from kquota.cli.watching.answer import answer
from kquota.errors import KquotaError
from kquota.reassign.plan import Plan
from kquota.watch.observation import MoveWatch, WatchPorts

_READ_SECONDS: Final = 5.0
_READ_SHARE: Final = 0.2
"""The maximum fraction of the time that readings take, because a reading of a large cluster takes seconds."""
_PRINT_SECONDS: Final = 10.0


class RunProgress:
    """Watches the moves of a plan, and prints bytes, throughput, time left, and why a move makes no progress."""

    pace: MovePace | None = None
    """The pace that changes the throttle after a reading, or None to leave the throttle unchanged."""

    def __init__(self, ports: WatchPorts, plan: Plan, name: str | None) -> None:
        """`name` is the file of the plan for suggested commands, or None if it cannot be read again."""
        self._ports = ports
        self._plan = plan
        self._name = name
        self.watch: MoveWatch | None = None
        self._known = False
        """True if a reading has succeeded."""
        self._next, self._reported = -math.inf, ports.clock.monotonic()

    def step(self, *, ended: bool = False) -> None:
        """Read the cluster if a reading is due, print the reading, and let `pace` change the throttle.

        kquota prints at most one reading every `_PRINT_SECONDS` seconds. With `ended`, kquota makes a last reading if
        an earlier reading has succeeded, and does not change the throttle. Readings of moves that have ended are not
        printed. A failed reading causes a warning and does not end the move.
        """
        now = self._ports.clock.monotonic()
        if not self._known if ended else now < self._next:
            return
        try:
            # Create the watch only now, because its first reading needs the record of the run.
            self.watch = self.watch or MoveWatch(self._ports, plan=self._plan)
            found = self.watch.look()
            self._known = True
            seconds = _READ_SECONDS if self.pace is None else self.pace.interval
            self._next = now + max(seconds, (self._ports.clock.monotonic() - now) / _READ_SHARE)
        except KquotaError as error:
            self._next = now + _READ_SECONDS
            say(f"warning: the progress is unknown: {worded(error)}")
            return
        if now - self._reported >= _PRINT_SECONDS and not found.ended:
            self._reported = now
            for line in answer(found, self._name, lines=True, restores=True).text():
                say(line)
        pace = self.pace
        if pace is not None and not ended and not found.ended:
            self._try(lambda: pace.after(found))

    def wait(self, seconds: float) -> None:
        """Wait for `seconds` before the next step, or longer if `pace` measures clients in the meantime."""
        pace = self.pace
        if pace is None or not self._try(lambda: pace.wait(seconds)):
            self._ports.clock.sleep(seconds)

    def _try(self, work: Callable[[], None]) -> bool:
        """Do the work, and return True. After an error, drop `pace` and return False, so that the move continues under
        the throttle that is set.
        """
        try:
            work()
        except KquotaError as error:
            say(f"warning: kquota no longer changes the throttle, and the last rate stays set: {worded(error)}")
            self.pace = None
            return False
        return True
