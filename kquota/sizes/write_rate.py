"""How fast a partition is written to: from two readings of its offsets and the mean size of an offset."""

from __future__ import annotations

from collections.abc import Mapping

from kquota.sizes.port import Offsets
from kquota.terms import TopicPartition


def write_rates(
    first: Mapping[TopicPartition, Offsets],
    second: Mapping[TopicPartition, Offsets],
    seconds: float,
    sizes: Mapping[TopicPartition, int],
) -> dict[TopicPartition, float | None]:
    """Bytes per second written to each partition that both readings hold, `seconds` apart.

    `sizes` are the leaders' bytes at the second reading; the mean bytes per offset come from them, so on a compacted
    topic the rate is an upper bound. None, not 0, where a partition grew and its size is not known.
    """
    rates: dict[TopicPartition, float | None] = {}
    for partition in sorted(first.keys() & second.keys()):
        grown = second[partition].end - first[partition].end
        held = second[partition].end - second[partition].start
        size = sizes.get(partition)
        if grown <= 0:
            rates[partition] = 0.0
        elif not size or held <= 0:
            rates[partition] = None
        else:
            rates[partition] = grown * (size / held) / seconds
    return rates
