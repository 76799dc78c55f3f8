"""Reads running moves repeatedly, and returns the view and the symptoms of each reading."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from kquota.errors import NextStep, Refused
from kquota.measure import whole_number
from kquota.reassign.course import BrokerCourse, CourseReading, thinned
from kquota.reassign.log_dirs import of as log_dirs_of
from kquota.reassign.plan import Plan
from kquota.reassign.port import Clock, MoveCluster, Runs, Snapshot
from kquota.reassign.run import Purpose, Run, covers, still_waiting
from kquota.settings.resource import Setting
from kquota.terms import (
    FOLLOWER_RATE,
    LEADER_RATE,
    LOG_DIR_RATE,
    REPLICATION_RATES,
    THROTTLE_LISTS,
    BrokerId,
    TopicPartition,
)
from kquota.watch.copies import outgrown
from kquota.watch.diagnosis import symptoms
from kquota.watch.history import WatchHistory, after, begin
from kquota.watch.port import LogReader
from kquota.watch.reading import (
    BrokerRates,
    ReplicaLogs,
    ThrottleReading,
    WatchedMove,
    WatchedTopic,
    WatchReading,
)
from kquota.watch.symptom import Symptom
from kquota.watch.throttled import ThrottledReplicas
from kquota.watch.topics import WatchedTargets, by_topic
from kquota.watch.view import WatchedMoveView, WatchView, seen

_WIDE_SECONDS: Final = 30.0
"""The seconds between wide readings, which read the throttled replica lists again. The other readings read only the
lists of topics whose set of moving partitions has changed. A wide reading in `look` covers every topic. Any other
reading covers only the watched topics, and topics that recently had out-of-sync replicas.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPorts:
    """One cluster through one connection. `logs` is None over ZooKeeper, which does not store sizes and offsets."""

    cluster: MoveCluster
    runs: Runs
    logs: LogReader | None
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The result of one reading."""

    reading: WatchReading
    view: WatchView
    symptoms: tuple[Symptom, ...]

    @property
    def ended(self) -> bool:
        """True if every watched move has ended, or if there are none."""
        return all(move.ended for move in self.view.moves)


@contextmanager
def without_collections() -> Iterator[None]:
    """Switch off the search for reference cycles in this block or function.

    A reading of 100,000 moving partitions creates a million objects without cycles. Repeated searches through them
    would take a third of the CPU time of the reading.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class MoveWatch:
    """Watches a plan, a run, or every move of a cluster: each `look` returns one reading."""

    def __init__(self, ports: WatchPorts, *, plan: Plan | None = None, run: str | None = None) -> None:
        """With neither a plan nor a run, watch every open run, and the moves that other clients started.

        Reads the open runs. Raises Refused if no open run of a move has the id `run`, or if a journal cannot be read.
        Raises Unreachable if a shared record does not answer.
        """
        self._ports = ports
        self._plan = plan
        self._run = run
        self._moves: list[WatchedMove] = []
        self._targets = WatchedTargets()
        self._by_topic: Mapping[str, WatchedTopic] = {}
        self._history: WatchHistory | None = None
        self._wide_at: float | None = None
        self._throttled = ThrottledReplicas()
        self._out_of_sync_topics: frozenset[str] = frozenset()
        self._running: Set[TopicPartition] = frozenset()
        self._topic_ids: Mapping[str, str] = {}
        self._began = ports.clock.now()
        self._readings: dict[str, tuple[CourseReading, ...]] = {}
        self._copies: dict[str, dict[BrokerId, BrokerCourse]] = {}
        self._refresh()
        if run is not None and not self._moves:
            raise Refused(f"run {run}: no open run of a move has this id. See the open runs with ", NextStep.SHOW_MOVES)

    def look(self) -> Observed:
        """Read the cluster. If there are moves and all of them have ended, wait `stale_seconds` and read the cluster
        again, because a broker may show old replicas.

        Raises Unreachable and Refused as the ports do.
        """
        found = self._read(every_topic=True)
        if found.ended and self._moves:
            self._ports.clock.sleep(self._ports.cluster.stale_seconds)
            self._wide_at = None
            found = self._read(every_topic=True)
        return found

    def glance(self) -> Observed:
        """Read the cluster once: only the topics of the known moves, and topics that recently had out-of-sync replicas.

        The result has new moves of other clients, but only the next reading covers their partitions. `SumReplicaLag`
        covers only the topics that were read. Raises Unreachable and Refused as the ports do.
        """
        return self._read(every_topic=False)

    def course(self, run: str) -> tuple[Sequence[CourseReading], Collection[BrokerCourse]]:
        """Return the readings of a run so far (see `thinned`), and the copies to each broker, for the record of the
        run. Both are empty if no reading had this run.
        """
        return self._readings.get(run, ()), self._copies.get(run, {}).values()

    def _keep(self, time: datetime, move: WatchedMoveView) -> None:
        if move.run is None:
            return
        reading = CourseReading(at=time, copied=move.copied, left=move.left)
        self._readings[move.run] = thinned((*self._readings.get(move.run, ()), reading))
        known = self._copies.setdefault(move.run, {})
        for to in move.destinations:
            old = known.get(to.broker)
            ended = time if old is None or old.ended is None else old.ended
            known[to.broker] = BrokerCourse(
                broker=to.broker, copied=to.copied, ended=ended if to.copies and to.done == to.copies else None
            )

    @without_collections()
    def _read(self, *, every_topic: bool) -> Observed:
        now = self._ports.clock.monotonic()
        wide = self._wide_at is None or now - self._wide_at >= _WIDE_SECONDS
        known = None if wide and every_topic else self._topics
        snapshot = self._ports.cluster.snapshot(None if known is None else sorted(known | self._out_of_sync_topics))
        recreated = any(self._topic_ids.get(topic, new) != new for topic, new in snapshot.topic_ids.items())
        self._topic_ids = {**self._topic_ids, **snapshot.topic_ids}
        if wide or recreated:
            self._refresh()
        if wide:
            self._wide_at = now
            self._out_of_sync_topics = _out_of_sync_topics(snapshot)
        grown = self._add_moves_of_others(snapshot, wide=wide)
        topics = self._topics if wide or grown or known is None else known
        self._read_lists(topics | self._out_of_sync_topics, snapshot, wide=wide)
        if not wide and topics != known:
            # The next reading is wide, because the partitions and lists of the new topics have not been read yet.
            self._wide_at = None
        return self._observed(snapshot)

    def _read_lists(self, topics: frozenset[str], snapshot: Snapshot, *, wide: bool) -> None:
        """Read the throttled replica lists of these topics. Unless the reading is `wide`, read only the lists of topics
        whose set of moving partitions has changed, because a run throttles partitions wave by wave.
        """
        running = snapshot.running.keys()
        if not wide:
            topics &= {name.topic for name in running ^ self._running}
        settings = [Setting.of_topic(topic, key) for topic in sorted(topics) for key in THROTTLE_LISTS]
        if settings or wide:
            self._throttled.update(settings, self._ports.cluster.values(settings), snapshot, complete=wide)
        self._running = running

    def _observed(self, snapshot: Snapshot) -> Observed:
        self._by_topic = topics = by_topic(snapshot, self._by_topic)
        logs = None
        if self._ports.logs is not None:
            logs = self._ports.logs.read(self._targets_now().wanted(topics), snapshot.alive)
        reading = WatchReading(
            at=self._ports.clock.monotonic(),
            time=self._ports.clock.now(),
            snapshot=snapshot,
            topics=topics,
            logs=logs,
            throttle=self._throttle(topics, snapshot, ReplicaLogs() if logs is None else logs),
        )
        self._history, shown = seen(self._with_starts(reading))
        for move in shown.moves:
            self._keep(reading.time, move)
        return Observed(reading=self._history.reading, view=shown, symptoms=symptoms(self._history, shown))

    def _with_starts(self, reading: WatchReading) -> WatchHistory:
        """Return the history with this reading. The reading gets the first offsets of the logs in `outgrown`. There are
        few of them, and a request for every log would make each reading slower.
        """
        history = self._with_reading(reading)
        if self._ports.logs is None or reading.logs is None:
            return history
        if all(link.left is not None for link in history.links.values()):
            return history
        leaders = outgrown(history.copies)
        if not leaders:
            return history
        logs = replace(reading.logs, starts=self._ports.logs.starts(leaders))
        return self._with_reading(replace(reading, logs=logs))

    def _with_reading(self, reading: WatchReading) -> WatchHistory:
        return begin(self._moves, reading) if self._history is None else after(self._history, self._moves, reading)

    def _targets_now(self) -> WatchedTargets:
        self._targets = self._targets.of(self._moves)
        return self._targets

    @property
    def _topics(self) -> frozenset[str]:
        return self._targets_now().topics

    def _refresh(self) -> None:
        """Read the records of runs again. The watch keeps the moves of runs that have ended."""
        unfinished = self._ports.runs.unfinished()
        open_runs = {run.id: run for run in unfinished if run.purpose is Purpose.MOVE}
        if self._plan is not None:
            self._moves = [self._of_plan(self._plan, covers(self._plan, unfinished))]
            return
        for number, move in enumerate(self._moves):
            if move.run is not None:
                still = open_runs.pop(move.run, None)
                self._moves[number] = _same(move, self._ended(move) if still is None else self._of_run(still))
        self._moves += [self._of_run(run) for run in open_runs.values() if self._run in (None, run.id)]
        moved_again: set[TopicPartition] = set()
        for number, move in reversed([*enumerate(self._moves)]):
            if move.open:
                moved_again |= move.targets.keys()
            elif move.run is not None:
                self._moves[number] = _without(move, moved_again)

    def _ended(self, move: WatchedMove) -> WatchedMove:
        """Return the move of a run that is not open now. None of its partitions waits, because no command submits them.

        If the record of the run cannot be read now, for example because a newer kquota wrote it, return `move`.
        """
        if move.run in self._ports.runs.unreadable:
            return move
        return replace(move, open=False, submitted=frozenset(move.targets))

    def _of_run(self, run: Run) -> WatchedMove:
        expected = run.course.expected
        move = of_run(run, self._topic_ids)
        if expected is None or run.course.changes or run.aborting:
            return move
        return replace(move, expected_seconds=expected - (self._began - run.begun).total_seconds())

    def _of_plan(self, plan: Plan, run: Run | None) -> WatchedMove:
        """Return the move of the plan. It keeps the id and the sources of its run, even after the run has ended."""
        if run is not None:
            move = self._of_run(run)
        elif self._moves and self._moves[0].run is not None:
            move = self._ended(self._moves[0])
        else:
            move = WatchedMove(run=None, targets=plan.targets, log_dirs=log_dirs_of(plan))
        return _same(self._moves[0], move) if self._moves else move

    def _add_moves_of_others(self, snapshot: Snapshot, *, wide: bool) -> bool:
        """Add the running moves that belong to no watched run. Return True if the watched moves may have changed."""
        if self._plan is not None or self._run is not None:
            return False
        watched = [move.targets for move in self._moves]
        if not wide and all(any(name in targets for targets in watched) for name in snapshot.running):
            return False
        ours = {name for move in self._moves if move.run is not None for name in move.targets}
        targets = {name: now.target for name, now in snapshot.running.items() if name not in ours}
        for number, move in enumerate(self._moves):
            if move.run is None:
                kept = {name: target for name, target in move.targets.items() if name not in ours}
                self._moves[number] = replace(move, targets={**kept, **targets})
                return True
        if targets:
            self._moves.append(WatchedMove(run=None, targets=targets))
        return True

    def _limited_out_of_sync(self, topics: Mapping[str, WatchedTopic]) -> Iterator[BrokerId]:
        """Yield the brokers whose throttle rates may delay an out-of-sync replica that is not a copy of a running move,
        according to the throttled replica lists.
        """
        leaders, followers = self._throttled.leaders, self._throttled.followers
        for topic in topics.values():
            for replica in topic.out_of_sync:
                name, broker = replica
                leader = topic.partitions[name].leader
                if leader is None:
                    continue
                if (name, leader) in leaders:
                    yield leader
                if replica in followers:
                    yield broker

    def _throttle(self, topics: Mapping[str, WatchedTopic], snapshot: Snapshot, logs: ReplicaLogs) -> ThrottleReading:
        ends = {end for topic in topics.values() for end in topic.ends}
        brokers = {broker for adding, leader in ends for broker in (*adding, leader) if broker is not None}
        brokers.update(self._limited_out_of_sync(topics))
        settings = [
            Setting.of_broker(b, key)
            for b in sorted((brokers & snapshot.alive) - set(logs.silent))
            for key in REPLICATION_RATES
        ]
        between_dirs = {broker: Setting.of_broker(broker, LOG_DIR_RATE) for _, broker in logs.futures}
        settings += between_dirs.values()
        stored = self._ports.cluster.values(settings) if settings else {}
        limits = {broker: whole_number(stored.get(setting)) for broker, setting in sorted(between_dirs.items())}
        return ThrottleReading(
            rates=_by_broker({s: whole_number(text) for s, text in stored.items() if s.key in REPLICATION_RATES}),
            leaders=self._throttled.leaders,
            followers=self._throttled.followers,
            log_dir_rates={broker: rate for broker, rate in limits.items() if rate is not None},
        )


def _same(old: WatchedMove, new: WatchedMove) -> WatchedMove:
    """Return the old object if the move has not changed, so that values calculated from this object stay valid."""
    return old if old == new else new


def _without(move: WatchedMove, names: Set[TopicPartition]) -> WatchedMove:
    """Return the move of an ended run without the partitions that a later run moves, so that copies count only once."""
    if names.isdisjoint(move.targets):
        return move
    targets = {name: target for name, target in move.targets.items() if name not in names}
    return replace(
        move,
        targets=targets,
        submitted=frozenset(targets),
        log_dirs={replica: path for replica, path in move.log_dirs.items() if replica[0] not in names},
    )


def of_run(run: Run, topic_ids: Mapping[str, str]) -> WatchedMove:
    """Return the move of an open run. While the run is being undone, its targets are those of the rollback plan.

    `topic_ids` are the current ids of topics. Partitions of recreated topics count as submitted, because they need no
    further submission.
    """
    return WatchedMove(
        run=run.id,
        targets=run.goal.targets,
        sources={} if run.aborting else run.rollback.targets,
        submitted=frozenset(run.goal.targets.keys() - still_waiting(run, topic_ids)),
        open=True,
        throttled=bool(run.held),
        paused=run.paused,
        undoing=run.aborting,
        log_dirs=log_dirs_of(run.goal),
        limits=run.limits,
        rates=_by_broker({s: run.rate_on(s) for s in run.taken if s.key in REPLICATION_RATES}),
    )


def _by_broker(rates: Mapping[Setting, int | None]) -> dict[BrokerId, BrokerRates]:
    return {
        broker: BrokerRates(
            leader=rates.get(Setting.of_broker(broker, LEADER_RATE)),
            follower=rates.get(Setting.of_broker(broker, FOLLOWER_RATE)),
        )
        for broker in sorted({setting.broker for setting in rates})
    }


def _out_of_sync_topics(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(name.topic for name, now in snapshot.partitions.items() if len(now.isr) < len(now.replicas))
