"""What ZooKeeper's nodes tell of partitions and of moves under way (KIP-455).

A move submitted here is in /admin/reassign_partitions, one through the Admin API only in its topic's node; from Kafka
2.4 on the topic's node also says how far the controller is.
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
    """The addresses of the live brokers, host:port joined by commas. Raises Refused where no broker is registered."""
    paths = [f"{LIVE_BROKERS}/{node}" for node in znodes.children(LIVE_BROKERS)]
    found = (json_object(node, path) for path, node in znodes.read_all(paths).items())
    named = [str(one) for document in found for one in document.get("endpoints") or ()]
    addresses = sorted({name.partition("://")[2] for name in named if "://" in name})
    if not addresses:
        raise Refused("ZooKeeper: no live broker is registered")
    return ",".join(addresses)


def submitted(node: Node | None, topics: Mapping[str, Node]) -> dict[TopicPartition, Replicas]:
    """What was submitted, of the topics that are there; one that is newer than the submission is not what it meant."""
    return {
        TopicPartition(entry["topic"], entry["partition"]): brokers(entry["replicas"])
        for entry in json_object(node, SUBMITTED).get("partitions", ())
        if node and (topic := topics.get(entry["topic"])) and topic.made < node.made
    }


def partitions(
    topic: str, document: Mapping[str, Any], submitted: Mapping[TopicPartition, Replicas]
) -> dict[TopicPartition, PartitionReplicas]:
    """Every partition in a topic's node, with what is submitted for it; leaders and in-sync replicas are not there."""
    found = {}
    for number, ids in sorted(document.get("partitions", {}).items(), key=lambda item: int(item[0])):
        name, replicas = TopicPartition(topic, int(number)), brokers(ids)
        adding = brokers(document.get("adding_replicas", {}).get(number, ()))
        removing = brokers(document.get("removing_replicas", {}).get(number, ()))
        target = submitted.get(name, ())
        if target and not adding and not removing:
            # Not yet taken in by the controller: what it will make of it.
            adding = tuple(broker for broker in target if broker not in replicas)
            removing = tuple(broker for broker in replicas if broker not in target)
            replicas = (*target, *removing) if adding or removing else replicas
        found[name] = PartitionReplicas(replicas=replicas, adding=adding, removing=removing)
    return found


def running(
    documents: Mapping[str, Mapping[str, Any]], submitted: Mapping[TopicPartition, Replicas]
) -> dict[TopicPartition, PartitionReplicas]:
    """The partitions that move, whoever submitted them, by the topics' nodes."""
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
    """A list of broker ids as a node has it."""
    return tuple(map(BrokerId, ids))


def json_object(node: Node | None, path: str) -> dict[str, Any]:
    """The JSON object in a znode, {} where there is none. Raises Refused where it is something else."""
    if node is None or not node.data:
        return {}
    try:
        document = json.loads(node.data)
    except ValueError as error:
        raise Refused(f"ZooKeeper: {path} does not hold JSON; examine it with zookeeper-shell") from error
    if not isinstance(document, dict):
        raise Refused(f"ZooKeeper: {path} does not hold a JSON object; examine it with zookeeper-shell")
    return document
