"""Random alterations of twins: one topic or broker through Kafka's ConfigCommand, the other through kquota.

After every step both tools describe both twins. Apart from the name, all four descriptions must be the same.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import pytest

from kquota.sandbox.cluster import Sandbox
from tests.cli.config_command import ConfigCommands, altered
from tests.cli.run import Ran, kquota_here
from tests.cli.test_resource_configs import words
from tests.servers import WAYS
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

STEPS: Final = 10
SEEN_SECONDS: Final = 20.0
TOPIC: Final = {
    "leader.replication.throttled.replicas": ("[0:1,0:2]", "*", "0:3"),
    "follower.replication.throttled.replicas": ("0:2", "[1:1,0:3,7:9]"),
    "retention.ms": ("86400000", "-1", "9223372036854775807"),
    "cleanup.policy": ("delete", "[compact,delete]"),
    "segment.ms": ("3600000", "604800000"),
    "min.cleanable.dirty.ratio": ("0.25", "0.75"),
    "preallocate": ("true", "false"),
    "compression.type": ("zstd", "producer"),
}
# Rates that no copy on this machine reaches.
BROKER: Final = {
    "leader.replication.throttled.rate": ("500000000000", "9223372036854775807"),
    "follower.replication.throttled.rate": ("600000000000", "700000000000"),
    "replica.alter.log.dirs.io.max.bytes.per.second": ("800000000000", "900000000000"),
}

Tool: TypeAlias = Callable[..., Ran]
Twin: TypeAlias = list[str]


@pytest.fixture(params=WAYS)
def hand(request: pytest.FixtureRequest) -> Iterator[OtherHand]:
    cluster: Sandbox = request.getfixturevalue(WAYS[request.param][0])
    found = OtherHand(cluster)
    yield found
    found.close()


@pytest.fixture
def tools(request: pytest.FixtureRequest, hand: OtherHand, config_commands: ConfigCommands) -> tuple[Tool, Tool]:
    """Kafka's tool and kquota on one connection: the tool of 4.3.1 over brokers, of 2.8.2 over ZooKeeper."""
    on_zookeeper = WAYS[request.node.callspec.params["hand"]][1]
    where = (
        ("--zookeeper", str(hand.servers.zookeeper)) if on_zookeeper else ("--bootstrap-server", hand.servers.bootstrap)
    )
    command = config_commands("2.8.2" if on_zookeeper else "4.3.1")
    return lambda *asked: command(*where, *asked), lambda *asked: kquota_here("configs", *where, *asked)


@pytest.fixture(params=["topics", "brokers"])
def twins(request: pytest.FixtureRequest, hand: OtherHand, tools: tuple[Tool, Tool]) -> tuple[Twin, Twin]:
    if request.param == "brokers":
        return ["--broker", "1"], ["--broker", "2"]
    found = [hand.topic({0: [1], 1: [2]}, size=1) for _ in range(2)]
    until(lambda: all(name in tools[1]("--describe", "--topic", name).out for name in found), "the twins are seen")
    return ["--topic", found[0]], ["--topic", found[1]]


def described_pairs(tool: Tool, twin: Twin) -> list[tuple[str, list[str]]]:
    ran = tool("--describe", *twin)
    assert (ran.code, ran.err) == (0, ""), ran
    return words(ran.out.replace(f" {twin[1]} are", " X are").replace(f"'{twin[1]}'", "'X'"))


def test_twins_stay_equal(tools: tuple[Tool, Tool], twins: tuple[Twin, Twin], request: pytest.FixtureRequest) -> None:
    chance = random.Random(f"kquota configs, {request.node.callspec.id}")
    values = TOPIC if twins[0][0] == "--topic" else BROKER
    held: set[str] = set()
    for step in range(STEPS + 1):
        delete = sorted(held) if step == STEPS else [key for key in sorted(held) if chance.random() < 0.4]
        add = {key: chance.choice(values[key]) for key in values if key not in delete and chance.random() < 0.4}
        add = {} if step == STEPS else add or ({} if delete else {next(iter(values)): values[next(iter(values))][0]})
        held = (held - set(delete)) | set(add)
        change = [
            *(["--add-config", ",".join(f"{key}={value}" for key, value in add.items())] if add else []),
            *(["--delete-config", ",".join(delete)] if delete else []),
        ]
        answers = [
            altered(functools.partial(tool, "--alter", *change, *twin)).out.replace(twin[1], "X")
            for tool, twin in zip(tools, twins, strict=True)
        ]
        assert answers[0] == answers[1] != "", change
        _agree(tools, twins, held)


def _agree(tools: tuple[Tool, Tool], twins: tuple[Twin, Twin], held: set[str]) -> None:
    """True if the descriptions agree. On KRaft brokers may lag for a moment."""
    give_up = time.monotonic() + SEEN_SECONDS
    while True:
        found = [described_pairs(tool, twin) for tool in tools for twin in twins]
        [(_, pairs)] = found[0]
        keys = {pair.strip().partition("=")[0] for pair in pairs if "=" in pair}
        if (all(other == found[0] for other in found) and keys == held) or time.monotonic() > give_up:
            break
        time.sleep(0.05)
    assert found[1:] == found[:1] * 3
    assert keys == held
