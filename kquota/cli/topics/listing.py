"""`topics --list` and `--describe`, in the words of Kafka 4.3.1's kafka-topics."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from kquota.cli import world
from kquota.cli.output import Answer, JsonObject, Row, each, hidden, key
from kquota.cli.topics.command import REPORTS, TopicsOptions
from kquota.errors import Invalid, Refused
from kquota.list_text import joined
from kquota.mutation.port import Topics
from kquota.mutation.topic import Partition, Topic
from kquota.settings import port
from kquota.settings.resource import TOPICS, Entry, Resource
from kquota.terms import MIN_IN_SYNC

_DEFAULT = "DEFAULT_CONFIG"
_LITERAL: Final = re.compile(r"[A-Za-z0-9._-]+")
"""A text that can be the name of a topic."""
_COMMA: Final = re.compile(r",(?![^{}]*\})")
"""A comma that is not in braces."""


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


class DescribedTopic(NamedTuple):
    """A topic, and the configs whose source is not Kafka's default."""

    topic: Topic
    configs: Mapping[str, str]

    def document(self) -> JsonObject:
        """Return the topic with its partitions. `id` is null before Kafka 2.8."""
        return {
            "topic": self.topic.name,
            "id": self.topic.id,
            "internal": self.topic.internal,
            "replication_factor": self.topic.replication_factor,
            "configs": self.configs,
            "partitions": list(map(_partition, self.topic.partitions)),
        }

    def line(self) -> str:
        """Return the line of the topic in kafka-topics `--describe`, without its partitions."""
        topic, configs = self.topic, ",".join(f"{name}={value}" for name, value in self.configs.items())
        return (
            f"Topic: {topic.name}" + (f"\tTopicId: {topic.id}" if topic.id else "") + f"\tPartitionCount: "
            f"{len(topic.partitions)}\tReplicationFactor: {topic.replication_factor}\tConfigs: {configs}"
        )


def _partition(p: Partition) -> JsonObject:
    """Return the JSON of one partition. `elr` and `last_known_elr` are null if a broker is older than Kafka 4.0,
    because older brokers do not report them.
    """
    return {
        "partition": p.number,
        "leader": p.leader,
        "replicas": p.replicas,
        "isr": p.isr,
        "elr": p.elr,
        "last_known_elr": p.last_known_elr,
        "adding": p.adding,
        "removing": p.removing,
    }


def _line(topic: str, p: Partition) -> str:
    leader = "none" if p.leader is None else p.leader
    moving = f"\tAdding Replicas: {joined(p.adding)}\tRemoving Replicas: {joined(p.removing)}"
    elr, last_known = ("N/A" if ids is None else joined(ids) for ids in (p.elr, p.last_known_elr))
    return (
        f"\tTopic: {topic}\tPartition: {p.number}\tLeader: {leader}\tReplicas: {joined(p.replicas)}"
        f"\tIsr: {joined(p.isr)}{moving if p.adding or p.removing else ''}\tElr: {elr}\tLastKnownElr: {last_known}"
    )


def _row(topic: str, p: Partition) -> Row:
    leader = None if p.leader is None else str(p.leader)
    brokers = (p.replicas, p.isr, p.elr, p.last_known_elr, p.adding, p.removing)
    return [topic, str(p.number), leader, *(None if ids is None else joined(ids) for ids in brokers)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTopics(Answer):
    """The described topics. The text has a line for each topic, for each partition, or for both."""

    HEADER = ("topic", "partition", "leader", "replicas", "isr", "elr", "last_known_elr", "adding", "removing")
    ASCII = True
    TABBED = True

    topics: tuple[DescribedTopic, ...] = key(form=each(DescribedTopic.document))
    topic_lines: bool = hidden()
    partition_lines: bool = hidden()

    def text(self) -> Iterator[str]:
        for described in self.topics:
            if self.topic_lines:
                yield described.line()
            if self.partition_lines:
                yield from (_line(described.topic.name, p) for p in described.topic.partitions)

    def rows(self) -> Iterator[Row]:
        return (_row(topic.name, p) for topic, _ in self.topics for p in topic.partitions)


def listed(at: world.Where, options: TopicsOptions, *, describe: bool) -> Answer:
    """Return topic names or, with `describe`, topics with their partitions.

    Raises Invalid for a name that is not a valid regular expression. Without `--if-exists`, raises Refused for an
    unknown `--topic-id` and, with `describe`, for a name that matches no topic. Also raises Refused for a topic that
    Kafka hides from this user, and the errors of `world.topics`.
    """
    with world.topics(at) as cluster:
        every = cluster.topics.topics(None, detailed=describe)
        shown = [topic for topic in every if not (options.exclude_internal and topic.internal)]
        found = matching(shown, options.topic)
        must_not_be_hidden(cluster.topics, options.topic, every)
        must_match(options.topic, found, options.if_exists or not describe)
        found = _of_id(found, options)
        if not describe:
            return TopicNames(topics=tuple(topic.name for topic in found))
        entries = _entries(cluster.configs, [topic.name for topic in found])
    return _described(found, entries, options)


def matching(found: Iterable[Topic], names: Sequence[str] | None) -> list[Topic]:
    """Return the topics whose full name matches one of the regular expressions, or all topics if there are no `names`.

    As in kafka-topics, a comma separates alternatives. Spaces, and quotes around the expression, are ignored. Unlike in
    kafka-topics, a comma in braces is part of a repetition, as in `a{1,3}`. Source: TopicFilter.

    >>> topics = [Topic(name=name, id=None, internal=False, partitions=()) for name in ("a", "aa", "b")]
    >>> [topic.name for topic in matching(topics, ["'a, b'"])]
    ['a', 'b']
    >>> [topic.name for topic in matching(topics, ["a{1,2}"])]
    ['a', 'aa']

    Raises Invalid for a regular expression that is not valid.
    """
    if not names:
        return list(found)
    patterns = list(map(_pattern, names))
    return [topic for topic in found if any(pattern.fullmatch(topic.name) for pattern in patterns)]


def _pattern(name: str) -> re.Pattern[str]:
    try:
        return re.compile(_COMMA.sub("|", name.replace(" ", "").strip("\"'")))
    # re.error is not enough, because excessive repetition counts and deeply nested groups raise other errors.
    except (re.error, OverflowError, ValueError, RecursionError) as error:
        raise Invalid(
            f"--topic {name!r}: not a valid regular expression: {error}. Correct it (.* matches any text)"
        ) from error


def must_not_be_hidden(topics: Topics, names: Sequence[str] | None, every: Iterable[Topic]) -> None:
    """Raise Refused for a name that is not in `every`, but that Kafka hides from this user. A regular expression with
    other characters than those of a topic name is not checked.
    """
    shown = {topic.name for topic in every}
    topics.must_show([name for name in names or () if _LITERAL.fullmatch(name) and name not in shown])


def must_match(names: Sequence[str] | None, found: Collection[Topic], if_exists: bool) -> None:
    """Raise Refused, in Kafka's words, for a name that matches no topic, unless `if_exists` is set.

    Raises Invalid for a name that is not a valid regular expression.
    """
    for name in () if if_exists else names or ():
        if not matching(found, [name]):
            raise Refused(f"Topic '{name}' does not exist as expected")


def _of_id(found: list[Topic], options: TopicsOptions) -> list[Topic]:
    """Return the topic with the id in `--topic-id`, or all topics without this option. Unless `--if-exists` is given,
    raises Refused for an unknown id. Kafka's tool shows all topics instead.
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
        topics=tuple(DescribedTopic(topic, overrides.get(topic.name, {})) for topic in found),
        topic_lines=not only_partitions,
        partition_lines=not options.topics_with_overrides,
    )


def _overrides(entries: Iterable[Entry]) -> Mapping[str, str]:
    """Return the configs whose source is not Kafka's default, sorted by key as in kafka-topics."""
    return {e.key: e.value or "" for e in sorted(entries, key=lambda e: e.key) if e.source != _DEFAULT}


def _with_partitions_in_reports(
    found: Iterable[Topic], entries: Mapping[str, Sequence[Entry]], options: TopicsOptions
) -> Iterator[Topic]:
    for topic in found:
        of_topic = entries.get(topic.name, ())
        least = next((int(e.value) for e in of_topic if e.key == MIN_IN_SYNC and e.value), None)
        if kept := tuple(partition for partition in topic.partitions if _in_report(partition, least, options)):
            yield replace(topic, partitions=kept)


def _in_report(p: Partition, least: int | None, options: TopicsOptions) -> bool:
    """Return True if the partition is in at least one requested report, as in Kafka's tool.

    `least` is `min.insync.replicas`, or None if it is unknown.
    """
    few = p.leader is None or (least is not None and len(p.isr) < least)
    return (
        (options.under_replicated_partitions and p.under_replicated)
        or (options.unavailable_partitions and p.leader is None)
        or (options.under_min_isr_partitions and few)
        or (options.at_min_isr_partitions and len(p.isr) == least)
    )
