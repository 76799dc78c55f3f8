"""The ConsumerGroups port on the Admin API: ListGroups (KIP-518), OffsetFetch, and ListOffsets."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from kafka.protocol.admin.groups import ListGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest

from kquota.errors import KquotaError, Unreachable
from kquota.pace.lag import GroupOffsets, OffsetsReading
from kquota.stores.admin.connection import HUNG_SECONDS, Wire
from kquota.stores.admin.offsets import CONSUMER, LATEST, ListOffsetsRequest, by_partition
from kquota.stores.admin.partition_states import PartitionStatesRequest, topic_states
from kquota.stores.admin.wire_format import numbers_by_topic
from kquota.terms import BrokerId, TopicPartition

MOST_GROUPS: Final = 200
"""A reading has at most this many groups, because each group needs a request."""
MOST_PARTITIONS: Final = 10_000
"""A reading has at most this many offsets, because decoding them delays kquota's own writes."""
_LISTED_SECONDS: Final = 60.0
"""After this many seconds, or earlier after a failure, kquota looks up the groups and leaders again."""
_SECONDS: Final = 8.0
"""The time limit in seconds for listing the groups and reading their committed offsets, and again for reading the last
stable offsets.
"""
_LONGEST_GAP: Final = 5.0
"""The maximum time in seconds for reading the committed offsets and the last stable offsets. After a longer time, a lag
calculated from them would be wrong, so the reading has no groups.
"""
_WITH_STATES: Final = 4
"""The version of ListGroups that added the states, in Kafka 2.6."""
_ONE_GROUP: Final = (2, 7)
"""The first and the last version of OffsetFetch that can return all offsets of exactly one group.

Every supported broker accepts at least one version in this range.
"""
_DENIED: Final = 30
"""GROUP_AUTHORIZATION_FAILED. A broker may list a group to a user who may not read the group's offsets."""
_MOVED: Final = (14, 15, 16)
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE and NOT_COORDINATOR."""
_TYPES: Final = ("consumer", "streams")
"""The protocol types of groups that commit the offsets of the records that they read."""


class WireGroups:
    """Implements `ConsumerGroups`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._coordinators: Mapping[str, BrokerId] = {}
        self._left_out: set[str] = set()
        """Groups that are never read again, because this user may not describe them or they did not fit into
        `MOST_PARTITIONS`.
        """
        self._leaders: Mapping[TopicPartition, BrokerId] = {}
        self._topics = topic_states()
        self._listed = float("-inf")
        self._unlisted: frozenset[BrokerId] = frozenset()
        """The brokers that did not list their groups when kquota last asked them."""
        self._silent: set[BrokerId] = set()
        """The brokers that did not answer when kquota last listed the groups."""

    def read(self) -> OffsetsReading:
        give_up = time.monotonic() + _SECONDS
        if time.monotonic() - self._listed > _LISTED_SECONDS:
            self._list()
        at = time.monotonic()
        # Ends that are read after the commits can only be higher, so no lag is negative.
        committed = self._committed(give_up)
        ends = self._ends({partition for those in committed.values() for partition in those})
        if time.monotonic() - at > _LONGEST_GAP:
            committed = {}
        groups = {
            group: {name: GroupOffsets(offset, ends[name]) for name, offset in those.items() if name in ends}
            for group, those in committed.items()
        }
        unread = len(self._coordinators.keys() - groups.keys())
        return OffsetsReading(at=at, groups=groups, unread=unread, unlisted=len(self._unlisted))

    def _list(self) -> None:
        """Find the groups of `_TYPES` in the state Stable, and the coordinator of each group.

        If a broker does not list its groups, kquota keeps those that the broker listed before, and asks again with the
        next reading. If the same brokers fail again, kquota waits as long as after a complete list, because asking all
        brokers before each reading would load the brokers.
        """
        self._wire.refresh()
        request = ListGroupsRequest(states_filter=["Stable"], types_filter=[], min_version=_WITH_STATES)
        answers = self._wire.ask_each(dict.fromkeys(self._wire.brokers(), request), HUNG_SECONDS)
        self._silent = {broker for broker, answer in answers.items() if isinstance(answer, Unreachable)}
        found: dict[str, BrokerId] = {}
        unlisted: set[BrokerId] = set()
        for broker, answer in answers.items():
            if isinstance(answer, KquotaError) or answer.error_code:
                unlisted.add(broker)
                found |= {group: known for group, known in self._coordinators.items() if known == broker}
            else:
                found |= {group.group_id: broker for group in answer.groups if group.protocol_type in _TYPES}
        self._coordinators = dict(sorted(found.items()))
        self._leaders = {}
        self._listed = float("-inf") if unlisted - self._unlisted else time.monotonic()
        self._unlisted = frozenset(unlisted)

    def _committed(self, give_up: float) -> dict[str, dict[TopicPartition, int]]:
        """Return the committed offsets of as many groups as `MOST_GROUPS`, `MOST_PARTITIONS` and `give_up` allow."""
        found: dict[str, dict[TopicPartition, int]] = {}
        silent = set(self._silent)
        left = MOST_PARTITIONS
        least, most = _ONE_GROUP
        asked = [group for group in self._coordinators if group not in self._left_out][:MOST_GROUPS]
        for batch in _batches({group: self._coordinators[group] for group in asked}):
            seconds = give_up - time.monotonic()
            if seconds <= 0:
                break
            requests = {
                broker: OffsetFetchRequest(group_id=group, topics=None, min_version=least, max_version=most)
                for broker, group in batch.items()
                if broker not in silent
            }
            for broker, answer in self._wire.ask_each(requests, seconds).items():
                if isinstance(answer, KquotaError) or answer.error_code in _MOVED:
                    silent.add(broker)
                    self._listed = float("-inf")
                elif answer.error_code == _DENIED:
                    self._left_out.add(batch[broker])
                elif not answer.error_code:
                    offsets = _offsets(answer)
                    if len(offsets) > left:
                        self._left_out.add(batch[broker])
                    else:
                        left -= len(offsets)
                        found[batch[broker]] = offsets
        return dict(sorted(found.items()))

    def _ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the last stable offset of each partition. A partition whose offset is unknown is absent."""
        if missing := {name.topic for name in partitions if name not in self._leaders}:
            states = self._wire.partition_states(PartitionStatesRequest(sorted(missing), self._topics))
            new = (one for topic in states.topics for one in topic.partitions.items())
            self._leaders = {**self._leaders, **{name: now.leader for name, now in new if now.leader is not None}}
        asked: defaultdict[BrokerId, list[TopicPartition]] = defaultdict(list)
        for name in sorted(partitions):
            leader = self._leaders.get(name)
            if leader is not None and leader not in self._silent:
                asked[leader].append(name)
        requests = {
            broker: ListOffsetsRequest.of(numbers_by_topic(those), LATEST, CONSUMER, committed=True)
            for broker, those in sorted(asked.items())
        }
        ends: dict[TopicPartition, int] = {}
        for answer in self._wire.ask_each(requests, _SECONDS).values():
            if not isinstance(answer, KquotaError):
                ends |= by_partition(answer.offsets)
        if len(ends) < len(partitions):
            self._leaders = {}
        return ends


def _batches(coordinators: Mapping[str, BrokerId]) -> Iterator[dict[BrokerId, str]]:
    """Yield batches with at most one group of each broker, until every group is in a batch."""
    queues: defaultdict[BrokerId, list[str]] = defaultdict(list)
    for group, broker in sorted(coordinators.items(), reverse=True):
        queues[broker].append(group)
    while queues:
        yield {broker: groups.pop() for broker, groups in sorted(queues.items())}
        queues = defaultdict(list, {broker: groups for broker, groups in queues.items() if groups})


def _offsets(answer: Any) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, one.partition_index): one.committed_offset
        for topic in answer.topics
        for one in topic.partitions
        if not one.error_code and one.committed_offset >= 0
    }
