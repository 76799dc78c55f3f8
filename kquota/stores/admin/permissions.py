"""The operations that the authorizer permits to this user (KIP-430), and messages about missing permissions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from kafka.protocol.metadata import MetadataRequest

from kquota.errors import Refused
from kquota.list_text import few, listed
from kquota.stores.admin.connection import (
    ALTER,
    ALTER_CONFIGS,
    DESCRIBE,
    Wire,
    metadata_request,
    topic_refusal,
)
from kquota.stores.admin.requests import TOPIC_DENIED

_CODES: Final[Mapping[str, int]] = {ALTER: 7, DESCRIBE: 8, ALTER_CONFIGS: 11}
"""Kafka's codes of the operations."""
_BOTH: Final = 10
"""The last version of Metadata that reports the operations on topics and on the cluster in one answer."""
_SHOWN: Final = 5


def must_permit(wire: Wire, cluster: Collection[str], topics: Mapping[str, str]) -> None:
    """Raise Refused, with all missing permissions in one message, unless this user may use the operations in `cluster`
    on the cluster, and the operation in `topics` on each topic.

    A topic that does not exist needs no permission. Without an authorizer, everything is permitted. If the brokers do
    not report operations, for example because they do not support version 8 of Metadata (Kafka 2.3), this function
    raises nothing, because a write shows later whether it is permitted.
    """
    if not (cluster or topics):
        return
    answer = wire.read(
        MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in sorted(topics)],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=bool(cluster),
            include_topic_authorized_operations=True,
            min_version=1,
            max_version=_BOTH,
        )
    )
    missing: dict[str, list[str]] = {}
    for topic in answer.topics:
        for operation in _missing_on(topic, topics[topic.name]):
            missing.setdefault(operation, []).append(topic.name)
    needed = [f"{operation} on {_named(names)}" for operation, names in sorted(missing.items())]
    if of_cluster := [one for one in sorted(cluster) if not _permitted(answer.authorized_operations, one)]:
        needed.append(f"{listed(of_cluster)} on the cluster")
    if needed:
        raise Refused(f"this user needs {'; '.join(needed)}. Nothing was written")


def must_show(wire: Wire, topics: Collection[str]) -> None:
    """Raise Refused for a topic that Kafka hides from this user. For a topic that does not exist, raise nothing.

    Kafka gives a user without Describe on a topic the same answer, whether the topic exists or not.
    """
    if not topics:
        return
    for topic in wire.read(metadata_request(sorted(topics))).topics:
        if topic.error_code == TOPIC_DENIED:
            raise topic_refusal(topic.name, topic.error_code)


def _missing_on(topic: Any, operation: str) -> Iterator[str]:
    if topic.error_code == TOPIC_DENIED:
        yield from (DESCRIBE, operation)
    elif not topic.error_code and not _permitted(topic.authorized_operations, operation):
        yield operation


def _permitted(operations: Collection[int] | None, operation: str) -> bool:
    """Return False if the broker reports that the operation is not permitted.

    `operations` are the codes of the permitted operations, or None if the broker does not report them. A set without
    Describe also reports nothing: Kafka returns an empty set for the cluster to a user without Describe on it, although
    AlterConfigs does not need Describe, and a topic on which Describe is missing has an error instead of a set.
    """
    return operations is None or _CODES[DESCRIBE] not in operations or _CODES[operation] in operations


def _named(topics: Sequence[str]) -> str:
    return f"topic{'' if len(topics) == 1 else 's'} {few(topics, _SHOWN, ',')}"
