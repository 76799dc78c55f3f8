"""Replication throttles (KIP-73) as a document holds them: text by broker or topic; what it may be, others judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from kquota.errors import Invalid
from kquota.terms import DEFAULT, THROTTLE_LISTS, THROTTLE_RATES, Default

Kind: TypeAlias = Literal["brokers", "topics"]

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "brokers": THROTTLE_RATES,
    "topics": THROTTLE_LISTS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """A topic, a broker by its id in decimal, or DEFAULT of all brokers."""

    kind: Kind
    name: str | Default

    def parts(self) -> Iterator[tuple[str, str | Default]]:
        """Its kind and name, as those of an entity."""
        yield self.kind, self.name

    def order(self) -> tuple[str, int, str]:
        """The one order: the default broker, brokers by id, topics by name."""
        if self.name is DEFAULT:
            return (self.kind, -1, "")
        number = int(self.name) if self.kind == "brokers" and self.name.isdecimal() else 0
        return (self.kind, number, self.name)

    def __str__(self) -> str:
        return f"{self.kind[:-1]} {'default' if self.name is DEFAULT else repr(self.name)}"


Throttles: TypeAlias = Mapping[Throttled, Mapping[str, str]]
"""Rates as whole bytes per second, lists as Kafka stores them; an empty list is left out: it throttles nothing."""

Check: TypeAlias = Callable[[Throttled, str, str], str]
"""What is stored for the text of one key. Raises Invalid for what no broker should be given."""


def unread(throttled: Throttled, key: str, text: str) -> str:
    """The check of a reader that takes no replication throttles: raises Invalid for any."""
    raise Invalid(f"{throttled}: {key}={text}: replication throttles are not read here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """The throttles of one broker or topic, as they stand and as they are to be; never pruned."""

    entity: Throttled
    before: Mapping[str, str]
    after: Mapping[str, str]
    pruned: Literal[False] = False

    def differing(self) -> Iterator[tuple[str, str | None, str | None]]:
        """(key, old, new) of each key that changes, sorted; None is not set. The order of a list means nothing."""
        for key in sorted({*self.before, *self.after}):
            old, new = self.before.get(key), self.after.get(key)
            if _entries(old) != _entries(new):
                yield key, old, new


def throttlings(wanted: Throttles, standing: Throttles) -> tuple[Throttling, ...]:
    """What makes `standing` what `wanted` says of those that it names."""
    every = (
        Throttling(entity=throttled, before=standing.get(throttled, {}), after=wanted[throttled])
        for throttled in sorted(wanted, key=Throttled.order)
    )
    return tuple(throttling for throttling in every if any(throttling.differing()))


def _entries(text: str | None) -> list[str] | None:
    return None if text is None else sorted(text.split(","))
