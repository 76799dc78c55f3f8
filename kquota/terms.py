"""The words that every room shares, exactly as Kafka spells them. No behaviour beyond order and spelling."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple, NewType

BrokerId = NewType("BrokerId", int)


class Default(enum.Enum):
    """The default entity of its type. A type of its own, because `<default>` is also a name that a user may have."""

    DEFAULT = "default"


DEFAULT: Final = Default.DEFAULT


class TopicPartition(NamedTuple):
    """One partition; ordered by topic, then by number; written `topic-3` as Kafka's tools do.

    A tuple, for plans hash and compare 100,000 of them.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


TOPIC_NAME: Final = r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}"
"""The pattern that the whole of a topic's name matches (Topic.validate); Python's and Java's alike."""

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CLIENT_QUOTAS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
IP_QUOTAS: Final = (CONNECTION_CREATION_RATE,)

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIR_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
THROTTLE_LISTS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
"""Configs of a topic: which of its replicas are throttled, as leaders and as followers (KIP-73)."""
REPLICATION_RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
"""Configs of a broker: what listed replicas may send, and fetch, in bytes per second (KIP-73)."""
THROTTLE_RATES: Final = (*REPLICATION_RATES, LOG_DIR_RATE)
"""The same and what replicas between its log dirs may take (KIP-113)."""

EVERY_REPLICA: Final = "*"
"""In place of a list of throttled replicas: all of the topic's."""
LONGEST_VALUE: Final = 32_767
"""Bytes of one stored config: 4.3.1 refuses more; 3.9.1 takes more and then cannot describe the topic."""
