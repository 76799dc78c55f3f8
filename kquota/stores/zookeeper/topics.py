"""Partitions and running moves in ZooKeeper's znodes (KIP-455).

A move that was submitted over ZooKeeper is in `/admin/reassign_partitions`. A move that was submitted through the Admin
API is only in the znode of its topic. Since Kafka 2.4, that znode also lists the replicas that a move adds and
removes. Other tools can write these znodes, so each function that reads one checks the type of each value, and raises
Refused if Kafka did not write the znode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kquota import bounded
from kquota.errors import ExamineZnode, Refused
from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.stores.zookeeper.znode import LIVE_BROKERS, Node
from kquota.stores.zookeeper.znodes import Znodes
from kquota.terms import HIGHEST_ID, BrokerId, TopicPartition, is_id, wrong_topic_name

SUBMITTED: Final = "/admin/reassign_partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicNode:
    """The znode of a topic: the replicas of each partition by number, and the replicas that a move adds and removes.

    `topic_id` is None if the znode has no id, as before Kafka 2.8.
    """

    replicas: Mapping[int, Replicas] = field(default_factory=dict)
    adding: Mapping[int, Replicas] = field(default_factory=dict)
    removing: Mapping[int, Replicas] = field(default_factory=dict)
    topic_id: str | None = None


def endpoints(znodes: Znodes) -> str:
    """Return the addresses of the live brokers, sorted: `host:port`, separated by commas. Raises Refused if
    there is no address.

    A broker whose znode cannot be read is left out, because one address is enough.
    """
    paths = [f"{LIVE_BROKERS}/{node}" for node in znodes.children(LIVE_BROKERS)]
    named: set[str] = set()
    for path, node in znodes.read_all(paths).items():
        try:
            found = json_object(node, path).get("endpoints")
        except Refused:
            continue
        named |= {one for one in found if isinstance(one, str)} if isinstance(found, list) else set()
    addresses = sorted({name.partition("://")[2] for name in named if "://" in name})
    if not addresses:
        raise Refused("ZooKeeper: no live broker has registered an address. Check that the brokers are running")
    return ",".join(addresses)


def topic_in(node: Node | None, path: str) -> TopicNode:
    """Return the content of a topic's znode. A missing znode has no partitions."""
    document = json_object(node, path)
    try:
        topic_id = document.get("topic_id")
        if topic_id is not None and not isinstance(topic_id, str):
            raise ValueError("topic_id is not a string")
        return TopicNode(
            replicas=_by_partition(document, "partitions"),
            adding=_by_partition(document, "adding_replicas"),
            removing=_by_partition(document, "removing_replicas"),
            topic_id=topic_id,
        )
    except ValueError as error:
        raise _foreign(path, error) from error


def requested(node: Node | None) -> dict[TopicPartition, Replicas]:
    """Return the target replicas of each move in `/admin/reassign_partitions`, or {} if the znode does not exist.

    If Kafka did not write the znode, the controller cannot read it either, so the moves are unknown.
    """
    document = json_object(node, SUBMITTED)
    try:
        found = {}
        for entry in _list(document.get("partitions", []), "partitions"):
            if not isinstance(entry, dict):
                raise ValueError("an entry of partitions is not an object")
            topic, number = entry.get("topic"), entry.get("partition")
            if not isinstance(topic, str) or wrong_topic_name(topic) or not _is_number(number):
                raise ValueError("an entry of partitions does not name a partition")
            found[TopicPartition(topic, int(str(number)))] = brokers(entry.get("replicas"), "replicas")
        return found
    except ValueError as error:
        raise _foreign(SUBMITTED, error) from error


def submitted(node: Node | None, topics: Mapping[str, Node]) -> dict[TopicPartition, Replicas]:
    """Return the target replicas of the submitted moves. A move is left out if its topic does not exist or was created
    after the submission.
    """
    return {
        name: replicas
        for name, replicas in requested(node).items()
        if node and (topic := topics.get(name.topic)) and topic.made < node.made
    }


def partitions(
    topic: str, known: TopicNode, submitted: Mapping[TopicPartition, Replicas]
) -> dict[TopicPartition, PartitionReplicas]:
    """Return every partition in a topic's znode with its move, if any, but without leader and in-sync replicas."""
    found = {}
    for number, replicas in sorted(known.replicas.items()):
        name = TopicPartition(topic, number)
        adding, removing = known.adding.get(number, ()), known.removing.get(number, ())
        target = submitted.get(name, ())
        if target and not adding and not removing:
            # The controller has not begun the reassignment yet, so take its target from the submission.
            adding = tuple(broker for broker in target if broker not in replicas)
            removing = tuple(broker for broker in replicas if broker not in target)
            replicas = (*target, *removing) if adding or removing else replicas
        found[name] = PartitionReplicas(replicas=replicas, adding=adding, removing=removing)
    return found


def running(
    topics: Mapping[str, TopicNode], submitted: Mapping[TopicPartition, Replicas]
) -> dict[TopicPartition, PartitionReplicas]:
    """Return all moving partitions: those of the submission and those in the znodes of topics."""
    moving = {topic for topic, known in topics.items() if known.adding or known.removing}
    found: dict[TopicPartition, PartitionReplicas] = {}
    for topic in sorted(moving | {name.topic for name in submitted if name.topic in topics}):
        for name, state in partitions(topic, topics[topic], submitted).items():
            if state.moving or name in submitted:
                found[name] = state
    return found


def not_begun(topics: Mapping[str, TopicNode], submitted: Mapping[TopicPartition, Replicas]) -> set[TopicPartition]:
    """Return the partitions of the submitted moves whose new replicas are not in the znode of the topic yet."""
    found = set()
    for name, target in submitted.items():
        known = topics.get(name.topic, TopicNode())
        replicas = known.replicas.get(name.partition)
        if replicas is not None and name.partition not in known.adding and not set(target) <= set(replicas):
            found.add(name)
    return found


def leader_and_isr(node: Node | None, path: str) -> tuple[BrokerId | None, Replicas]:
    """Return the leader of a partition, or None if it has no leader, and its in-sync replicas. A missing znode has
    neither.
    """
    document = json_object(node, path)
    try:
        leader = document.get("leader", -1)
        if type(leader) is not int or leader > HIGHEST_ID:
            raise ValueError("leader is not a broker id")
        return BrokerId(leader) if leader >= 0 else None, brokers(document.get("isr", []), "isr")
    except ValueError as error:
        raise _foreign(path, error) from error


def brokers(ids: object, what: str) -> Replicas:
    """Return the broker ids of a list in a znode. Raises ValueError for any other value. `what` names the value in the
    message.
    """
    found = _list(ids, what)
    if not all(_is_number(broker) for broker in found):
        raise ValueError(f"{what} is not a list of broker ids")
    return tuple(map(BrokerId, found))


def cluster_id(znodes: Znodes) -> str:
    """Return the cluster id, as the brokers report it. Raises Refused if it is missing (before Kafka 0.10.1)."""
    found = json_object(znodes.read("/cluster/id"), "/cluster/id").get("id")
    if not isinstance(found, str):
        raise Refused("ZooKeeper: /cluster/id does not hold the cluster id. kquota needs Kafka 0.10.1 or newer")
    return found


def json_object(node: Node | None, path: str) -> dict[str, Any]:
    """Return the JSON object in a znode, or {} if the znode is missing or empty."""
    if node is None or not node.data:
        return {}
    try:
        return bounded.json_object(node.data)
    except ValueError as error:
        raise Refused(f"ZooKeeper: {path} does not hold a JSON object. ", ExamineZnode(path)) from error


def plain_id(text: str) -> bool:
    """Return True if the text is a broker id or a partition id as Kafka writes it, without leading zeros."""
    return is_id(text) and str(int(text)) == text


def _by_partition(document: Mapping[str, Any], key: str) -> dict[int, Replicas]:
    found = document.get(key, {})
    if not isinstance(found, dict) or not all(map(plain_id, found)):
        raise ValueError(f"{key} is not an object whose keys are partition ids")
    return {int(number): brokers(ids, key) for number, ids in found.items()}


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} is not a list")
    return value


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= HIGHEST_ID


def _foreign(path: str, error: ValueError) -> Refused:
    return Refused(f"ZooKeeper: {path} was not written by Kafka ({error}). ", ExamineZnode(path))
