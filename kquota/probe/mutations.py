"""Clients that create and delete topics: one that tests its mutation quota, and one that runs a ladder of rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from kquota.errors import Parameter, Refused, Unknown
from kquota.measure import nearest_rank
from kquota.mutation.actions import MUTATION_TIMEOUT
from kquota.mutation.pace import HAIR, MOST_ITEMS
from kquota.mutation.port import MonotonicClock, Topics
from kquota.mutation.topic import Creation, Deletion, Growth, Mutation
from kquota.probe import scratch
from kquota.probe.actions import until_seen
from kquota.probe.ladder import LAG, LadderRung, Operation, Step
from kquota.probe.load import Load
from kquota.probe.port import Sight
from kquota.probe.verdict import Reading, throttles


@dataclass(slots=True)
class Tally:
    """A count of accepted mutations. A rejection shows when the bucket will have 0 tokens.

    Between two moments at 0 tokens, the bucket receives tokens at exactly the rate of the quota, so its initial level
    does not matter. Times are in seconds of a monotonic clock.
    """

    admitted: int = 0
    """The number of accepted mutations."""
    zeros: list[tuple[float, int]] = field(default_factory=list)
    """For each rejection, the time at which the bucket will have 0 tokens, and the number of accepted mutations."""
    waits: list[int] = field(default_factory=list)
    """The throttle time of each rejection, in ms."""

    def rejected(self, now: float, throttle_ms: int) -> None:
        """Record a rejection. `throttle_ms` is the wait until the bucket has 0 tokens."""
        self.waits.append(throttle_ms)
        self.zeros.append((now + throttle_ms / 1_000, self.admitted))

    def reading(self, began: float, now: float) -> Reading:
        """Return the reading between the first and the last moment at 0 tokens. Without two such moments, the
        reading covers the whole time.
        """
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
    topics: Topics, clock: MonotonicClock, load: Load, note: Callable[[str], None], on_progress: Callable[[float], None]
) -> Reading:
    """Create and delete topics one by one, and return the reading.

    The load ends `load.seconds` after the first rejection. Without a rejection, it ends after `load.lasting` seconds,
    or after `load.seconds` if no quota applies. It never takes longer than `load.longest`, apart from the last request.

    `note` receives the name of each topic before it is created, so that the caller can always remove it. `on_progress`
    receives the elapsed seconds. Raises Refused if a topic fails for another reason than the quota, and Unreachable if
    no answer came.
    """
    began = clock.monotonic()
    tally, give_up = Tally(), began + load.longest - load.seconds
    for mutation in _one_by_one(load, note):
        while (now := clock.monotonic()) < give_up:
            on_progress(now - began)
            answer = topics.send([mutation], MUTATION_TIMEOUT)
            failure = answer.outcomes[mutation.topic]
            if failure is not None and not failure.rejected:
                raise Refused(f"topic {mutation.topic}: {failure.reason}")
            if failure is None:
                tally.admitted += mutation.mutations
                break
            if not tally.zeros:
                give_up = clock.monotonic() + load.seconds
            tally.rejected(clock.monotonic(), answer.throttle_time_ms)
            # With a very low quota, the throttle time can end long after the probe.
            clock.sleep(max(0.0, min(answer.throttle_time_ms / 1_000 + HAIR, give_up - clock.monotonic())))
        if now >= give_up:
            break
        early = min(began + tally.admitted / load.rate, give_up) - clock.monotonic()
        if early > 0 and not tally.zeros:
            clock.sleep(early)
    return tally.reading(began, clock.monotonic())


def _one_by_one(load: Load, note: Callable[[str], None]) -> Iterator[Mutation]:
    number = 0
    while True:
        topic = f"{load.topic}-{number}"
        note(topic)
        yield Creation(topic=topic, partitions=load.partitions, replication_factor=1, configs=scratch.configs(topic))
        yield Deletion(topic=topic, partitions=load.partitions)
        number += 1


_TICK = 0.1
"""The seconds between two requests. Each request contains the topics that are due."""
_PATIENCE = 5 * LAG
"""The maximum lag that is measured, in seconds. A step with this lag does not hold, because it exceeds `LAG`."""


def climb(
    topics: Topics,
    sight: Sight,
    clock: MonotonicClock,
    rungs: Sequence[LadderRung],
    scratch_names: Iterator[str],
    replication_factor: int,
) -> Iterator[Step]:
    """Run the rungs in order, and yield each step when it is completed. No rung is tried after a rung whose rate the
    controller does not sustain (`Step.why_not`).

    If brokers do not show the result of a step within `_PATIENCE` seconds, the remaining steps are left out.
    `scratch_names` provides the name of each topic to create.

    Raises Refused if an operation on a topic fails, also if a quota rejects this client, because the probe would then
    measure the quota instead. Raises Unreachable if no answer came.
    """
    for rung in rungs:
        names = list(islice(scratch_names, rung.topics))
        good = True
        for operation in Operation:
            todo = [_mutation(operation, rung, topic, replication_factor) for topic in names]
            step = _step(topics, sight, clock, rung, operation, todo)
            good = good and step.why_not is None
            yield step
            if step.lag >= _PATIENCE:
                # A topic that is not visible yet can be neither grown nor deleted.
                return
        if not good:
            return


def _mutation(operation: Operation, rung: LadderRung, topic: str, replication_factor: int) -> Mutation:
    match operation:
        case Operation.CREATE:
            return Creation(
                topic=topic,
                partitions=rung.size,
                replication_factor=replication_factor,
                configs=scratch.configs(topic),
            )
        case Operation.GROW:
            return Growth(topic=topic, partitions=2 * rung.size, now=rung.size)
        case Operation.DELETE:
            return Deletion(topic=topic, partitions=2 * rung.size)


def _step(
    topics: Topics,
    sight: Sight,
    clock: MonotonicClock,
    rung: LadderRung,
    operation: Operation,
    todo: Sequence[Mutation],
) -> Step:
    # Every topic has the same number of mutations. A deletion counts one mutation for each partition.
    each = todo[0].mutations
    began, sent, latencies = clock.monotonic(), 0, []
    while sent < len(todo):
        due = int((clock.monotonic() - began) * rung.rate / each) + 1
        batch = todo[sent : min(due, sent + MOST_ITEMS, len(todo))]
        asked = clock.monotonic()
        if batch:
            _must_be_done(topics, batch)
            latencies.append(clock.monotonic() - asked)
            sent += len(batch)
        if sent < len(todo):
            clock.sleep(max(0.0, asked + _TICK - clock.monotonic()))
    # Each mutation is sent at the start of its interval, so the measured time includes the interval of the last one.
    took = max(clock.monotonic() - began, len(todo) * each / rung.rate)
    partitions = {Operation.CREATE: rung.size, Operation.GROW: 2 * rung.size, Operation.DELETE: 0}[operation]
    wanted = {mutation.topic: partitions for mutation in todo}
    return Step(
        operation=operation,
        size=rung.size,
        rate=float(rung.rate),
        reached=len(todo) * each / took,
        latency=nearest_rank(latencies, 0.95),
        lag=_lag(clock, sight, wanted),
    )


def _lag(clock: MonotonicClock, sight: Sight, wanted: Mapping[str, int]) -> float:
    try:
        return until_seen(clock, sight, wanted, _PATIENCE)
    except Unknown:
        return _PATIENCE


def _must_be_done(topics: Topics, batch: Sequence[Mutation]) -> None:
    answer = topics.send(batch, MUTATION_TIMEOUT)
    for mutation in batch:
        failure = answer.outcomes[mutation.topic]
        if failure is not None and failure.rejected:
            raise Refused(
                "a controller mutation quota rejects this client, so a probe would only measure this quota. Remove the "
                "quota before you run the probe, or give ",
                Parameter("client_config"),
                " with a login without this quota",
            )
        if failure is not None:
            raise Refused(f"topic {mutation.topic}: {failure.reason}")
