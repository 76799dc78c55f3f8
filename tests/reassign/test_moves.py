"""The copies of a move and the throttle that they need: KIP-73's rules as cases."""

from __future__ import annotations

import pytest

from kquota.reassign.moves import PartitionReplicas, list_entries, moves, rollback, throttled_brokers
from kquota.reassign.plan import Plan
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_REPLICAS, LEADER_REPLICAS, BrokerId, TopicPartition

T0 = TopicPartition("t", 0)


def b(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


def at(*replicas: int, adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()) -> PartitionReplicas:
    return PartitionReplicas(replicas=b(*replicas), adding=b(*adding), removing=b(*removing))


# now, target → leader list, follower list, brokers with a rate, submitted; None: nothing moves
CASES = {
    "one replica changes": (at(1, 2), b(1, 3), "0:1,0:2", "0:3", b(1, 2, 3), False),
    "all change": (at(1, 2), b(3, 4), "0:1,0:2", "0:3,0:4", b(1, 2, 3, 4), False),
    "one more": (at(1), b(1, 2), "0:1", "0:2", b(1, 2), False),
    "sorted as strings": (at(2, 10), b(9, 11), "0:10,0:2", "0:11,0:9", b(2, 9, 10, 11), False),
    "one less": (at(1, 2), b(1), "", "", b(), False),
    "another order": (at(1, 2), b(2, 1), "", "", b(), False),
    "under way": (at(1, 3, 2, adding=(3,), removing=(2,)), b(1, 3), "0:1,0:2", "0:3", b(1, 2, 3), True),
    "under way elsewhere": (at(1, 3, 2, adding=(3,), removing=(2,)), b(1, 4), "0:1,0:2", "0:4", b(1, 2, 4), False),
    "under way, called back": (at(1, 3, 2, adding=(3,), removing=(2,)), b(1, 2), "", "", b(), False),
    "there already": (at(1, 2), b(1, 2), None, None, b(), None),
}


@pytest.mark.parametrize(("now", "target", "leaders", "followers", "brokers", "submitted"), CASES.values(), ids=CASES)
def test_moves(
    now: PartitionReplicas,
    target: tuple[BrokerId, ...],
    leaders: str | None,
    followers: str | None,
    brokers: tuple[BrokerId, ...],
    submitted: bool | None,
) -> None:
    moving = moves(Plan(targets={T0: target}), {T0: now})
    assert [move.submitted for move in moving] == ([] if submitted is None else [submitted])
    lists = {setting.key: ",".join(entries) for setting, entries in list_entries(moving).items()}
    assert lists == ({LEADER_REPLICAS: leaders, FOLLOWER_REPLICAS: followers} if leaders else {})
    assert throttled_brokers(moving) == brokers


def test_entries_of_one_topic_are_in_one_list_sorted_as_strings() -> None:
    targets = {TopicPartition(topic, n): b(2) for topic, n in (("t", 2), ("t", 10), ("s", 0))}
    moving = moves(Plan(targets=targets), dict.fromkeys(targets, at(1)))
    assert list_entries(moving) == {
        Setting.of_topic("s", FOLLOWER_REPLICAS): ("0:2",),
        Setting.of_topic("s", LEADER_REPLICAS): ("0:1",),
        Setting.of_topic("t", FOLLOWER_REPLICAS): ("10:2", "2:2"),
        Setting.of_topic("t", LEADER_REPLICAS): ("10:1", "2:1"),
    }


def test_the_plan_back_of_a_running_move_is_its_origin() -> None:
    now = {T0: at(1, 3, 2, adding=(3,), removing=(2,))}
    assert rollback(Plan(targets={T0: b(1, 3)}), now) == Plan(targets={T0: b(1, 2)})
