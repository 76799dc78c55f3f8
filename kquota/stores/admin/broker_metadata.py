"""The Sight port: the metadata of each broker. This module also finds the fenced brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafka.protocol.admin.cluster import DescribeClusterRequest

from kquota.errors import KquotaError, Refused, Retry
from kquota.stores.admin.connection import Wire, kafka_error, metadata_request
from kquota.stores.admin.requests import UNKNOWN_TOPIC
from kquota.terms import BrokerId

_WITH_FENCED: Final = 2
"""The first version of DescribeCluster that reports fenced brokers (KIP-1073)."""


class WireSight:
    """Implements `kquota.probe.port.Sight`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def behind(self, wanted: Mapping[str, int]) -> int:
        answers = self._wire.ask_each(dict.fromkeys(self._wire.brokers(), metadata_request(wanted)))
        return sum(isinstance(a, KquotaError) or not _shows(a, wanted) for a in answers.values())


def fenced(wire: Wire) -> frozenset[BrokerId]:
    """Return the fenced brokers. The set is empty before Kafka 4.0, because older brokers do not report them.

    Raises Unreachable if no broker answers, and Refused if the broker answers with an error.
    """
    request = DescribeClusterRequest(include_fenced_brokers=True, min_version=_WITH_FENCED)
    try:
        answer = wire.read(request)
    except Refused:
        return frozenset()
    if answer.error_code:
        words = kafka_error(answer.error_code, answer.error_message)
        raise Refused(f"fenced brokers: the broker answered {words}", Retry(". Run the command again"))
    return frozenset(BrokerId(broker.broker_id) for broker in answer.brokers if broker.is_fenced)


def _shows(answer: Any, wanted: Mapping[str, int]) -> bool:
    """Return True if each topic has the wanted number of partitions with a leader in the broker's answer.

    The number 0 means a deleted topic, which the broker must report as unknown. A topic without leaders does not count
    as deleted, because a broker can still list it.
    """
    topics = {topic.name: topic for topic in answer.topics}
    return all(
        _led(topics[name]) == partitions if partitions else topics[name].error_code == UNKNOWN_TOPIC
        for name, partitions in wanted.items()
    )


def _led(topic: Any) -> int:
    if topic.error_code:
        return 0
    return sum(partition.leader_id >= 0 and not partition.error_code for partition in topic.partitions or ())
