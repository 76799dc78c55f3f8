"""Kafka's own ConfigCommand for all tests of a run: one JVM a release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.cli.config_command import ConfigCommand, ConfigCommands, config_command


@pytest.fixture(scope="session")
def config_commands() -> Iterator[ConfigCommands]:
    """The tool of a release, started when it is first asked for."""
    opened: dict[str, ConfigCommand] = {}
    with ExitStack() as stack:

        def command(version: str) -> ConfigCommand:
            if version not in opened:
                opened[version] = stack.enter_context(config_command(version))
            return opened[version]

        yield command
