"""What this room needs besides topics: a real client that loads one, and metadata as each broker has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from kquota.probe.load import Load
from kquota.probe.meter import Meter


class Client(Protocol):
    """A client that logs in as the one to be probed. All raise Refused or Unreachable when brokers end the load."""

    def produce(self, load: Load, meter: Meter, told: Callable[[float], None]) -> None:
        """Write at the load's rate until the meter ends; `told` hears the seconds gone by."""
        ...

    def fill(self, load: Load) -> None:
        """Write what `consume` is to read: about what it reads in a second."""
        ...

    def consume(self, load: Load, meter: Meter, told: Callable[[float], None]) -> None:
        """Read at the load's rate, over and over, what `fill` wrote."""
        ...

    def request(self, load: Load, meter: Meter, told: Callable[[float], None]) -> None:
        """Send requests that ask for nothing, one after the other; each counts 1."""
        ...


class Sight(Protocol):
    """What each broker knows."""

    def behind(self, wanted: Mapping[str, int]) -> int:
        """How many brokers do not show all these topics with so many partitions, each led; 0 partitions: none."""
        ...
