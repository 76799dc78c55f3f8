"""The order of reads and writes: what stands, what flows, and taking leftovers away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kquota.reassign.port import Clock
from kquota.reassign.run import Run
from kquota.reassign.throttle_writes import World, written
from kquota.settings.actions import describe_all
from kquota.settings.change import Change, lists_first
from kquota.settings.rates import StoredRate, stored_rates
from kquota.settings.resource import BROKERS, TOPICS, Setting
from kquota.sizes.port import LogDirs
from kquota.terms import BrokerId, Default
from kquota.throttle.fixes import Sightings, Values, changes, removable, seen
from kquota.throttle.port import Ports
from kquota.throttle.standing import SIDES, Standing, Where
from kquota.throttle.throughput import FlowReading, MeasuredFlow, measured, reading


def read(ports: Ports) -> Standing:
    """What stands now. A dead broker's rates are missing: only itself tells them, or ZooKeeper.

    Values are read before moves, and runs twice: what is being set just now is then seen to be in use. Raises
    Unreachable, and Refused for a record that cannot be understood.
    """
    before = ports.runs.unfinished()
    topics = [str(topic.name) for topic in ports.configs.configured(TOPICS)]
    told = ports.cluster.values([Setting.of_topic(topic, key) for topic in topics for key in SIDES])
    described, _ = describe_all(ports.configs, BROKERS)
    snapshot = ports.cluster.snapshot(None)
    release = ports.configs.release()
    limits: dict[Where, Mapping[str, StoredRate]] = {}
    misplaced: dict[Where, tuple[str, ...]] = {}
    for resource, entries in described.items():
        where: Where = resource.name if isinstance(resource.name, Default) else BrokerId(int(resource.name))
        held = stored_rates(entries, release)
        if held or not isinstance(where, Default):
            limits[where] = held
        if lists := tuple(entry.key for entry in entries if entry.key in SIDES and entry.dynamic):
            misplaced[where] = lists
    if ports.log_dirs is None:  # ZooKeeper names only the brokers that something is set on
        limits |= {broker: {} for broker in snapshot.alive if broker not in limits}
    return Standing(
        limits=limits,
        lists={setting: value for setting, value in told.items() if value is not None},
        snapshot=snapshot,
        misplaced=misplaced,
        runs=_both(before, ports.runs.unfinished()),
        release=release,
    )


def sample(ports: Ports, standing: Standing, seconds: float, clock: Clock) -> MeasuredFlow | None:
    """What flows through what is listed, from two readings so far apart; None where nobody tells.

    Raises Unreachable when a live broker does not answer.
    """
    topics = sorted({setting.name for setting in standing.lists})
    if ports.log_dirs is None:
        return None
    first = _reading(ports.log_dirs, topics, clock)
    clock.sleep(seconds)
    return measured(standing, first, _reading(ports.log_dirs, topics, clock))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """What may be taken away, since when each of it is known to be there, and the changes for what is old enough."""

    values: Values
    sightings: Sightings
    changes: tuple[Change, ...]
    young: bool


def leftovers(ports: Ports, standing: Standing, clock: Clock, older_than: float) -> Leftovers:
    """What of `standing` may go if it has been there for so many seconds; remembered for the next look, too.

    Raises Refused when that cannot be kept.
    """
    every = removable(standing)
    sightings = seen(ports.memory.recall(), every, clock.now())
    ports.memory.keep(sightings)
    old = every
    if older_than > 0:
        old = removable(standing, lambda setting, value: sightings.old(setting, value, older_than))
    return Leftovers(values=every, sightings=sightings, changes=changes(standing, old), young=old != every)


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What was taken away and seen to be gone, and why the rest was not, or is not known to be."""

    done: tuple[Change, ...]
    undone: Mapping[Setting, str] = field(default_factory=dict)


def remove(ports: Ports, clock: Clock, wanted: Sequence[Change]) -> Removal:
    """Write each change where its `before` still stands, lists before rates, and see it; nothing is tried twice."""
    done: list[Change] = []
    undone: dict[Setting, str] = {}
    for batch in lists_first(wanted):
        errors = written(World(cluster=ports.cluster, runs=ports.runs, clock=clock), batch)
        undone |= {setting: str(error) for setting, error in errors.items()}
        done += [change for change in batch if change.setting not in errors]
    return Removal(done=tuple(done), undone=undone)


def _reading(log_dirs: LogDirs, topics: Sequence[str], clock: Clock) -> FlowReading:
    """The ends of the logs are told last, so they are as old as the reading says."""
    if not topics:
        return FlowReading(at=clock.monotonic(), ends={}, starts={}, sizes={})
    detailed = log_dirs.detailed(log_dirs.describe(log_dirs.brokers(), topics))
    return reading(clock.monotonic(), detailed)


def _both(before: Iterable[Run], after: Iterable[Run]) -> tuple[Run, ...]:
    """Every run that was open at either look, as it was at the second, oldest first."""
    runs = {run.id: run for run in (*before, *after)}
    return tuple(sorted(runs.values(), key=lambda run: (run.begun, run.id)))
