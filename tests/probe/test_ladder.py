"""The ladder of rates up to the controller's limit, and the quota that follows from it (KIP-599)."""

from __future__ import annotations

from itertools import count

import pytest

from kquota.errors import Refused
from kquota.probe import ladder
from kquota.probe.ladder import Limit, Operation, Step
from kquota.probe.mutations import climb
from tests.mutation.fake import FakeClock
from tests.probe.contract import SightContract
from tests.probe.fake import Controller


class TestSightInMemory(SightContract):
    topic = "t"

    @pytest.fixture(autouse=True)
    def stage(self) -> None:
        self.topics = self.sight = Controller(clock=FakeClock())


def climbed(controller: Controller, size: int = 10) -> list[Step]:
    rungs = ladder.rungs(size, ladder.SECONDS, 1_000)
    return list(climb(controller, controller, controller.clock, rungs, (f"t-{n}" for n in count()), 3))


# seconds of each mutation, seconds until it is shown: the rate that the controller sustains
CONTROLLERS: dict[str, tuple[float, float, float | None, str | None]] = {
    "quick": (0.0, 0.1, 100, None),
    "15 ms a mutation": (0.015, 0.1, 50, "reached only"),
    "30 ms a mutation": (0.03, 0.1, 20, "reached only"),
    "one whose brokers lag": (0.0, 2.5, None, "brokers took 2.5 s to show the result"),
    "one whose brokers never catch up": (0.0, 1e9, None, "brokers took 10 s to show the result"),
    "a slow one": (0.25, 0.0, None, "reached only"),
}


@pytest.mark.parametrize(("cost", "lag", "holds", "why"), CONTROLLERS.values(), ids=CONTROLLERS)
def test_the_highest_sustained_rate_is_found_and_no_topic_is_left(
    cost: float, lag: float, holds: float | None, why: str | None
) -> None:
    controller = Controller(clock=FakeClock(), cost=cost, lag=lag)
    (found,) = Limit(steps=tuple(climbed(controller)), tenants=1, overcommit=1.0).held
    assert (found.size, found.rate) == (10, holds)
    # A topic that no broker shows yet cannot be deleted. The run deletes it at its end.
    assert (controller.held == {}) == (lag < 10)
    assert ((found.stopped and found.stopped.why_not) or "").startswith(why or "")
    assert (found.stopped is None) == (why is None)


def test_after_a_failed_rate_no_higher_one_is_tried() -> None:
    steps = climbed(Controller(clock=FakeClock(), cost=0.03))
    assert [(one.operation, one.rate) for one in steps[-3:]] == [(operation, 50) for operation in Operation]
    assert [one.why_not is None for one in steps[:-3]] == [True] * (len(steps) - 3)


def test_under_a_quota_no_limit_is_measured() -> None:
    with pytest.raises(Refused, match="a controller mutation quota rejects this client"):
        climbed(Controller(clock=FakeClock(), rate=1.0))


def test_the_partition_limit_holds_and_every_rate_creates_a_topic() -> None:
    for size in ladder.SIZES:
        for most in (10, 100, 1_000, 10_000):
            rungs = ladder.rungs(size, ladder.SECONDS, most)
            assert all(0 < rung.alive <= most for rung in rungs)
            assert [rung.rate for rung in rungs] == sorted({rung.rate for rung in rungs})


def step(size: int, rate: float, latency: float = 0.05, operation: Operation = Operation.CREATE) -> Step:
    return Step(operation=operation, size=size, rate=rate, reached=rate, latency=latency, lag=0.1)


SUGGESTED = {
    "the worst size decides": ([step(1, 50), step(1, 100, 1.5), step(10, 100), step(10, 200)], 40.0),
    "the worst operation decides": ([step(1, 20), step(1, 50, operation=Operation.GROW, latency=2)], 16.0),
    "a small rate has a tenth": ([step(1, 5), step(1, 10, 3.0)], 4.0),
    "not even the lowest": ([step(1, 5, 3.0), step(10, 5)], None),
    "nothing measured": ([], None),
}


@pytest.mark.parametrize(("steps", "rate"), SUGGESTED.values(), ids=SUGGESTED)
def test_the_suggested_quota(steps: list[Step], rate: float | None) -> None:
    assert Limit(steps=tuple(steps), tenants=1, overcommit=1.0).suggested == rate


def test_tenants_share_the_quota_and_may_be_overcommitted() -> None:
    parts = {(1, 1.0): 40, (10, 1.0): 4, (10, 2.5): 10, (3, 1.0): 13, (1_000, 1.0): 0.04}
    for (tenants, overcommit), part in parts.items():
        limit = Limit(steps=(step(1, 50),), tenants=tenants, overcommit=overcommit)
        assert (limit.suggested, limit.suggested_per_tenant) == (40, part)
