"""Elections in batches: nothing is elected twice, and a cluster that gets worse ends them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.cli.leader_election.run import answered
from kquota.election.actions import BatchRules, ElectionResults, elect
from kquota.election.leaders import needing
from kquota.election.port import ElectionType
from kquota.errors import KquotaError, Refused, Unreachable
from kquota.terms import BrokerId, TopicPartition
from tests.election.contract import ElectionsContract
from tests.election.fake import MemoryElections
from tests.mutation.fake import FakeClock

pytestmark = pytest.mark.unit

PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN
NAMES = [TopicPartition("t", n) for n in range(7)]


class TestInMemory(ElectionsContract):
    @pytest.fixture(autouse=True)
    def stage(self) -> None:
        self.memory = self.elections = MemoryElections()

    def topic(self, replicas: dict[int, tuple[int, ...]]) -> str:  # type: ignore[override]
        for number, ids in replicas.items():
            self.memory.add(TopicPartition("t", number), *ids, leader=ids[0])
        return "t"

    def prefer(self, targets: dict[TopicPartition, tuple[int, ...]]) -> None:  # type: ignore[override]
        for name, ids in targets.items():
            self.memory.add(name, *ids, leader=self.memory.held[name].leader)


def rules(size: int | None = 2, pause: float = 5.0, settle: float = 60.0) -> BatchRules:
    return BatchRules(size=size, pause=pause, settle=settle, request_seconds=30)


def cluster(count: int = len(NAMES)) -> MemoryElections:
    """Partitions whose preferred replica is in sync and does not lead."""
    found = MemoryElections()
    for name in NAMES[:count]:
        found.add(name, 1 + name.partition % 3, 4, leader=4)
    return found


def ran(found: MemoryElections, how: BatchRules, kind: ElectionType = PREFERRED) -> tuple[ElectionResults, FakeClock]:
    clock, results = FakeClock(), ElectionResults()
    before = found.partitions()
    elect(found, clock, kind, needing(kind, before), before, how, results)
    return results, clock


def test_every_batch_is_elected_with_a_pause_between_two() -> None:
    found = cluster()
    results, clock = ran(found, rules(size=3, pause=5))
    assert list(map(len, found.requests)) == [3, 3, 1]
    assert (sorted(results.elected), results.left, results.unsettled) == (NAMES, [], ())
    assert clock.now == 10
    assert needing(PREFERRED, found.partitions()) == ()


def test_stale_leaders_delay_the_next_batch_and_do_not_end_the_elections() -> None:
    found = cluster(4)
    found.stale = 3
    results, clock = ran(found, rules(pause=0))
    assert (len(results.elected), results.left) == (4, [])
    assert 0 < clock.now < 2


def test_a_cluster_that_gets_worse_ends_the_elections() -> None:
    found = cluster()
    elsewhere = TopicPartition("other", 0)
    found.add(elsewhere, 1, 2, leader=1)
    found.troubled = {2: elsewhere}
    results, clock = ran(found, rules(settle=60))
    assert (len(results.elected), len(results.left), results.unsettled) == (4, 3, (elsewhere,))
    assert clock.now == pytest.approx(70, abs=1)


def test_trouble_from_before_does_not_end_the_elections() -> None:
    found = cluster()
    found.add(TopicPartition("other", 0), 1, 2, leader=None)
    results, _ = ran(found, rules())
    # The broker of that partition has no preferred leader to elect: it is dead.
    assert (len(results.elected), results.left, results.unsettled) == (7, [], ())
    assert [str(name) for name in results.failed] == ["other-0"]


def test_an_unclean_election_gives_a_partition_a_leader_that_is_alive() -> None:
    found = MemoryElections()
    found.add(NAMES[0], 1, 2, leader=None)
    found.add(NAMES[1], 3, leader=None)
    found.dead = {BrokerId(1), BrokerId(3)}
    results, _ = ran(found, rules(), UNCLEAN)
    assert results.elected == [NAMES[0]]
    assert [failure.code for failure in results.failed.values()] == [83]
    assert found.held[NAMES[0]].leader == 2


ERRORS: dict[str, tuple[KquotaError, tuple[int, int]]] = {
    "no answer": (Unreachable("no answer to ElectLeaders"), (2, 0)),
    "refused": (Refused("the broker answered ClusterAuthorizationFailed (31)"), (0, 2)),
}


@pytest.mark.parametrize(("error", "counts"), ERRORS.values(), ids=ERRORS)
def test_results_are_complete_if_a_request_fails(error: KquotaError, counts: tuple[int, int]) -> None:
    found = cluster()
    whole = found.elect

    def failing(*asked: object) -> object:
        if len(found.requests) == 2:
            raise error
        return whole(*asked)  # type: ignore[arg-type]

    found.elect = failing  # type: ignore[method-assign, assignment]
    results = ElectionResults()
    before = found.partitions()
    with pytest.raises(type(error)):
        elect(found, FakeClock(), PREFERRED, NAMES, before, rules(), results)
    assert len(results.elected) == 4
    assert (len(results.unknown), len(results.refused), len(results.left)) == (*counts, 1)
    shown = Counter(result for result, _ in answered(PREFERRED, results, closing_notes=(), code=1).results.values())
    unelected = Counter({"unknown": counts[0], "failed": counts[1]})
    assert shown == Counter({"elected": 4, "not sent": 1}) + unelected


@given(size=st.integers(1, 9), count=st.integers(0, 7), stale=st.integers(0, 3))
def test_each_partition_is_sent_once_whatever_the_batch(size: int, count: int, stale: int) -> None:
    found = cluster(count)
    found.stale = stale
    results, _ = ran(found, rules(size=size))
    sent = [name for request in found.requests for name in request]
    assert sorted(sent) == sorted(results.elected) == NAMES[:count]
    assert all(len(request) <= size for request in found.requests)
