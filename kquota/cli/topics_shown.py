"""`topics --list` and `--describe`, in the words of Kafka 4.3.1's kafka-topics."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from kquota.cli import tsv, world
from kquota.cli.contract import DONE
from kquota.cli.options import Output
from kquota.cli.topics_options import Given
from kquota.config import port
from kquota.config.resource import TOPICS, Entry, Resource
from kquota.errors import Invalid, Refused
from kquota.mutation.topic import Brokers, Partition, Topic

VERSION = 1
Configs = Mapping[str, Mapping[str, str]]
"""Of each topic what is not as Kafka ships it."""
_DEFAULT = "DEFAULT_CONFIG"


def show(at: world.Where, given: Given, *, describe: bool) -> int:
    """Print them: topic names, or topics with their partitions."""
    with world.topics(at) as stage:
        found = matching(stage.topics.topics(None), given.topic)
        must_match(given.topic, found, given.if_exists or not describe)
        found = [topic for topic in found if not (given.exclude_internal and topic.internal)]
        if not describe:
            print(_list(found, given.output), end="")
            return DONE
        of_topics = _overrides(stage.configs, [topic.name for topic in found])
    if given.topics_with_overrides:
        found = [topic for topic in found if of_topics.get(topic.name)]
    print(_described(found, of_topics, given), end="")
    return DONE


def matching(found: Iterable[Topic], names: Sequence[str] | None) -> list[Topic]:
    """The topics whose name one of the regular expressions matches whole; all without any. Raises Invalid."""
    if not names:
        return list(found)
    try:
        patterns = [re.compile(name) for name in names]
    except re.error as error:
        raise Invalid(f"--topic {error.pattern!r}: not a regular expression: {error}") from error
    return [topic for topic in found if any(pattern.fullmatch(topic.name) for pattern in patterns)]


def must_match(names: Sequence[str] | None, found: Collection[Topic], if_exists: bool) -> None:
    """Raises Refused, in Kafka's words, for a name that no topic has."""
    for name in () if if_exists else names or ():
        if not matching(found, [name]):
            raise Refused(f"Topic '{name}' does not exist as expected")


def _overrides(configs: port.Configs, names: Iterable[str]) -> Configs:
    """What is not Kafka's own default, whoever set it, as kafka-topics shows it; by key."""
    described = configs.describe([Resource(kind=TOPICS, name=name) for name in names])
    return {
        str(resource.name): {e.key: e.value or "" for e in sorted(entries, key=_key) if e.source != _DEFAULT}
        for resource, entries in described.items()
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


def _described(found: Sequence[Topic], configs: Configs, given: Given) -> str:
    only = given.under_replicated_partitions or given.unavailable_partitions
    chosen = [replace(topic, partitions=tuple(_chosen(topic, given))) for topic in found]
    if only:
        chosen = [topic for topic in chosen if topic.partitions]
    if given.output is Output.json:
        return json.dumps({"version": VERSION, "topics": [_document(t, configs) for t in chosen]}) + "\n"
    if given.output is Output.tsv:
        return tsv.table(_HEADER, (_row(topic, p) for topic in chosen for p in topic.partitions))
    lines: list[str] = []
    for topic, whole in zip(chosen, [t for t in found if not only or _chosen(t, given)], strict=True):
        if not only:
            lines.append(_topic_line(whole, configs))
        if not given.topics_with_overrides:
            lines += [_partition_line(topic, partition) for partition in topic.partitions]
    return "".join(f"{line}\n" for line in lines)


def _chosen(topic: Topic, given: Given) -> list[Partition]:
    return [
        p
        for p in topic.partitions
        if (not given.under_replicated_partitions or p.under_replicated)
        and (not given.unavailable_partitions or p.leader is None)
    ]


def _topic_line(topic: Topic, configs: Configs) -> str:
    told = ",".join(f"{key}={value}" for key, value in configs.get(topic.name, {}).items())
    head = f"Topic: {topic.name}" + (f"\tTopicId: {topic.id}" if topic.id else "")
    return (
        f"{head}\tPartitionCount: {len(topic.partitions)}\tReplicationFactor: {topic.replication_factor}"
        f"\tConfigs: {told}"
    )


def _partition_line(topic: Topic, p: Partition) -> str:
    leader = "none" if p.leader is None else str(p.leader)
    return (
        f"\tTopic: {topic.name}\tPartition: {p.number}\tLeader: {leader}\tReplicas: {_ids(p.replicas)}"
        f"\tIsr: {_ids(p.isr)}\tElr: {_maybe(p.elr)}\tLastKnownElr: {_maybe(p.last_known_elr)}"
    )


def _ids(brokers: Brokers) -> str:
    return ",".join(map(str, brokers))


def _maybe(brokers: Brokers | None) -> str:
    return "N/A" if brokers is None else _ids(brokers)


_HEADER = ("topic", "partition", "leader", "replicas", "isr", "elr", "last_known_elr")


def _row(topic: Topic, p: Partition) -> Sequence[str | None]:
    leader = None if p.leader is None else str(p.leader)
    known = [None if ids is None else _ids(ids) for ids in (p.elr, p.last_known_elr)]
    return [topic.name, str(p.number), leader, _ids(p.replicas), _ids(p.isr), *known]


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
            }
            for p in topic.partitions
        ],
    }
