"""Recognizes the list entries that were set for the moves of a plan, on a host without an open run of this plan."""

from __future__ import annotations

from collections.abc import Mapping

from kquota.reassign.moves import Move, Replicas, list_entries
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries, replica, without
from kquota.terms import EVERY_REPLICA, FOLLOWER_REPLICAS, LEADER_REPLICAS, THROTTLE_LISTS, TopicPartition


def proven_removals(
    done: Mapping[TopicPartition, Replicas],
    now: Mapping[Setting, str | None],
    cancelled: Mapping[TopicPartition, Move],
) -> tuple[Change, ...]:
    """Return the changes that remove list entries which can only have been set for the moves of this plan.

    A move from S to T leaves `p:b` for every b of S on the leader list and for every b of T - S on the follower list
    (KIP-73). `done` has T for each partition whose move ended as planned. The entries of p belong to the move if
    followers and leaders are disjoint and not empty, the followers are in T, and all other brokers of T are leaders. A
    throttle of whole topics has `*` or the same replicas on both lists, so it never matches.

    For a `cancelled` move, S is also known, and the entries must be exactly those of this move. Other entries stay set,
    because they may belong to a move that is about to be submitted. A list that becomes empty is unset, because its
    previous value is unknown.
    """
    changes = []
    for topic in sorted({name.topic for name in (*done, *cancelled)}):
        lists = {key: now.get(Setting.of_topic(topic, key)) for key in THROTTLE_LISTS}
        if any(EVERY_REPLICA in entries(text) for text in lists.values()):
            continue
        own = _own(topic, done, cancelled, lists)
        for key, text in lists.items():
            setting = Setting.of_topic(topic, key)
            after = without(text, own & set(entries(text)), None)
            if own & set(entries(text)):
                changes.append(Change(setting=setting, before=text, after=after))
    return tuple(changes)


def _own(
    topic: str,
    done: Mapping[TopicPartition, Replicas],
    cancelled: Mapping[TopicPartition, Move],
    lists: Mapping[str, str | None],
) -> set[str]:
    by_partition: dict[TopicPartition, dict[str, set[str]]] = {}
    for key, text in lists.items():
        for entry in entries(text):
            named = replica(Setting.of_topic(topic, key), entry)
            if named is not None and (named[0] in done or named[0] in cancelled):
                by_partition.setdefault(named[0], {LEADER_REPLICAS: set(), FOLLOWER_REPLICAS: set()})[key].add(entry)
    own: set[str] = set()
    for name, found in by_partition.items():
        leaders, followers = found[LEADER_REPLICAS], found[FOLLOWER_REPLICAS]
        if move := cancelled.get(name):
            sure = found == {setting.key: set(left) for setting, left in list_entries([move]).items()}
        else:
            target = {f"{name.partition}:{broker}" for broker in done[name]}
            sure = not leaders & followers and followers <= target and target - followers <= leaders
        if followers and leaders and sure:
            own |= leaders | followers
    return own
