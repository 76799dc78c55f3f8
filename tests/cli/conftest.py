"""Kafka's own tools, with one JVM for each release, and every connection to a cluster with another client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.cli.config_command import ConfigCommand, ConfigCommands
from tests.cli.kafka_tools import KafkaTools, Tools, started
from tests.cli.reassign_command import ReassignCommand, ReassignCommands
from tests.servers import WAYS
from tests.stores.moves_stage import OtherHand


@pytest.fixture(scope="session")
def kafka_tools() -> Iterator[Tools]:
    """The tools of a release, started at their first use."""
    opened: dict[str, KafkaTools] = {}
    with ExitStack() as stack:

        def tools(version: str) -> KafkaTools:
            if version not in opened:
                opened[version] = stack.enter_context(started(version))
            return opened[version]

        yield tools


@pytest.fixture(scope="session")
def config_commands(kafka_tools: Tools) -> ConfigCommands:
    """Kafka's ConfigCommand of a release."""
    return lambda version: ConfigCommand(kafka_tools(version))


@pytest.fixture(scope="session")
def reassign_commands(kafka_tools: Tools) -> ReassignCommands:
    """Kafka's ReassignPartitionsCommand of a release."""
    return lambda version: ReassignCommand(kafka_tools(version), version)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """One of WAYS. A test that needs only some of them parametrizes `way` itself."""
    return str(request.param)


@pytest.fixture
def hand(request: pytest.FixtureRequest, way: str) -> Iterator[OtherHand]:
    """Another client of the servers of `way`."""
    opened = OtherHand(request.getfixturevalue(WAYS[way][0]))
    yield opened
    opened.close()


@pytest.fixture
def connection(way: str, hand: OtherHand) -> tuple[str, str]:
    """The option and the address with which kquota uses this connection."""
    if WAYS[way][1]:
        return "--zookeeper", str(hand.servers.zookeeper)
    return "--bootstrap-server", hand.servers.bootstrap
