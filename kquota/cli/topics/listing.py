"""`topics --list` and `--describe`, in the words of Kafka 4.3.1's kafka-topics."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kquota.cli import world
from kquota.cli.output import Answer, Part, Row, hidden, key
from kquota.cli.topics.command import REPORTS, TopicsOptions
from kquota.errors import Invalid, Refused
from kquota.list_text import joined
from kquota.mutation.topic import Brokers, Partition, Topic
from kquota.settings import port
from kquota.settings.resource import TOPICS, Entry, Resource
from kquota.terms import MIN_IN_SYNC, BrokerId

_DEFAULT = "DEFAULT_CONFIG"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicNames(Answer):
    """The names of the topics."""

    HEADER = ("topic",)
    ASCII = True

    topics: tuple[str, ...]

    def text(self) -> Iterable[str]:
        return self.topics

    def rows(self) -> Iterator[Row]:
        return ([name] for name in self.topics)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedPartition(Part):
    """A partition. `leader` is None if the partition has no leader.

    `elr` and `last_known_elr` are None before Kafka 4.0, because older brokers do not report them.
    """

    number: int = key("partition")
    leader: BrokerId | None
    replicas: Brokers
    isr: Brokers
    elr: Brokers | None
    last_known_elr: Brokers | None
    adding: Brokers
    removing: Brokers

    def line(self, topic: str) -> str:
        """Return the line of the partition in kafka-topics --describe."""
        leader = "none" if self.leader is None else self.leader
        moves = bool(self.adding or self.removing)
        moving = f"\tAdding Replicas: {joined(self.adding)}\tRemoving Replicas: {joined(self.removing)}" * moves
        elr, last_known = ("N/A" if ids is None else joined(ids) for ids in (self.elr, self.last_known_elr))
        return (
            f"\tTopic: {topic}\tPartition: {self.number}\tLeader: {leader}\tReplicas: {joined(self.replicas)}"
            f"\tIsr: {joined(self.isr)}{moving}\tElr: {elr}\tLastKnownElr: {last_known}"
        )

    def row(self, topic: str) -> Row:
        """Return the partition as a row of the table."""
        leader = None if self.leader is None else str(self.leader)
        brokers = (self.replicas, self.isr, self.elr, self.last_known_elr, self.adding, self.removing)
        return [topic, str(self.number), leader, *(None if ids is None else joined(ids) for ids in brokers)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTopic(Part):
    """A topic with its partitions. `configs` are the configs whose source is not Kafka's default. `id` is None before
    Kafka 2.8.
    """

    topic: str
    id: str | None
    internal: bool
    replication_factor: int
    configs: Mapping[str, str]
    partitions: tuple[DescribedPartition, ...]

    def line(self) -> str:
        """Return the line of the topic in kafka-topics --describe, without its partitions."""
        configs = ",".join(f"{name}={value}" for name, value in self.configs.items())
        return (
            f"Topic: {self.topic}" + (f"\tTopicId: {self.id}" if self.id else "") + f"\tPartitionCount: "
            f"{len(self.partitions)}\tReplicationFactor: {self.replication_factor}\tConfigs: {configs}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTopics(Answer):
    """The described topics. The text has a line for each topic, for each partition, or for both."""

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


def listed(at: world.Where, options: TopicsOptions, *, describe: bool) -> Answer:
    """Return topic names, or topics with their partitions.

    Without --if-exists, raises Refused for an unknown --topic-id and, with `describe`, for a name that matches no
    topic.
    """
    with world.topics(at) as stage:
        found = matching(stage.topics.topics(None, moves=describe), options.topic)
        must_match(options.topic, found, options.if_exists or not describe)
        found = _of_id(found, options)
        found = [topic for topic in found if not (options.exclude_internal and topic.internal)]
        if not describe:
            return TopicNames(topics=tuple(topic.name for topic in found))
        entries = _entries(stage.configs, [topic.name for topic in found])
    return _described(found, entries, options)


def matching(found: Iterable[Topic], names: Sequence[str] | None) -> list[Topic]:
    """Return the topics whose full name matches one of the regular expressions, or all topics if there are no `names`.

    Raises Invalid for a regular expression that is not valid.
    """
    if not names:
        return list(found)
    patterns = list(map(_pattern, names))
    return [topic for topic in found if any(pattern.fullmatch(topic.name) for pattern in patterns)]


def _pattern(name: str) -> re.Pattern[str]:
    try:
        return re.compile(name)
    # re.error is not enough, because excessive repetition counts and deeply nested groups raise other errors.
    except (re.error, OverflowError, ValueError, RecursionError) as error:
        raise Invalid(f"--topic {name!r}: not a valid regular expression: {error}") from error


def must_match(names: Sequence[str] | None, found: Collection[Topic], if_exists: bool) -> None:
    """Raise Refused, in Kafka's words, for a name that matches no topic, unless `if_exists` is set."""
    for name in () if if_exists else names or ():
        if not matching(found, [name]):
            raise Refused(f"Topic '{name}' does not exist as expected")


def _of_id(found: list[Topic], options: TopicsOptions) -> list[Topic]:
    """Return the topic with the id of --topic-id, or all topics without this option.

    Without --if-exists, raises Refused for an unknown id. Kafka's tool shows all topics instead.
    """
    if options.topic_id is None:
        return found
    chosen = [topic for topic in found if topic.id == options.topic_id]
    if not chosen and not options.if_exists:
        raise Refused(f"Topic with id '{options.topic_id}' does not exist as expected")
    return chosen


def _entries(configs: port.Configs, names: Iterable[str]) -> Mapping[str, Sequence[Entry]]:
    found = configs.describe([Resource(kind=TOPICS, name=name) for name in names])
    return {str(resource.name): entries for resource, entries in found.items()}


def _described(
    found: Iterable[Topic], entries: Mapping[str, Sequence[Entry]], options: TopicsOptions
) -> DescribedTopics:
    overrides = {name: _overrides(of_topic) for name, of_topic in entries.items()}
    if options.topics_with_overrides:
        found = [topic for topic in found if overrides.get(topic.name)]
    only_partitions = any(getattr(options, report) for report in REPORTS)
    if only_partitions:
        found = _with_partitions_in_reports(found, entries, options)
    return DescribedTopics(
        topics=tuple(_topic(topic, overrides.get(topic.name, {})) for topic in found),
        topic_lines=not only_partitions,
        partition_lines=not options.topics_with_overrides,
    )


def _overrides(entries: Iterable[Entry]) -> Mapping[str, str]:
    """Return the configs whose source is not Kafka's default, sorted by key as in kafka-topics."""
    return {e.key: e.value or "" for e in sorted(entries, key=lambda e: e.key) if e.source != _DEFAULT}


def _with_partitions_in_reports(
    found: Iterable[Topic], entries: Mapping[str, Sequence[Entry]], options: TopicsOptions
) -> Iterator[Topic]:
    """Yield the topics that have partitions in a requested report, with only these partitions."""
    for topic in found:
        of_topic = entries.get(topic.name, ())
        least = next((int(e.value) for e in of_topic if e.key == MIN_IN_SYNC and e.value), None)
        if kept := tuple(partition for partition in topic.partitions if _in_report(partition, least, options)):
            yield replace(topic, partitions=kept)


def _in_report(p: Partition, least: int | None, options: TopicsOptions) -> bool:
    """True if the partition is in at least one requested report, as in Kafka's tool.

    `least` is `min.insync.replicas`, or None if it is unknown.
    """
    few = p.leader is None or (least is not None and len(p.isr) < least)
    return (
        (options.under_replicated_partitions and p.under_replicated)
        or (options.unavailable_partitions and p.leader is None)
        or (options.under_min_isr_partitions and few)
        or (options.at_min_isr_partitions and len(p.isr) == least)
    )


def _topic(topic: Topic, configs: Mapping[str, str]) -> DescribedTopic:
    return DescribedTopic(
        topic=topic.name,
        id=topic.id,
        internal=topic.internal,
        replication_factor=topic.replication_factor,
        configs=configs,
        partitions=tuple(map(_partition, topic.partitions)),
    )


def _partition(p: Partition) -> DescribedPartition:
    return DescribedPartition(
        number=p.number,
        leader=p.leader,
        replicas=p.replicas,
        isr=p.isr,
        elr=p.elr,
        last_known_elr=p.last_known_elr,
        adding=p.adding,
        removing=p.removing,
    )
