"""A kill at every remote call and every write of the record: `throttle clear` restores the previous throttles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from kquota.measure import ByteRate
from kquota.reassign.run import at_rate
from kquota.settings.resource import Setting
from kquota.terms import LEADER_RATE, BrokerId, TopicPartition
from kquota.throttle import set_and_clear
from tests.reassign.records import alone
from tests.throttle.stage import LEADER
from tests.throttle.test_set_and_clear import TITLE, WHOLE, Desk

PRIOR: Final = {
    Setting.of_topic("t", LEADER): "7:7,1:2",
    Setting.of_broker(BrokerId(1), LEADER_RATE): "5000",
}
CALLS: Final = ("snapshot", "values", "change", "begin", "update", "unfinished")


class Killed(BaseException):
    """The process ends: no code catches this."""


class Mortal:
    """A port whose process dies at the `last` call: before it is made, or after it, with the answer lost."""

    def __init__(self, port: Any, life: list[int], when: Literal["before", "after"]) -> None:
        self._port, self._life, self._when = port, life, when

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in CALLS:
            return found

        def called(*arguments: Any) -> Any:
            self._life[0] -= 1
            if self._life[0] == 0 and self._when == "before":
                raise Killed
            answer = found(*arguments)
            if self._life[0] == 0:
                raise Killed
            return answer

        return called


def bring(desk: Desk) -> None:
    desk.bring(WHOLE, TITLE)


def adjust(desk: Desk) -> None:
    desk.bring(WHOLE, TITLE)
    (run,) = desk.runs.unfinished()
    set_and_clear.adjust(desk.ports, run, at_rate(run, ByteRate(7)))


def clear(desk: Desk) -> None:
    desk.bring(WHOLE, TITLE)
    desk.clear()


def recover(desk: Desk) -> None:
    desk.recover()
    cluster = getattr(desk.cluster, "_port", desk.cluster)
    now = cluster.partitions[TopicPartition("t", 1)]
    cluster.partitions[TopicPartition("t", 1)] = type(now)(replicas=now.replicas, leader=now.leader, isr=now.replicas)
    desk.recover()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("work", [bring, adjust, clear, recover], ids=lambda work: work.__name__)
def test_clear_restores_the_previous_throttles(
    tmp_path: Path, work: Callable[[Desk], None], when: Literal["before", "after"]
) -> None:
    deaths = 0
    while True:
        desk = Desk(tmp_path / str(deaths))
        cluster, runs = desk.cluster, desk.runs
        cluster.configs = dict(PRIOR)
        life = [deaths + 1]
        desk.cluster, desk.runs = Mortal(cluster, life, when), Mortal(runs, life, when)  # type: ignore[assignment]
        try:
            work(desk)
        except Killed:
            deaths += 1
        else:
            break
        desk.cluster, desk.runs = cluster, alone(tmp_path / str(deaths - 1))
        assert desk.clear().pending == {}
        assert cluster.configs == PRIOR, f"killed {when} call {deaths}"
        assert desk.runs.unfinished() == ()
    assert deaths > 5
