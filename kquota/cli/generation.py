"""`reassign-partitions --generate`: a plan by Kafka's own rule; what Kafka's tool is silent about goes to stderr."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota.cli import world
from kquota.cli.contract import DONE, say
from kquota.cli.options import Output
from kquota.cli.reassign_options import Given
from kquota.errors import Invalid, Refused
from kquota.pace.ratio import move_ratio
from kquota.terms import BrokerId, TopicPartition

if TYPE_CHECKING:
    from kquota.placement.generate import Proposal
    from kquota.reassign.port import Snapshot

VERSION: Final = 1
_MOST_ID: Final = 2**31 - 1
_SEEDS: Final = 1_000_000
_NEARLY_ALL: Final = 0.75


def propose(at: world.Where, given: Given) -> int:
    """Print where the topics are and where they would go; nothing is written. Raises Invalid, Refused."""
    from kquota.placement import topics_to_move
    from kquota.placement.generate import proposal

    brokers = broker_list(given.broker_list or "")
    file = given.topics_to_move_json_file or Path()
    topics = topics_to_move.read(file)
    seed = secrets.randbelow(_SEEDS) if given.seed is None else given.seed
    with world.moves(at, None) as (cluster, _):
        found = cluster.snapshot(None)
    racks = _racks(found, brokers, rack_aware=not given.disable_rack_aware)
    partitions = {name: now for name, now in found.partitions.items() if name.topic in set(topics)}
    if missing := sorted(set(topics) - {name.topic for name in partitions}):
        others = f" (nor {', '.join(missing[1:])})" if missing[1:] else ""
        raise Refused(f"Topic {missing[0]} not found{others}. Take it out of {file} or correct its name")
    made = proposal(partitions, racks, seed)
    moving = [name for name, now in partitions.items() if now.moving]
    total, noted = len(found.partitions), tuple(warnings(made, moving))
    for warning in noted:
        say(f"warning: {warning}")
    ratio = move_ratio(len(made.gaining), total)
    say(f"MoveRatio {ratio:.3f} = {len(made.gaining)} partitions to be moved / {total} partitions (KIP-73)")
    say(f"--seed {seed} makes this proposal again, while brokers and partitions stay the same")
    print(document(made, total, seed, noted) if given.output is Output.json else text(made))
    return DONE


def broker_list(text: str) -> tuple[BrokerId, ...]:
    """The brokers, sorted. Raises Invalid for what is no broker's id, and for one that stands twice."""
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and int(part) <= _MOST_ID for part in parts):
        raise Invalid(f"--broker-list {text!r}: write broker ids joined by commas, as 1,2,3")
    ids = sorted(BrokerId(int(part)) for part in parts)
    if twice := sorted({broker for broker in ids if ids.count(broker) > 1}):
        raise Invalid(f"Broker list contains duplicate entries: [{', '.join(map(str, twice))}]")
    return tuple(ids)


def warnings(made: Proposal, moving: Sequence[TopicPartition]) -> Iterator[str]:
    """What Kafka's tool does in silence."""
    if moving:
        names = f"{moving[0]} is" if len(moving) == 1 else f"{len(moving)} partitions ({moving[0]} and others) are"
        yield f"{names} moving: shown as current is where the move under way leads"
    for topic, factors in made.mixed.items():
        first = next(name for name in made.current.targets if name.topic == topic)
        counts = ", ".join(f"{count} of {factor}" for factor, count in sorted(factors.items()))
        yield (
            f"topic {topic} has no one replication factor (partitions of each: {counts}): the proposal gives all of "
            f"them {len(made.current.targets[first])}, that of {first}; Kafka's tool takes that of any partition"
        )
    moved, every = len(made.gaining), len(made.current.targets)
    if moved >= _NEARLY_ALL * every:
        yield (
            f"{moved} of {every} partitions would be copied: --generate does not look at where replicas are now; "
            "kquota move plan moves as little as it can"
        )


def text(made: Proposal) -> str:
    """As kafka-reassign-partitions prints it."""
    from kquota.reassign import words

    return words.generated(made.current, made.proposed)


def document(made: Proposal, total: int, seed: int, noted: Sequence[str]) -> str:
    """One line; `current` and `proposed` are plans as --reassignment-json-file takes them."""
    return json.dumps(
        {
            "version": VERSION,
            "current": json.loads(made.current.text()),
            "proposed": json.loads(made.proposed.text()),
            "move_ratio": move_ratio(len(made.gaining), total),
            "partitions_to_be_moved": len(made.gaining),
            "total_partition_count": total,
            "seed": seed,
            "warnings": list(noted),
        }
    )


def _racks(found: Snapshot, brokers: Sequence[BrokerId], *, rack_aware: bool) -> Mapping[BrokerId, str | None]:
    """The racks to look at. Raises Refused where a broker is not alive: Kafka's tool would go on without it."""
    if dead := [broker for broker in brokers if broker not in found.alive]:
        alive = ",".join(map(str, sorted(found.alive)))
        raise Refused(f"--broker-list names brokers that are not alive: {','.join(map(str, dead))}; alive are {alive}")
    return {broker: found.racks[broker] if rack_aware else None for broker in brokers}
