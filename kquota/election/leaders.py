"""Selects the partitions that need an election, puts them in order, and reads the file that lists them."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Final

from kquota import text_file
from kquota.election.port import ElectionType
from kquota.errors import Invalid
from kquota.mutation.topic import Partition
from kquota.reassign import strict_json
from kquota.reassign.strict_json import Value
from kquota.terms import HIGHEST_ID, TopicPartition

_EXAMPLE: Final = '{"partitions":[{"topic":"t","partition":0}]}'


def read(path: Path) -> tuple[TopicPartition, ...]:
    """Read the partitions in a file of kafka-leader-election.

    Raises Invalid if the file cannot be read or is not valid. The message has Kafka's words if the file is empty, if
    the list of partitions is missing, or if a partition is repeated.
    """
    return parse(*text_file.read(path, "a JSON file of partitions", empty="Replica election data is empty"))


def parse(text: str, where: str) -> tuple[TopicPartition, ...]:
    """Parse the partitions of a JSON document. `where` names the document in errors.

    Raises Invalid if the document is not valid, with Kafka's words as in `read`.
    """
    document = strict_json.load(text, where, _EXAMPLE, _plain, "partitions")
    if "partitions" not in document.fields():
        raise Invalid(f'{where}: Replica election data is missing "partitions" field')
    entries = document.field("partitions")
    found = [
        entry if isinstance(entry, TopicPartition) else _partition(entries.item(n))
        for n, entry in enumerate(entries.list())
    ]
    if twice := strict_json.repeated(found):
        listed = ", ".join(map(str, twice))
        raise Invalid(f"{where}: Replica election data contains duplicate partitions: {listed}")
    return tuple(found)


def _plain(entry: dict[str, object]) -> TopicPartition | dict[str, object]:
    """Return only the partition of a valid entry, and any other entry unchanged. This saves memory, because a file may
    have 100,000 entries.
    """
    topic, number = entry.get("topic"), entry.get("partition")
    if not isinstance(topic, str) or type(number) is not int or not 0 <= number <= HIGHEST_ID:
        return entry
    return TopicPartition(sys.intern(topic), number)


def _partition(entry: Value) -> TopicPartition:
    return TopicPartition(entry.field("topic").text(), entry.field("partition").number())


def needing(kind: ElectionType, partitions: Mapping[TopicPartition, Partition]) -> tuple[TopicPartition, ...]:
    """Return the partitions that need an election of this kind (KIP-460), in the given order.

    A preferred election is for partitions without a leader or with a leader that is not the preferred one. An unclean
    election is for partitions without a leader.
    """
    return tuple(name for name, state in partitions.items() if _needs(kind, state))


def _needs(kind: ElectionType, state: Partition) -> bool:
    if kind is ElectionType.UNCLEAN:
        return state.leader is None
    return state.leader != state.replicas[0]


def batches(
    names: Iterable[TopicPartition], partitions: Mapping[TopicPartition, Partition], size: int | None
) -> Iterator[Sequence[TopicPartition]]:
    """Divide the partitions into batches of at most `size`, or into one batch if `size` is None.

    A broker that becomes the leader of many partitions at once delays their clients (KIP-1358), so each batch
    alternates between the preferred leaders. Partitions with the same preferred leader keep their order. Names that
    `partitions` does not contain are treated as partitions of one more leader.
    """
    of_broker: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for name in names:
        state = partitions.get(name)
        of_broker[state.replicas[0] if state else -1].append(name)
    turns = chain.from_iterable(zip_longest(*(of_broker[broker] for broker in sorted(of_broker))))
    ordered = [name for name in turns if name is not None]
    step = size or max(len(ordered), 1)
    return (ordered[start : start + step] for start in range(0, len(ordered), step))


def unhealthy(partitions: Mapping[TopicPartition, Partition]) -> frozenset[TopicPartition]:
    """Return the partitions that have no leader or are under-replicated."""
    return frozenset(name for name, state in partitions.items() if state.leader is None or state.under_replicated)


def leaderless(
    kind: ElectionType, elected: Collection[TopicPartition], partitions: Mapping[TopicPartition, Partition]
) -> frozenset[TopicPartition]:
    """Return the elected partitions whose new leader the brokers do not show yet. Deleted partitions are left out."""
    return frozenset(name for name in elected if name in partitions and _needs(kind, partitions[name]))
