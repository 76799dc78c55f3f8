"""The work of a move: the same sums as the Spark job (`spark.estimate`), in plain Python.

The moves of a live cluster need no JVM. A test checks that both agree to the byte.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kquota.pace.work import Link, Work, total, work
from kquota.reassign.moves import Move, PartitionReplicas
from kquota.terms import TopicPartition


def carried(
    moving: Iterable[Move],
    partitions: Mapping[TopicPartition, PartitionReplicas],
    sizes: Mapping[TopicPartition, int],
    writes: Mapping[TopicPartition, float | None],
) -> Work:
    """Return the work of `moving`. `sizes` are the bytes of the leaders, `writes` are bytes per second.

    A partition that is missing from `writes` has an unknown rate. A partition without a leader is left out, because it
    cannot be copied.
    """
    keep_up: defaultdict[int, list[float | None]] = defaultdict(list)
    links: defaultdict[tuple[int, int], list[TopicPartition]] = defaultdict(list)
    for move in moving:
        now = partitions[move.partition]
        if not move.destinations or now.leader is None:
            continue
        w = writes.get(move.partition)
        followers = sum(broker in move.sources and broker != now.leader for broker in now.isr)
        keep_up[now.leader].append(0.0 if not followers else None if w is None else w * followers)
        for broker in move.destinations:
            links[now.leader, broker].append(move.partition)
    return work(
        (
            Link(
                leader=leader,
                destination=destination,
                copies=len(names),
                bytes=sum(sizes.get(name, 0) for name in names),
                writes=total(writes.get(name) for name in names),
            )
            for (leader, destination), names in links.items()
        ),
        {leader: total(rates) for leader, rates in keep_up.items()},
    )
