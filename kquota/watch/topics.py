"""The topics of a reading. A topic that has not changed since the last reading keeps its object.

Between two readings of a large move, the logs of all copies grow, but few partitions change. Values that depend only on
the partitions are therefore calculated once for each object, and used until the topic changes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.port import Snapshot
from kquota.terms import BrokerId, ReplicaId, TopicPartition
from kquota.watch.reading import WantedLogs, WatchedMove, WatchedTopic, same_moves

_TOPIC: Final = attrgetter("topic")


def by_topic(snapshot: Snapshot, before: Mapping[str, WatchedTopic]) -> Mapping[str, WatchedTopic]:
    """Return the topics of a snapshot. A topic with the same partitions and moves as in `before` keeps its object."""
    running = dict(_by_name(list(snapshot.running)))
    states, at = list(snapshot.partitions.values()), 0
    found = {}
    for topic, names in _by_name(list(snapshot.partitions)):
        held, at = states[at : at + len(names)], at + len(names)
        moving = frozenset(running.get(topic, ()))
        known = before.get(topic)
        same = known is not None and moving == known.running and held == list(known.partitions.values())
        if known is None or not same or names != list(known.partitions):
            known = _watched(topic, dict(zip(names, held, strict=True)), moving)
        found[topic] = known
    return found


def _by_name(names: Sequence[TopicPartition]) -> Iterator[tuple[str, Sequence[TopicPartition]]]:
    """Yield the names of each topic. `names` are sorted."""
    at = 0
    while at < len(names):
        topic = names[at].topic
        end = bisect_right(names, topic, at, key=_TOPIC)
        yield topic, names[at:end]
        at = end


def _watched(
    topic: str, partitions: Mapping[TopicPartition, PartitionReplicas], running: frozenset[TopicPartition]
) -> WatchedTopic:
    behind: list[ReplicaId] = []
    for name, now in partitions.items():
        missing = len(now.replicas) - len(now.isr)
        if missing and missing > sum(broker not in now.isr for broker in now.adding):
            behind += [(name, b) for b in now.replicas if b not in now.isr and b not in now.adding]
    moving = (partitions[name] for name in running if name in partitions)
    ends = frozenset((now.adding, now.leader) for now in moving)
    return WatchedTopic(name=topic, partitions=partitions, running=running, out_of_sync=tuple(behind), ends=ends)


class WatchedTargets:
    """The targets of watched moves by topic, and the logs that their readings request."""

    def __init__(self, moves: Iterable[WatchedMove] = ()) -> None:
        self.moves = tuple(moves)
        targets: defaultdict[str, list[tuple[TopicPartition, Replicas]]] = defaultdict(list)
        dirs: defaultdict[str, list[ReplicaId]] = defaultdict(list)
        for move in self.moves:
            for name, target in move.targets.items():
                targets[name.topic].append((name, target))
            for replica in move.log_dirs:
                dirs[replica[0].topic].append(replica)
        self.topics: frozenset[str] = frozenset(targets)
        self._targets = targets
        self._dirs = dirs
        self._wanted: dict[str, tuple[WatchedTopic, WantedLogs]] = {}

    def of(self, moves: Sequence[WatchedMove]) -> WatchedTargets:
        """Return the targets of these moves. The result is this object if it already has the same moves."""
        return self if same_moves(moves, self.moves) else WatchedTargets(moves)

    def wanted(self, topics: Mapping[str, WatchedTopic]) -> Sequence[WantedLogs]:
        """Return the logs to request, without topics that need none. An unchanged topic keeps its `WantedLogs`."""
        found = {}
        for name, topic in topics.items():
            known = self._wanted.get(name)
            if known is None or known[0] is not topic:
                known = topic, _wanted(topic, self._targets.get(name, ()), self._dirs.get(name, ()))
            found[name] = known
        self._wanted = found
        return [wanted for _, wanted in found.values() if wanted.sizes]


def _wanted(
    topic: WatchedTopic, targets: Iterable[tuple[TopicPartition, Replicas]], log_dirs: Iterable[ReplicaId]
) -> WantedLogs:
    ends: defaultdict[BrokerId, dict[int, None]] = defaultdict(dict)
    for (_, number), now in topic.partitions.items():
        if len(now.isr) < len(now.replicas) and now.leader is not None:
            for broker in now.replicas:
                if broker not in now.isr or broker == now.leader:
                    ends[broker][number] = None
    sizes = defaultdict(dict, {broker: dict(numbers) for broker, numbers in ends.items()})
    for name, target in targets:
        held = topic.partitions.get(name)
        if held is None:
            continue
        if name in topic.running:
            # Add the copies that `ends` lacks: those in sync, and all copies of a partition without a leader.
            brokers: Iterable[BrokerId] = [b for b in held.adding if b in held.isr or held.leader is None]
        elif held.replicas == target:
            brokers = target
        else:
            brokers = () if held.leader is None else (held.leader,)
        for broker in brokers:
            sizes[broker][name.partition] = None
    for name, broker in log_dirs:
        sizes[broker][name.partition] = None
    return WantedLogs(topic.name, _listed(sizes), _listed(ends))


def _listed(numbers: Mapping[BrokerId, Iterable[int]]) -> dict[BrokerId, tuple[int, ...]]:
    return {broker: tuple(those) for broker, those in numbers.items()}
