"""The API for programs: probe a client, and find the limit of a controller. `kquota.connect` provides the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kquota.mutation.actions import unheard
from kquota.probe import ladder, preparation, run, verdict
from kquota.probe.ladder import MOST_PARTITIONS, Limit, Step
from kquota.probe.load import MOST_BYTES, Kind
from kquota.probe.port import ProbeCluster, ProbeLogins
from kquota.probe.verdict import GOOD, Reading, Verdict
from kquota.quota.explain import Explanation
from kquota.terms import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The throughput of the client on each broker, or on the controller."""

    kind: Kind
    client_id: str
    limit: float | None
    """The quota, in the unit of its key. None if no quota applies."""
    expected: float
    """The expected bytes per second on each broker, or mutations per second on the controller. It has no meaning for
    `Kind.REQUESTS`.
    """
    readings: tuple[Reading, ...]
    verdict: Verdict
    """The worst verdict on any of the readings."""

    @property
    def as_explained(self) -> bool:
        """True if the quota, or its absence, explains the measurement on every broker: the verdict is `AS_EXPLAINED` or
        `NOT_REACHED`.
        """
        return self.verdict in GOOD


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
    on_progress: Callable[[float], None] = unheard,
) -> Result:
    """Run a real client on scratch topics, and measure its rate.

    The measurement begins after two quota windows, and takes `seconds` (default: two more windows). A byte rate is
    measured over whole windows, which can take up to one window longer. A mutation rate is instead measured for
    `seconds` after the first rejection, or over the whole time without one.

    `Kind.PRODUCE` requires `rate`, the bytes per second to write over all `brokers` (default: all live brokers). For
    other kinds of load, kquota chooses a rate above the quota, if the bounds of a probe allow it. A probe writes at
    most `most_bytes`. The client uses the login in `client_config`, a file of Java properties, or else the login of the
    connected cluster. It sends `client_id`, or else the client-id of the login. `user` is for logins whose user only
    the brokers know.

    Leftover topics of older probes are removed first. The scratch topics are removed at the end, even after an
    interrupt. `on_progress` receives the elapsed seconds.

    Raises Refused for a load beyond the bounds of a probe (the same bounds as in `kquota quota probe`) and for a dead
    broker. Also raises Refused for a quota that is not a valid rate, and if brokers reject a request. Raises Invalid
    for invalid arguments and for an unsupported login. Raises Unknown if the creation of the topic is not confirmed, or
    if a broker does not show the topic in time. Raises Incomplete if a topic could not be removed, and Unreachable if
    the cluster does not answer.

        with kquota.connect("localhost:9092") as cluster:
            result = probe(cluster, Kind.PRODUCE, rate=20e6, client_id="billing")
        for one in result.readings:
            print(f"broker {one.broker}: {one.rate:,.0f} of {result.expected:,.0f} B/s, {result.verdict.value}")
    """
    who, name, explained = _client(cluster, client_config, client_id, user)
    load = preparation.prepared(
        kind, explained, cluster.brokers, rate=rate, seconds=seconds, brokers=brokers, most_bytes=most_bytes
    )
    run.remove_older(cluster)
    made: list[str] = []
    with run.removed(who, made):
        found = run.readings(who, name, load, made, on_progress)
    return Result(
        kind=kind,
        client_id=name,
        limit=load.limit,
        expected=load.expected,
        readings=found,
        verdict=verdict.worst([verdict.of(load, one) for one in found]),
    )


def _client(
    cluster: ProbeCluster, client_config: Path | str | None, client_id: str | None, user: str | None
) -> tuple[ProbeLogins, str, Explanation]:
    who = cluster.logins(client_config)
    name = client_id or who.client_id
    return who, name, cluster.explained(preparation.user(who.user, user), name)


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
    on_step: Callable[[Step], None] = unheard,
) -> Limit:
    """Find the mutation rate that the controller sustains, and suggest a quota: KIP-599's "How to define the quota".

    For several sizes of topics, kquota creates, grows and deletes topics at rising rates until a rate does not hold.
    Each operation takes `seconds` (default 3), and a deletion twice as long. At most `most_partitions` partitions (10
    to 10,000) exist at the same time. The quota for each tenant is the quota for all clients x `overcommit` /
    `tenants`. `on_step` receives each step. The other arguments are those of `probe`, and the topics are removed in the
    same way. Raises the errors of `probe`, Invalid if `tenants` or `overcommit` is less than 1 or `overcommit` is not
    finite, and Refused if the client has a mutation quota.

        with kquota.connect("localhost:9092") as cluster:
            limit = find_limit(cluster, tenants=10, overcommit=2)
        print(f"{limit.suggested} mutations/s for all, {limit.suggested_per_tenant} for each tenant")
    """
    ladder.must_divide(tenants, overcommit)
    who, name, explained = _client(cluster, client_config, client_id, user)
    wanted = preparation.climbing(explained, cluster.brokers, seconds=seconds, most_partitions=most_partitions)
    run.remove_older(cluster)
    made: list[str] = []
    with run.removed(who, made):
        found = run.steps(who, name, wanted, made, on_step)
    return Limit(steps=found, tenants=tenants, overcommit=overcommit)
