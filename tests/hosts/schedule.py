"""Virtual time for several processes in one test. One process runs at a time, and time passes only when all wait."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from greenlet import getcurrent, greenlet


class Killed(BaseException):
    """The end of a process by kill -9. No handler of kquota may catch it, and the process does nothing after it."""


class Schedule:
    """The events in their order. The same order of events leads to the same round, however busy the machine is."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._until = float("inf")

    def at(self, moment: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (moment, self._count, what))

    def run(self, until: float = float("inf")) -> None:
        """Run every event that is due until this moment, each at its time."""
        self._until = until
        while self._due and self._due[0][0] <= until:
            moment, _, what = heapq.heappop(self._due)
            self.now = max(self.now, moment)
            what()
        self._until = float("inf")
        if until < float("inf"):
            self.now = max(self.now, until)

    def passed(self, moment: float) -> bool:
        """Advance to this moment, unless another event or the end of `run` is due before it. Return True if the time
        was advanced.
        """
        if moment > self._until or (self._due and self._due[0][0] <= moment):
            return False
        self.now = max(self.now, moment)
        return True


class Task:
    """A process that runs until it waits. `failure` is the error that ended it, other than a kill.

    All tasks share one thread, because switches between threads took a quarter of the time of a round.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.dead = False
        self.failure: BaseException | None = None
        self.ended = False
        self._steps = _Steps(self._run)
        self._steps.task = self

    def begin(self) -> None:
        """Run the process up to its first wait."""
        self._continue()

    def wait(self, seconds: float) -> None:
        """Let the other processes run for this time. Raises Killed once this process is dead."""
        self.must_live()
        moment = self.schedule.now + seconds
        if not self.schedule.passed(moment):
            self.schedule.at(moment, self._continue)
            assert self._steps.parent
            self._steps.parent.switch()
        self.must_live()

    def must_live(self) -> None:
        if self.dead:
            raise Killed

    def die(self) -> None:
        self.dead = True
        raise Killed

    def kill(self) -> None:
        """Kill the process from outside, while it waits."""
        self.dead = True
        self._continue()

    def work(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        try:
            self.work()
        except Killed:
            self.dead = True
        except BaseException as error:  # noqa: BLE001 - the test's own thread raises it
            self.failure = error
        finally:
            self.ended = True

    def _continue(self) -> None:
        if not self.ended:
            self._steps.parent = getcurrent()
            self._steps.switch()


class _Steps(greenlet):
    task: Task


def current() -> Task | None:
    """Return the task that is running, or None outside of all tasks."""
    steps = getcurrent()
    return steps.task if isinstance(steps, _Steps) else None
