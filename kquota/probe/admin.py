"""A probe as a program makes it: `kquota.connect` gives the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kquota.probe import actions, verdict
from kquota.probe.load import Kind, Load
from kquota.probe.meter import Meter, Reading
from kquota.probe.mutations import mutate
from kquota.probe.port import Connected
from kquota.probe.preparation import prepared
from kquota.probe.verdict import GOOD, Verdict
from kquota.terms import BrokerId

Told = Callable[[float], None]
_ON_ITS_WAY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the client got, of each broker or of the controller, in the unit of its quota; `limit` None: it has none."""

    kind: Kind
    client_id: str
    limit: float | None
    expected: float
    readings: tuple[Reading, ...]
    verdict: Verdict

    @property
    def as_explained(self) -> bool:
        """Whether the client got what its quota lets through, within a tenth."""
        return self.verdict in GOOD


def _unheard(_seconds: float) -> None:
    """Nobody is told of the time."""


def probe(
    cluster: Connected,
    kind: Kind,
    *,
    rate: float | None = None,
    client_id: str | None = None,
    seconds: float | None = None,
    brokers: Sequence[BrokerId] | None = None,
    told: Told = _unheard,
) -> Result:
    """Load a topic of its own as a real client, and say what it got: after two windows, for `seconds` or two more.

    `rate` is what to produce, in bytes per second over all `brokers`; the other kinds push against their quota by
    themselves. `client_id` is whom to be, else the login's own. The topic is removed, whatever comes. Raises Refused
    for what a probe does not do (`quota probe` has the same bounds), Incomplete when its topic could not be removed,
    and Unreachable.

        with kquota.connect("localhost:9092") as cluster:
            result = probe(cluster, Kind.PRODUCE, rate=20e6, client_id="billing")
        for one in result.readings:
            print(f"broker {one.broker}: {one.rate:,.0f} of {result.expected:,.0f} B/s, {result.verdict.value}")
    """
    name = client_id or cluster.client_id
    explained = cluster.explained(name)
    load = prepared(kind, explained, cluster.brokers, rate=rate, seconds=seconds, brokers=brokers)
    found = _readings(cluster, name, load, told)
    said = [
        verdict.held(one, load.limit)
        if kind is Kind.REQUESTS
        else verdict.verdict(one, asked=load.rate, limit=load.limit)
        for one in found
    ]
    return Result(
        kind=kind,
        client_id=name,
        limit=load.limit,
        expected=load.expected,
        readings=found,
        verdict=verdict.worst(said),
    )


def _readings(cluster: Connected, client_id: str, load: Load, told: Told) -> tuple[Reading, ...]:
    made: list[str] = []
    if load.kind is Kind.CREATE_TOPICS:
        with _removed(cluster, made), cluster.topics_as(client_id) as topics:
            return (mutate(topics, time, load, made.append, told),)
    # A login that this client cannot honour is said before anything is made.
    filler, client = cluster.traffic(cluster.client_id), cluster.traffic(client_id)
    carry = {Kind.PRODUCE: client.produce, Kind.CONSUME: client.consume, Kind.REQUESTS: client.request}[load.kind]
    with _removed(cluster, made):
        made.append(load.topic)
        actions.create(cluster.topics, time, cluster.sight, load.topic, load.leaders)
        if load.kind is Kind.CONSUME:
            filler.fill(load)
        now = time.monotonic()
        meter = Meter(starts=now + load.warm, ends=now + load.lasting)
        carry(load, meter, told)
        return meter.readings(load.leaders.values())


@contextmanager
def _removed(cluster: Connected, made: Sequence[str]) -> Iterator[None]:
    """Whatever comes, all that was made is removed: on a new connection, the old one may be in a request."""
    ended_well = False
    try:
        yield
        ended_well = True
    finally:
        if made and not ended_well:
            # What was on its way when we were stopped is then there to be seen.
            time.sleep(_ON_ITS_WAY)
        with cluster.topics_as(cluster.client_id) as topics:
            actions.remove(topics, cluster.configs, time, made)
