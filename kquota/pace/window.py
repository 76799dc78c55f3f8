"""KIP-73's window for a throttle, IN < T < N - IN/R (Q&A 4), within the limits of the operator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A rate in bytes per second (None means unknown) and its reason. If `closed`, the throttle may equal the rate.

    If `binds` is False, the bound is only shown.
    """

    rate: float | None
    why: str
    closed: bool = False
    binds: bool = True

    def kept(self, throttle: float, *, above: bool) -> bool | None:
        """Return True if a throttle in bytes per second satisfies the bound. None if the rate of the bound is unknown.

        The bound is a lower bound if `above` is True, and an upper bound otherwise.
        """
        if self.rate is None:
            return None
        room = throttle - self.rate if above else self.rate - throttle
        return room > 0 or (room == 0 and self.closed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A throttle must be above every binding bound in `above`, and below every binding bound in `below`."""

    above: tuple[Bound, ...]
    below: tuple[Bound, ...]

    @property
    def least(self) -> Bound | None:
        """The highest binding lower bound, or None if none is known.

        Among equal bounds, an open one takes precedence, then the first.
        """
        return max(_known(self.above), key=lambda bound: (bound.rate or 0.0, not bound.closed), default=None)

    @property
    def most(self) -> Bound | None:
        """The lowest binding upper bound, or None if none is known.

        Among equal bounds, an open one takes precedence, then the first.
        """
        return min(_known(self.below), key=lambda bound: (bound.rate or 0.0, bound.closed), default=None)

    @property
    def empty(self) -> bool:
        """True if no throttle satisfies the known bounds."""
        least, most = self.least, self.most
        if most is None or most.rate is None:
            return False
        if least is None or least.rate is None:
            return most.rate <= 0
        return most.rate < least.rate or (most.rate == least.rate and not (most.closed and least.closed))

    def broken(self, throttle: float) -> tuple[Bound, ...]:
        """Return the known and binding bounds that a throttle, in bytes per second, does not satisfy."""
        low = [bound for bound in _known(self.above) if not bound.kept(throttle, above=True)]
        high = [bound for bound in _known(self.below) if not bound.kept(throttle, above=False)]
        return (*low, *high)


def network_bound(network: float, bytes_in: float | None, replication_factor: int) -> float | None:
    """N - IN/R: clients need the rest of the network after all leaders have moved. None if IN is unknown.

    All rates are in bytes per second. A negative result means that the network is full even without a move. Source:
    KIP-73, Q&A 4.
    """
    return None if bytes_in is None else network - bytes_in / replication_factor


def _known(bounds: Iterable[Bound]) -> list[Bound]:
    return [bound for bound in bounds if bound.rate is not None and bound.binds]
