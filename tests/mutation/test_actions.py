"""Requests that a quota rejects are sent again when the quota allows it, and no more often."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import QuotaViolatedException, Refused, Unreachable
from kquota.mutation.actions import Fate, MutationWork, TopicOutcome, carry_out, work
from kquota.mutation.pace import MutationPace
from kquota.mutation.port import EXISTS, MISSING, BatchResult, Failure
from kquota.mutation.topic import Creation, Deletion, Growth, Mutation
from kquota.simulate.delay import Bucket, Mutations
from kquota.simulate.load import rounds
from tests.mutation.contract import TopicsContract
from tests.mutation.fake import FakeClock, MemoryTopics
from tests.profiles import examples


class TestInMemory(TopicsContract):
    prefix = "t"

    @pytest.fixture(autouse=True)
    def stage(self) -> None:
        self.topics = MemoryTopics()

    def partitions(self) -> Mapping[str, int]:
        assert isinstance(self.topics, MemoryTopics)
        return self.topics.held


def creations(count: int, partitions: int) -> list[Creation]:
    return [Creation(topic=f"t-{n}", partitions=partitions) for n in range(count)]


def created(cluster: MemoryTopics, todo: list[Creation], *, known: bool, seconds: float = 10**6) -> list[TopicOutcome]:
    pace = MutationPace(quota=cluster.rate if known else None, draw=random.Random(7))
    return carry_out(cluster, cluster.clock, work(todo), pace, seconds=seconds)


LOADS = {
    # topics, partitions each, rate
    "a thousand small topics": (1_000, 1, 20.0),
    "500 topics of 20 partitions": (500, 20, 50.0),
    "large topics, one by one": (60, 100, 25.0),
}


@pytest.mark.parametrize("known", [True, False], ids=["rate known", "rate unknown"])
@pytest.mark.parametrize(("count", "partitions", "rate"), LOADS.values(), ids=LOADS)
def test_at_most_a_tenth_is_sent_twice_and_a_tenth_of_the_time_is_lost(
    count: int, partitions: int, rate: float, known: bool
) -> None:
    cluster = MemoryTopics(rate=rate)
    outcomes = created(cluster, creations(count, partitions), known=known)
    assert {outcome.fate for outcome in outcomes} == {Fate.DONE}
    assert sum(cluster.requests) <= 1.1 * count
    ideal = list(rounds([partitions] * count, Mutations(Bucket(rate=rate))))[-1].at / 1_000
    assert cluster.clock.now <= 1.1 * ideal


@examples(40)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=60), st.integers(1, 500), st.booleans())
def test_all_topics_are_created_whatever_their_cost(costs: list[int], rate: int, known: bool) -> None:
    cluster = MemoryTopics(rate=float(rate))
    todo = [Creation(topic=f"t-{n}", partitions=cost) for n, cost in enumerate(costs)]
    assert all(outcome.fate is Fate.DONE for outcome in created(cluster, todo, known=known))
    assert cluster.held == {one.topic: one.partitions for one in todo}


def by_fate(outcomes: Iterable[TopicOutcome]) -> dict[Fate, list[TopicOutcome]]:
    found: dict[Fate, list[TopicOutcome]] = {fate: [] for fate in Fate}
    for outcome in outcomes:
        found[outcome.fate].append(outcome)
    return found


def test_without_a_quota_a_thousand_topics_need_no_wait() -> None:
    cluster = MemoryTopics()
    assert len(by_fate(created(cluster, creations(1_000, 1), known=False))[Fate.DONE]) == 1_000
    assert cluster.clock.now < 1


def test_without_retries_the_caller_gets_the_violation_at_once() -> None:
    cluster = MemoryTopics(rate=5)
    outcomes = carry_out(
        cluster, cluster.clock, work(creations(7, 80)), MutationPace(quota=None), seconds=60, retry=False
    )
    found = by_fate(outcomes)
    assert (len(found[Fate.DONE]), len(found[Fate.REJECTED]), cluster.clock.now < 1) == (1, 6, True)
    error = found[Fate.REJECTED][0].error
    assert isinstance(error, QuotaViolatedException)
    assert 4_900 < error.throttle_time_ms <= 5_000


def test_at_the_deadline_rejected_topics_are_named_and_the_others_exist() -> None:
    cluster = MemoryTopics(rate=5)
    found = by_fate(created(cluster, creations(7, 80), known=True, seconds=30))
    assert len(found[Fate.DONE]) == len(cluster.held) == 3
    assert len(found[Fate.REJECTED]) == 4
    error = found[Fate.REJECTED][0].error
    assert isinstance(error, QuotaViolatedException)
    # 55 tokens were available, 3 x 80 are spent, and 5 are added each second.
    assert cluster.clock.now + error.throttle_time_ms / 1_000 == pytest.approx((3 * 80 - 55) / 5, abs=0.1)
    assert cluster.clock.now < 30


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
def test_at_the_lowest_rate_the_reported_wait_is_the_longest_of_the_protocol(shared: bool) -> None:
    cluster, pace = MemoryTopics(), MutationPace(quota=1e-320)
    if shared:
        pace.answered(0.0, 5, 1.0)
    outcomes = carry_out(cluster, cluster.clock, work(creations(2, 80)), pace, seconds=60)
    errors = [one.error for one in outcomes if one.fate is Fate.REJECTED]
    assert errors
    for error in errors:
        assert isinstance(error, QuotaViolatedException)
        assert 0 < error.throttle_time_ms <= 2**31 - 1


def test_a_bucket_of_a_longer_window_is_used_up_before_any_wait() -> None:
    """controller.quota.window.size.seconds=10: 110 s at 5/s hold 550 mutations."""
    cluster = MemoryTopics(rate=5, burst_samples=110)
    outcomes = carry_out(
        cluster, cluster.clock, work(creations(7, 80)), MutationPace(quota=5, burst_seconds=110), seconds=30
    )
    assert {outcome.fate for outcome in outcomes} == {Fate.DONE}
    assert cluster.clock.now < 1


def test_any_other_error_is_final_and_delays_no_other_topic() -> None:
    cluster = MemoryTopics(rate=5, held={"t-3": 1})
    found = by_fate(created(cluster, creations(7, 80), known=True))
    assert [(outcome.mutation.topic, str(outcome.error)) for outcome in found[Fate.FAILED]] == [
        ("t-3", "TopicAlreadyExists (36)")
    ]
    assert len(found[Fate.DONE]) == 6


MEANWHILE: dict[str, tuple[Mutation, dict[str, int], int]] = {
    # the request, the change of another client in the meantime, and the error that shows it
    "created": (Creation(topic="t", partitions=2), {"t": 2}, EXISTS),
    "deleted, and to be deleted": (Deletion(topic="t", partitions=2), {}, MISSING),
    "deleted, and to be grown": (Growth(topic="t", partitions=3, now=2), {}, MISSING),
}


@pytest.mark.parametrize(("asked", "held", "error"), MEANWHILE.values(), ids=MEANWHILE)
def test_a_change_of_another_client_is_an_error_only_on_request(
    asked: Mutation, held: dict[str, int], error: int
) -> None:
    cluster = MemoryTopics(held=held)
    for already, fate in (((error,), Fate.ALREADY), ((), Fate.FAILED)):
        (outcome,) = carry_out(cluster, cluster.clock, work([asked], already), MutationPace(quota=None), seconds=60)
        assert outcome.fate is fate


def test_after_a_lost_answer_only_its_topics_are_unknown() -> None:
    cluster = MemoryTopics(lost_at=2)
    found = by_fate(created(cluster, creations(9, 1), known=False))
    assert (len(found[Fate.DONE]), len(found[Fate.UNKNOWN]), len(found[Fate.NOT_SENT])) == (1, 2, 6)


MAYBE_DONE = {
    "timed out": Failure(code=7, reason="RequestTimedOut (7)"),
    "failed": Failure(code=-1, reason="Unknown (-1)"),
}


@pytest.mark.parametrize("failure", MAYBE_DONE.values(), ids=MAYBE_DONE)
def test_a_topic_that_the_controller_may_have_changed_is_unknown_and_delays_no_other_topic(failure: Failure) -> None:
    cluster = MemoryTopics(rate=5, late={"t-3": failure})
    found = by_fate(created(cluster, creations(7, 80), known=True))
    assert (len(found[Fate.DONE]), len(found[Fate.UNKNOWN])) == (6, 1)
    (unknown,) = found[Fate.UNKNOWN]
    assert (unknown.mutation.topic, str(unknown.error)) == ("t-3", failure.reason)
    assert isinstance(unknown.error, Unreachable)
    assert sum(cluster.requests) < 2 * 7


def test_after_an_interrupt_the_results_can_be_read() -> None:
    class Interrupted(FakeClock):
        def sleep(self, seconds: float) -> None:
            raise KeyboardInterrupt

    cluster = MemoryTopics(rate=5)
    doing = work(creations(7, 80))
    with pytest.raises(KeyboardInterrupt):
        carry_out(cluster, Interrupted(), doing, MutationPace(quota=5), seconds=60)
    found = by_fate(doing.all_outcomes())
    assert (len(found[Fate.DONE]), len(found[Fate.REJECTED]) + len(found[Fate.NOT_SENT])) == (1, 6)


def test_after_an_interrupt_topics_in_flight_have_no_error_of_an_earlier_rejection() -> None:
    class Interrupted(MemoryTopics):
        def send(self, mutations: Sequence[Mutation], seconds: float) -> BatchResult:
            if doing.throttle_time_ms:
                raise KeyboardInterrupt
            return super().send(mutations, seconds)

    cluster, doing = Interrupted(rate=5), work(creations(7, 80))
    with pytest.raises(KeyboardInterrupt):
        carry_out(cluster, cluster.clock, doing, MutationPace(quota=None, draw=random.Random(7)), seconds=1_000)
    found = by_fate(doing.all_outcomes())
    assert {one.error for one in found[Fate.UNKNOWN]} == {None}
    assert {type(one.error) for one in found[Fate.REJECTED]} == {QuotaViolatedException}


def test_growing_and_deleting_are_also_retried() -> None:
    cluster = MemoryTopics(rate=5, held={f"t-{n}": 1 for n in range(7)})
    growths = [Growth(topic=f"t-{n}", partitions=81, now=1) for n in range(7)]
    for todo in (growths, [Deletion(topic=one.topic, partitions=81) for one in growths]):
        outcomes = carry_out(cluster, cluster.clock, work(todo), MutationPace(quota=5), seconds=1_000)
        assert {outcome.fate for outcome in outcomes} == {Fate.DONE}
    assert cluster.held == {}


def test_a_topic_that_is_named_twice_is_refused() -> None:
    with pytest.raises(Refused, match="topic t-0 is listed twice"):
        work([*creations(2, 1), Creation(topic="t-0")])


def test_each_wait_is_reported() -> None:
    cluster, waits = MemoryTopics(rate=5), []

    def noted(doing: MutationWork, wait: float) -> None:
        waits.append((len(doing.left), wait))

    carry_out(cluster, cluster.clock, work(creations(2, 80)), MutationPace(quota=5), seconds=60, on_wait=noted)
    assert [left for left, _ in waits] == [1]
    assert waits[0][1] == pytest.approx(5, abs=0.1)


CROWDS = {
    # clients, topics of each client, partitions of each topic, rate; the largest ratio of the last client's time to
    # the first's
    "20 clients, 400 ms a topic": (20, 100, 20, 50.0, 1.3),
    "20 clients, 100 ms a topic": (20, 50, 1, 10.0, 1.3),
    "2 clients, 4 s a topic": (2, 12, 20, 5.0, 1.3),
    "5 clients, 40 s a topic: longer than a bucket takes to fill": (5, 10, 200, 5.0, 1.3),
    "5 clients, 100 ms a topic: few, who ask for many at once": (5, 100, 1, 10.0, 1.5),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("clients", "topics", "partitions", "rate", "most"), CROWDS.values(), ids=CROWDS)
def test_clients_of_one_principal_take_turns_and_end_at_about_the_same_time(
    clients: int, topics: int, partitions: int, rate: float, most: float, seed: int
) -> None:
    ended = crowd(clients, topics, partitions, rate, known=True, seed=seed)
    assert max(ended) / min(ended) <= most
    assert max(ended) <= 1.1 * (clients * topics * partitions - 11 * rate) / rate


@pytest.mark.parametrize(("clients", "topics", "partitions", "rate", "_most"), CROWDS.values(), ids=CROWDS)
def test_no_client_starves_when_the_rate_is_unreadable(
    clients: int, topics: int, partitions: int, rate: float, _most: float
) -> None:
    """A client that used more of the bucket goes after the others."""
    ended = crowd(clients, topics, partitions, rate, known=False, seed=1)
    assert max(ended) / min(ended) <= 2
    assert max(ended) <= 1.1 * (clients * topics * partitions - 11 * rate) / rate


def test_a_client_at_an_empty_bucket_shares_it_with_a_steady_client() -> None:
    """The other client took 4 of its 12 at once, and is rejected only if a request arrives at the right moment."""
    ended = crowd(2, 12, 20, 5.0, known=True, seed=6, late=0.2)
    assert max(ended) / min(ended) <= 1.4


def test_a_rate_learned_among_many_clients_grows_after_they_end() -> None:
    """0 tokens at 1 s, 20 of 60 mutations are ours, and 0 tokens again at 4 s: the result is a rate of 7/s."""
    cluster, pace = MemoryTopics(rate=20), MutationPace(quota=None, draw=random.Random(7))
    cluster.send([Creation(topic="others", partitions=220 + 80)], 30)
    pace.answered(0.0, 0, 1.0)
    pace.answered(1.0, 20, 3.0)
    outcomes = carry_out(cluster, cluster.clock, work(creations(1_000, 1)), pace, seconds=10**6)
    assert {outcome.fate for outcome in outcomes} == {Fate.DONE}
    assert sum(cluster.requests) <= 1.1 * 1_000
    assert cluster.clock.now <= 1.1 * (4 + 1_000 / 20)


def crowd(
    clients: int, topics: int, partitions: int, rate: float, known: bool, seed: int, late: float = 0.0
) -> list[float]:
    """The end of each client on one bucket that is 2 to 10 ms away.

    The last starts `late`, the others in the same 50 ms.
    """
    bucket, draw = Mutations(Bucket(rate=rate)), random.Random(seed)
    left = [[partitions] * topics for _ in range(clients)]
    paces = [
        MutationPace(quota=rate if known else None, draw=random.Random(seed * clients + n)) for n in range(clients)
    ]
    sent = [draw.uniform(0, 0.05) for _ in range(clients)]
    sent[-1] += late
    there = {who: at + draw.uniform(0.002, 0.01) for who, at in enumerate(sent)}
    ended = []
    while there:
        who = min(there, key=lambda n: there[n])
        costs, throttle = left[who], None
        asked = costs[: paces[who].batch(sent[who], costs)]
        waits = [bucket.admit(cost, round(there[who] * 1_000)) for cost in asked]
        if rejected := [wait for wait in waits if wait is not None]:
            throttle = rejected[-1] / 1_000
        admitted = len(asked) - len(rejected)
        del costs[:admitted]
        back = there.pop(who) + draw.uniform(0.002, 0.01)
        paces[who].answered(back, admitted * partitions, throttle)
        if costs:
            sent[who] = back + paces[who].wait(back, costs)
            there[who] = sent[who] + draw.uniform(0.002, 0.01)
        else:
            ended.append(back)
    return ended
