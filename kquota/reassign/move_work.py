"""The work of a move: the same sums as the Spark job (`spark.estimate`), in plain Python.

The moves of a live cluster need no JVM. A test checks that both agree to the byte.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kquota.pace.work import Link, Work, total, work
from kquota.reassign.moves import Move, PartitionReplicas
from kquota.terms import BrokerId, ReplicaId, TopicPartition


def carried(
    moving: Iterable[Move],
    partitions: Mapping[TopicPartition, PartitionReplicas],
    sizes: Mapping[TopicPartition, int],
    writes: Mapping[TopicPartition, float | None],
    left: Mapping[ReplicaId, int | None] = MappingProxyType({}),
) -> Work:
    """Return the work of `moving`. `sizes` are the bytes of the leaders, `writes` are bytes per second.

    A partition that is missing from `writes` has an unknown rate. A partition without a leader is left out, because it
    cannot be copied. `left` has the bytes that running copies still need. All other copies count with the size of their
    leader.
    """
    keep_up: defaultdict[int, list[float | None]] = defaultdict(list)
    links: defaultdict[tuple[BrokerId, BrokerId], list[TopicPartition]] = defaultdict(list)
    for move in moving:
        now = partitions[move.partition]
        if not move.destinations or now.leader is None:
            continue
        w = writes.get(move.partition)
        followers = sum(broker in move.sources and broker != now.leader for broker in now.isr)
        keep_up[now.leader].append(0.0 if not followers else None if w is None else w * followers)
        for broker in move.destinations:
            if broker == now.leader:  # a new replica that caught up, and was elected
                continue
            links[now.leader, broker].append(move.partition)
    return work(
        (
            Link(
                leader=leader,
                destination=destination,
                copies=len(names),
                bytes=sum(_missing(left.get((name, destination)), sizes.get(name, 0)) for name in names),
                writes=total(writes.get(name) for name in names),
            )
            for (leader, destination), names in links.items()
        ),
        {leader: total(rates) for leader, rates in keep_up.items()},
    )


def _missing(left: int | None, size: int) -> int:
    return size if left is None else left
