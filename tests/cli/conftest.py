"""Kafka's own tools for all tests of a run, one JVM a release; and every way to a cluster, with another client."""

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
    """The tools of a release, started when they are first asked for."""
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
    """One of WAYS; a test that needs only some of them parametrizes `way` itself."""
    return str(request.param)


@pytest.fixture
def hand(request: pytest.FixtureRequest, way: str) -> Iterator[OtherHand]:
    """The other client at the way's servers."""
    opened = OtherHand(request.getfixturevalue(WAYS[way][0]))
    yield opened
    opened.close()


@pytest.fixture
def connection(way: str, hand: OtherHand) -> tuple[str, str]:
    """The option and the address by which kquota goes that way."""
    if WAYS[way][1]:
        return "--zookeeper", str(hand.servers.zookeeper)
    return "--bootstrap-server", hand.servers.bootstrap
