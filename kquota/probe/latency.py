"""The latency of kquota's own small writes to each broker, on a scratch topic that exists only during the measurement.

The name of the topic contains its end time, so that `remove_older` can remove a leftover topic. A measurement may take
days, so the topic is replaced every hour, which keeps this end time near.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from typing import Final

from kquota.errors import KquotaError, Unknown
from kquota.list_text import named_brokers
from kquota.mutation.topic import Assignment
from kquota.probe import actions, scratch
from kquota.probe.port import ProbeLogins, SmallWrites
from kquota.probe.run import remove_older, removed
from kquota.reassign.port import Clock
from kquota.terms import BrokerId

LASTING: Final = timedelta(hours=1)
"""The time after which the topic is replaced."""
REPLICAS: Final = 3
PERIOD_SECONDS: Final = 0.1
"""The time between two writes to a broker, in seconds."""
_RETRY: Final = timedelta(minutes=1)
_FIRST_SECONDS: Final = 30.0


@contextmanager
def measuring(
    who: ProbeLogins, clock: Clock, removing: Callable[[], None], left: Callable[[KquotaError], None]
) -> Iterator[LatencyProbe]:
    """Create a scratch topic, open a client that writes to it, and remove the topic at the end, even after an error.

    Leftover topics of older probes are removed first. `removing` is called before the removal at the end if an error or
    an interrupt has ended the measurement. `left` is called with the error if this removal fails.

    Raises Refused if the cluster does not allow the topic or rejects the login, and Invalid for a login that the client
    does not support. Raises Unknown if the creation of the topic is not confirmed, or if a broker does not show the
    topic or acknowledges no write in time. Raises Incomplete if a leftover topic could not be removed, and Unreachable
    if the cluster does not answer.
    """
    with who.stage() as stage:
        remove_older(stage)
    made: list[str] = []
    with removed(who, made, removing=removing, left=left), LatencyProbe(who, clock, made) as probe:
        yield probe


def spread(brokers: Sequence[BrokerId]) -> Assignment:
    """Return the replicas of a topic in which each broker leads one partition, with the next brokers as followers.

    Each partition has `REPLICAS` replicas, or one on each broker if there are fewer brokers.

    >>> spread([BrokerId(1), BrokerId(2), BrokerId(5), BrokerId(7)])[2]
    (5, 7, 1)
    """
    twice = (*brokers, *brokers)
    return {number: tuple(twice[number : number + min(REPLICAS, len(brokers))]) for number in range(len(brokers))}


class LatencyProbe:
    """Writes one record to each broker every `PERIOD_SECONDS` while the caller waits.

    Use it as a context manager, which creates a topic at the start but does not remove it at the end. `made` receives
    the name of each topic before it is created, so that `removed` can remove the topic.
    """

    def __init__(self, who: ProbeLogins, clock: Clock, made: list[str]) -> None:
        self._who = who
        self._clock = clock
        self._made = made
        self._client = ExitStack()
        self._leaders: Sequence[BrokerId] = ()
        self._writes: SmallWrites | None = None
        self._expires = self._again = clock.now()

    def __enter__(self) -> LatencyProbe:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def wait(self, seconds: float) -> None:
        """Write for this many seconds. Raises Refused if brokers reject the login."""
        assert self._writes is not None
        ends = self._clock.monotonic() + seconds
        while (left := ends - self._clock.monotonic()) > 0:
            self._writes.write(min(left, PERIOD_SECONDS))

    def latencies(self) -> Mapping[BrokerId, Sequence[float]]:
        """Return the latencies since the last call, in seconds, by the preferred leader of each partition.

        A failed or unanswered write counts as in `SmallWrites`. The method also replaces a topic that has expired or
        was deleted. If this fails, it tries again in a call at least a minute later.
        """
        assert self._writes is not None
        found = self._writes.latencies()
        by_broker = {broker: found.get(number, ()) for number, broker in enumerate(self._leaders)}
        now = self._clock.now()
        if (now >= self._expires or self._writes.lost) and now >= self._again:
            before = len(self._made)
            try:
                self._open()
            except KquotaError:
                # Otherwise, every attempt would leave a topic until the end.
                self._remove(self._made[before:])
            self._again = self._clock.now() + _RETRY
        return by_broker

    def _open(self) -> None:
        now, old = self._clock.now(), list(self._made)
        topic = scratch.name(now, LASTING.total_seconds(), secrets.token_hex(4))
        self._made.append(topic)
        with self._who.stage() as stage:
            brokers = sorted(stage.brokers)
            actions.create(stage.topics, self._clock, stage.sight, topic, spread(brokers))
        client = ExitStack()
        writes = client.enter_context(self._who.small_writes(topic, len(brokers)))
        try:
            self._until_answered(topic, writes, brokers)
        except BaseException:
            client.close()
            raise
        self._client.close()
        self._client, self._writes, self._leaders, self._expires = client, writes, brokers, now + LASTING
        # A topic that cannot be removed now is removed with the next one, or at the end.
        self._remove(old)

    def _remove(self, topics: Sequence[str]) -> None:
        if topics:
            with suppress(KquotaError), self._who.stage() as stage:
                done = actions.remove(stage.topics, stage.configs, self._clock, topics)
                self._made[:] = [topic for topic in self._made if topic not in done]

    def _until_answered(self, topic: str, writes: SmallWrites, brokers: Sequence[BrokerId]) -> None:
        """Write until every broker has acknowledged a write, because the first writes also wait for connections."""
        began = self._clock.monotonic()
        silent = set(range(len(brokers)))
        while silent:
            if self._clock.monotonic() - began > _FIRST_SECONDS:
                there = named_brokers([brokers[number] for number in silent])
                raise Unknown(
                    f"topic {topic} ({there}): no write was acknowledged within {_FIRST_SECONDS:g} s. "
                    "Check that all brokers are running"
                )
            writes.write(PERIOD_SECONDS)
            silent -= {
                number for number, found in writes.latencies().items() if min(found, default=math.inf) < math.inf
            }
