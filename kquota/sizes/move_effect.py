"""The effect of a move: the bytes on each broker before and after it, and the bytes that each topic copies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerBytes:
    """The bytes of all replicas on one broker, before and after a move."""

    broker: int
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingTopic:
    """The moving partitions of one topic, the number of their new replicas, and the bytes of these replicas."""

    topic: str
    partitions: int
    copies: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Brokers in ascending order, the topics that copy most, the largest first, and the number of all moving topics."""

    held: tuple[BrokerBytes, ...]
    topics: tuple[MovingTopic, ...]
    topics_in_all: int
