"""The words that every room shares, exactly as Kafka spells them. No behaviour beyond order and spelling."""

from __future__ import annotations

import enum
import re
from typing import Final, NamedTuple, NewType, TypeAlias

BrokerId = NewType("BrokerId", int)

HIGHEST_ID: Final = 2**31 - 1
"""Of a broker, and of a partition: both are 32 bits on the wire."""
_DIGITS: Final = 10


def is_id(text: str) -> bool:
    """Whether a text is the number of a broker or of a partition, in decimal.

    >>> is_id("2147483647"), is_id("2147483648"), is_id("-1"), is_id("9" * 5000)
    (True, False, False, False)
    """
    # int() takes other scripts' digits, too, and of too many none.
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) <= HIGHEST_ID


class Default(enum.Enum):
    """The default entity of its type. A type of its own, because `<default>` is also a name that a user may have."""

    DEFAULT = "default"


DEFAULT: Final = Default.DEFAULT
WIRE_DEFAULT: Final = "<default>"
"""How Kafka writes it where only names fit: in ZooKeeper's paths."""


class TopicPartition(NamedTuple):
    """One partition; ordered by topic, then by number; written `topic-3` as Kafka's tools do.

    A tuple, for plans hash and compare 100,000 of them.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


ReplicaId: TypeAlias = tuple[TopicPartition, BrokerId]
"""One replica: of which partition, on which broker."""

TOPIC_NAME: Final = r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}"
"""The pattern that the whole of a topic's name matches (Topic.validate); Python's and Java's alike."""
_TOPIC_NAME: Final = re.compile(TOPIC_NAME)


def wrong_topic_name(text: str) -> str | None:
    """Why no broker takes it as a topic's name, to be put behind the text; None where one does.

    >>> wrong_topic_name("orders"), wrong_topic_name("a b")
    (None, "is not a valid topic name: use 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-', and not '.' or '..'")
    """
    if _TOPIC_NAME.fullmatch(text):
        return None
    return "is not a valid topic name: use 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-', and not '.' or '..'"


PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
USERS: Final = "users"
CLIENTS: Final = "clients"
IPS: Final = "ips"
ENTITY_TYPES: Final = (USERS, CLIENTS, IPS)
"""Whom a quota can be for, as --entity-type has it."""

SAMPLES: Final = 11
"""quota.window.num, replication.quota.window.num and controller.quota.window.num as Kafka ships them."""
SAMPLE_MS: Final = 1_000
"""quota.window.size.seconds and its two twins as Kafka ships them."""

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIR_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
THROTTLE_LISTS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
"""Configs of a topic: which of its replicas are throttled, as leaders and as followers (KIP-73)."""


def listed_replica(entry: str) -> tuple[int, BrokerId] | None:
    """The partition and the broker of one entry of such a list; None for `*` and for what is no `partition:broker`.

    >>> listed_replica("3:1"), listed_replica("3:x"), listed_replica("9999999999:1")
    ((3, 1), None, None)
    """
    partition, _, broker = entry.partition(":")
    return (int(partition), BrokerId(int(broker))) if is_id(partition) and is_id(broker) else None


REPLICATION_RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
"""Configs of a broker: what listed replicas may send, and fetch, in bytes per second (KIP-73)."""
THROTTLE_RATES: Final = (*REPLICATION_RATES, LOG_DIR_RATE)
"""The same and what replicas between its log dirs may take (KIP-113)."""

DYNAMIC_TOPIC: Final = "DYNAMIC_TOPIC_CONFIG"
DYNAMIC_BROKER: Final = "DYNAMIC_BROKER_CONFIG"
DYNAMIC_DEFAULT_BROKER: Final = "DYNAMIC_DEFAULT_BROKER_CONFIG"
"""Where a value was set, in Kafka's words (KIP-226): on this topic, on this broker, on the default of all brokers."""

MIN_IN_SYNC: Final = "min.insync.replicas"

EVERY_REPLICA: Final = "*"
"""In place of a list of throttled replicas: all of the topic's."""
LONGEST_VALUE: Final = 32_767
"""Bytes of one stored config: 4.3.1 refuses more; 3.9.1 takes more and then cannot describe the topic."""

SEEN_SECONDS: Final = 20.0
"""Within which a write must be seen. KRaft reads were stale for up to 0.27 s; a broker on ZooKeeper looks at every
notification of the last 15 minutes first, and needed 2.3 s with 2,000 of them and 16 s with 10,000.
"""
