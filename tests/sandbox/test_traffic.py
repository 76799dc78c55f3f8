"""The clients of the demo count only records that brokers accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from kquota.errors import Unreachable
from kquota.sandbox import traffic

pytestmark = pytest.mark.unit


class Rejected:
    """The error of a delivery report."""

    def str(self) -> str:
        return "Broker: Message size too large"


class HalfRejecting:
    """A producer whose every second record is rejected."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._report: Callable[..., object] = config["on_delivery"]
        self._sent = 0

    def produce(self, *_: object, **__: object) -> None:
        self._report(Rejected() if self._sent % 2 else None, None)
        self._sent += 1

    def poll(self, _seconds: float) -> None:
        pass

    def flush(self, _seconds: float) -> int:
        return 0


def test_rejected_records_are_not_counted_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "Producer", HalfRejecting)
    words = r"topic t: the brokers did not accept 2 records \(Broker: Message size too large\)"
    with pytest.raises(Unreachable, match=words):
        traffic.load("b:1", "t", 1, 5 * traffic.MESSAGE, lambda _: None)
    monkeypatch.setattr(traffic, "time", SimpleNamespace(monotonic=iter([0.0, *[1.0] * 10, 2.0]).__next__))
    assert traffic.run_into_quota("b:1", "t", 10 * traffic.MESSAGE).rate == 5 * traffic.MESSAGE / 2
