"""The answers of `kquota topics`: names, topics with their partitions, and the results of changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kquota.cli.output import Answer, Part, Row, hidden, key
from kquota.list_text import joined
from kquota.mutation.actions import Fate
from kquota.mutation.topic import Brokers
from kquota.terms import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicNames(Answer):
    """The names of topics."""

    HEADER = ("topic",)
    ASCII = True

    topics: tuple[str, ...]

    def text(self) -> Iterable[str]:
        return self.topics

    def rows(self) -> Iterator[Row]:
        return ([name] for name in self.topics)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedPartition(Part):
    """A partition; None is a value that the brokers do not have yet, or do not report."""

    number: int = key("partition")
    leader: BrokerId | None
    replicas: Brokers
    isr: Brokers
    elr: Brokers | None
    last_known_elr: Brokers | None
    adding: Brokers
    removing: Brokers

    def line(self, topic: str) -> str:
        """The partition in Kafka's words."""
        leader = "none" if self.leader is None else self.leader
        moves = bool(self.adding or self.removing)
        moving = f"\tAdding Replicas: {joined(self.adding)}\tRemoving Replicas: {joined(self.removing)}" * moves
        elr, last_known = ("N/A" if ids is None else joined(ids) for ids in (self.elr, self.last_known_elr))
        return (
            f"\tTopic: {topic}\tPartition: {self.number}\tLeader: {leader}\tReplicas: {joined(self.replicas)}"
            f"\tIsr: {joined(self.isr)}{moving}\tElr: {elr}\tLastKnownElr: {last_known}"
        )

    def row(self, topic: str) -> Row:
        """The partition as the columns of a table."""
        leader = None if self.leader is None else str(self.leader)
        brokers = (self.replicas, self.isr, self.elr, self.last_known_elr, self.adding, self.removing)
        return [topic, str(self.number), leader, *(None if ids is None else joined(ids) for ids in brokers)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTopic(Part):
    """A topic with its partitions; `configs` are those that differ from Kafka's defaults."""

    topic: str
    id: str | None
    internal: bool
    replication_factor: int
    configs: Mapping[str, str]
    partitions: tuple[DescribedPartition, ...]

    def line(self) -> str:
        """The topic in Kafka's words, without its partitions."""
        configs = ",".join(f"{name}={value}" for name, value in self.configs.items())
        return (
            f"Topic: {self.topic}" + (f"\tTopicId: {self.id}" if self.id else "") + f"\tPartitionCount: "
            f"{len(self.partitions)}\tReplicationFactor: {self.replication_factor}\tConfigs: {configs}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTopics(Answer):
    """Topics; the text has a line for each topic, for each partition, or both."""

    HEADER = ("topic", "partition", "leader", "replicas", "isr", "elr", "last_known_elr", "adding", "removing")
    ASCII = True
    TABBED = True

    topics: tuple[DescribedTopic, ...]
    topic_lines: bool = hidden()
    partition_lines: bool = hidden()

    def text(self) -> Iterator[str]:
        for topic in self.topics:
            if self.topic_lines:
                yield topic.line()
            if self.partition_lines:
                yield from (partition.line(topic.topic) for partition in topic.partitions)

    def rows(self) -> Iterator[Row]:
        return (partition.row(topic.topic) for topic in self.topics for partition in topic.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnchangedTopic(Part):
    """A topic that already was as requested."""

    topic: str
    result: str = Fate.ALREADY.value


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedTopic(Part):
    """The result for one topic, and its cost for a mutation quota."""

    topic: str
    result: str
    mutations: int
    error: str | None
    throttle_time_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedTopics(Answer):
    """The result for each topic; `lines` are the text."""

    ASCII = True

    topics: tuple[UnchangedTopic | ChangedTopic, ...]
    lines: tuple[str, ...] = hidden()

    def text(self) -> tuple[str, ...]:
        return self.lines
