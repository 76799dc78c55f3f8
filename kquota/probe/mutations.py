"""A client that creates and deletes topics, measured from one empty bucket to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kquota.errors import Refused
from kquota.mutation.actions import REQUEST_SECONDS
from kquota.mutation.pace import HAIR
from kquota.mutation.port import MonotonicClock, Topics
from kquota.mutation.request import Creation, Deletion, Mutation
from kquota.probe import scratch
from kquota.probe.load import Load
from kquota.probe.meter import Reading, throttles


@dataclass(slots=True)
class Tally:
    """Accepted mutations. A rejection shows when the bucket will have 0 tokens.

    Between two such moments exactly the quota's rate was added, whatever the bucket held at first.
    """

    admitted: int = 0
    zeros: list[tuple[float, int]] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)

    def rejected(self, now: float, throttle_ms: int) -> None:
        """Record a rejection; `throttle_ms` is the wait until there are tokens."""
        self.waits.append(throttle_ms)
        self.zeros.append((now + throttle_ms / 1_000, self.admitted))

    def reading(self, began: float, now: float) -> Reading:
        """The reading between the first and the last empty bucket, or over the whole time if there are not two."""
        start, end = (began, 0), (now, self.admitted)
        if len(self.zeros) > 1 and self.zeros[-1][0] > self.zeros[0][0]:
            start, end = self.zeros[0], self.zeros[-1]
        return Reading(
            broker=None,
            amount=float(end[1] - start[1]),
            seconds=max(end[0] - start[0], HAIR),
            throttles=throttles(self.waits),
        )


def mutate(
    topics: Topics, clock: MonotonicClock, load: Load, tell: Callable[[str], None], told: Callable[[float], None]
) -> Reading:
    """Create and delete topics one by one, until `load.seconds` after the bucket was first empty, or in total.

    `tell` receives each topic before it is requested, so that it can always be removed. Raises Refused for any error
    except those of the quota.
    """
    began = clock.monotonic()
    tally, give_up = Tally(), began + (load.lasting if load.limit is not None else load.seconds)
    for one in _one_by_one(load, tell):
        while (now := clock.monotonic()) < give_up:
            told(now - began)
            answer = topics.send([one], REQUEST_SECONDS)
            failure = answer.outcomes[one.topic]
            if failure is not None and not failure.rejected:
                raise Refused(f"topic {one.topic}: {failure.reason}")
            if failure is None:
                tally.admitted += one.mutations
                break
            if not tally.zeros:
                give_up = clock.monotonic() + load.seconds
            tally.rejected(clock.monotonic(), answer.throttle_time_ms)
            clock.sleep(answer.throttle_time_ms / 1_000 + HAIR)
        if now >= give_up:
            break
        early = began + tally.admitted / load.rate - clock.monotonic()
        if early > 0 and not tally.zeros:
            clock.sleep(early)
    return tally.reading(began, clock.monotonic())


def _one_by_one(load: Load, tell: Callable[[str], None]) -> Iterator[Mutation]:
    number = 0
    while True:
        topic = f"{load.topic}-{number}"
        tell(topic)
        yield Creation(topic=topic, partitions=load.partitions, replication_factor=1, configs=scratch.configs(topic))
        yield Deletion(topic=topic, partitions=load.partitions)
        number += 1
