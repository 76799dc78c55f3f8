"""Topics as operators write them: names, lines of a file, and replica assignments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kquota.errors import Invalid
from kquota.mutation.topic import Assignment
from kquota.terms import HIGHEST_ID, BrokerId, is_id, wrong_topic_name

_SHOWN: Final = 60
"""The maximum number of characters of an invalid line in a message."""
MOST_REPLICAS: Final = 2**15 - 1
"""The maximum number of replicas of one partition. The protocol stores this number in 16 bits."""


def name(text: str, where: str) -> str:
    """Parse a topic name. Raises Invalid for a name that no broker accepts. The message begins with `where`."""
    if why := wrong_topic_name(text):
        raise Invalid(f"{where} {text!r} {why}")
    return text


def collide(topic: str) -> bool:
    """Return True if the name has a period or an underscore. Such names can collide in metrics, because Kafka's metrics
    do not distinguish the two characters. Source: Kafka's Topic.hasCollisionChars.
    """
    return "." in topic or "_" in topic


def count(number: int | None, where: str, most: int = HIGHEST_ID) -> int | None:
    """Return `number` unchanged.

    Raises Invalid unless it is None or from 1 to `most`. The message begins with `where`.
    """
    if number is not None and not 1 <= number <= most:
        raise Invalid(f"{where} {number}: write a number from 1 to {most}")
    return number


def lines(text: Iterable[str], where: str) -> Iterator[tuple[str, int | None, int | None]]:
    """Parse lines of `NAME [PARTITIONS [REPLICATION-FACTOR]]`, and yield the values of each. A missing number is None.

    `#` begins a comment, and blank lines are skipped. Raises Invalid for an invalid line. The message begins with
    `where` and the number of the line.
    """
    for number, line in enumerate(text, 1):
        words = line.partition("#")[0].split()
        place = f"{where} line {number}:"
        if len(words) > 3 or not all(map(is_id, words[1:])):
            shown = line.strip()[:_SHOWN]
            raise Invalid(
                f"{place} {shown!r}: not a valid topic line. Write NAME [PARTITIONS [REPLICATION-FACTOR]], for example "
                "orders 12 3"
            )
        if words:
            partitions, factor = (*map(int, words[1:]), None, None)[:2]
            yield (
                name(words[0], place),
                count(partitions, f"{place} PARTITIONS"),
                count(factor, f"{place} REPLICATION-FACTOR", MOST_REPLICAS),
            )


def assignment(text: str, where: str) -> Assignment:
    """Parse `1:2,2:3`: the replicas of partition 0, of partition 1 and so on.

    Raises Invalid for any other text, for a broker that is listed twice in a partition, and for partitions with
    different replication factors. The message begins with `where`.
    """
    found: dict[int, tuple[BrokerId, ...]] = {}
    for number, part in enumerate(text.split(",")):
        ids = [word.strip() for word in part.split(":")]
        if not all(map(is_id, ids)):
            raise Invalid(
                f"{where} {text!r}: write broker ids, for example 1:2,2:3 for two partitions with two replicas each"
            )
        replicas = tuple(BrokerId(int(word)) for word in ids)
        if len(set(replicas)) < len(replicas):
            raise Invalid(f"{where} {text!r}: Partition replica lists may not contain duplicate entries")
        if found and len(replicas) != len(found[0]):
            raise Invalid(
                f"{where} {text!r}: partition {number} has different replication factor. Give every partition the same "
                "number of replicas"
            )
        found[number] = replicas
    return found
