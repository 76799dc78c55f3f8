"""The progress of `move run` on stderr: the readings of `move watch`, at intervals."""

from __future__ import annotations

import math
from typing import Final

from kquota.cli.contract import say, worded
from kquota.cli.watching.answer import answer
from kquota.errors import KquotaError
from kquota.reassign.plan import Plan
from kquota.watch.observation import MoveWatch, WatchPorts

_READ_SECONDS: Final = 5.0
_TELL_SECONDS: Final = 10.0


class RunProgress:
    """Watches the moves of a plan, and prints bytes, throughput, time left, and why a move makes no progress."""

    def __init__(self, ports: WatchPorts, plan: Plan, name: str) -> None:
        """`name` is the file of the plan, for the commands that a finding suggests."""
        self._ports = ports
        self._plan = plan
        self._name = name
        self.watch: MoveWatch | None = None
        self._read, self._reported = -math.inf, ports.clock.monotonic()

    def step(self, *, ended: bool = False) -> None:
        """Read the cluster if the last reading is old or the moves have `ended`, and print every other reading.

        A failed reading is printed and does not end the move.
        """
        now = self._ports.clock.monotonic()
        if self.watch is None if ended else now - self._read < _READ_SECONDS:
            return
        self._read = now
        try:
            # The first reading must see the record of the run, which did not exist before.
            self.watch = self.watch or MoveWatch(self._ports, plan=self._plan)
            found = self.watch.look()
        except KquotaError as error:
            say(f"warning: the progress is unknown: {worded(error)}")
            return
        if now - self._reported >= _TELL_SECONDS and not found.ended:
            self._reported = now
            for line in answer(found, self._name, lines=True, restores=True).text():
                say(line)
