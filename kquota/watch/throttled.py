"""The throttled replicas of the watched topics. A list is parsed again only if its text has changed or contains `*`,
because lists can be long.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kquota.reassign.port import Snapshot
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.terms import (
    EVERY_REPLICA,
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    BrokerId,
    ReplicaId,
    TopicPartition,
    listed_replica,
)


class ThrottledReplicas:
    """The replicas that the lists name, as they were last read. A `*` means all replicas of its topic."""

    def __init__(self) -> None:
        self._lists: dict[Setting, tuple[str | None, frozenset[ReplicaId]]] = {}
        self.leaders: frozenset[ReplicaId] = frozenset()
        self.followers: frozenset[ReplicaId] = frozenset()

    def update(
        self,
        requested: Collection[Setting],
        lists: Mapping[Setting, str | None],
        snapshot: Snapshot,
        *,
        complete: bool,
    ) -> None:
        """Replace the requested lists. With `complete`, remove all other lists.

        A requested list that is missing from `lists` is unknown, not unset, so it keeps its previous value. With
        `complete`, it is removed if its topic was deleted.
        """
        before = self._lists
        self._lists = {} if complete else dict(before)
        places: dict[str, tuple[int, BrokerId] | None] = {}
        topics = {name.topic for name in snapshot.partitions} if len(lists) < len(requested) else ()
        for setting in requested:
            known = before.get(setting)
            if setting not in lists:
                if known is not None and setting.name in topics:
                    self._lists[setting] = known
                continue
            text = lists[setting]
            if known is None or known[0] != text or EVERY_REPLICA in (text or ""):
                known = text, _named(setting.name, text, snapshot, places)
            self._lists[setting] = known
        if self._lists != before:
            self.leaders, self.followers = self._listed_in(LEADER_REPLICAS), self._listed_in(FOLLOWER_REPLICAS)

    def _listed_in(self, key: str) -> frozenset[ReplicaId]:
        return frozenset().union(*(named for setting, (_, named) in self._lists.items() if setting.key == key))


def _named(
    topic: str, text: str | None, snapshot: Snapshot, places: dict[str, tuple[int, BrokerId] | None]
) -> frozenset[ReplicaId]:
    """Return the replicas in one list. `places` keeps the parsed entries, because many topics have the same entries."""
    found = entries(text)
    if EVERY_REPLICA in found:
        return frozenset((n, b) for n, now in snapshot.partitions.items() if n.topic == topic for b in now.replicas)
    replicas = []
    for entry in found:
        if entry not in places:
            places[entry] = listed_replica(entry)
        if (place := places[entry]) is not None:
            replicas.append((TopicPartition(topic, place[0]), place[1]))
    return frozenset(replicas)
