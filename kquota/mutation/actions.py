"""The order of things: send what the bucket should let through, wait as the broker asks, send the rest again."""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from kquota.errors import KquotaError, QuotaViolatedException, Refused, Unreachable
from kquota.mutation.pace import MOST_ITEMS, MutationPace, fitting
from kquota.mutation.port import BatchResult, Failure, MonotonicClock, Topics
from kquota.mutation.request import Mutation

REQUEST_SECONDS = 30.0


class Fate(enum.Enum):
    """What became of one topic."""

    DONE = "done"
    ALREADY = "already so"
    REJECTED = "rejected"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_SENT = "not sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOutcome:
    """One topic's fate, and the error behind it: QuotaViolatedException for a rejected one, with the time to wait."""

    mutation: Mutation
    fate: Fate
    error: KquotaError | None = None


@dataclass(slots=True)
class MutationWork:
    """What is done so far, readable at any moment, also by whoever interrupts it.

    `sent` counts topics in requests, each time anew; `throttle_time_ms` is what the last rejection asked for; `muted`
    is the moment before which nothing may be sent (KIP-219). `already` are the errors that say it is so already.
    """

    left: deque[Mutation]
    already: Collection[int] = ()
    outcomes: dict[str, TopicOutcome] = field(default_factory=dict)
    in_flight: tuple[Mutation, ...] = ()
    sent: int = 0
    throttle_time_ms: int = 0
    muted: float = 0.0

    def standing(self) -> list[TopicOutcome]:
        """Every topic's outcome as of now; of what is in flight nobody knows."""
        flying = {one.topic for one in self.in_flight}
        waiting = [
            TopicOutcome(
                mutation=one, fate=Fate.UNKNOWN if one.topic in flying else self._unsent(), error=self._violated()
            )
            for one in self.left
        ]
        return [*self.outcomes.values(), *waiting]

    def _unsent(self) -> Fate:
        return Fate.REJECTED if self.throttle_time_ms else Fate.NOT_SENT

    def _violated(self) -> KquotaError | None:
        if not self.throttle_time_ms:
            return None
        return QuotaViolatedException(
            self.throttle_time_ms, "the controller mutation quota of this principal has been exceeded"
        )


def work(mutations: Iterable[Mutation], already: Collection[int] = ()) -> MutationWork:
    """Raises Refused for a topic that stands there twice: which of the two was meant?

    `already` are errors that are none to the caller: another client may have made, or deleted, a topic meanwhile.
    """
    left = deque(mutations)
    if twice := sorted(name for name, count in Counter(one.topic for one in left).items() if count > 1):
        raise Refused(f"topic {twice[0]} is listed twice; nothing was sent")
    return MutationWork(left=left, already=already)


def carry_out(
    topics: Topics,
    clock: MonotonicClock,
    doing: MutationWork,
    pace: MutationPace,
    *,
    seconds: float,
    retry: bool = True,
    told: Callable[[MutationWork, float], None] = lambda _doing, _wait: None,
) -> list[TopicOutcome]:
    """Send until all is let through, or failed, or `seconds` (default.api.timeout.ms) are over.

    Without `retry` the first rejection ends it (`retry_quota_violated=False`). `told` hears of each wait, in seconds.
    Whoever is still rejected at the end has a QuotaViolatedException. Source: KIP-599, which retries so in Admin.
    """
    give_up = clock.monotonic() + seconds
    while doing.left:
        costs = [one.mutations for one in islice(doing.left, MOST_ITEMS)]
        # Who wants to be told of a violation is not kept from it.
        wait = pace.wait(clock.monotonic(), costs) if retry else 0.0
        # A broker that took us for an old client lets all through, and mutes us for as long as we should have waited.
        wait = max(wait, doing.muted - clock.monotonic())
        if clock.monotonic() + wait >= give_up:
            # Also what was held back on our own reckoning stands behind the quota.
            if wait > 0:
                now = clock.monotonic()
                doing.throttle_time_ms = max(1, round(1_000 * max(pace.debt(now), doing.muted - now)))
            break
        if wait > 0:
            told(doing, wait)
            clock.sleep(wait)
        size = pace.batch(clock.monotonic(), costs) if retry else fitting(costs)
        answered = _sent(topics, clock, doing, pace, tuple(islice(doing.left, size)), give_up)
        if not answered or (doing.throttle_time_ms and not retry):
            break
    return doing.standing()


def _sent(
    topics: Topics,
    clock: MonotonicClock,
    doing: MutationWork,
    pace: MutationPace,
    batch: Sequence[Mutation],
    give_up: float,
) -> bool:
    """Whether an answer came; without one the batch is unknown and nothing more is sent."""
    doing.in_flight, doing.sent = tuple(batch), doing.sent + len(batch)
    try:
        answer = topics.send(batch, min(REQUEST_SECONDS, max(1.0, give_up - clock.monotonic())))
    except Unreachable as error:
        for one in batch:
            doing.left.popleft()
            doing.outcomes[one.topic] = TopicOutcome(mutation=one, fate=Fate.UNKNOWN, error=error)
        doing.in_flight, doing.throttle_time_ms = (), 0
        return False
    _take(doing, batch, answer)
    doing.muted = clock.monotonic() + answer.throttle_time_ms / 1_000
    rejected = [one for one in batch if (f := answer.outcomes[one.topic]) is not None and f.rejected]
    admitted = sum(one.mutations for one in batch if answer.outcomes[one.topic] is None)
    doing.throttle_time_ms = max(1, answer.throttle_time_ms) if rejected else 0
    pace.answered(clock.monotonic(), admitted, doing.throttle_time_ms / 1_000 if rejected else None)
    return True


def _take(doing: MutationWork, batch: Sequence[Mutation], answer: BatchResult) -> None:
    """What was rejected goes back to the head of what is left, in its order."""
    again = []
    for one in batch:
        doing.left.popleft()
        failure = answer.outcomes[one.topic]
        if failure is not None and failure.rejected:
            again.append(one)
        else:
            doing.outcomes[one.topic] = _outcome(one, failure, doing.already)
    doing.left.extendleft(reversed(again))
    doing.in_flight = ()


def _outcome(mutation: Mutation, failure: Failure | None, already: Collection[int]) -> TopicOutcome:
    if failure is None:
        return TopicOutcome(mutation=mutation, fate=Fate.DONE)
    if failure.code in already:
        return TopicOutcome(mutation=mutation, fate=Fate.ALREADY)
    return TopicOutcome(mutation=mutation, fate=Fate.FAILED, error=Refused(failure.reason))


def by_fate(outcomes: Iterable[TopicOutcome]) -> Mapping[Fate, list[TopicOutcome]]:
    """The outcomes of each fate, in their order."""
    found: dict[Fate, list[TopicOutcome]] = {fate: [] for fate in Fate}
    for outcome in outcomes:
        found[outcome.fate].append(outcome)
    return found
