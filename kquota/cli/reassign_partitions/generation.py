"""`reassign-partitions --generate`: a plan by Kafka's rule, with warnings that Kafka's tool does not print."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from kquota import text_file
from kquota.cli import move_stores, world
from kquota.cli.contract import say, worded
from kquota.cli.list_options import every_broker_id
from kquota.cli.output import Answer, key
from kquota.cli.reassign_partitions.command import ReassignOptions
from kquota.cli.suggestion import suggested
from kquota.errors import Invalid, Refused, Unreachable
from kquota.list_text import few, joined, named_brokers
from kquota.measure import agreeing, counted
from kquota.pace.work import move_ratio
from kquota.placement.generate import Proposal, proposal
from kquota.reassign import strict_json, words
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.port import Snapshot
from kquota.reassign.strict_json import Value, brief
from kquota.terms import BrokerId, ReplicaId, TopicPartition, wrong_topic_name

_SEEDS: Final = 1_000_000
_NEARLY_ALL: Final = 0.75
_SHOWN: Final = 10
_TOPICS_EXAMPLE: Final = '{"topics":[{"topic":"foo"},{"topic":"bar"}],"version":1}'


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProposed(Answer):
    """The current and the proposed replicas of the partitions."""

    current: Plan = key(form=Plan.document)
    proposed: Plan = key(form=Plan.document)
    move_ratio: float
    """KIP-73's MoveRatio: the fraction of the cluster's partitions that would be copied, from 0 to 1."""
    partitions_to_be_moved: int
    total_partition_count: int
    """The number of partitions in the cluster."""
    seed: int
    """The seed that repeats this proposal."""
    warnings: tuple[str, ...]

    def text(self) -> Iterator[str]:
        yield from words.generated(self.current, self.proposed).split("\n")


def run(at: world.Where, options: ReassignOptions) -> PlanProposed:
    """Read the replicas of the topics, and propose a plan. Nothing is written.

    Raises Invalid for an invalid file or broker list, and Refused for an unknown topic or a dead broker. Also raises
    the errors of `move_stores.moves`. If only the log dirs cannot be read from the brokers, kquota prints a note.
    """
    brokers = broker_list(options.broker_list or "")
    # The `run` module has already refused `--generate` without a file.
    file = options.topics_to_move_json_file or Path()
    topics = topics_to_move(file)
    seed = secrets.randbelow(_SEEDS) if options.seed is None else options.seed
    with move_stores.moves(at, None) as (cluster, _):
        found = cluster.snapshot(None)
        if missing := set(topics) - {name.topic for name in found.partitions}:
            cluster.snapshot(missing)  # raises Refused for a topic that Kafka hides from this user
    racks = _racks(found, brokers, rack_aware=not options.disable_rack_aware)
    partitions = _partitions(found, topics, file)
    made = proposal(partitions, racks, seed)
    noted = tuple(warnings(made, [name for name, now in partitions.items() if now.moving]))
    moved, total = len(made.gaining), len(found.partitions)
    ratio = move_ratio(moved, total)
    notes = (
        *(f"warning: {warning}" for warning in noted),
        f"MoveRatio {ratio:.3f} = {counted(moved, 'partition')} to be moved / {counted(total, 'partition')} (KIP-73)",
        f"--seed {seed} repeats this proposal, as long as brokers and partitions stay the same",
    )
    return PlanProposed(
        current=replace(made.current, log_dirs=_log_dirs(at, made.current, found.alive)),
        proposed=made.proposed,
        move_ratio=ratio,
        partitions_to_be_moved=moved,
        total_partition_count=total,
        seed=seed,
        warnings=noted,
        notes=notes,
    )


def broker_list(text: str) -> tuple[BrokerId, ...]:
    """Return the brokers, sorted. Raises Invalid for an item that is not a broker id, and for repeated ids."""
    ids = sorted(every_broker_id([text], "--broker-list"))
    if twice := sorted({broker for broker in ids if ids.count(broker) > 1}):
        raise Invalid(f"Broker list contains duplicate entries: [{', '.join(map(str, twice))}]")
    return tuple(ids)


def warnings(made: Proposal, moving: Sequence[TopicPartition]) -> Iterator[str]:
    """Yield warnings about problems that Kafka's tool does not report."""
    if moving:
        those = agreeing(len(moving), "partition", "is", "are")
        yield f"{those} moving ({few(moving, _SHOWN)}): the current assignment shows the replicas after the move"
    first = {name.topic: name for name in reversed([*made.current.targets])}
    for topic, factors in made.mixed.items():
        counts = ", ".join(f"{counted(count, 'partition')} with {factor}" for factor, count in sorted(factors.items()))
        yield (
            f"topic {topic} has partitions with different numbers of replicas ({counts}). The proposal gives each "
            f"partition {counted(len(made.current.targets[first[topic]]), 'replica')}, like {first[topic]}. "
            "Kafka's tool uses the replication factor of an arbitrary partition"
        )
    moved, every = len(made.gaining), len(made.current.targets)
    if moved >= _NEARLY_ALL * every:
        yield (
            f"{moved:,} of {counted(every, 'partition')} would be copied, because --generate ignores the current "
            f"replicas. {suggested('move plan --balance')} moves as few replicas as possible"
        )


def _partitions(found: Snapshot, topics: Collection[str], file: Path) -> dict[TopicPartition, PartitionReplicas]:
    wanted = set(topics)
    partitions = {name: now for name, now in found.partitions.items() if name.topic in wanted}
    if missing := sorted(wanted - {name.topic for name in partitions}):
        # The message begins like Kafka's, which names only one topic.
        others = f" (also not found: {', '.join(missing[1:])})" if missing[1:] else ""
        them, names = ("them", "their names") if others else ("it", "its name")
        name = "stdin" if str(file) == "-" else file
        raise Refused(f"Topic {missing[0]} not found{others}. Remove {them} from {name} or correct {names}")
    return partitions


def _log_dirs(at: world.Where, current: Plan, alive: Collection[BrokerId]) -> Mapping[ReplicaId, str]:
    if at.zookeeper is not None:
        return {}  # ZooKeeper does not store log dirs
    holders = {broker for replicas in current.targets.values() for broker in replicas} & set(alive)
    try:
        with world.log_dirs(at) as cluster:
            described = cluster.describe(sorted(holders), current.topics)
    except (Refused, Unreachable) as error:
        say(f'note: the log dirs of the current replicas are shown as "any": {worded(error)}')
        return {}
    return {
        (replica.partition, log_dir.broker): log_dir.path
        for log_dir in described
        for replica in log_dir.replicas
        if not replica.future
    }


def _racks(found: Snapshot, brokers: Sequence[BrokerId], *, rack_aware: bool) -> Mapping[BrokerId, str | None]:
    """Return the rack of each broker. Raises Refused for a dead broker, which Kafka's tool ignores."""
    if dead := [broker for broker in brokers if broker not in found.alive]:
        are, them = ("is", "it") if len(dead) == 1 else ("are", "them")
        raise Refused(
            f"--broker-list: {named_brokers(dead)} {are} dead (live brokers: {joined(sorted(found.alive))}). Start "
            f"{them} or leave {them} out"
        )
    return {broker: found.racks[broker] if rack_aware else None for broker in brokers}


def topics_to_move(path: Path) -> tuple[str, ...]:
    """Read the topics from a file, a pipe or stdin (`-`), and sort them. Raises Invalid for an unusable file."""
    return parse_topics(*text_file.read(path, "a topics-to-move JSON file"))


def parse_topics(text: str, where: str) -> tuple[str, ...]:
    """Return the topics in Kafka's topics-to-move JSON, sorted. As in Kafka, a missing version means 1.

    Raises Invalid if the text is not such a document, has another version, has no topic, or has an invalid or repeated
    topic name. The message begins with `where` (the file name or `stdin`).
    """
    value = strict_json.load(text, where, _TOPICS_EXAMPLE, _plain, "topics")
    if (version := value.field("version", 1)).number() != 1:
        raise version.wrong(f"Not supported version field value {version.value}; kquota reads version 1")
    entries = value.field("topics")
    topics = [
        entry[0] if isinstance(entry, tuple) else _topic_name(entries.item(n).field("topic"))
        for n, entry in enumerate(entries.list())
    ]
    if not topics:
        raise entries.wrong(f"contains no topic. Example: {_TOPICS_EXAMPLE}")
    topics.sort()  # sorted to find duplicates, because a set would need more memory
    if twice := dict.fromkeys(name for name, after in pairwise(topics) if name == after):
        raise entries.wrong(f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]")
    return tuple(topics)


def _plain(entry: dict[str, object]) -> tuple[str] | dict[str, object]:
    """Return only the topic of a valid entry, and any other entry unchanged. This saves memory, because a file may have
    100,000 entries.
    """
    name = entry.get("topic")
    return entry if not isinstance(name, str) or wrong_topic_name(name) else (name,)


def _topic_name(value: Value) -> str:
    name = value.text()
    if why := wrong_topic_name(name):
        raise value.wrong(f"{brief(name)} {why}")
    return name
