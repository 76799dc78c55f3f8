"""Kafka's own ReassignPartitionsCommand: the other side of every test of `reassign-partitions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from tests.cli.kafka_tools import KafkaTools
from tests.cli.run import Ran
from tests.stores.moves_stage import OtherHand


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


def already_throttled(hand: OtherHand, rate: str, lists: Mapping[str, tuple[str, str]]) -> None:
    """What Kafka's tool is about to set stands: of each topic the leaders' and the followers' list, and all rates.

    The tool does not wait until its throttle is in force, and a busy broker would copy all at once. A broker takes one
    change after the other: the lists are in force where the rates are.
    """
    for topic, (leaders, followers) in lists.items():
        hand.write(Setting.of_topic(topic, LEADER_REPLICAS), leaders)
        hand.write(Setting.of_topic(topic, FOLLOWER_REPLICAS), followers)
    for broker in hand.servers.brokers:
        for key in (LEADER_RATE, FOLLOWER_RATE):
            hand.write(Setting.of_broker(broker.id, key), rate)
