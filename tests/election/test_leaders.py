"""Which partitions need an election, in which order, and the file that lists them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.election.leaders import batches, needing, parse, read
from kquota.election.port import ElectionType
from kquota.errors import Invalid
from kquota.mutation.topic import Partition
from kquota.reassign.plan import Plan
from kquota.terms import BrokerId, TopicPartition

pytestmark = pytest.mark.unit

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def partition(*replicas: int, leader: int | None) -> Partition:
    ids = tuple(map(BrokerId, replicas))
    return Partition(number=0, leader=None if leader is None else BrokerId(leader), replicas=ids, isr=ids)


@pytest.mark.parametrize(
    ("state", "preferred", "unclean"),
    [
        (partition(1, 2, leader=1), False, False),
        (partition(1, 2, leader=2), True, False),
        (partition(1, 2, leader=None), True, True),
        (partition(1, leader=1), False, False),
    ],
)
def test_the_leader_decides_whether_an_election_is_needed(state: Partition, preferred: bool, unclean: bool) -> None:
    assert bool(needing(ElectionType.PREFERRED, {T0: state})) is preferred
    assert bool(needing(ElectionType.UNCLEAN, {T0: state})) is unclean


LEADERS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 30)),
    st.permutations((1, 2, 3)).map(lambda ids: partition(*ids, leader=ids[-1])),
    max_size=60,
)


@given(partitions=LEADERS, size=st.none() | st.integers(1, 9))
def test_batches_hold_every_partition_once_and_spread_each_over_the_brokers(
    partitions: dict[TopicPartition, Partition], size: int | None
) -> None:
    found = list(batches(partitions, partitions, size))
    assert sorted(name for batch in found for name in batch) == sorted(partitions)
    if size is None:
        assert len(found) == min(1, len(partitions))
    else:
        assert [len(batch) for batch in found[:-1]] == [size] * (len(found) - 1)
    left = Counter(state.replicas[0] for state in partitions.values())
    for batch in found:
        each = Counter(partitions[name].replicas[0] for name in batch)
        waiting = [broker for broker, count in left.items() if count > each[broker]]
        # A broker gets one more turn than another only if the other has no partition left.
        assert all(max(each.values()) - each[broker] <= 1 for broker in waiting)
        left -= each


WRONG = {
    "": "Replica election data is empty",
    "{}": 'Replica election data is missing "partitions" field',
    '{"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":0}]}': (
        "Replica election data contains duplicate partitions: t-0"
    ),
    '{"partitions":[{"topic":"t"}]}': "partitions[0]: field 'partition' is missing",
    '{"partitions":[{"topic":3,"partition":0}]}': "partitions[0].topic: must be a string",
    '{"partitions":[{"topic":"t","partition":-1}]}': "must be from 0",
    '{"partitions":{}}': "partitions: must be a list",
    "[": "is not JSON",
}


def test_a_file_lists_partitions() -> None:
    text = '{"partitions":[{"topic":"t","partition":1},{"topic":"t","partition":0}]}'
    assert parse(text, "f") == (T1, T0)
    assert parse('{"partitions":[]}', "f") == ()


@pytest.mark.parametrize("text", WRONG)
def test_a_file_with_an_error_is_refused_with_its_place(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("f.json")
    file.write_text(text)
    with pytest.raises(Invalid) as error:
        read(file)
    assert str(error.value).startswith("f.json: ")
    assert WRONG[text] in str(error.value)


def test_a_plan_is_also_a_file_of_partitions() -> None:
    """Notes after an undo name the plan."""
    plan = Plan(targets={T1: (BrokerId(1), BrokerId(2)), T0: (BrokerId(1),)})
    assert parse(plan.text(), "plan.json") == (T0, T1)
