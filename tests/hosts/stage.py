"""One cluster and its record in memory, three hosts that use both, and a foreign tool. Every change is checked."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.plan import Plan
from kquota.reassign.run import Run
from kquota.settings.change import Change
from kquota.settings.resource import BROKERS, TOPICS, Entry, Kind, Resource, Setting, Synonym
from kquota.settings.throttled_lists import entries
from kquota.stores.record.lease import Sighting
from kquota.stores.record.topic import TopicRecord
from kquota.stores.state.log import Entry as Appended
from kquota.terms import (
    DEFAULT,
    DYNAMIC_BROKER,
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    REPLICATION_RATES,
    BrokerId,
    TopicPartition,
)
from kquota.throttle.fixes import Sightings
from tests.hosts.schedule import Schedule
from tests.reassign.fake import MemoryCluster
from tests.stores.record.fake import MemoryTopic


def b(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


T0, T1, U0, V0 = (TopicPartition(topic, n) for topic, n in (("t", 0), ("t", 1), ("u", 0), ("v", 0)))
FOREIGN = TopicPartition("f", 0)
ORIGINAL = {T0: b(1, 2), T1: b(2, 1), U0: b(3), V0: b(4, 1), FOREIGN: b(2)}
PLANS = (
    Plan(targets={T0: b(1, 3), T1: b(3, 4)}),
    Plan(targets={U0: b(3, 1)}),
    Plan(targets={V0: b(4, 2), U0: b(3, 2)}),
    Plan(targets={T0: b(1, 2), T1: b(2, 1)}),
    Plan(targets={V0: b(4, 1)}),
    Plan(targets={U0: b(3)}),
)
LISTS = tuple(Setting.of_topic(topic, key) for topic in "tuvf" for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS))
RATES = tuple(Setting.of_broker(broker, key) for broker in b(1, 2, 3, 4) for key in REPLICATION_RATES)
PRIORS: Mapping[Setting, tuple[str | None, ...]] = {
    **dict.fromkeys(LISTS, (None, None, "", "900:9", "901:9,0:1", "902:9, 903:9")),
    **dict.fromkeys(RATES, (None, None, "77000", "1000")),
}
"""Throttles that can be set before a round. Runs of kquota also set "0:1" and "1000"."""
WRITE_ALONE = "a write of a holder that another one had followed"


class Violation(AssertionError):
    """A broken promise."""


class WatchedTopic(MemoryTopic):
    """The record's topic, in which an ended run must stay ended."""

    def write(self, entries: Sequence[Appended]) -> None:
        for key, value in entries:
            if key.startswith("run/"):
                finished = None if value is None else json.loads(value)["run"]["finished"]
                before = self.ends.get(key)
                if value is not None and before not in (None, finished):
                    raise Violation(f"{key} had ended at {before} and was written with {finished}")
                self.ends[key] = finished or before
        super().write(entries)

    @property
    def ends(self) -> dict[str, str | None]:
        found: dict[str, str | None] = self.__dict__.setdefault("_ends", {})
        return found


@dataclass
class Host:
    """A machine with a state folder. Its clocks start at different values, and its time of day may be wrong."""

    name: str
    folder: Path
    boot: float
    skew: float
    sightings: Sightings | None = None

    def recall(self) -> Sightings | None:
        return self.sightings

    def keep(self, sightings: Sightings) -> None:
        self.sightings = sightings


def _placements() -> dict[TopicPartition, set[frozenset[BrokerId]]]:
    asked = [*ORIGINAL.items(), *(wish for plan in PLANS for wish in plan.targets.items())]
    return {name: {frozenset(where) for which, where in asked if which == name} for name in ORIGINAL}


@dataclass
class Stage:
    """`values` and `listed` are set by others, and must still be set at the end."""

    schedule: Schedule
    cluster: MemoryCluster
    topic: WatchedTopic
    hosts: tuple[Host, ...]
    plans: tuple[Plan, ...]
    values: dict[Setting, str | None]
    listed: dict[Setting, set[str]]
    letters: dict[Setting, str | None]
    """The lists that only kquota has changed, exactly as they were."""
    placements: dict[TopicPartition, set[frozenset[BrokerId]]] = field(default_factory=_placements)
    """The allowed replicas of a partition at the end."""
    used: int = 0
    """The highest term of the lock whose holder has sent any request to the cluster."""
    trace: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def say(self, line: str) -> None:
        self.trace.append(f"{self.schedule.now:8.2f} {line}")

    def open_runs(self) -> tuple[Run, ...]:
        """The open runs in the record at this moment."""
        seen = Sighting(Path("/nonexistent/seen"), _NoClock())
        runs = TopicRecord(self.topic.handle(), "truth", "cluster", seen, _NoClock()).runs()
        return tuple(run for run in runs.values() if run.finished is None)

    # The requests of a lock holder to the cluster.

    def holds(self, who: str, term: int, *, writes: bool) -> None:
        if writes and term < self.used:
            raise Violation(f"{WRITE_ALONE}: {who} with term {term}, and {self.used} had begun")
        self.used = max(self.used, term)

    def changed(self, who: str, doing: str, change: Change) -> None:
        """A change has arrived. Only doctor may remove the throttles of others, and only those."""
        self.say(f"{who}: {change.setting}: {change.before!r} -> {change.after!r}")
        if doing != "doctor":
            return
        gone = [change.before] if not change.setting.is_list else list(entries(change.before))
        kept = entries(change.after) if change.setting.is_list else (change.after,)
        for value in (value for value in gone if value not in kept):
            for run in self.open_runs():
                if change.setting in run.taken and value in run.taken[change.setting].ours:
                    raise Violation(f"doctor took {value!r} of {change.setting}, which run {run.id} holds")
            self.letters.pop(change.setting, None)
            if change.setting.is_list:
                self.listed[change.setting].discard(value or "")
            else:
                self.values[change.setting] = None

    def submitting(self, who: str, doing: str, targets: Mapping[TopicPartition, Replicas | None]) -> None:
        """A submission has arrived. An open run in the record must contain it."""
        self.say(f"{who}: submits { ({str(name): target for name, target in targets.items()}) }")
        if doing == "cancel":
            return
        goals = [run.goal.targets for run in self.open_runs()]
        if not any(all(goal.get(name) == target for name, target in targets.items()) for goal in goals):
            raise Violation(f"{who} submitted {targets}, which no open run on record wants")

    def moves_end(self, rng: random.Random, longest: float = 60.0) -> None:
        """Each move in progress ends some time from now."""
        for name, now in self.cluster.partitions.items():
            if now.moving:
                self.schedule.at(self.schedule.now + rng.uniform(1, longest), partial(self._end, name))

    def finish(self) -> None:
        for name in self.cluster.partitions:
            self._end(name)

    def _end(self, name: TopicPartition) -> None:
        if self.cluster.partitions[name].moving:
            self.cluster.finish(name)
            self.say(f"{name} has arrived")

    # The foreign tool overwrites any value, and ignores the record of kquota.

    def foreign(self, rng: random.Random) -> None:
        what = rng.choice(("rate", "rate", "no rate", "list", "entry", "no list", "move", "cancel", "override"))
        self.seen[f"foreign {what}"] += 1
        moving = [name for name, now in self.cluster.partitions.items() if now.moving]
        if what in ("rate", "no rate"):
            self._foreign_rate(rng.choice(RATES), f"77{rng.randrange(1000, 10_000)}" if what == "rate" else None)
        elif what in ("list", "entry", "no list"):
            self._foreign_list(rng.choice(LISTS), what, f"{rng.randrange(910, 1000)}:9")
        elif what == "move" and self.cluster.largest_submission is None:
            target = rng.choice((b(2), b(2, 3), b(4), b(1, 4)))
            self.say(f"foreign: {FOREIGN} to {target}")
            self.placements[FOREIGN].add(frozenset(target))
            self.cluster._start(FOREIGN, target)
        elif what == "cancel" and moving:
            self.say(f"foreign: cancels {moving[0]}")
            self.cluster.cancel(rng.choice(moving))
        elif what == "override" and self.cluster.largest_submission is None and moving:
            name = rng.choice(moving)
            self.say(f"foreign: {name} elsewhere")
            self.placements[name].add(frozenset(b(4, 3)))
            self.cluster._start(name, b(4, 3))
        self.moves_end(rng, 20.0)

    def _foreign_rate(self, setting: Setting, value: str | None) -> None:
        self.say(f"foreign: {setting} = {value!r}")
        self.cluster.write(setting, value)
        self.values[setting] = value

    def _foreign_list(self, setting: Setting, what: str, entry: str) -> None:
        now = self.cluster.configs.get(setting)
        if what == "entry" and "*" in entries(now):
            return
        self.letters.pop(setting, None)
        if what == "entry":
            self.listed[setting].add(entry)
            self.cluster.write(setting, ",".join((*entries(now), entry)))
        else:
            self.listed[setting] = {entry} if what == "list" else set()
            self.cluster.write(setting, entry if what == "list" else None)
        self.say(f"foreign: {setting} = {self.cluster.configs.get(setting)!r}")

    def compare(self) -> None:
        """Checks that no throttle of kquota is left, and that all others are unchanged."""
        now = self.cluster.configs
        wrong = [f"{s} is {now.get(s)!r}, not {value!r}" for s, value in self.values.items() if now.get(s) != value]
        for setting, those in self.listed.items():
            if set(entries(now.get(setting))) != those:
                wrong.append(f"{setting} is {now.get(setting)!r}, not {sorted(those)}")
            elif setting in self.letters and now.get(setting) != self.letters[setting]:
                wrong.append(f"{setting} is {now.get(setting)!r}, not {self.letters[setting]!r} to the letter")
        wrong += [
            f"{name} is on {state.replicas}, which no plan and no other tool asked for"
            for name, state in self.cluster.partitions.items()
            if not state.moving and frozenset(state.replicas) not in self.placements[name]
        ]
        if wrong:
            raise Violation("; ".join(wrong))


def stage(rng: random.Random, folder: Path) -> Stage:
    """A cluster with throttles of other tools, and three hosts that use it for the first time."""
    schedule = Schedule()
    found = {setting: rng.choice(values) for setting, values in PRIORS.items()}
    cluster = MemoryCluster(
        alive=set(b(1, 2, 3, 4)),
        partitions={name: PartitionReplicas(replicas=r, leader=r[0], isr=r) for name, r in ORIGINAL.items()},
        configs={setting: value for setting, value in found.items() if value is not None},
        largest_submission=rng.choice((None, None, None, 100)),
        lag=rng.choice((0, 0, 1, 3)),
        stale_seconds=rng.choice((0.0, 0.5)),
        seconds=lambda: schedule.now,
    )
    hosts = tuple(
        Host(name=name, folder=folder / name, boot=rng.uniform(0, 1e6), skew=rng.choice((0.0, 0.0, -3600.0, 40.0)))
        for name in ("bastion", "jump", "cron")
    )
    return Stage(
        schedule=schedule,
        cluster=cluster,
        topic=WatchedTopic(),
        hosts=hosts,
        plans=tuple(rng.sample(PLANS, 3)),
        values={setting: found[setting] for setting in RATES},
        listed={setting: set(entries(found[setting])) for setting in LISTS},
        letters={setting: found[setting] for setting in LISTS},
    )


class _NoClock:
    """A clock for a process that only reads."""

    def seconds(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError


class ClusterConfigs:
    """The part of the port `Configs` that doctor reads, on the cluster in memory."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    def resources(self, kind: Kind) -> tuple[Resource, ...]:
        return tuple(one for one in self.configured(kind) if one.name is not DEFAULT)

    def configured(self, kind: Kind) -> tuple[Resource, ...]:
        if kind == TOPICS:
            return tuple(Resource(kind=TOPICS, name=t) for t in sorted({n.topic for n in self._cluster.partitions}))
        own = tuple(Resource(kind=BROKERS, name=str(broker)) for broker in sorted(self._cluster.alive))
        return (*own, Resource(kind=BROKERS, name=DEFAULT))

    def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
        return {one: tuple(self._entries(str(one.name))) for one in resources if one.kind == BROKERS}

    def alter(self, changes: object) -> None:
        raise NotImplementedError

    def release(self) -> tuple[int, ...]:
        return (4, 1)

    def _entries(self, broker: str) -> list[Entry]:
        own = {s.key: v for s, v in sorted(self._cluster.configs.items()) if (s.kind, s.name) == ("broker", broker)}
        return [
            Entry(
                key=key,
                value=value,
                source=DYNAMIC_BROKER,
                dynamic=True,
                synonyms=(Synonym(source=DYNAMIC_BROKER, key=key, value=value),),
            )
            for key, value in own.items()
        ]
