"""The lock of `move run`: other commands get it between two writes, and it is taken again before the next one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from kquota.errors import Busy, KquotaError, Unknown, Unreachable
from kquota.reassign.turns import Turns

BEGIN = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@dataclass
class OneLock:
    """A lock, and the clock of the commands that wait for it. Another command holds it until `taken_until`."""

    is_held: bool = False
    taken_until: float = -1.0
    error: type[KquotaError] = Busy
    seconds: float = 0.0
    tries: list[float] = field(default_factory=list)

    @contextmanager
    def hold(self) -> Iterator[None]:
        self.tries.append(self.seconds)
        if self.is_held or self.seconds < self.taken_until:
            raise self.error("no lock")
        self.is_held = True
        try:
            yield
        finally:
            self.is_held = False

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def test_another_command_gets_the_lock_while_it_is_released() -> None:
    lock = OneLock()
    with Turns(lock.hold, lock, 5.0) as turns:
        assert lock.is_held
        with turns.released(), lock.hold():
            pass
        assert lock.is_held
    assert not lock.is_held


def test_the_lock_is_awaited_and_each_failed_attempt_is_reported() -> None:
    lock, reported = OneLock(), list[KquotaError]()
    with Turns(lock.hold, lock, 5.0, reported.append) as turns:
        with turns.released():
            lock.taken_until = 3.0
        assert lock.is_held
    assert (lock.tries, len(reported)) == ([0.0, 0.0, 1.0, 2.0, 3.0], 3)


def test_a_lock_that_stays_taken_is_an_error_after_the_patience() -> None:
    lock = OneLock()
    with pytest.raises(Busy), Turns(lock.hold, lock, 5.0) as turns, turns.released():
        lock.taken_until = 100.0
    assert (lock.is_held, lock.seconds) == (False, 6.0)


@pytest.mark.parametrize("error", [Busy, Unreachable, Unknown])
def test_a_record_that_does_not_answer_for_a_moment_is_no_end(error: type[KquotaError]) -> None:
    """A broker of the record may restart, or its disk may stop for a while. Its answer then comes too late."""
    lock = OneLock(error=error)
    with Turns(lock.hold, lock, 5.0) as turns:
        with turns.released():
            lock.taken_until = 3.0
        assert lock.is_held


def test_an_error_while_the_lock_is_released_does_not_take_it_again() -> None:
    lock = OneLock()
    with pytest.raises(ValueError, match="stopped"), Turns(lock.hold, lock, 5.0) as turns, turns.released():
        raise ValueError("stopped")
    assert (lock.is_held, lock.tries) == (False, [0.0])
