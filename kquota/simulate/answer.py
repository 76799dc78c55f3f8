"""What a load comes to under its quotas: when it is through, what it gets in the long run, how long it waits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kquota.errors import Invalid
from kquota.simulate.load import Admission, Round, Sent, rounds
from kquota.simulate.rate import SAMPLE_MS, SAMPLES

LONGEST_MS: Final = 30 * 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """Topics under a quota that rejects: every round, and when the last is let through."""

    rounds: tuple[Round, ...]

    @property
    def ms(self) -> int:
        """From the first request to the last."""
        return self.rounds[-1].at if self.rounds else 0

    @property
    def mutations(self) -> int:
        """All that were let through."""
        return sum(one.mutations for one in self.rounds)


def deploy(items: Sequence[int], quota: Admission) -> Deploy:
    """`items` are topics, each a number of partitions; a client that waits as long as it is told.

    Raises Invalid where that is more than a month.
    """
    found = []
    for one in rounds(items, quota):
        if one.at > LONGEST_MS:
            raise Invalid("under this quota the deploy takes more than 30 days: is the rate meant per second?")
        found.append(one)
    return Deploy(rounds=tuple(found))


def rate_within(items: Sequence[int], ms: int, quota: Callable[[float], Admission]) -> int:
    """The smallest whole rate under which all `items` are through within `ms`; `quota` makes one of a rate."""

    def late(rate: int) -> bool:
        return any(one.at > ms for one in rounds(items, quota(rate)))

    low, high = 0, 1
    while late(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if late(middle) else (low, middle)
    return high


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A client that is let through and slowed: bytes and waits of each second of its own clock; times in ms.

    `steady` is bytes per second after two windows, when the first burst is paid for; None where it ended before.
    """

    seconds: tuple[int, ...]
    requests: int
    throttled: int
    first_wait: int | None
    longest_wait: int
    ms: int
    steady: float | None
    by: tuple[str, ...]


def flow(sent: Iterable[Sent], window_ms: int = SAMPLES * SAMPLE_MS) -> Flow:
    """Sums up what `load.stream` yields. Raises Invalid where the waits come to more than a month."""
    every = list(sent)
    if every and every[-1].at > LONGEST_MS:
        raise Invalid("under this quota the load takes more than 30 days: is a unit missing, or the load too long?")
    waits = [one.wait_ms for one in every if one.wait_ms]
    end = max((one.at + one.wait_ms for one in every), default=0)
    seconds = [0] * (math.ceil((every[-1].at + 1) / 1_000) if every else 0)
    for one in every:
        seconds[one.at // 1_000] += one.request.bytes
    late = [one for one in every if one.at >= 2 * window_ms]
    span = end - late[0].at if late else 0
    return Flow(
        seconds=tuple(seconds),
        requests=len(every),
        throttled=len(waits),
        first_wait=waits[0] if waits else None,
        longest_wait=max(waits, default=0),
        ms=end,
        steady=sum(one.request.bytes for one in late) / (span / 1_000) if span >= window_ms else None,
        by=tuple(sorted({one.by for one in every if one.by})),
    )
