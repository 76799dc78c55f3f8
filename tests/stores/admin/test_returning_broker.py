"""The oldest release while brokers return: an old broker must never receive an APPEND, which damages its lists."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from kquota.errors import KquotaError, Unreachable
from kquota.stores.admin import connection
from kquota.stores.admin.connection import Wire
from kquota.terms import BrokerId

ONE, TWO, THREE = map(BrokerId, (1, 2, 3))


class Upgraded(Wire):
    """A wire to the brokers in `alive`, with their releases. None is a broker that does not answer."""

    def __init__(self, alive: dict[BrokerId, tuple[int, ...] | None]) -> None:
        self.alive, self.asked = alive, list[BrokerId]()
        self._kraft_only = None
        self._releases = {}

    def brokers(self) -> dict[BrokerId, Any]:
        return dict.fromkeys(self.alive)

    def version(self) -> tuple[int, ...]:
        return (3, 9)

    def ask_each(
        self, requests: Mapping[BrokerId, Any], seconds: float | None = None
    ) -> dict[BrokerId, Any | KquotaError]:
        self.asked += requests
        return {
            b: SimpleNamespace(error_code=0, release=self.alive[b]) if self.alive[b] else Unreachable("no answer")
            for b in requests
        }


@pytest.fixture(autouse=True)
def releases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_release", lambda answer: answer.release)


def test_a_broker_that_returns_later_is_asked_for_its_release() -> None:
    wire = Upgraded({ONE: (3, 9), TWO: (3, 9)})
    assert wire.oldest() == (3, 9)
    wire.alive[THREE] = (2, 8)
    assert wire.oldest() == (2, 8)
    del wire.alive[THREE]
    assert wire.oldest() == (3, 9)
    assert wire.asked == [ONE, TWO, THREE], "each broker is asked once"


@pytest.mark.parametrize("before", [None, (2, 8), (4, 0)])
def test_a_broker_that_was_not_alive_is_asked_again(before: tuple[int, ...] | None) -> None:
    """A restart can end a hang, and can change the release."""
    wire = Upgraded({ONE: (3, 9), TWO: before})
    wire.oldest()
    del wire.alive[TWO]
    wire.oldest()
    wire.alive[TWO] = (3, 5)
    assert wire.oldest(unanswered=(0,)) == (3, 5)


def test_a_broker_that_does_not_answer_may_be_old() -> None:
    wire = Upgraded({ONE: (3, 9), TWO: None})
    assert (wire.oldest(), wire.oldest(unanswered=(0,))) == ((3, 9), (0,))
    assert wire.asked == [ONE, TWO], "a hung broker costs one time-out"
