"""Partitions and running moves in ZooKeeper's znodes (KIP-455).

A move that was submitted over ZooKeeper is in /admin/reassign_partitions. One that was submitted through the Admin API
is only in the znode of its topic. Since Kafka 2.4, that znode also has the progress of the controller.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kquota.errors import Refused
from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.stores.zookeeper.znode import LIVE_BROKERS, Node
from kquota.stores.zookeeper.znodes import Znodes
from kquota.terms import BrokerId, TopicPartition

SUBMITTED: Final = "/admin/reassign_partitions"


def endpoints(znodes: Znodes) -> str:
    """Return the addresses of the live brokers, host:port separated by commas. Raises Refused without a live broker."""
    paths = [f"{LIVE_BROKERS}/{node}" for node in znodes.children(LIVE_BROKERS)]
    found = (json_object(node, path) for path, node in znodes.read_all(paths).items())
    named = [str(one) for document in found for one in document.get("endpoints") or ()]
    addresses = sorted({name.partition("://")[2] for name in named if "://" in name})
    if not addresses:
        raise Refused("ZooKeeper: no live broker is registered")
    return ",".join(addresses)


def submitted(node: Node | None, topics: Mapping[str, Node]) -> dict[TopicPartition, Replicas]:
    """Return the submitted moves, without topics that do not exist or were created after the submission."""
    return {
        TopicPartition(entry["topic"], entry["partition"]): brokers(entry["replicas"])
        for entry in json_object(node, SUBMITTED).get("partitions", ())
        if node and (topic := topics.get(entry["topic"])) and topic.made < node.made
    }


def partitions(
    topic: str, document: Mapping[str, Any], submitted: Mapping[TopicPartition, Replicas]
) -> dict[TopicPartition, PartitionReplicas]:
    """Return every partition in a topic's znode with its submission, but without leaders and in-sync replicas."""
    found = {}
    for number, ids in sorted(document.get("partitions", {}).items(), key=lambda item: int(item[0])):
        name, replicas = TopicPartition(topic, int(number)), brokers(ids)
        adding = brokers(document.get("adding_replicas", {}).get(number, ()))
        removing = brokers(document.get("removing_replicas", {}).get(number, ()))
        target = submitted.get(name, ())
        if target and not adding and not removing:
            # The controller has not begun yet, so the submission is the state that it will reach.
            adding = tuple(broker for broker in target if broker not in replicas)
            removing = tuple(broker for broker in replicas if broker not in target)
            replicas = (*target, *removing) if adding or removing else replicas
        found[name] = PartitionReplicas(replicas=replicas, adding=adding, removing=removing)
    return found


def running(
    documents: Mapping[str, Mapping[str, Any]], submitted: Mapping[TopicPartition, Replicas]
) -> dict[TopicPartition, PartitionReplicas]:
    """Return all moving partitions: those of the submission and those in the znodes of topics."""
    moving = {
        topic for topic, found in documents.items() if found.get("adding_replicas") or found.get("removing_replicas")
    }
    found: dict[TopicPartition, PartitionReplicas] = {}
    for topic in sorted(moving | {name.topic for name in submitted}):
        for name, state in partitions(topic, documents[topic], submitted).items():
            if state.moving or name in submitted:
                found[name] = state
    return found


def brokers(ids: Iterable[int]) -> Replicas:
    """Return the list of broker ids in a znode."""
    return tuple(map(BrokerId, ids))


def json_object(node: Node | None, path: str) -> dict[str, Any]:
    """Return the JSON object in a znode, or {} if the znode is missing or empty.

    Raises Refused for any other content.
    """
    if node is None or not node.data:
        return {}
    try:
        document = json.loads(node.data)
    except ValueError as error:
        raise Refused(f"ZooKeeper: {path} does not hold JSON. Examine it with zookeeper-shell") from error
    if not isinstance(document, dict):
        raise Refused(f"ZooKeeper: {path} does not hold a JSON object. Examine it with zookeeper-shell")
    return document
