"""Random sequences of alterations, first through Kafka's ConfigCommand and then through kquota, on the same names.

After every step each tool describes the result. Every state, description and answer must be the same. The sequences run
one after the other, so that they can include default entities, which exist once in a cluster.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import pytest

from kquota.sandbox.cluster import Sandbox
from tests.cli.config_command import ConfigCommand, ConfigCommands, altered, settled
from tests.cli.run import Ran, kquota_here
from tests.cli.test_configs import znodes
from tests.servers import WAYS

pytestmark = pytest.mark.kafka

STEPS: Final = 16
VALUES: Final = {
    "producer_byte_rate": ("1", "1048576", "10000000", "123456789012"),
    "consumer_byte_rate": ("1024", "20000000", "999999"),
    "request_percentage": ("100.5", "200", "1000.25"),
    "controller_mutation_rate": ("0.001", "2.5", "50"),
    "connection_creation_rate": ("5000", "20000", "2147483647"),
}
"""Defaults also limit the tools themselves, so no value here is low enough to delay or disconnect them."""
IP_KEYS: Final = ("connection_creation_rate",)
CLIENT_KEYS: Final = tuple(key for key in VALUES if key not in IP_KEYS)
ALL: Final = (
    ["--entity-type", "users"],
    ["--entity-type", "clients"],
    ["--entity-type", "clients", "--entity-type", "users"],
    ["--entity-type", "ips"],
)

ALL_TYPES: Final = ("users", "clients", "ips")

Described: TypeAlias = list[tuple[str, frozenset[str]]]


@dataclass(frozen=True)
class Step:
    """One alteration: the options of the entity, the pairs to add and the keys to delete."""

    names: list[str]
    add: dict[str, str]
    delete: list[str]

    @property
    def entity(self) -> frozenset[str]:
        """The entity, whatever its spelling: its names and its types."""
        kinds = {kind for kind in ("user", "client", "ip") if kind in " ".join(self.names)}
        return frozenset(kinds | {word for word in self.names if word[:2] != "--" and word not in ALL_TYPES})

    @property
    def alter(self) -> list[str]:
        added = ["--add-config", ",".join(f"{k}={v}" for k, v in self.add.items())] if self.add else []
        deleted = ["--delete-config", ",".join(self.delete)] if self.delete else []
        return ["--alter", *added, *deleted, *self.names]

    @property
    def describe(self) -> list[str]:
        return ["--describe", *self.names]


def entities(chance: random.Random) -> list[tuple[list[list[str]], tuple[str, ...]]]:
    """Every type of entity: the options that name it, and its keys."""
    user, client = f"u {chance.randrange(10**6)}", f"c/{chance.randrange(10**6)}"
    ip = f"10.{chance.randrange(256)}.{chance.randrange(256)}.7"
    users = {"name": ["--entity-name", user], "default": ["--entity-default"]}
    clients = {"name": ["--entity-name", client], "default": ["--entity-default"]}
    short = {
        "users": {"name": ["--user", user], "default": ["--user-defaults"]},
        "clients": {"name": ["--client", client], "default": ["--client-defaults"]},
    }
    found = []
    for which in ("name", "default"):
        found.append(([["--entity-type", "users", *users[which]], short["users"][which]], CLIENT_KEYS))
        found.append(([["--entity-type", "clients", *clients[which]], short["clients"][which]], CLIENT_KEYS))
        for other in ("name", "default"):
            long = [
                ["--entity-type", "users", *users[which], "--entity-type", "clients", *clients[other]],
                ["--entity-type", "clients", "--entity-type", "users", *clients[other], *users[which]],
            ]
            both = [*short["clients"][other], *short["users"][which]]
            found.append(([*long, both], CLIENT_KEYS))
    found.append(([["--ip", ip], ["--entity-type", "ips", "--entity-name", ip]], IP_KEYS))
    found.append(([["--ip-defaults"], ["--entity-default", "--entity-type", "ips"]], IP_KEYS))
    return found


def sequence(seed: str) -> tuple[list[Step], list[Step]]:
    """Steps that Kafka's tool accepts (it refuses to delete an unset key), and steps that delete everything."""
    chance = random.Random(seed)
    known = entities(chance)
    held: list[set[str]] = [set() for _ in known]
    steps = []
    for _ in range(STEPS):
        which = chance.randrange(len(known))
        spellings, keys = known[which]
        delete = [key for key in sorted(held[which]) if chance.random() < 0.4]
        add = {key: chance.choice(VALUES[key]) for key in keys if key not in delete and chance.random() < 0.5}
        if not add and not delete:
            add = {keys[0]: VALUES[keys[0]][0]}
        held[which] = (held[which] - set(delete)) | set(add)
        steps.append(Step(chance.choice(spellings), add, delete))
    return steps, [Step(spellings[0], {}, list(keys)) for spellings, keys in known]


@dataclass(frozen=True)
class Tools:
    """Both tools on one connection to one cluster."""

    connection: tuple[str, str]
    command: ConfigCommand
    zookeeper: str | None

    def kafka(self, *arguments: str) -> Ran:
        return self.command(*self.connection, *arguments)

    def kquota(self, *arguments: str) -> Ran:
        return kquota_here("configs", *self.connection, *arguments)


@pytest.fixture(params=WAYS)
def tools(request: pytest.FixtureRequest, config_commands: ConfigCommands) -> Tools:
    fixture, on_zookeeper = WAYS[request.param]
    cluster: Sandbox = request.getfixturevalue(fixture)
    if on_zookeeper:
        # Kafka 3's tool cannot change quotas in ZooKeeper. 2.8's tool can, in any ZooKeeper.
        return Tools(("--zookeeper", str(cluster.zookeeper)), config_commands("2.8.2"), cluster.zookeeper)
    return Tools(("--bootstrap-server", cluster.bootstrap), config_commands(str(cluster.kafka)), cluster.zookeeper)


def described(ran: Ran) -> Described:
    """Return lines as words and pairs. Kafka prints in hash map order, and 2.8's tool also prints entities without a
    quota.
    """
    assert (ran.code, ran.err) == (0, ""), ran
    lines = (line.partition(" are ") for line in ran.out.splitlines())
    return sorted((head, frozenset(tail.replace(", ", ",").split(","))) for head, _, tail in lines if tail)


def once_described(tool: Callable[..., Ran], command: list[str], fits: Callable[[Described], bool]) -> Described:
    return settled(lambda: described(tool(*command)), fits)


def shows(step: Step, before: dict[str, str]) -> tuple[Callable[[Described], bool], dict[str, str]]:
    """Return True if a description of the step's entity shows the step, and the configs that the entity then has."""
    wanted = {key: value for key, value in before.items() if key not in step.delete} | step.add

    def fits(found: Described) -> bool:
        pairs = {pair.partition("=")[::2] for _, tail in found for pair in tail}
        return {key: float(value) for key, value in pairs} == {key: float(value) for key, value in wanted.items()}

    return fits, wanted


def through_kafka(tools: Tools, steps: list[Step]) -> list[tuple[Ran, Described]]:
    """Return the answer of Kafka's tool to each step, and its description of the entity afterwards."""
    recorded = []
    held: dict[frozenset[str], dict[str, str]] = {}
    for step in steps:
        fits, held[step.entity] = shows(step, held.get(step.entity, {}))
        answer = altered(functools.partial(tools.kafka, *step.alter))
        assert answer.code == 0, (step, answer)
        picture = once_described(tools.kafka, step.describe, fits)
        assert fits(picture), (step, picture)
        recorded.append((answer, picture))
    return recorded


def everything(tools: Tools) -> list[Described]:
    """Return all entities of each type, as Kafka's tool describes them."""
    return [described(tools.kafka("--describe", *names)) for names in ALL]


def stored(tools: Tools) -> dict[str, object]:
    """Return every config as ZooKeeper stores it. The result is empty on KRaft. A node stays after its last quota is
    deleted."""
    return {path: config for path, config in znodes(tools.zookeeper).items() if config} if tools.zookeeper else {}


def test_a_random_sequence_has_the_same_effect_through_both_tools(tools: Tools, request: pytest.FixtureRequest) -> None:
    steps, end = sequence(f"kquota configs, {request.node.callspec.params['tools']}")
    for step in end:
        assert tools.kquota(*step.alter).code == 0
    recorded = through_kafka(tools, steps)
    state, nodes = everything(tools), stored(tools)
    for step in end:
        assert tools.kquota(*step.alter).code == 0

    for step, (answer, picture) in zip(steps, recorded, strict=True):
        ours = tools.kquota(*step.alter)
        assert (ours.code, ours.out) == (0, answer.out), step
        for tool in (tools.kquota, tools.kafka):
            assert once_described(tool, step.describe, picture.__eq__) == picture, step
    for names, wanted in zip(ALL, state, strict=True):
        for tool in (tools.kquota, tools.kafka):
            assert once_described(tool, ["--describe", *names], wanted.__eq__) == wanted, names
    assert stored(tools) == nodes
    for step in end:
        assert tools.kquota(*step.alter).code == 0
