"""What a move has to carry, from which broker to which, whatever the throttle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """All copies that one leader sends to one destination.

    `bytes` is their size; `writes` is what producers add to them meanwhile, counted once a copy, in bytes per second.
    None is unknown, never 0.
    """

    leader: int
    destination: int
    copies: int
    bytes: int
    writes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The links of a move, ordered by leader and destination.

    `keep_up` is, of each leader in them, the traffic of in-sync followers of the moving partitions: it spends the
    leader's throttle and is not delayed (KAFKA-4313). Bytes per second; None is unknown, never 0.
    """

    links: tuple[Link, ...]
    keep_up: Mapping[int, float | None]

    @property
    def copies(self) -> int:
        """How many replicas are to be made."""
        return sum(link.copies for link in self.links)

    @property
    def bytes(self) -> int:
        """What is to be copied, in bytes."""
        return sum(link.bytes for link in self.links)

    def scaled(self, factors: Mapping[int, float]) -> Work:
        """The same move where producers write more or less to what a leader leads: times its factor, 1 unless given."""
        return Work(
            links=tuple(replace(k, writes=_times(k.writes, factors.get(k.leader, 1.0))) for k in self.links),
            keep_up={leader: _times(rate, factors.get(leader, 1.0)) for leader, rate in self.keep_up.items()},
        )


def work(links: Iterable[Link], keep_up: Mapping[int, float | None]) -> Work:
    """The work of `links` in any order; a leader that `keep_up` does not name has no follower in sync."""
    ordered = tuple(sorted((link for link in links if link.copies), key=lambda link: (link.leader, link.destination)))
    return Work(links=ordered, keep_up={link.leader: keep_up.get(link.leader, 0.0) for link in ordered})


def total(rates: Iterable[float | None]) -> float | None:
    """The sum of rates; one that is unknown makes it unknown."""
    known = list(rates)
    return None if None in known else sum(rate for rate in known if rate is not None)


def _times(rate: float | None, factor: float) -> float | None:
    return None if rate is None else rate * factor
