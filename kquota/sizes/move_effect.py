"""What a move does: the bytes that each broker holds before and after it, and what each topic copies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerBytes:
    """The bytes of all replicas on one broker, before a move and after it."""

    broker: int
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingTopic:
    """One topic's moving partitions, the replicas that are made of them, and these replicas' bytes."""

    topic: str
    partitions: int
    copies: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Brokers in ascending order; the topics that copy most, the largest first, and how many more `topics_in_all`."""

    held: tuple[BrokerBytes, ...]
    topics: tuple[MovingTopic, ...]
    topics_in_all: int
