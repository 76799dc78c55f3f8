"""The moves of `bench truth`, with every kind of move and of traffic on every release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kquota.sandbox.jars import NEWEST

PARTITIONS: Final = 8

Replicas = list[int]
Places = tuple[tuple[Replicas, ...], tuple[Replicas, ...]]
"""The replicas before and after the move. Partitions 0, 1, … use the items of each tuple in turn."""
NO_REPLICA_STAYS: Final[Places] = (([1],), ([3],))
STAYS: Final[Places] = (([1, 2],), ([1, 3],))
"""One follower is replaced, and the leader stays."""
_TWO_LEADERS: Final[Places] = (([1], [2]), ([3], [3]))
_TWO_DESTINATIONS: Final[Places] = (([1], [1], [1], [2]), ([3], [3], [3], [1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One move. Sizes are in megabytes, and rates in megabytes per second.

    Producers write `load` to all partitions together, and with `bursts` once a second. `restarted` is a broker that
    restarts in the middle of the move. With `warm`, another topic has throttled traffic before and during the move.
    `within` is a broker, and the move is then between its log dirs.
    """

    name: str
    places: Places = NO_REPLICA_STAYS
    size: int
    throttle: int
    kafka: str = NEWEST
    load: int = 0
    bursts: bool = False
    topics: int = 1
    partitions: int = PARTITIONS
    tiered: bool = False
    warm: bool = False
    restarted: int | None = None
    within: int | None = None

    @property
    def here(self) -> list[Replicas]:
        """The replicas of each partition of one topic before the move."""
        return self._every(self.places[0])

    @property
    def there(self) -> list[Replicas]:
        """The replicas of each partition of one topic after the move."""
        return self._every(self.places[1])

    @property
    def title(self) -> str:
        """The name of the case in the table."""
        written = f", {self.load} MB/s written" if self.load else ""
        return f"{self.kafka} {self.name}: {self.size} MB at {self.throttle} MB/s{written}"

    @property
    def cluster(self) -> tuple[str, bool]:
        """The cluster that the case needs: its release, and True if it is tiered."""
        return self.kafka, self.tiered

    def _every(self, replicas: Sequence[Replicas]) -> list[Replicas]:
        return [replicas[number % len(replicas)] for number in range(self.partitions)]


def _of_release(kafka: str) -> tuple[Case, ...]:
    """Return the moves for every release."""
    return (
        Case(name="small", kafka=kafka, size=20, throttle=10),
        Case(name="no replica stays", kafka=kafka, size=150, throttle=10),
        Case(name="followers stay, producers", kafka=kafka, places=STAYS, size=200, throttle=20, load=2),
        Case(name="IN < T, and it never ends", kafka=kafka, places=STAYS, size=91, throttle=5, load=3),
    )


CASES: Final = (
    *_of_release(NEWEST),
    Case(name="smallest", size=5, throttle=10),
    Case(name="larger", size=400, throttle=20),
    Case(name="largest", size=600, throttle=20),
    Case(name="one partition", size=100, throttle=10, partitions=1),
    Case(name="ten topics", size=150, throttle=10, topics=10, partitions=4),
    Case(name="no replica stays, producers", size=150, throttle=20, load=3),
    Case(name="no replica stays, bursts", size=100, throttle=10, load=2, bursts=True),
    Case(name="followers stay", places=STAYS, size=300, throttle=20),
    Case(name="followers stay, producers", places=STAYS, size=100, throttle=10, load=2),
    Case(name="followers stay, bursts", places=STAYS, size=200, throttle=20, load=3, bursts=True),
    Case(name="two leaders, one destination", places=_TWO_LEADERS, size=200, throttle=10),
    Case(name="one of two destinations", places=_TWO_DESTINATIONS, size=300, throttle=20),
    Case(name="two new replicas", places=(([1],), ([1, 2, 3],)), size=150, throttle=10),
    Case(name="the leader moves", places=(([1, 2],), ([2, 3],)), size=150, throttle=10),
    Case(name="IN < T, and it takes longer", places=STAYS, size=40, throttle=8, load=3),
    Case(name="writes alone exceed T, and it never ends", size=60, throttle=5, load=6),
    Case(name="throttled traffic before", size=50, throttle=10, warm=True),
    Case(name="throttled traffic before", size=200, throttle=10, warm=True),
    Case(name="a follower is restarted", places=STAYS, size=200, throttle=10, restarted=2),
    Case(name="the destination is restarted", size=200, throttle=10, restarted=3),
    Case(name="between log dirs", within=1, size=200, throttle=10),
    Case(name="between log dirs", within=1, size=400, throttle=10),
    Case(name="tiered", tiered=True, size=200, throttle=10),
    Case(name="tiered, producers", tiered=True, places=STAYS, size=200, throttle=10, load=2),
    Case(name="tiered, and it never ends", tiered=True, places=STAYS, size=100, throttle=5, load=3),
    *_of_release("3.9.1"),
    *_of_release("2.8.2"),
)
