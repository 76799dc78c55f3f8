"""A client under its quotas: what it sends when, and how long it is silent in between (KIP-219's mute)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kquota.simulate.delay import Throughput


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client has to send from `at` (ms) on: its bytes, and the ms of one broker thread that it costs."""

    at: int
    bytes: int = 0
    thread_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request, when it went out, and how long its client is then silent; `by` is the quota that says so, if any."""

    request: Request
    at: int
    wait_ms: int
    by: str | None


def stream(requests: Iterable[Request], byte_rate: Throughput | None, request: Throughput | None) -> Iterator[Sent]:
    """One connection that sends in order, each request once it is there and the one before lets it.

    The broker counts a request under both quotas and asks for the longer of the two waits, not for their sum.
    """
    free = 0
    for one in requests:
        now = max(one.at, free)
        waits = {
            "byte rate": 0 if byte_rate is None else byte_rate.record(one.bytes, now),
            "request percentage": 0 if request is None else request.record(one.thread_ms / 10, now),
        }
        by, wait = max(waits.items(), key=lambda item: item[1])
        free = now + wait
        yield Sent(request=one, at=now, wait_ms=wait, by=by if wait else None)


class Admission(Protocol):
    """A quota that rejects: `Mutations` as shipped, and the drafts."""

    def admit(self, mutations: float, now: int) -> int | None:
        """None when let through, else the ms to wait."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One request with all items that are left: how many were let through, from which on, and the wait of the rest."""

    at: int
    first: int
    admitted: int
    mutations: int
    wait_ms: int


def rounds(items: Sequence[int], quota: Admission) -> Iterator[Round]:
    """A client that sends the items it has left again as soon as it may, from 0 ms on, until all are let through.

    Each item is a topic and its number of partitions. KIP-599's wait is the least of the rejected items'; they are all
    told the same.
    """
    now, first = 0, 0
    while first < len(items):
        admitted, wait = 0, 0
        for n in range(first, len(items)):
            answer = quota.admit(items[n], now)
            if answer is not None:
                wait = max(1, answer)
                break
            admitted += 1
        yield Round(
            at=now, first=first, admitted=admitted, mutations=sum(items[first : first + admitted]), wait_ms=wait
        )
        now, first = now + wait, first + admitted
