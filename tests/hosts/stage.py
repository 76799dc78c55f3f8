"""One cluster and its record in memory, three hosts that use both, and a foreign tool. Every change is checked."""

from __future__ import annotations

import enum
import json
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.plan import Plan
from kquota.reassign.run import Purpose, Run, Taken
from kquota.settings.change import Change
from kquota.settings.resource import BROKERS, TOPICS, Entry, Resource, ResourceKind, Setting, Synonym
from kquota.settings.throttled_lists import entries, replica
from kquota.stores.record.lease import LeaseClock, Sighting
from kquota.stores.record.topic import TopicRecord
from kquota.stores.record.znodes import ZnodeRecord
from kquota.stores.state.log import KeyAndValue
from kquota.stores.state.runs import RunFiles
from kquota.stores.zookeeper.topics import SUBMITTED
from kquota.terms import (
    DEFAULT,
    DYNAMIC_BROKER,
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    REPLICATION_RATES,
    BrokerId,
    TopicPartition,
)
from kquota.throttle.doctor import Sightings
from tests.hosts.remembered import Remembered
from tests.hosts.schedule import Schedule
from tests.hosts.tree import MemoryZnodes, TreeCluster
from tests.reassign.fake import MemoryCluster
from tests.stores.record.fake import MemoryTopic


def b(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


FOREIGN = TopicPartition("f", 0)
LIST_PRIORS = (None, None, "", "900:9", "901:9,0:1", "902:9, 903:9")
RATE_PRIORS = (None, None, "77000", "1000")
"""Throttles that can be set before a round. Runs of kquota also set "0:1" and "1000"."""
FOREIGN_WRITES = (
    "rate",
    "no rate",
    "list",
    "entry",
    "no list",
    "move",
    "cancel",
    "override",
    "submission",
    "execute",
    "verify",
    "partition",
)
"""`execute` and `verify` are Kafka's own tool, which writes and removes whatever is set. `submission` is its znode."""
BROKER_DIES, BROKER_RETURNS, CLOCK_JUMPS = "broker dies", "broker returns", "clock jumps"
OVERWRITTEN = "foreign rate of a dead broker replaced through the controllers"
VERIFYING = ("verify", "resume", "resume --take-over", "move run")
"""Commands that must not restore anything of a move that is running."""
WRITE_ALONE = "a write of a holder that another one had followed"


class Violation(AssertionError):
    """A promise of kquota that was broken."""


class State(enum.Enum):
    """The state of the open runs at the moment of a fault."""

    NONE = "no open run"
    BEGUN = "recorded, not throttled"
    THROTTLED = "throttled, not submitted"
    UNDER_WAY = "under way"
    WAVES = "under way, waves waiting"
    ENDED = "ended, not restored"
    UNDONE = "being undone"
    HELD = "throttle without a move"
    SEVERAL = "several open runs"
    DEAD_BROKER = "a broker is dead"


class Ends:
    """A check that an ended run stays ended in the record. `known` has every run that was ever there."""

    def __init__(self) -> None:
        self.known: dict[str, str | None] = {}

    def saw(self, run_id: str, data: bytes | None) -> None:
        finished = None if data is None else json.loads(data)["run"]["finished"]
        before = self.known.get(run_id)
        if data is not None and before not in (None, finished):
            raise Violation(f"run {run_id} had ended at {before} and was written with {finished}")
        self.known[run_id] = finished or before


class WatchedTopic(MemoryTopic):
    """The record's topic, in which an ended run must stay ended."""

    def __init__(self, ends: Ends) -> None:
        super().__init__()
        self._ends = ends

    def write(self, entries: Sequence[KeyAndValue]) -> None:
        for key, value in entries:
            if key.startswith("run/"):
                self._ends.saw(key.removeprefix("run/"), value)
        super().write(entries)


@dataclass
class Host:
    """A machine with a state folder. Its clocks start at different values, and its time of day may be wrong."""

    name: str
    folder: Path
    boot: float
    skew: float
    zookeeper: bool = False
    """True if its operator uses `--zookeeper`, not `--bootstrap-server`."""
    sightings: Sightings | None = None

    def recall(self) -> Sightings | None:
        return self.sightings

    def keep(self, sightings: Sightings) -> None:
        self.sightings = sightings


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The brokers, partitions and plans of a round."""

    brokers: tuple[BrokerId, ...]
    original: Mapping[TopicPartition, Replicas]
    plans: tuple[Plan, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that kquota may throttle."""
        return tuple(sorted({name.topic for name in self.original} - {FOREIGN.topic}))

    @property
    def lists(self) -> tuple[Setting, ...]:
        every = (*self.topics, FOREIGN.topic)
        return tuple(Setting.of_topic(topic, key) for topic in every for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS))

    @property
    def rates(self) -> tuple[Setting, ...]:
        return tuple(Setting.of_broker(broker, key) for broker in self.brokers for key in REPLICATION_RATES)

    def placements(self) -> dict[TopicPartition, set[frozenset[BrokerId]]]:
        """The replicas that a partition may have at the end, unless another tool moves it."""
        asked = [*self.original.items(), *(wish for plan in self.plans for wish in plan.targets.items())]
        return {name: {frozenset(where) for which, where in asked if which == name} for name in self.original}


def scene(rng: random.Random) -> Scene:
    """3 to 6 brokers, 1 to 4 topics, and 3 plans, some of which overlap or lead back."""
    brokers = b(*range(1, rng.choice((4, 5, 5, 5, 6, 7))))

    def replicas() -> Replicas:
        return tuple(rng.sample(brokers, min(len(brokers), rng.choice((1, 1, 2, 2, 2, 3)))))

    names = [
        TopicPartition(t, n) for t in "tuvw"[: rng.choice((1, 2, 3, 3, 4))] for n in range(rng.choice((1, 1, 2, 3)))
    ]
    original = {name: replicas() for name in names} | {FOREIGN: b(2)}
    plans: list[Plan] = []
    while len(plans) < 3:
        some = sorted(rng.sample(names, rng.randint(1, min(4, len(names)))))
        targets = {name: replicas() for name in some}
        if plans and rng.random() < 0.3:
            targets = {name: original[name] for name in rng.choice(plans).targets}
        plans.append(Plan(targets=targets))
    return Scene(brokers=brokers, original=original, plans=tuple(plans))


@dataclass
class Stage:
    """`values` and `listed` are set by others, and must still be set at the end."""

    schedule: Schedule
    scene: Scene
    kind: str
    rng: random.Random
    cluster: MemoryCluster
    topic: WatchedTopic
    ends: Ends
    hosts: tuple[Host, ...]
    values: dict[Setting, str | None]
    listed: dict[Setting, set[str]]
    letters: dict[Setting, str | None]
    """The text of each list before kquota changed it, as long as only kquota has changed the list."""
    placements: dict[TopicPartition, set[frozenset[BrokerId]]]
    """The allowed replicas of a partition at the end."""
    used: int = 0
    """The highest term of the lock whose holder has sent any request to the cluster, over ZooKeeper any write."""
    begun: int = 0
    """The processes that have begun."""
    trace: list[str] = field(default_factory=list)
    remembered: Remembered[Any] = field(default_factory=Remembered)
    seen: Counter[str] = field(default_factory=Counter)

    @property
    def plans(self) -> tuple[Plan, ...]:
        return self.scene.plans

    def states(self) -> set[State]:
        """The states of the open runs, and of the brokers, at this moment."""
        runs = self.open_runs()
        found = {self._state(run) for run in runs} or {State.NONE}
        if len(runs) > 1:
            found.add(State.SEVERAL)
        if len(self.cluster.alive) < len(self.scene.brokers):
            found.add(State.DEAD_BROKER)
        return found

    def _state(self, run: Run) -> State:
        shown = any(
            value in (entries(now) if setting.is_list else (now,))
            for setting, taken in run.taken.items()
            for value in taken.ours
            if (now := self.cluster.configs.get(setting)) is not None
        )
        if run.purpose is Purpose.THROTTLE:
            return State.HELD
        if run.aborting:
            return State.UNDONE
        moving = any(self.cluster.partitions[name].moving for name in run.goal.targets)
        if moving:
            return State.WAVES if run.waiting else State.UNDER_WAY
        if any(set(self.cluster.partitions[name].replicas) != set(where) for name, where in run.goal.targets.items()):
            return State.THROTTLED if shown else State.BEGUN
        return State.ENDED

    def say(self, line: str) -> None:
        folder = str(self.hosts[0].folder.parent)
        self.trace.append(f"{self.schedule.now:8.2f} {line.replace(folder, '...')}")

    def published(self) -> None:
        """Store the state of the brokers and of the controller in ZooKeeper."""
        if isinstance(self.cluster, TreeCluster):
            self.cluster.publish()

    def open_runs(self) -> tuple[Run, ...]:
        """The open runs in the record at this moment."""
        if self.kind == JOURNALS:
            every = [kept.run for kept in RunFiles(self.hosts[0].folder, "cluster").every().values()]
            return tuple(run for run in every if run.finished is None)
        if self.kind == ZNODES:
            assert isinstance(self.cluster, TreeCluster)
            found = ZnodeRecord(MemoryZnodes(self.cluster.tree), "cluster").runs()
            return tuple(run for run in found.values() if run.finished is None)
        seen = Sighting(Path("/nonexistent/seen"), _NoClock())
        runs = TopicRecord(self.topic.handle(), "truth", "cluster", seen).runs()
        return tuple(run for run in runs.values() if run.finished is None)

    def recorded(self) -> Collection[str]:
        """The ids of all runs that were ever on record."""
        if self.kind == JOURNALS:
            return RunFiles(self.hosts[0].folder, "cluster").every().keys()
        return self.ends.known.keys()

    # The requests of a lock holder to the cluster.

    def holds(self, who: str, term: int, *, writes: bool) -> None:
        if writes and term < self.used:
            raise Violation(f"{WRITE_ALONE}: {who} with term {term}, and {self.used} had begun")
        self.used = max(self.used, term)

    def changed(self, who: str, doing: str, change: Change) -> None:
        """Check a change that has arrived. Only doctor may remove the throttles of others, and only those."""
        self.say(f"{who}: {change.setting}: {change.before!r} -> {change.after!r}")
        if doing in VERIFYING:
            self._not_too_early(who, change)
        if doing != "doctor":
            return
        gone = (change.setting.is_list and entries(change.before)) or (change.before,)
        kept = entries(change.after) if change.setting.is_list else (change.after,)
        for value in (value for value in gone if value not in kept):
            for run in self.open_runs():
                ours = run.taken[change.setting].ours if change.setting in run.taken else ()
                if value in ours or (not value and ours):  # not value: an empty list
                    raise Violation(f"doctor took {value!r} of {change.setting}, which run {run.id} holds")
            self.letters.pop(change.setting, None)
            if change.setting.is_list:
                self.listed.get(change.setting, set()).discard(value or "")
            else:
                self.values[change.setting] = None

    def _not_too_early(self, who: str, change: Change) -> None:
        """Check that the entries of a partition stay on its lists while the partition moves to the goal of its run."""
        gone = set(entries(change.before)) - set(entries(change.after)) if change.setting.is_list else set()
        for run in self.open_runs():
            ours = set(run.taken[change.setting].ours) if change.setting in run.taken else set()
            for entry in sorted(gone & ours):
                named = replica(change.setting, entry)
                now = self.cluster.partitions.get(named[0]) if named else None
                if now and named and now.moving and now.target == run.goal.targets.get(named[0]):
                    raise Violation(f"{who} took {entry} of {change.setting} while {named[0]} moves for run {run.id}")

    def overwritten(self, who: str, before: Mapping[Setting, str], after: Mapping[Setting, str | None]) -> None:
        """Accept rates of dead brokers that were written without a reading. kquota reports that a foreign value may be
        lost.
        """
        for setting, value in after.items():
            self.say(f"{who}: {setting} -> {value!r}, unread, by a controller")
            now = before.get(setting)
            if now == self.values[setting] and not any(now in t.ours for t in self._held(setting)):
                self.values[setting] = value
                self.seen[OVERWRITTEN] += now != value

    def _held(self, setting: Setting) -> list[Taken]:
        return [run.taken[setting] for run in self.open_runs() if setting in run.taken]

    def submitting(self, who: str, doing: str, targets: Mapping[TopicPartition, Replicas | None]) -> None:
        """Check a submission that has arrived. An open run in the record must contain it."""
        self.say(f"{who}: submits { ({str(name): target for name, target in targets.items()}) }")
        if doing == "cancel":
            return
        goals = [run.goal.targets for run in self.open_runs()]
        if not any(all(goal.get(name) == target for name, target in targets.items()) for goal in goals):
            raise Violation(f"{who} submitted {targets}, which no open run on record wants")

    def moves_end(self, rng: random.Random, longest: float = 60.0) -> None:
        """Let each running move end within `longest` seconds."""
        for name, now in self.cluster.partitions.items():
            if now.moving:
                self.schedule.at(self.schedule.now + rng.uniform(1, longest), partial(self._end, name))

    def finish(self) -> None:
        for name in self.cluster.partitions:
            self._end(name)

    def _end(self, name: TopicPartition) -> None:
        """End a move. If a broker that it needs is dead, the move ends after the return of this broker."""
        now = self.cluster.partitions.get(name)
        if now is None or not now.moving:
            return
        if now.leader is None or not self.cluster.alive.issuperset(now.target):
            self.schedule.at(self.schedule.now + 20, partial(self._end, name))
            return
        self.cluster.finish(name)
        self._elect(name)
        self.published()
        self.say(f"{name} has arrived")

    # Brokers.

    def broker_dies(self, rng: random.Random) -> None:
        """Let a broker die. It returns later, at the latest at the end of the round."""
        broker = rng.choice(self.scene.brokers)
        if broker not in self.cluster.alive or len(self.cluster.alive) < 3:
            return
        self.say(f"broker {broker} dies")
        self.seen[BROKER_DIES] += 1
        self.cluster.alive.discard(broker)
        for name, now in self.cluster.partitions.items():
            left = tuple(one for one in now.isr if one != broker)
            self.cluster.partitions[name] = replace(now, isr=left or now.isr)
            self._elect(name)
        self.published()
        self.schedule.at(self.schedule.now + rng.choice((2, 15, 60, 200)), partial(self.broker_returns, broker))

    def broker_returns(self, broker: BrokerId, seconds: float | None = None) -> None:
        """Let a broker return. It catches up after `seconds`, by default within a minute."""
        if broker in self.cluster.alive:
            return
        self.say(f"broker {broker} returns")
        self.seen[BROKER_RETURNS] += 1
        self.cluster.alive.add(broker)
        for name in self.cluster.partitions:
            self._elect(name)
        self.published()
        behind = self.rng.choice((0.0, 5.0, 60.0)) if seconds is None else seconds
        self.schedule.at(self.schedule.now + behind, partial(self.caught_up, broker))

    def caught_up(self, broker: BrokerId) -> None:
        """Put the replicas of a broker in sync again, except copies of running moves."""
        if broker not in self.cluster.alive:
            return
        for name, now in self.cluster.partitions.items():
            if broker in now.replicas and broker not in now.adding and broker not in now.isr:
                self.cluster.partitions[name] = replace(now, isr=(*now.isr, broker))
            self._elect(name)
        self.published()

    def everyone_returns(self) -> None:
        for broker in self.scene.brokers:
            self.broker_returns(broker, 0.0)
            self.caught_up(broker)

    def clock_jumps(self, rng: random.Random) -> None:
        """Change the time of day of a host."""
        host = rng.choice(self.hosts)
        host.skew += rng.choice((-3600.0, -20.0, 20.0, 3600.0))
        self.seen[CLOCK_JUMPS] += 1
        self.say(f"{host.name}: its clock is wrong by {host.skew:.0f} s")

    def _elect(self, name: TopicPartition) -> None:
        """The controller elects a live replica in sync, if the leader is not one."""
        now = self.cluster.partitions[name]
        fit = [one for one in now.replicas if one in now.isr and one in self.cluster.alive]
        if now.leader not in fit:
            self.cluster.partitions[name] = replace(now, leader=fit[0] if fit else None)

    # The foreign tool overwrites any value, and ignores the record of kquota.

    def foreign(self, rng: random.Random) -> None:
        what = rng.choice(("rate", *FOREIGN_WRITES))
        moving = [name for name, now in self.cluster.partitions.items() if now.moving]
        free = self.cluster.largest_submission is None
        if what in ("rate", "no rate"):
            value = f"77{rng.randrange(1000, 10_000)}" if what == "rate" else None
            self._foreign_rate(rng.choice(self.scene.rates), value)
        elif what in ("list", "entry", "no list"):
            self._foreign_list(rng.choice(self.scene.lists), what, f"{rng.randrange(910, 1000)}:9")
        elif what == "move" and free:
            self._foreign_move(FOREIGN, rng.sample(self.scene.brokers, rng.choice((1, 2))))
        elif what == "cancel" and moving:
            name = rng.choice(moving)
            self.say(f"foreign: cancels {name}")
            self.cluster.cancel(name)
            self._elect(name)
        elif what == "override" and free and moving:
            self._foreign_move(rng.choice(moving), rng.sample(self.scene.brokers, 2))
        elif what == "submission" and isinstance(self.cluster, TreeCluster):
            self._foreign_submission(self.cluster, rng.sample(self.scene.brokers, 2))
        elif what == "execute" and free:
            self._foreign_execute(rng)
        elif what == "verify" and not moving:
            self._foreign_verify(rng.choice(self.plans))
        elif what == "partition":
            self._foreign_partition(rng)
        else:
            return
        self.seen[what] += 1
        self.published()
        self.moves_end(rng, 20.0)

    def _foreign_move(self, name: TopicPartition, target: Sequence[BrokerId]) -> None:
        self.say(f"foreign: {name} to {tuple(target)}")
        self.placements[name].add(frozenset(target))
        self.cluster._start(name, tuple(target))

    def _foreign_submission(self, cluster: TreeCluster, target: Sequence[BrokerId]) -> None:
        """Create the znode of a submission, like Kafka's tool over ZooKeeper, unless it exists."""
        if SUBMITTED in cluster.tree.nodes:
            return
        self.say(f"foreign: creates {SUBMITTED} with {FOREIGN} to {tuple(target)}")
        self.placements[FOREIGN].add(frozenset(target))
        moves = [{"topic": FOREIGN.topic, "partition": FOREIGN.partition, "replicas": list(target)}]
        cluster.tree.put(SUBMITTED, json.dumps({"version": 1, "partitions": moves}).encode())

    def _foreign_execute(self, rng: random.Random) -> None:
        """Kafka's --execute --throttle of the foreign partition: it replaces lists and rates.

        The entries are not those that kquota would set, because equal entries have no owner.
        """
        rate = f"77{rng.randrange(1000, 10_000)}"
        target = rng.sample(self.scene.brokers, 2)
        for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS):
            self._foreign_list(Setting.of_topic(FOREIGN.topic, key), "list", f"{rng.randrange(910, 1000)}:9")
        for broker in {*target, *self.cluster.partitions[FOREIGN].replicas}:
            for key in REPLICATION_RATES:
                self._foreign_rate(Setting.of_broker(broker, key), rate)
        self._foreign_move(FOREIGN, target)

    def _foreign_verify(self, plan: Plan) -> None:
        """Kafka's --verify of a plan: it deletes all rates of live brokers, and the lists of the plan's topics."""
        for setting in self.scene.rates:
            self._foreign_rate(setting, None)
        for topic in plan.topics:
            for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS):
                self._foreign_list(Setting.of_topic(topic, key), "no list", "")

    def _foreign_partition(self, rng: random.Random) -> None:
        """Add a partition to a topic, which no plan contains."""
        topic = rng.choice(self.scene.topics)
        number = 1 + max(name.partition for name in self.cluster.partitions if name.topic == topic)
        alive = sorted(self.cluster.alive)
        replicas = tuple(rng.sample(alive, min(len(alive), rng.choice((1, 2)))))
        name = TopicPartition(topic, number)
        self.say(f"foreign: {name} is created on {replicas}")
        self.placements[name] = {frozenset(replicas)}
        self.cluster.partitions[name] = PartitionReplicas(replicas=replicas, leader=replicas[0], isr=replicas)

    def _foreign_rate(self, setting: Setting, value: str | None) -> None:
        if setting.broker not in self.cluster.alive:
            return  # Kafka's tool needs the broker
        self.say(f"foreign: {setting} = {value!r}")
        self.cluster.write(setting, value)
        self.values[setting] = value

    def _foreign_list(self, setting: Setting, what: str, entry: str) -> None:
        now = self.cluster.configs.get(setting)
        if what == "entry" and "*" in entries(now):
            return
        self.letters.pop(setting, None)
        if what == "entry":
            if setting in self.listed:
                self.listed[setting].add(entry)
            self.cluster.write(setting, ",".join((*entries(now), entry)))
        else:
            self.listed[setting] = {entry} if what == "list" else set()
            self.cluster.write(setting, entry if what == "list" else None)
        self.say(f"foreign: {setting} = {self.cluster.configs.get(setting)!r}")

    def compare(self) -> None:
        """Check that no throttle of kquota is left, and that all other throttles are unchanged."""
        now = self.cluster.configs
        if isinstance(self.cluster, TreeCluster) and self.cluster.in_force != self.cluster.stored():
            raise Violation(f"brokers apply {self.cluster.in_force}, but {self.cluster.stored()} is stored")
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


ZNODES = "ZooKeeper, its znodes"
JOURNALS = "KRaft, journals of one host"
KINDS = (
    "KRaft",
    "KRaft, controllers reachable",
    "one submission at a time",
    ZNODES,
    "ZooKeeper and brokers, a topic",
    JOURNALS,
)
"""The cluster and the place of its record."""


def stage(rng: random.Random, folder: Path) -> Stage:
    """Return a cluster with throttles of other tools, and three hosts that use it for the first time."""
    schedule, now = Schedule(), scene(rng)
    kind = rng.choice((KINDS[0], ZNODES, *KINDS))
    found = {s: rng.choice(LIST_PRIORS if s.is_list else RATE_PRIORS) for s in (*now.lists, *now.rates)}
    partitions = {name: PartitionReplicas(replicas=r, leader=r[0], isr=r) for name, r in now.original.items()}
    configs = {setting: value for setting, value in found.items() if value is not None}
    on_zookeeper = kind in KINDS[3:5]
    cluster: MemoryCluster = (
        TreeCluster(
            alive=set(now.brokers),
            partitions=partitions,
            configs=configs,
            seconds=lambda: schedule.now,
            rng=random.Random(rng.random()),
            later=lambda seconds, what: schedule.at(schedule.now + seconds, what),
        )
        if on_zookeeper
        else MemoryCluster(
            alive=set(now.brokers),
            partitions=partitions,
            configs=configs,
            largest_submission=100 if kind == KINDS[2] else None,
            controllers=kind == KINDS[1],
            lag=rng.choice((0, 0, 1, 3)),
            stale_seconds=rng.choice((0.0, 0.5)),
            seconds=lambda: schedule.now,
        )
    )
    hosts = tuple(
        Host(
            name=name,
            folder=folder / ("bastion" if kind == JOURNALS else name),
            boot=rng.uniform(0, 1e6),
            skew=rng.choice((0.0, 0.0, -3600.0, 40.0)),
            zookeeper=kind == ZNODES or (on_zookeeper and rng.random() < 0.6),
        )
        for name in ("bastion", "jump", "cron")
    )
    ends = Ends()
    made = Stage(
        schedule=schedule,
        scene=now,
        kind=kind,
        rng=random.Random(rng.random()),
        cluster=cluster,
        topic=WatchedTopic(ends),
        ends=ends,
        hosts=hosts,
        values={setting: found[setting] for setting in now.rates},
        listed={setting: set(entries(found[setting])) for setting in now.lists},
        letters={setting: found[setting] for setting in now.lists},
        placements=now.placements(),
    )
    if isinstance(cluster, TreeCluster):
        cluster.began = lambda: made.moves_end(cluster.rng)
        cluster.recorded = ends.saw
    return made


class _NoClock(LeaseClock):
    """A clock for a process that only reads."""

    def seconds(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError


class ClusterConfigs:
    """The part of the port `Configs` that doctor reads, on the cluster in memory."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    def resources(self, kind: ResourceKind) -> tuple[Resource, ...]:
        return tuple(one for one in self.configured(kind) if one.name is not DEFAULT)

    def configured(self, kind: ResourceKind) -> tuple[Resource, ...]:
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
