"""A probe as a program makes it: `kquota.connect` gives the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kquota.probe import ladder, preparation, run, verdict
from kquota.probe.ladder import MOST_PARTITIONS, Limit, Step
from kquota.probe.load import MOST_BYTES, Kind
from kquota.probe.meter import Reading
from kquota.probe.port import ProbeCluster
from kquota.probe.verdict import GOOD, Verdict
from kquota.terms import BrokerId


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


def _unheard(_said: object) -> None:
    """Nobody is told."""


def probe(
    cluster: ProbeCluster,
    kind: Kind,
    *,
    rate: float | None = None,
    client_id: str | None = None,
    client_config: Path | str | None = None,
    user: str | None = None,
    seconds: float | None = None,
    brokers: Sequence[BrokerId] | None = None,
    most_bytes: int = MOST_BYTES,
    told: Callable[[float], None] = _unheard,
) -> Result:
    """Load a topic of its own as a real client, and say what it got: after two windows, for `seconds` or two more.

    A byte rate is measured over whole windows, so up to one window longer.

    `rate` is what to produce, in bytes per second over all `brokers`; the other kinds push against their quota by
    themselves. The client logs in as `client_config` says, a file of Java properties, else as the cluster was
    connected, and under its client-id or this one; `user` is for logins of which only brokers know whose they are.
    The topic is removed, whatever comes, an interrupt too. `told` hears the seconds gone by. Raises Refused for what a
    probe does not do (`quota probe` has the same bounds), Invalid, Incomplete when its topic could not be removed, and
    Unreachable.

        with kquota.connect("localhost:9092") as cluster:
            result = probe(cluster, Kind.PRODUCE, rate=20e6, client_id="billing")
        for one in result.readings:
            print(f"broker {one.broker}: {one.rate:,.0f} of {result.expected:,.0f} B/s, {result.verdict.value}")
    """
    who = cluster.logins(client_config)
    name = client_id or who.client_id
    explained = cluster.explained(preparation.user(who.user, user), name)
    load = preparation.prepared(
        kind, explained, cluster.brokers, rate=rate, seconds=seconds, brokers=brokers, most_bytes=most_bytes
    )
    run.remove_older(cluster)
    made: list[str] = []
    with run.removed(who, made):
        found = run.readings(who, name, load, made, told)
    return Result(
        kind=kind,
        client_id=name,
        limit=load.limit,
        expected=load.expected,
        readings=found,
        verdict=verdict.worst([verdict.of(load, one) for one in found]),
    )


def find_limit(
    cluster: ProbeCluster,
    *,
    tenants: int = 1,
    overcommit: float = 1.0,
    client_id: str | None = None,
    client_config: Path | str | None = None,
    user: str | None = None,
    seconds: float | None = None,
    most_partitions: int = MOST_PARTITIONS,
    told: Callable[[Step], None] = _unheard,
) -> Limit:
    """Find what the controller can take, and the mutation quota that follows: KIP-599's "How to define the quota".

    Topics are created, grown and deleted at rates that rise until one does not hold, `seconds` for each operation (3),
    never with more than `most_partitions` (10 to 10,000) at any one time. `told` hears of each step. The client must
    have no mutation quota itself; otherwise as `probe`.

        with kquota.connect("localhost:9092") as cluster:
            limit = find_limit(cluster, tenants=10, overcommit=2)
        print(f"{limit.suggested} mutations/s for all, {limit.suggested_per_tenant} for each tenant")
    """
    ladder.must_divide(tenants, overcommit)
    who = cluster.logins(client_config)
    name = client_id or who.client_id
    explained = cluster.explained(preparation.user(who.user, user), name)
    wanted = preparation.climbing(explained, cluster.brokers, seconds=seconds, most_partitions=most_partitions)
    run.remove_older(cluster)
    made: list[str] = []
    with run.removed(who, made):
        found = run.steps(who, name, wanted, made, told)
    return Limit(steps=found, tenants=tenants, overcommit=overcommit)
