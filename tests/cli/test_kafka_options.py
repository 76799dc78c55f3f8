"""A runbook for Kafka's tools keeps its options: kquota has every option that the tools of three releases list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pytest

from tests.cli.kafka_tools import KafkaTools, Tools
from tests.cli.run import kquota_here

CORE: Final = "kafka.admin."
TOOLS: Final = "org.apache.kafka.tools."
CLASSES: Final[Mapping[str, tuple[str, str]]] = {
    "configs": (f"{CORE}ConfigCommand", f"{CORE}ConfigCommand"),
    "topics": (f"{CORE}TopicCommand", f"{TOOLS}TopicCommand"),
    "leader-election": (f"{CORE}LeaderElectionCommand", f"{TOOLS}LeaderElectionCommand"),
    "log-dirs": (f"{CORE}LogDirsCommand", f"{TOOLS}LogDirsCommand"),
    "reassign-partitions": (f"{CORE}ReassignPartitionsCommand", f"{TOOLS}reassign.ReassignPartitionsCommand"),
}
"""The class of each of Kafka's tools, in Kafka 2.8 and in later releases."""

REFUSED: Final[Mapping[str, frozenset[str]]] = {
    "topics": frozenset({"--delete-config", "--disable-rack-aware", "--partition-size-limit-per-response"}),
}
"""Options that a command does not have on purpose. docs/topics.md gives the reasons."""
OF_KQUOTA: Final = "--version"
"""An option of `kquota`, and not of its commands."""
_OPTION: Final = re.compile(r"^(--[a-z][a-z.-]*)", re.MULTILINE)


def missing(tools: KafkaTools, command: str, main_class: str) -> set[str]:
    """Return the options that Kafka's tool lists, and that the command of kquota does not know."""
    shown = tools(main_class, "--help")
    options = set(_OPTION.findall(shown.out + shown.err))
    assert "--bootstrap-server" in options
    return {option for option in options if f"No such option: {option}" in kquota_here(command, option, "x").err}


@pytest.mark.parametrize("release", ["4.3.1", "3.9.1", "2.8.2"])
def test_kquota_has_every_option_of_kafkas_tools(release: str, kafka_tools: Tools) -> None:
    for command, classes in CLASSES.items():
        unknown = missing(kafka_tools(release), command, classes[release != "2.8.2"])
        assert unknown <= REFUSED.get(command, frozenset()) | {OF_KQUOTA}, command
