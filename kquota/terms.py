"""Kafka's terms that all packages share, in Kafka's spelling, with their order and their text forms."""

from __future__ import annotations

import enum
import re
from typing import Final, NamedTuple, NewType, TypeAlias

BrokerId = NewType("BrokerId", int)

HIGHEST_ID: Final = 2**31 - 1
"""The highest broker id and partition id. Both have 32 bits in the protocol."""
LONG_MAX: Final = 2**63 - 1
"""The largest `long` in Java. A rate with this value limits nothing, and it is Kafka's default for throttle rates."""
WITHOUT_ZOOKEEPER: Final = (4, 0)
"""The first release whose clusters all use KRaft."""
_DIGITS: Final = 10


def dotted(release: tuple[int, ...]) -> str:
    """Return a release in the usual notation, for example 3.9.1."""
    return ".".join(map(str, release))


def is_id(text: str) -> bool:
    """Return True if the text is a broker id or a partition id in decimal.

    >>> is_id("2147483647"), is_id("2147483648"), is_id("-1"), is_id("9" * 5000)
    (True, False, False, False)
    """
    # int() also accepts the digits of other scripts, and fails for too many digits.
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) <= HIGHEST_ID


class Default(enum.Enum):
    """The default entity of an entity type. It is not a string, because `<default>` is also a valid user name."""

    DEFAULT = "default"


DEFAULT: Final = Default.DEFAULT
WIRE_DEFAULT: Final = "<default>"
"""Kafka's text for the default entity in ZooKeeper paths, because a path cannot contain a null name. rpk uses the same
text.
"""
ANONYMOUS: Final = "ANONYMOUS"
"""The user of a client that does not authenticate (KafkaPrincipal)."""


class TopicPartition(NamedTuple):
    """One partition, written `topic-3` as in Kafka's tools, and sorted by topic and number.

    The class is a tuple for speed, because a plan hashes and compares 100,000 partitions.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


ReplicaId: TypeAlias = tuple[TopicPartition, BrokerId]
"""One replica: its partition and its broker."""

TOPIC_NAME: Final = r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}"
"""The pattern of a whole topic name (Topic.validate), for Python and Java."""
_TOPIC_NAME: Final = re.compile(TOPIC_NAME)


def wrong_topic_name(text: str) -> str | None:
    """Return why no broker accepts the text as a topic name, or None if brokers accept it. Messages append the result
    to the text.

    >>> wrong_topic_name("orders"), wrong_topic_name("a b")
    (None, "is not a valid topic name: use 1 to 249 characters of a-z, A-Z, 0-9, '.', '_', '-', but not '.' or '..'")
    """
    if _TOPIC_NAME.fullmatch(text):
        return None
    return "is not a valid topic name: use 1 to 249 characters of a-z, A-Z, 0-9, '.', '_', '-', but not '.' or '..'"


PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
USERS: Final = "users"
CLIENTS: Final = "clients"
IPS: Final = "ips"
ENTITY_TYPES: Final = (USERS, CLIENTS, IPS)
"""The entity types of quotas, as `--entity-type` names them."""
WIRE_TYPES: Final = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}
"""The entity types of quotas in requests to brokers. rpk and Terraform use the same names."""

SAMPLES: Final = 11
"""Kafka's default of `quota.window.num`, `replication.quota.window.num` and `controller.quota.window.num`."""
SAMPLE_MS: Final = 1_000
"""Kafka's default, in ms, of `quota.window.size.seconds` and of the same settings for replication and the controller.
"""
FULL_SAMPLES_MS: Final = (SAMPLES - 1) * SAMPLE_MS
"""With Kafka's defaults, the duration in ms of all samples except the one that a broker still fills."""

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIR_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
THROTTLE_LISTS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
"""Topic configs: the throttled replica lists for leaders and for followers (KIP-73)."""


def listed_replica(entry: str) -> tuple[int, BrokerId] | None:
    """Return the partition and broker of one entry of a throttled replica list, or None for `*` and any other text.

    >>> listed_replica("3:1"), listed_replica("3:x"), listed_replica("9999999999:1")
    ((3, 1), None, None)
    """
    partition, _, broker = entry.partition(":")
    return (int(partition), BrokerId(int(broker))) if is_id(partition) and is_id(broker) else None


REPLICATION_RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
"""Broker configs: the maximum rates at which a broker sends and fetches listed replicas, in bytes per second (KIP-73).
"""
THROTTLE_RATES: Final = (*REPLICATION_RATES, LOG_DIR_RATE)
"""`REPLICATION_RATES`, and the rate for replicas that move between the log dirs of a broker (KIP-113)."""
REMOTE_RATES: Final = tuple(f"remote.log.manager.{what}.max.bytes.per.second" for what in ("copy", "fetch"))
"""Broker configs: the maximum bytes per second to and from remote storage (KIP-956)."""
SKIPS_TIERED: Final = "follower.fetch.last.tiered.offset.enable"
"""Broker config, from Kafka 4.3: if true, a new replica copies only what remote storage does not have (KIP-1023)."""
BYTE_RATES: Final = (*THROTTLE_RATES, *REMOTE_RATES)
"""The broker configs for which kquota accepts a rate with a unit. Their values are in bytes per second."""

DYNAMIC_TOPIC: Final = "DYNAMIC_TOPIC_CONFIG"
DYNAMIC_BROKER: Final = "DYNAMIC_BROKER_CONFIG"
DYNAMIC_DEFAULT_BROKER: Final = "DYNAMIC_DEFAULT_BROKER_CONFIG"
"""Kafka's names for the sources of a value (KIP-226): this topic, this broker, and the default of all brokers."""

RESOURCE_NOT_FOUND: Final = 91
"""The error code for a user without SCRAM credentials, or without those to delete (KIP-554)."""
MAYBE_WRITTEN: Final = (-1, 7)
"""Error codes after which the change may have been written: `UNKNOWN_SERVER_ERROR` and `REQUEST_TIMED_OUT`."""

MIN_IN_SYNC: Final = "min.insync.replicas"

EVERY_REPLICA: Final = "*"
"""The value of a throttled replica list that means all replicas of the topic."""
LONGEST_VALUE: Final = 32_767
"""The maximum size in bytes of one stored config. Kafka 4.3.1 refuses a larger config. Kafka 3.9.1 accepts it and then
cannot describe the topic.
"""

LONGEST_TEXT: Final = 1_000
"""The maximum length of a text in the record of a run, for example a reason, in characters."""

SEEN_SECONDS: Final = 20.0
"""The maximum time in seconds that kquota waits for a write to become visible. KRaft reads were stale for up to 0.27 s.

Before a broker on ZooKeeper shows a write, it reads every notification of the last 15 minutes. This took 2.3 s for
2,000 notifications and 16 s for 10,000.
"""
