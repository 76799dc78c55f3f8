"""`reassign-partitions --generate`: a plan by Kafka's own rule; what Kafka's tool is silent about goes to stderr."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota.cli import world
from kquota.cli.contract import DONE, say
from kquota.cli.listed import every_broker_id
from kquota.cli.options import Output
from kquota.cli.reassign_partitions.options import Given
from kquota.errors import Invalid, Refused, Unreachable
from kquota.pace.ratio import move_ratio
from kquota.reassign import words
from kquota.several import joined
from kquota.terms import BrokerId, ReplicaId, TopicPartition

if TYPE_CHECKING:
    from kquota.placement.generate import Proposal
    from kquota.reassign.moves import Partition
    from kquota.reassign.plan import Plan
    from kquota.reassign.port import Snapshot

VERSION: Final = 1
_SEEDS: Final = 1_000_000
_NEARLY_ALL: Final = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of --generate; `total` are all partitions of the cluster."""

    made: Proposal
    total: int
    seed: int
    warnings: tuple[str, ...]

    @property
    def move_ratio(self) -> float:
        """KIP-73's: the share of the cluster's partitions that would be copied."""
        return move_ratio(len(self.made.gaining), self.total)


def propose(at: world.Where, given: Given) -> int:
    """Print where the topics are and where they would go; nothing is written. Raises Invalid, Refused."""
    from kquota.placement import topics_to_move
    from kquota.placement.generate import proposal

    brokers = broker_list(given.broker_list or "")
    # `action` refuses a --generate without a file.
    file = given.topics_to_move_json_file or Path()
    topics = topics_to_move.read(file)
    seed = secrets.randbelow(_SEEDS) if given.seed is None else given.seed
    with world.moves(at, None) as (cluster, _):
        found = cluster.snapshot(None)
    racks = _racks(found, brokers, rack_aware=not given.disable_rack_aware)
    partitions = _partitions(found, topics, file)
    made = proposal(partitions, racks, seed)
    noted = tuple(warnings(made, [name for name, now in partitions.items() if now.moving]))
    current = replace(made.current, log_dirs=_log_dirs(at, made.current, found.alive))
    answer = Answer(made=replace(made, current=current), total=len(found.partitions), seed=seed, warnings=noted)
    for line in remarks(answer):
        say(line)
    print(document(answer) if given.output is Output.json else text(answer))
    return DONE


def broker_list(text: str) -> tuple[BrokerId, ...]:
    """The brokers, sorted. Raises Invalid for what is no broker's id, and for one that stands twice."""
    ids = sorted(every_broker_id([text], "--broker-list"))
    if twice := sorted({broker for broker in ids if ids.count(broker) > 1}):
        raise Invalid(f"Broker list contains duplicate entries: [{', '.join(map(str, twice))}]")
    return tuple(ids)


def warnings(made: Proposal, moving: Sequence[TopicPartition]) -> Iterator[str]:
    """What Kafka's tool does in silence."""
    if moving:
        names = f"{moving[0]} is" if len(moving) == 1 else f"{len(moving)} partitions ({moving[0]} and others) are"
        yield f"{names} moving: shown as current is where the move under way leads"
    first = {name.topic: name for name in reversed([*made.current.targets])}
    for topic, factors in made.mixed.items():
        counts = ", ".join(f"{count} with {factor}" for factor, count in sorted(factors.items()))
        yield (
            f"topic {topic} has partitions with different numbers of replicas ({counts}): the proposal gives each "
            f"{len(made.current.targets[first[topic]])}, as {first[topic]} has; Kafka's tool goes by any partition"
        )
    moved, every = len(made.gaining), len(made.current.targets)
    if moved >= _NEARLY_ALL * every:
        yield (
            f"{moved} of {every} partitions would be copied: --generate does not look at where replicas are now; "
            "kquota move plan moves as little as it can"
        )


def remarks(answer: Answer) -> Iterator[str]:
    """For stderr: the warnings, KIP-73's MoveRatio with its counts, and how to get the same again."""
    yield from (f"warning: {warning}" for warning in answer.warnings)
    moved = len(answer.made.gaining)
    yield f"MoveRatio {answer.move_ratio:.3f} = {moved} partitions to be moved / {answer.total} partitions (KIP-73)"
    yield f"--seed {answer.seed} makes this proposal again, while brokers and partitions stay the same"


def text(answer: Answer) -> str:
    """As kafka-reassign-partitions prints it."""
    return words.generated(answer.made.current, answer.made.proposed)


def document(answer: Answer) -> str:
    """One line; `current` and `proposed` are plans as --reassignment-json-file takes them."""
    return json.dumps(
        {
            "version": VERSION,
            "current": json.loads(words.assignment(answer.made.current)),
            "proposed": json.loads(words.assignment(answer.made.proposed)),
            "move_ratio": answer.move_ratio,
            "partitions_to_be_moved": len(answer.made.gaining),
            "total_partition_count": answer.total,
            "seed": answer.seed,
            "warnings": answer.warnings,
        }
    )


def _partitions(found: Snapshot, topics: Collection[str], file: Path) -> dict[TopicPartition, Partition]:
    wanted = set(topics)
    partitions = {name: now for name, now in found.partitions.items() if name.topic in wanted}
    if missing := sorted(wanted - {name.topic for name in partitions}):
        others = f" (nor {', '.join(missing[1:])})" if missing[1:] else ""
        raise Refused(f"Topic {missing[0]} not found{others}. Take it out of {file} or correct its name")
    return partitions


def _log_dirs(at: world.Where, current: Plan, alive: Collection[BrokerId]) -> Mapping[ReplicaId, str]:
    """Where the replicas lie, as far as the brokers tell; a ZooKeeper does not know."""
    holders = {broker for replicas in current.targets.values() for broker in replicas} & set(alive)
    if at.zookeeper is not None:
        return {}
    try:
        with world.log_dirs(at) as cluster:
            described = cluster.describe(sorted(holders), current.topics)
    except (Refused, Unreachable) as error:
        say(f'note: the log dirs of the current replicas are shown as "any": {error}')
        return {}
    return {
        (replica.partition, log_dir.broker): log_dir.path
        for log_dir in described
        for replica in log_dir.replicas
        if not replica.future
    }


def _racks(found: Snapshot, brokers: Sequence[BrokerId], *, rack_aware: bool) -> Mapping[BrokerId, str | None]:
    """The racks to look at. Raises Refused where a broker is not alive: Kafka's tool would go on without it."""
    if dead := [broker for broker in brokers if broker not in found.alive]:
        alive = joined(sorted(found.alive))
        raise Refused(f"--broker-list names brokers that are not alive: {joined(dead)}; alive are {alive}")
    return {broker: found.racks[broker] if rack_aware else None for broker in brokers}
