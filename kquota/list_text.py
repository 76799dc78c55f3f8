"""Lists in messages: joined ids, and the first few of many items."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice


def joined(items: Iterable[object]) -> str:
    """Join brokers or topics with commas, as Kafka's tools list them: `1,2,3`."""
    return ",".join(map(str, items))


def listed(items: Iterable[str], last: str = "and") -> str:
    """Return one or more items as one text, with the word `last` before the final item.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"], "or")
    ('a', 'a and b', 'a, b or c')
    """
    *others, end = items
    return f"{', '.join(others)} {last} {end}" if others else end


def few(items: Collection[object], most: int, between: str = ", ") -> str:
    """Return one text: the first `most` items, joined with `between`, then the number of the other items, if any.

    >>> few(["a", "b"], 2), few(["a", "b", "c", "d"], 2)
    ('a, b', 'a, b and 2 more')
    """
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return between.join(map(str, islice(items, most))) + more


def named_brokers(ids: Collection[int], most: int | None = None) -> str:
    """List broker ids in ascending order, at most `most` of them. None means all.

    >>> named_brokers([2, 1]), named_brokers([7]), named_brokers(range(12), 2)
    ('brokers 1,2', 'broker 7', 'brokers 0,1 and 10 more')
    """
    return f"broker{'' if len(ids) == 1 else 's'} {few(sorted(ids), len(ids) if most is None else most, ',')}"
