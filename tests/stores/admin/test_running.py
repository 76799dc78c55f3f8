"""Requests to the controller while it changes, or after it died."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.errors import KafkaConnectionError, KafkaTimeoutError

from kquota.errors import Refused, Unreachable
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.running import NOT_CONTROLLER, TIMED_OUT, RunningMoves, ask_controller, by_topic

DONE, MOVED = SimpleNamespace(error_code=0), SimpleNamespace(error_code=NOT_CONTROLLER)


class Electing:
    """Broker 1 was the controller. After a request for metadata, it is broker 2."""

    def __init__(self, first: Any) -> None:
        self.controller = 1
        self._first = first

    def ask(self, _request: object, broker: int, _seconds: object) -> Any:
        if broker == 1 and isinstance(self._first, Exception):
            raise Unreachable("broker 1: no answer") from self._first
        return self._first if broker == 1 else DONE

    def refresh(self) -> None:
        self.controller = 2


def asked(first: object, *, header: object = None) -> Any:
    return ask_controller(cast(Wire, Electing(first)), SimpleNamespace(header=header))


@pytest.mark.parametrize("first", [MOVED, KafkaConnectionError("refused")], ids=["moved", "died"])
def test_the_next_controller_is_asked(first: object) -> None:
    assert asked(first) is DONE


@pytest.mark.parametrize(
    ("first", "header"),
    [(KafkaTimeoutError("late"), None), (KafkaConnectionError("closed"), "sent")],
    ids=["may be sent later", "was sent"],
)
def test_a_request_that_may_have_arrived_is_not_sent_again(first: object, header: object) -> None:
    with pytest.raises(Unreachable):
        asked(first, header=header)


@pytest.mark.parametrize(("code", "kind"), [(NOT_CONTROLLER, Unreachable), (TIMED_OUT, Unreachable), (31, Refused)])
def test_only_a_controller_that_may_answer_later_is_asked_again(code: int, kind: type[Exception]) -> None:
    """`move watch` continues after Unreachable."""
    with pytest.raises(kind, match="listing the running reassignments: the broker answered"):
        by_topic(RunningMoves(throttle_time_ms=0, error_code=code, error_message=None, topics=()))
