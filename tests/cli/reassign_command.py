"""Kafka's own ReassignPartitionsCommand, against which the tests compare `reassign-partitions`."""

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
"""The type of the fixture `reassign_commands`, which returns the tool of a version."""


def already_throttled(hand: OtherHand, rate: str, lists: Mapping[str, tuple[str, str]]) -> None:
    """Set the throttle that Kafka's tool will set: both lists of each topic, and all rates.

    The tool does not wait until its throttle is in force, so a busy broker could copy everything at once. A broker
    applies changes in order: the lists are in force when the rates are.
    """
    for topic, (leaders, followers) in lists.items():
        hand.write(Setting.of_topic(topic, LEADER_REPLICAS), leaders)
        hand.write(Setting.of_topic(topic, FOLLOWER_REPLICAS), followers)
    for broker in hand.servers.brokers:
        for key in (LEADER_RATE, FOLLOWER_RATE):
            hand.write(Setting.of_broker(broker.id, key), rate)
