"""Sends mutations in requests that the token bucket of the quota will probably accept (KIP-599). After a rejection,
kquota waits as long as the broker asks, and sends the rejected topics again.
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeAlias

from kquota.errors import KquotaError, QuotaViolatedException, Refused, Unreachable
from kquota.mutation.pace import MOST_ITEMS, MutationPace, fitting
from kquota.mutation.port import BatchResult, Failure, MonotonicClock, Topics
from kquota.mutation.topic import Mutation
from kquota.terms import MAYBE_WRITTEN

MUTATION_TIMEOUT: Final = 30.0
"""The timeout of one request that creates, grows or deletes topics, in seconds."""
_LONGEST_MS: Final = 2**31 - 1
"""The highest throttle time that a broker can report. The protocol stores it in 32 bits."""


class Fate(enum.Enum):
    """The kind of the result for one topic."""

    DONE = "done"
    ALREADY = "already so"
    """There was nothing to do."""
    REJECTED = "rejected"
    """The quota still rejects the topic, or kquota held the topic back because of the quota."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The request got no answer or no clear answer."""
    NOT_SENT = "not sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOutcome:
    """The result for one topic, with the error if there is one. The error of a rejected topic is a
    QuotaViolatedException with the time to wait.
    """

    mutation: Mutation
    fate: Fate
    error: KquotaError | None = None


@dataclass(slots=True)
class MutationWork:
    """The progress of the requests. A caller can read the progress at any moment, even after an interrupt."""

    left: deque[Mutation]
    """The topics without a final result, including those in `in_flight`."""
    already: Collection[int]
    """The error codes that mean that there is nothing to do."""
    outcomes: dict[str, TopicOutcome] = field(default_factory=dict)
    """The final results by topic."""
    in_flight: tuple[Mutation, ...] = ()
    """The topics of a request that has no answer yet."""
    sent: int = 0
    """The number of topics in all requests. A repeated topic counts again."""
    throttle_time_ms: int = 0
    """The wait that the quota requires, in milliseconds, or 0 without one. If the last answer rejected topics, this is
    its throttle time, at least 1. If kquota held topics back at the end, this is the throttle time that a broker would
    report.
    """
    muted: float = 0.0
    """The monotonic time in seconds before which nothing may be sent (KIP-219)."""

    def all_outcomes(self) -> list[TopicOutcome]:
        """Return the current outcome of every topic. The outcome of topics in flight is unknown."""
        flying = {mutation.topic for mutation in self.in_flight}
        waiting = [
            TopicOutcome(mutation=mutation, fate=Fate.UNKNOWN) if mutation.topic in flying else self._unsent(mutation)
            for mutation in self.left
        ]
        return [*self.outcomes.values(), *waiting]

    def _unsent(self, mutation: Mutation) -> TopicOutcome:
        if not self.throttle_time_ms:
            return TopicOutcome(mutation=mutation, fate=Fate.NOT_SENT)
        error = QuotaViolatedException(
            self.throttle_time_ms, "the controller mutation quota of this principal has been exceeded"
        )
        return TopicOutcome(mutation=mutation, fate=Fate.REJECTED, error=error)


OnWait: TypeAlias = Callable[[MutationWork, float], None]
"""A callback before each wait for the quota. It receives the progress and the seconds of the wait."""


def unheard(*_: object) -> None:
    """Ignore progress. This is the default callback."""


def work(mutations: Iterable[Mutation], already: Collection[int] = ()) -> MutationWork:
    """Return the work for these mutations. Raises Refused for a topic that is listed twice, because only the caller
    knows which mutation is meant.

    `already` are error codes that the caller accepts, because another client may have created or deleted a topic in the
    meantime.
    """
    left = deque(mutations)
    if twice := sorted(name for name, count in Counter(mutation.topic for mutation in left).items() if count > 1):
        raise Refused(f"topic {twice[0]} is listed twice. Nothing was sent. List the topic once")
    return MutationWork(left=left, already=already)


def carry_out(
    topics: Topics,
    clock: MonotonicClock,
    doing: MutationWork,
    pace: MutationPace,
    *,
    seconds: float,
    retry: bool = True,
    on_wait: OnWait = unheard,
) -> list[TopicOutcome]:
    """Send the mutations, repeat rejected ones, and return the outcome of every topic.

    The work ends when every topic has a final result. It also ends if a request gets no answer or, without `retry`, at
    the first rejection. No request is sent `seconds` or more after the start (Kafka's `default.api.timeout.ms`). If the
    last answer rejected topics, or if kquota held topics back because of the quota, each remaining topic has a
    QuotaViolatedException. Source: KIP-599. Kafka's Admin client also sends rejected topics again.

    Raises Unreachable, before anything is sent, if the cluster has no active controller.
    """
    topics.must_have_controller()
    give_up = clock.monotonic() + seconds
    while doing.left:
        costs = [mutation.mutations for mutation in islice(doing.left, MOST_ITEMS)]
        # Without `retry`, kquota does not wait for tokens, because the caller wants to see the violation.
        wait = pace.wait(clock.monotonic(), costs) if retry else 0.0
        # A broker that treats kquota as an old client accepts everything, and then throttles kquota for the time that
        # kquota should have waited. kquota waits until this time is over.
        wait = max(wait, doing.muted - clock.monotonic())
        if clock.monotonic() + wait >= give_up:
            # kquota held these topics back because of the quota, so it reports a wait as the broker would.
            if wait > 0:
                now = clock.monotonic()
                owed = 1_000 * max(pace.debt(now), doing.muted - now)
                doing.throttle_time_ms = max(1, round(min(owed, _LONGEST_MS)))
            break
        if wait > 0:
            on_wait(doing, wait)
            clock.sleep(wait)
        size = pace.batch(clock.monotonic(), costs) if retry else fitting(costs)
        answered = _sent(topics, clock, doing, pace, tuple(islice(doing.left, size)), give_up)
        if not answered or (doing.throttle_time_ms and not retry):
            break
    return doing.all_outcomes()


def _sent(
    topics: Topics,
    clock: MonotonicClock,
    doing: MutationWork,
    pace: MutationPace,
    batch: Sequence[Mutation],
    give_up: float,
) -> bool:
    """Send a batch and record its results. Return False if no answer came. The caller must then send nothing more."""
    doing.in_flight, doing.sent = tuple(batch), doing.sent + len(batch)
    try:
        answer = topics.send(batch, min(MUTATION_TIMEOUT, max(1.0, give_up - clock.monotonic())))
    except Unreachable as error:
        for mutation in batch:
            doing.left.popleft()
            doing.outcomes[mutation.topic] = TopicOutcome(mutation=mutation, fate=Fate.UNKNOWN, error=error)
        doing.in_flight, doing.throttle_time_ms = (), 0
        return False
    rejected = _take(doing, batch, answer)
    doing.muted = clock.monotonic() + answer.throttle_time_ms / 1_000
    admitted = sum(mutation.mutations for mutation in batch if answer.outcomes[mutation.topic] is None)
    doing.throttle_time_ms = max(1, answer.throttle_time_ms) if rejected else 0
    pace.answered(clock.monotonic(), admitted, doing.throttle_time_ms / 1_000 if rejected else None)
    return True


def _take(doing: MutationWork, batch: Sequence[Mutation], answer: BatchResult) -> bool:
    """Record an answer, and return True if it rejected topics. They are then first in `left` again, in their order."""
    again = []
    for mutation in batch:
        doing.left.popleft()
        failure = answer.outcomes[mutation.topic]
        if failure is not None and failure.rejected:
            again.append(mutation)
        else:
            doing.outcomes[mutation.topic] = _outcome(mutation, failure, doing.already)
    doing.left.extendleft(reversed(again))
    doing.in_flight = ()
    return bool(again)


def _outcome(mutation: Mutation, failure: Failure | None, already: Collection[int]) -> TopicOutcome:
    if failure is None:
        return TopicOutcome(mutation=mutation, fate=Fate.DONE)
    if failure.code in already:
        return TopicOutcome(mutation=mutation, fate=Fate.ALREADY)
    if failure.code in MAYBE_WRITTEN:
        # A controller on ZooKeeper answers `REQUEST_TIMED_OUT` for a topic that is being moved, and deletes it later.
        return TopicOutcome(mutation=mutation, fate=Fate.UNKNOWN, error=Unreachable(failure.reason))
    return TopicOutcome(mutation=mutation, fate=Fate.FAILED, error=Refused(failure.reason))
