"""What this room needs of a cluster and of time. `tests/mutation/contract.py` defines the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kquota.mutation.request import Mutation


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why one topic was not done: the broker's error, by code and name, and its own words."""

    code: int
    reason: str

    @property
    def rejected(self) -> bool:
        """Whether the quota rejected it: THROTTLING_QUOTA_EXCEEDED."""
        return self.code == REJECTED


REJECTED = 89


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of each topic of one request, None is done; and throttle_time_ms, for which the channel is muted."""

    throttle_time_ms: int
    outcomes: Mapping[str, Failure | None]


class Topics(Protocol):
    """The controller, asked in a version of the protocol in which it rejects rather than delays."""

    def send(self, mutations: Sequence[Mutation], seconds: float) -> Answer:
        """Ask for mutations of one kind in one request, which may take `seconds`.

        Raises Refused before a broker that cannot reject, Unreachable when no answer came: then nobody knows.
        """
        ...


class Clock(Protocol):
    """Time, so that a test need not wait."""

    def monotonic(self) -> float:
        """Seconds since some moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...
