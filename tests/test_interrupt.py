"""A deferred signal waits, reaches the previous handler, and is never lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from kquota.interrupt import deferred


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """The signals that reach a program's own handler."""
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_waits_until_it_is_allowed_or_the_block_ends(heard: list[int]) -> None:
    with deferred() as let_through:
        signal.raise_signal(signal.SIGTERM)
        assert heard == []
        let_through()
        assert heard == [signal.SIGTERM]
        signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM, signal.SIGTERM]
    signal.raise_signal(signal.SIGTERM)
    assert len(heard) == 3


def test_ctrl_c_raises_keyboard_interrupt() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), deferred():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_ignored_signals_stay_ignored_and_other_threads_handle_none(heard: list[int]) -> None:
    def elsewhere() -> None:
        with deferred() as let_through:
            let_through()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with deferred():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert heard == []
