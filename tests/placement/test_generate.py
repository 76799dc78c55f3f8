"""The proposal of --generate: Kafka's rule on whole topics, reproducible with the same seed, with its notes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Refused
from kquota.placement.generate import alternated, placed, proposal
from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.terms import BrokerId, TopicPartition

Racks = dict[BrokerId, str | None]


def on(*brokers: int) -> Replicas:
    return tuple(map(BrokerId, brokers))


def at(*brokers: int) -> PartitionReplicas:
    return PartitionReplicas(replicas=on(*brokers))


def racks(*names: str | None) -> Racks:
    """Brokers 1, 2, … in these racks."""
    return {BrokerId(n): name for n, name in enumerate(names, start=1)}


@st.composite
def clusters(draw: st.DrawFn) -> Racks:
    ids = draw(st.lists(st.integers(0, 5_000), min_size=1, max_size=12, unique=True))
    kinds: list[list[str | None]] = [[None], ["a"], ["a", "b"], ["a", "b", "c"]]
    names = draw(st.sampled_from(kinds))
    return {BrokerId(broker): draw(st.sampled_from(names)) for broker in ids}


begins = st.integers(0, 100)


@given(clusters(), st.integers(1, 60), st.data())
def test_every_partition_has_its_replicas_and_every_broker_its_share(
    racks: Racks, count: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    found = placed(racks, count, factor, start=data.draw(begins), shift=data.draw(begins))
    assert list(found) == list(range(count))
    assert all(len(set(replicas)) == len(replicas) == factor for replicas in found.values())
    leaders = Counter(replicas[0] for replicas in found.values())
    assert max(leaders.values()) - min(leaders[broker] for broker in racks) <= 1


@given(clusters(), st.integers(1, 60), st.data())
def test_replicas_are_in_as_many_racks_as_possible(racks: Racks, count: int, data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    found = placed(racks, count, factor, start=data.draw(begins), shift=data.draw(begins))
    most = min(factor, len(set(racks.values())))
    assert all(len({racks[broker] for broker in replicas}) == most for replicas in found.values())


def test_brokers_alternate_by_rack() -> None:
    """The example in the documentation of AdminUtils."""
    names = dict(zip(range(6), ["rack1", "rack3", "rack3", "rack2", "rack2", "rack1"], strict=True))
    assert alternated({BrokerId(broker): rack for broker, rack in names.items()}) == on(0, 3, 1, 5, 4, 2)


def test_the_examples_of_kafkas_documentation() -> None:
    plain = {BrokerId(broker): None for broker in range(5)}
    assert list(placed(plain, 10, 3, start=0, shift=0).values()) == [
        *(on(0, 1, 2), on(1, 2, 3), on(2, 3, 4), on(3, 4, 0), on(4, 0, 1)),
        *(on(0, 2, 3), on(1, 3, 4), on(2, 4, 0), on(3, 0, 1), on(4, 1, 2)),
    ]
    names = dict(zip(range(6), ["rack1", "rack3", "rack3", "rack2", "rack2", "rack1"], strict=True))
    aware = {BrokerId(broker): rack for broker, rack in names.items()}
    assert list(placed(aware, 7, 3, start=0, shift=0).values()) == [
        *(on(0, 3, 1), on(3, 1, 5), on(1, 5, 4), on(5, 4, 2), on(4, 2, 0), on(2, 0, 3), on(0, 4, 2))
    ]


PARTITIONS = {TopicPartition(topic, n): at(1, 2) for topic in ("a", "b") for n in range(4)}


@given(st.integers(0))
def test_a_seed_gives_the_same_plan_whatever_other_topics_are_given(seed: int) -> None:
    every = proposal(PARTITIONS, racks(None, None, None), seed)
    alone = proposal(
        {name: now for name, now in PARTITIONS.items() if name.topic == "b"}, racks(None, None, None), seed
    )
    assert {name: every.proposed.targets[name] for name in alone.proposed.targets} == alone.proposed.targets


def test_a_seed_gives_the_same_plan_in_later_releases() -> None:
    made = proposal(PARTITIONS, racks(None, None, None), 73)
    assert list(made.proposed.targets.values()) == [
        *(on(2, 3), on(3, 1), on(1, 2), on(2, 1)),
        *(on(1, 2), on(2, 3), on(3, 1), on(1, 3)),
    ]


def test_seeds_differ() -> None:
    made = {proposal(PARTITIONS, racks(None, None, None), seed).proposed.text() for seed in range(20)}
    assert len(made) > 10


def test_gaining_brokers_are_those_that_get_a_new_replica() -> None:
    made = proposal({TopicPartition("a", 0): at(1, 2), TopicPartition("a", 1): at(2, 3)}, racks(None, None), 0)
    assert made.gaining == (TopicPartition("a", 1),)


def test_a_topic_gets_the_replication_factor_of_its_first_partition() -> None:
    sizes = {0: on(1, 2), 1: on(1), 2: on(1, 2, 3), 3: on(2)}
    partitions = {TopicPartition("a", n): PartitionReplicas(replicas=replicas) for n, replicas in sizes.items()}
    made = proposal(partitions | {TopicPartition("b", 0): at(1)}, racks(None, None, None), 0)
    assert {len(made.proposed.targets[name]) for name in partitions} == {2}
    assert made.mixed == {"a": {1: 2, 2: 1, 3: 1}}


def test_a_moving_partition_counts_at_its_target() -> None:
    moving = PartitionReplicas(replicas=on(1, 3, 2), adding=on(3), removing=on(2))
    made = proposal({TopicPartition("a", 0): moving}, racks(None, None, None), 0)
    assert made.current.targets == {TopicPartition("a", 0): on(1, 3)}
    assert len(made.proposed.targets[TopicPartition("a", 0)]) == 2


def test_a_topic_may_lack_a_partition() -> None:
    """What ZooKeeper holds of a topic need not be complete. Only the existing partitions get replicas."""
    partitions = {TopicPartition("a", number): at(1, 2) for number in (7, 0, 2)}
    made = proposal(partitions, racks(None, None, None), 0)
    assert set(made.proposed.targets) == set(partitions)
    assert len({replicas[0] for replicas in made.proposed.targets.values()}) == 3


REFUSED = {
    "too few brokers": (racks(None), "topic a: Replication factor: 2 larger than available brokers: 1"),
    "some racks": (racks("x", None, "y", None), "Not all brokers have rack information. Add --disable-rack-aware"),
    "which have none": (racks("x", None, "y", None), "without a rack: 2,4"),
}


@pytest.mark.parametrize(("brokers", "words"), REFUSED.values(), ids=REFUSED)
def test_impossible_placements_are_refused(brokers: Racks, words: str) -> None:
    with pytest.raises(Refused) as raised:
        proposal(PARTITIONS, brokers, 0)
    assert words in str(raised.value)
