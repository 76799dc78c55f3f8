"""The Sight port: the metadata of each broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafka.protocol.metadata import MetadataRequest

from kquota.errors import KquotaError
from kquota.stores.admin.connection import Wire

_NOT_YET: Final = (3, 5)
"""UNKNOWN_TOPIC_OR_PARTITION and LEADER_NOT_AVAILABLE. Partitions can also have the second one."""


class WireSight:
    """Implements `kquota.probe.port.Sight`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def behind(self, wanted: Mapping[str, int]) -> int:
        """Count a broker that does not answer as behind."""
        named = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in wanted]
        request = MetadataRequest(topics=named, allow_auto_topic_creation=False, min_version=1)
        answers = self._wire.ask_each(dict.fromkeys(self._wire.brokers(), request))
        return sum(isinstance(a, KquotaError) or not _shows(a, wanted) for a in answers.values())


def _shows(answer: Any, wanted: Mapping[str, int]) -> bool:
    told = {topic.name: _led(topic) for topic in answer.topics}
    return all(told.get(topic, 0) == partitions for topic, partitions in wanted.items())


def _led(topic: Any) -> int:
    """Return the number of partitions that have a leader."""
    if topic.error_code:
        return 0 if topic.error_code in _NOT_YET else -1
    return sum(partition.leader_id >= 0 and not partition.error_code for partition in topic.partitions or ())
