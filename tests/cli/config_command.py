"""Kafka's own ConfigCommand, against which the tests compare `configs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from tests.cli.kafka_tools import KafkaTools
from tests.cli.run import Ran
from tests.waiting import attempts

T = TypeVar("T")
SEEN_SECONDS: Final = 20.0
DEPRECATED = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
    "Use --bootstrap-server instead to specify a broker to connect to.\n"
)


class ConfigCommand:
    """One version's kafka.admin.ConfigCommand."""

    def __init__(self, tools: KafkaTools) -> None:
        self._tools = tools

    def __call__(self, *arguments: str) -> Ran:
        ran = self._tools("kafka.admin.ConfigCommand", *arguments)
        return Ran(ran.code, ran.out.removeprefix(DEPRECATED), ran.err)


ConfigCommands: TypeAlias = Callable[[str], ConfigCommand]
"""The type of the fixture `config_commands`, which returns the tool of a version."""


def described_pairs(line: str) -> tuple[str, frozenset[str]]:
    """Return the words and the set of pairs of a line that describes an entity.

    Kafka's tools print pairs in the order of a hash map, and kquota sorts them.
    """
    head, are, tail = line.partition(" are ")
    assert are, line
    return head, frozenset(tail.replace(", ", ",").split(","))


def settled(read: Callable[[], T], fits: Callable[[T], bool]) -> T:
    """Return the reading as soon as it matches, or the last reading. On KRaft, a broker may lag for a moment."""
    for _ in attempts(SEEN_SECONDS):
        if fits(found := read()):
            break
    return found


def altered(alter: Callable[[], Ran]) -> Ran:
    """Alter through Kafka's tool.

    Try again while the broker that the tool asked does not have the deleted value yet.
    """
    return settled(alter, lambda ran: ran.code == 0 or "Invalid config(s)" not in ran.err)
