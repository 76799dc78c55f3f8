"""The order of reads and writes: read the throttles, measure throughput, and remove leftovers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from kquota.errors import Refused, Unreachable
from kquota.reassign.port import Clock, MoveCluster, Snapshot
from kquota.reassign.run import Run
from kquota.reassign.throttle_writes import Restoration, write
from kquota.settings.actions import describe_all
from kquota.settings.change import Change
from kquota.settings.rates import StoredRate, stored_rates
from kquota.settings.resource import BROKERS, TOPICS, Setting
from kquota.sizes.port import LogDirs
from kquota.sizes.replica import topics
from kquota.terms import REPLICATION_RATES, BrokerId, Default
from kquota.throttle.cluster_throttles import SIDES, BrokerOrDefault, ClusterThrottles
from kquota.throttle.doctor import Sightings, changes, removable, seen
from kquota.throttle.port import Ports
from kquota.throttle.throughput import FlowReading, MeasuredFlow, measured, reading


def read(ports: Ports) -> ClusterThrottles:
    """Return all throttles. Through the Admin API, the rates of a broker that is dead or does not answer are missing,
    because only the broker itself reports its rates. `ClusterThrottles.unread` has these brokers. A dead broker without
    replicas is among them only if the cluster lists this broker.

    Values are read before moves, and runs are read twice, because a throttle that is being set now must count as used.
    Raises Unreachable if the cluster does not answer, and Refused if a journal cannot be read or the cluster refuses a
    request.
    """
    before = ports.runs.unfinished()
    asked = [Setting.of_topic(str(topic.name), key) for topic in ports.configs.configured(TOPICS) for key in SIDES]
    stored = ports.cluster.values(asked)
    configured = ports.configs.configured(BROKERS) if ports.log_dirs is None else None
    described = describe_all(ports.configs, BROKERS)[0] if configured is None else ports.configs.describe(configured)
    snapshot = ports.cluster.snapshot(None)
    runs = _both(before, ports.runs.unfinished())
    hidden = _hidden(ports.cluster, _known(snapshot, runs) - {name.topic for name in snapshot.partitions})
    release = ports.configs.release()
    limits: dict[BrokerOrDefault, Mapping[str, StoredRate]] = {}
    misplaced: dict[BrokerOrDefault, tuple[str, ...]] = {}
    for resource, entries in described.items():
        where: BrokerOrDefault = resource.name if isinstance(resource.name, Default) else resource.broker
        held = stored_rates(entries, release)
        if held or not isinstance(where, Default):
            limits[where] = held
        if lists := tuple(entry.key for entry in entries if entry.key in SIDES and entry.dynamic):
            misplaced[where] = lists
    throttles = ClusterThrottles(
        limits=limits,
        lists={setting: value for setting, value in stored.items() if value is not None},
        unread_topics=tuple(dict.fromkeys(setting.name for setting in asked if setting not in stored)),
        hidden_topics=hidden,
        snapshot=snapshot,
        misplaced=misplaced,
        runs=runs,
        release=release,
        fenced=ports.fenced(),
    )
    if configured is None:
        return throttles
    # ZooKeeper lists only brokers with a config. The rates of all other brokers are unset, even if a broker is dead.
    named = {str(resource.name) for resource in configured}
    unset: dict[BrokerOrDefault, Mapping[str, StoredRate]] = {b: {} for b in throttles.unread if str(b) not in named}
    return replace(throttles, limits={**limits, **unset})


def read_all(ports: Ports) -> ClusterThrottles:
    """Return all throttles, with all topics that Kafka hides from this user. Raises the errors of `read` and
    `hidden_topics`.
    """
    throttles = read(ports)
    hidden = hidden_topics(ports.cluster, ports.log_dirs, throttles)
    return replace(throttles, hidden_topics=tuple(sorted({*throttles.hidden_topics, *hidden})))


def read_effective(ports: Ports) -> ClusterThrottles:
    """Return all throttles. If replication rates are in force, but no list is set, the result has all topics that Kafka
    hides from this user, because the rates throttle nothing only if no hidden topic has a list.

    A broker that does not report its logs is left out. Raises the errors of `read`, and Refused if a broker answers
    with an error.
    """
    throttles = read(ports)
    rates = [of_broker[key] for of_broker in throttles.limits.values() for key in REPLICATION_RATES if key in of_broker]
    if throttles.lists or not any(rate.in_force for rate in rates):
        return throttles
    hidden = hidden_from_user(ports.cluster, ports.log_dirs, throttles.snapshot, throttles.unread)
    return replace(throttles, hidden_topics=tuple(sorted({*throttles.hidden_topics, *hidden})))


def hidden_topics(cluster: MoveCluster, log_dirs: LogDirs | None, throttles: ClusterThrottles) -> tuple[str, ...]:
    """Return the topics that Kafka hides from this user although brokers report their logs. Their lists are unknown.

    Kafka shows a topic only to users with Describe on it. ZooKeeper (`log_dirs` is None) hides no topic. Brokers that
    did not report their rates are not asked again. Raises Unreachable if another broker does not answer, and Refused if
    it answers with an error.
    """
    if log_dirs is None:
        return ()
    answering = log_dirs.brokers().keys() - set(throttles.unread)
    return _hidden(cluster, topics(log_dirs.describe(answering, None)) - throttles.topics.keys())


def hidden_from_user(
    cluster: MoveCluster, log_dirs: LogDirs | None, shown: Snapshot, silent: Collection[BrokerId] = ()
) -> tuple[str, ...]:
    """Return the topics that Kafka hides from this user, like `hidden_topics`. A broker that does not answer is left
    out, because another broker has the in-sync replicas of its partitions. Brokers in `silent` are not asked.
    """
    if log_dirs is None:
        return ()
    found: set[str] = set()
    for broker in sorted(log_dirs.brokers().keys() - set(silent)):
        try:
            found |= topics(log_dirs.describe([broker], None))
        except Unreachable:
            continue
    return _hidden(cluster, found - {name.topic for name in shown.partitions})


def _hidden(cluster: MoveCluster, missing: Set[str]) -> tuple[str, ...]:
    """Return those of the `missing` topics that Kafka hides from this user. If it hides one of them, deleted topics may
    also be in the result.
    """
    try:
        if missing:
            cluster.snapshot(missing)
    except Refused:
        # Some of the missing topics may have been created in the meantime. Kafka shows these now.
        shown = {name.topic for name in cluster.snapshot(None).partitions}
        return tuple(sorted(missing - shown))
    return ()  # Kafka hides no topic: the missing ones were deleted, or created in the meantime


def _known(snapshot: Snapshot, runs: Iterable[Run]) -> set[str]:
    """Return the topics of running moves and open runs."""
    of_runs = {topic for run in runs for topic in run.plan.topics}
    lists = {setting.name for run in runs for setting in run.taken if setting.is_list}
    return {name.topic for name in snapshot.running} | of_runs | lists


def sample(log_dirs: LogDirs, throttles: ClusterThrottles, seconds: float, clock: Clock) -> MeasuredFlow:
    """Return the throughput of listed replicas from two readings, with a wait of `seconds` between them.

    Raises Unreachable if a live broker does not answer, and Refused if a broker answers with an error.
    """
    topics = sorted({setting.name for setting in throttles.lists})
    first = _reading(log_dirs, topics, clock)
    clock.sleep(seconds)
    return measured(throttles, first, _reading(log_dirs, topics, clock))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """The leftovers of one check, and the changes that remove the old ones."""

    sightings: Sightings
    """The leftovers of this check, with the time when each was first seen."""
    changes: tuple[Change, ...]
    young: bool
    """True if some leftovers are not old enough to be removed."""


def leftovers(ports: Ports, throttles: ClusterThrottles, older_than: float) -> Leftovers:
    """Return the leftovers of `throttles`, and the changes that remove each leftover that was first seen at least
    `older_than` seconds ago.

    Records the sightings for the next check. Raises Refused if the sightings cannot be read or recorded.
    """
    every = removable(throttles)
    sightings = seen(ports.memory.recall(), every, ports.clock.now())
    ports.memory.keep(sightings)
    old = every
    if older_than > 0:
        old = removable(throttles, lambda setting, value: sightings.old(setting, value, older_than))
    return Leftovers(sightings=sightings, changes=changes(throttles, old), young=old != every)


def remove(ports: Ports, wanted: Sequence[Change]) -> Restoration:
    """Write these changes, and wait until reads show them. In the result, a setting is pending if its change failed, or
    if reads do not show its change in time.

    Raises Busy if another kquota has taken over the lock, Unreachable if the cluster does not answer, and Refused if
    the cluster refuses the request.
    """
    return write(ports, wanted)


def _reading(log_dirs: LogDirs, topics: Sequence[str], clock: Clock) -> FlowReading:
    """Return one reading of the logs of these topics. Its time is the moment at which all brokers have answered."""
    detailed = log_dirs.detailed(log_dirs.describe(log_dirs.brokers(), topics))
    return reading(clock.monotonic(), detailed)


def _both(before: Iterable[Run], after: Iterable[Run]) -> tuple[Run, ...]:
    """Return every run that was open at either reading, in its later version, oldest first."""
    runs = {run.id: run for run in (*before, *after)}
    return tuple(sorted(runs.values(), key=lambda run: (run.begun, run.id)))
