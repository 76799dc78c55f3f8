"""The effect of a move: the bytes on each broker before and after it, and the bytes to copy for each topic."""

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
    """The effect of a move: brokers by id, the topics with the most bytes to copy, and the number of all moving topics.

    Topics are sorted by bytes, the largest first.
    """

    held: tuple[BrokerBytes, ...]
    topics: tuple[MovingTopic, ...]
    topics_in_all: int
