"""`topics --list` and `--describe`, in the words of Kafka 4.3.1's kafka-topics."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from kquota.cli import tsv, world
from kquota.cli.contract import DONE
from kquota.cli.options import Output
from kquota.cli.topics.options import REPORTS, Given
from kquota.config import port
from kquota.config.resource import TOPICS, Entry, Resource
from kquota.errors import Invalid, Refused
from kquota.mutation.topic import Brokers, Partition, Topic
from kquota.several import joined
from kquota.terms import MIN_IN_SYNC

VERSION = 1
Configs = Mapping[str, Mapping[str, str]]
"""Of each topic what is not as Kafka ships it."""
_DEFAULT = "DEFAULT_CONFIG"


def show(at: world.Where, given: Given, *, describe: bool) -> int:
    """Print them: topic names, or topics with their partitions."""
    with world.topics(at) as stage:
        found = matching(stage.topics.topics(None, moves=describe), given.topic)
        must_match(given.topic, found, given.if_exists or not describe)
        found = _of_id(found, given)
        found = [topic for topic in found if not (given.exclude_internal and topic.internal)]
        if not describe:
            print(_list(found, given.output), end="")
            return DONE
        described = _entries(stage.configs, [topic.name for topic in found])
    of_topics, minimum = _overrides(described), _minimum(described)
    if given.topics_with_overrides:
        found = [topic for topic in found if of_topics.get(topic.name)]
    print(_described(found, of_topics, minimum, given), end="")
    return DONE


def matching(found: Iterable[Topic], names: Sequence[str] | None) -> list[Topic]:
    """The topics whose name one of the regular expressions matches whole; all without any. Raises Invalid."""
    if not names:
        return list(found)
    patterns = list(map(_pattern, names))
    return [topic for topic in found if any(pattern.fullmatch(topic.name) for pattern in patterns)]


def _pattern(name: str) -> re.Pattern[str]:
    try:
        return re.compile(name)
    # A repetition beyond what re or int() takes, and groups in groups, have errors of their own.
    except (re.error, OverflowError, ValueError, RecursionError) as error:
        raise Invalid(f"--topic {name!r}: not a regular expression: {error}") from error


def must_match(names: Sequence[str] | None, found: Collection[Topic], if_exists: bool) -> None:
    """Raises Refused, in Kafka's words, for a name that no topic has."""
    for name in () if if_exists else names or ():
        if not matching(found, [name]):
            raise Refused(f"Topic '{name}' does not exist as expected")


def _of_id(found: list[Topic], given: Given) -> list[Topic]:
    """Raises Refused for an id that no topic has: Kafka's tool shows all topics then."""
    if given.topic_id is None:
        return found
    chosen = [topic for topic in found if topic.id == given.topic_id]
    if not chosen and not given.if_exists:
        raise Refused(f"Topic with id '{given.topic_id}' does not exist as expected")
    return chosen


def _entries(configs: port.Configs, names: Iterable[str]) -> Mapping[str, Sequence[Entry]]:
    told = configs.describe([Resource(kind=TOPICS, name=name) for name in names])
    return {str(resource.name): entries for resource, entries in told.items()}


def _overrides(described: Mapping[str, Sequence[Entry]]) -> Configs:
    """What is not Kafka's own default, whoever set it, as kafka-topics shows it; by key."""
    return {
        name: {e.key: e.value or "" for e in sorted(entries, key=_key) if e.source != _DEFAULT}
        for name, entries in described.items()
    }


def _minimum(described: Mapping[str, Sequence[Entry]]) -> Mapping[str, int]:
    """Of each topic that tells it how many replicas are to be in sync, wherever that is set."""
    return {
        name: int(e.value) for name, entries in described.items() for e in entries if e.key == MIN_IN_SYNC and e.value
    }


def _key(entry: Entry) -> str:
    return entry.key


def _list(found: Sequence[Topic], output: Output) -> str:
    names = [topic.name for topic in found]
    if output is Output.json:
        return json.dumps({"version": VERSION, "topics": names}) + "\n"
    if output is Output.tsv:
        return tsv.table(["topic"], ([name] for name in names))
    return "".join(f"{name}\n" for name in names)


def _described(found: Sequence[Topic], configs: Configs, minimum: Mapping[str, int], given: Given) -> str:
    only = any(getattr(given, name) for name in REPORTS)
    if only:
        kept = {t.name: tuple(p for p in t.partitions if _bad(p, minimum.get(t.name), given)) for t in found}
        found = [replace(topic, partitions=kept[topic.name]) for topic in found if kept[topic.name]]
    if given.output is Output.json:
        return json.dumps({"version": VERSION, "topics": [_document(t, configs) for t in found]}) + "\n"
    if given.output is Output.tsv:
        return tsv.table(_HEADER, (_row(topic, p) for topic in found for p in topic.partitions))
    lines: list[str] = []
    for topic in found:
        if not only:
            lines.append(_topic_line(topic, configs))
        if not given.topics_with_overrides:
            lines += [_partition_line(topic, partition) for partition in topic.partitions]
    return "".join(f"{line}\n" for line in lines)


def _bad(p: Partition, least: int | None, given: Given) -> bool:
    """Whether one of the reports that are asked for has it; several show what any of them does, as Kafka's tool."""
    return (
        (given.under_replicated_partitions and p.under_replicated)
        or (given.unavailable_partitions and p.leader is None)
        or (given.under_min_isr_partitions and (p.leader is None or (least is not None and len(p.isr) < least)))
        or (given.at_min_isr_partitions and len(p.isr) == least)
    )


def _topic_line(topic: Topic, configs: Configs) -> str:
    told = ",".join(f"{key}={value}" for key, value in configs.get(topic.name, {}).items())
    head = f"Topic: {topic.name}" + (f"\tTopicId: {topic.id}" if topic.id else "")
    return (
        f"{head}\tPartitionCount: {len(topic.partitions)}\tReplicationFactor: {topic.replication_factor}"
        f"\tConfigs: {told}"
    )


def _partition_line(topic: Topic, p: Partition) -> str:
    leader = "none" if p.leader is None else str(p.leader)
    moves = bool(p.adding or p.removing)
    moving = f"\tAdding Replicas: {joined(p.adding)}\tRemoving Replicas: {joined(p.removing)}" * moves
    return (
        f"\tTopic: {topic.name}\tPartition: {p.number}\tLeader: {leader}\tReplicas: {joined(p.replicas)}"
        f"\tIsr: {joined(p.isr)}{moving}\tElr: {_maybe(p.elr)}\tLastKnownElr: {_maybe(p.last_known_elr)}"
    )


def _maybe(brokers: Brokers | None) -> str:
    return "N/A" if brokers is None else joined(brokers)


_HEADER = ("topic", "partition", "leader", "replicas", "isr", "elr", "last_known_elr", "adding", "removing")


def _row(topic: Topic, p: Partition) -> Sequence[str | None]:
    leader = None if p.leader is None else str(p.leader)
    brokers = (p.replicas, p.isr, p.elr, p.last_known_elr, p.adding, p.removing)
    return [topic.name, str(p.number), leader, *(None if ids is None else joined(ids) for ids in brokers)]


def _document(topic: Topic, configs: Configs) -> dict[str, object]:
    return {
        "topic": topic.name,
        "id": topic.id,
        "internal": topic.internal,
        "replication_factor": topic.replication_factor,
        "configs": dict(configs.get(topic.name, {})),
        "partitions": [
            {
                "partition": p.number,
                "leader": p.leader,
                "replicas": p.replicas,
                "isr": p.isr,
                "elr": p.elr,
                "last_known_elr": p.last_known_elr,
                "adding": p.adding,
                "removing": p.removing,
            }
            for p in topic.partitions
        ],
    }
