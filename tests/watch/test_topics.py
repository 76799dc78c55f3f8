"""A watch keeps of unchanged topics exactly the values that it would calculate again."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.port import Snapshot
from kquota.terms import BrokerId, TopicPartition
from kquota.watch.copies import PlannedCopies
from kquota.watch.reading import WatchedMove
from kquota.watch.topics import WatchedTargets, by_topic
from tests.watch.stage import brokers

NAMES = [TopicPartition(topic, number) for topic in ("a", "b") for number in range(2)]
REPLICAS: st.SearchStrategy[Replicas] = st.lists(
    st.sampled_from(brokers(1, 2, 3, 4)), min_size=1, max_size=3, unique=True
).map(tuple)


@st.composite
def states(draw: st.DrawFn) -> PartitionReplicas:
    replicas = draw(REPLICAS)
    adding = tuple(broker for broker in replicas[1:] if draw(st.booleans()))
    removing = replicas[:1] if draw(st.booleans()) else ()
    isr = tuple(broker for broker in replicas if draw(st.booleans()))
    leader = draw(st.sampled_from([*isr, None]))
    return PartitionReplicas(replicas=replicas, adding=adding, removing=removing, leader=leader, isr=isr)


CHANGES = st.dictionaries(st.sampled_from(NAMES), st.none() | states(), max_size=2)
"""The partitions that change between two readings. None deletes a partition."""
MOVES = st.lists(
    st.builds(
        WatchedMove,
        run=st.none(),
        targets=st.dictionaries(st.sampled_from(NAMES), REPLICAS, min_size=1),
        sources=st.dictionaries(st.sampled_from(NAMES), REPLICAS, max_size=2),
        submitted=st.none() | st.frozensets(st.sampled_from(NAMES)),
        log_dirs=st.dictionaries(st.tuples(st.sampled_from(NAMES), st.sampled_from(brokers(1, 2))), st.just("/d")),
    ),
    min_size=1,
    max_size=2,
)


def snapshot(partitions: Mapping[TopicPartition, PartitionReplicas]) -> Snapshot:
    return Snapshot(
        racks={},
        partitions=dict(sorted(partitions.items())),
        running={name: now for name, now in sorted(partitions.items()) if now.moving},
    )


@given(st.lists(st.tuples(CHANGES, st.none() | MOVES), max_size=6), MOVES)
def test_unchanged_topics_keep_what_a_new_watch_would_calculate(
    steps: list[tuple[dict[TopicPartition, PartitionReplicas | None], list[WatchedMove] | None]],
    moves: list[WatchedMove],
) -> None:
    partitions: dict[TopicPartition, PartitionReplicas] = {}
    known: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    topics, planned, targets = by_topic(snapshot(partitions), {}), PlannedCopies(), WatchedTargets()
    for changes, others in steps:
        moves = moves if others is None else others
        every = {**partitions, **changes}
        partitions = {name: now for name, now in every.items() if now is not None}
        now = snapshot(partitions)
        known |= {name: state.adding for name, state in now.running.items()}
        before, topics = topics, by_topic(now, topics)
        fresh = by_topic(now, {})
        planned, targets = planned.again(moves, topics, known), targets.of(moves)
        again = PlannedCopies().again(moves, fresh, known)
        assert [part.copies for part in planned.parts] == [part.copies for part in again.parts]
        assert targets.wanted(topics) == WatchedTargets(moves).wanted(fresh)
        assert {**topics} == {t: before[t] if t not in {n.topic for n in changes} else topics[t] for t in topics}
        assert {n: s for topic in topics.values() for n, s in topic.partitions.items()} == now.partitions
        assert [r for topic in topics.values() for r in topic.out_of_sync] == [
            (name, broker)
            for name, state in now.partitions.items()
            for broker in state.replicas
            if broker not in state.isr and broker not in state.adding
        ]
