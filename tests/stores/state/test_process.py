"""kquota knows whether the holder of a lock has ended, also if `/proc` hides processes of other users (`hidepid`)."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import NoReturn

import pytest

from kquota.stores.state.process import Holder, holder


@pytest.fixture
def ended() -> Holder:
    """A holder in this boot and container whose process has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    mine = holder("move run")
    return replace(mine, owner=replace(mine.owner, pid=child.pid))


def test_a_process_that_has_ended_is_dead(ended: Holder) -> None:
    assert (ended.dead, ended.alive) == (True, False)


def test_a_process_of_another_user_that_proc_hides_is_not_dead(ended: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lock is not free. Only a signal shows that it exists, because `/proc` has no entry."""

    def not_permitted(_pid: int, _signal: int) -> NoReturn:
        raise PermissionError

    monkeypatch.setattr(os, "kill", not_permitted)
    assert (ended.dead, ended.alive) == (False, True)
