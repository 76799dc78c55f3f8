"""The proposal of `kafka-reassign-partitions --generate`, by the rule of Kafka's older tools, but repeatable.

The rule is AdminUtils.assignReplicasToBrokers (KIP-36). In Kafka 4.3, the tool uses KRaft's StripedReplicaPlacer
instead.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice, zip_longest

from kquota.errors import Parameter, Refused
from kquota.list_text import joined
from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.plan import Plan
from kquota.terms import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The current and the proposed replicas of partitions.

    `gaining` are the partitions that get a new replica and must copy it. All other partitions copy nothing: at most,
    they lose replicas or change the order of their replicas. `mixed` has the topics with several replication factors,
    each factor with its number of partitions.
    """

    current: Plan
    proposed: Plan
    gaining: tuple[TopicPartition, ...]
    mixed: Mapping[str, Mapping[int, int]]


def proposal(
    partitions: Mapping[TopicPartition, PartitionReplicas], racks: Mapping[BrokerId, str | None], seed: int
) -> Proposal:
    """Return a proposal for `partitions`, with replicas on the brokers of `racks`. `partitions` has all partitions of
    each of its topics. In ZooKeeper, the partition numbers of a topic may have gaps.

    The proposed replicas do not depend on the brokers of the current replicas. A topic gets the replication factor of
    its first partition (Kafka: of an arbitrary one). A moving partition counts with its target replicas. The same seed,
    brokers, racks and partitions of a topic give the same result, even if the other topics differ. Raises Refused if a
    topic needs more brokers than there are, or if only some brokers have a rack.
    """
    _check_racks(racks)
    current = Plan(targets={name: now.target for name, now in partitions.items()})
    topics: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for name in sorted(current.targets):
        topics[name.topic].append(name)
    factors = {topic: [len(current.targets[name]) for name in names] for topic, names in topics.items()}
    proposed: dict[TopicPartition, Replicas] = {}
    for topic, topic_factors in factors.items():
        factor = topic_factors[0]
        if factor > len(racks):
            raise Refused(
                f"topic {topic}: Replication factor: {factor} larger than available brokers: {len(racks)}. "
                "Give more brokers in ",
                Parameter("broker_list"),
            )
        start, shift = _begin(seed, topic, len(racks))
        replicas = placed(racks, len(topic_factors), factor, start=start, shift=shift)
        proposed |= zip(topics[topic], replicas.values(), strict=True)
    return Proposal(
        current=current,
        proposed=Plan(targets=proposed),
        gaining=tuple(name for name, before in current.targets.items() if not set(proposed[name]) <= set(before)),
        mixed={topic: Counter(each) for topic, each in factors.items() if len(set(each)) > 1},
    )


def _check_racks(racks: Mapping[BrokerId, str | None]) -> None:
    without = sorted(broker for broker, rack in racks.items() if rack is None)
    if without and len(without) < len(racks):
        raise Refused(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            f"assignment without rack information; without a rack: {joined(without)}"
        )


def placed(
    racks: Mapping[BrokerId, str | None],
    partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
) -> dict[int, Replicas]:
    """Return the replicas of `partitions` partitions, numbered from 0, on the brokers of `racks`, the leader first.

    The brokers are in the order of `alternated`, and positions wrap around. The leader of partition n is the broker at
    position n + `start`. Its followers begin at the next broker, plus `shift` times the number of racks. `shift` grows
    by one after each pass over all brokers, which spreads the followers of one leader over all other brokers. A rack
    gets a second replica only when every rack has one. Without racks, all brokers are in one rack. The replication
    factor must not exceed the number of brokers. Source: KIP-36, AdminUtils.
    """
    order = alternated(racks)
    found: dict[int, Replicas] = {}
    for number in range(partitions):
        if number and number % len(order) == 0:
            shift += 1
        leader = (number + start) % len(order)
        followers = islice(_followers(order, racks, leader, shift), replication_factor - 1)
        found[number] = (order[leader], *followers)
    return found


def alternated(racks: Mapping[BrokerId, str | None]) -> tuple[BrokerId, ...]:
    """Order the brokers so that racks alternate. Racks, and the brokers within a rack, are sorted.

    >>> alternated({BrokerId(0): "a", BrokerId(1): "a", BrokerId(2): "a", BrokerId(3): "b", BrokerId(4): "c"})
    (0, 3, 4, 1, 2)
    """
    members: defaultdict[str, list[BrokerId]] = defaultdict(list)
    for broker, rack in sorted(racks.items()):
        members[rack or ""].append(broker)
    # Racks are sorted by UTF-16 code units, because Java compares text in this way.
    by_rack = [members[rack] for rack in sorted(members, key=lambda rack: rack.encode("utf-16-be", "surrogatepass"))]
    return tuple(broker for turn in zip_longest(*by_rack) for broker in turn if broker is not None)


def _followers(
    order: Sequence[BrokerId], racks: Mapping[BrokerId, str | None], leader: int, shift: int
) -> Iterator[BrokerId]:
    """Yield the brokers of the followers in order, without end. Use a rack again only when every rack has a replica,
    and a broker again only when every broker has one.
    """
    every_rack = set(racks.values())
    taken, taken_racks = {order[leader]}, {racks[order[leader]]}
    for turn in count(shift * len(every_rack)):
        broker = order[(leader + 1 + turn % (len(order) - 1)) % len(order)]
        waits = racks[broker] in taken_racks and taken_racks != every_rack
        if not waits and (broker not in taken or len(taken) == len(order)):
            taken.add(broker)
            taken_racks.add(racks[broker])
            yield broker


def _begin(seed: int, topic: str, brokers: int) -> tuple[int, int]:
    """Return the `start` and the `shift` that `placed` needs for this topic, both below the number of brokers. They
    come from a hash instead of a random generator, because Python may change the numbers of its generator.
    """
    digest = hashlib.sha256(f"{seed} {topic}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % brokers, int.from_bytes(digest[8:16], "big") % brokers
