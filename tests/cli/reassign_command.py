"""Kafka's own ReassignPartitionsCommand: the other side of every test of `reassign-partitions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tests.cli.kafka_tools import KafkaTools
from tests.cli.run import Ran


class ReassignCommand:
    """One version's ReassignPartitionsCommand."""

    def __init__(self, tools: KafkaTools, version: str) -> None:
        self._tools = tools
        self._main = (
            f"{'kafka.admin' if version < '3' else 'org.apache.kafka.tools.reassign'}.ReassignPartitionsCommand"
        )

    def __call__(self, *arguments: str) -> Ran:
        return self._tools(self._main, *arguments)


ReassignCommands: TypeAlias = Callable[[str], ReassignCommand]
"""A version to its tool: the fixture `reassign_commands`."""
