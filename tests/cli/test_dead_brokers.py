"""A broker of a real KRaft cluster dies with throttle rates: the controllers accept the values that it finds when it
starts.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota import library
from kquota.sandbox import cluster as sandbox
from kquota.sandbox.cluster import Sandbox
from kquota.settings.resource import Setting
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.moves import WireMoves
from kquota.terms import FOLLOWER_RATE, LEADER_RATE, BrokerId, TopicPartition
from tests.cli.config_command import ConfigCommands
from tests.cli.run import Ran, kquota
from tests.reassign.contract import DeadBrokerContract, DeadStage
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

THREE = BrokerId(3)
LEADER, FOLLOWER = Setting.of_broker(THREE, LEADER_RATE), Setting.of_broker(THREE, FOLLOWER_RATE)
QUICK = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "1000"}
LONGEST = 60.0
"""The rule is 15 s (kquota waits 8 s for an answer). The start of a process on a busy machine adds to it."""


@pytest.fixture(scope="module")
def servers() -> Iterator[Sandbox]:
    """Brokers 1, 2 and 3. Broker 1 is also the only controller."""
    yield sandbox.up(name="dead-brokers", kafka="4.3.1", properties=QUICK, owner_pid=os.getpid())
    sandbox.down("dead-brokers")


@pytest.fixture
def hand(servers: Sandbox) -> Iterator[OtherHand]:
    opened = OtherHand(servers)
    yield opened
    for broker in (1, 3):
        if servers.broker(broker).pid is None:
            opened.start_broker(broker)
    opened.close()


@pytest.fixture
def state(tmp_path: Path) -> tuple[str, str]:
    return "--state-dir", str(tmp_path / "state")


def at(servers: Sandbox) -> tuple[str, str]:
    return "--bootstrap-server", servers.bootstrap


def controllers(servers: Sandbox) -> tuple[str, str]:
    return "--bootstrap-controller", f"127.0.0.1:{servers.controller_port}"


def killed(servers: Sandbox) -> None:
    """Kill broker 3, and wait until the other brokers see its death."""
    servers.broker(3).process.kill()
    with Wire(f"{servers.broker(1).address},{servers.broker(2).address}", {}) as wire:

        def known() -> bool:
            wire.metadata([])
            return THREE not in wire.brokers()

        until(known, "broker 3 is not registered")


def rates(hand: OtherHand) -> tuple[str | None, str | None]:
    return hand.value(LEADER), hand.value(FOLLOWER)


def test_an_open_connection_reports_the_live_brokers_of_each_reading(hand: OtherHand) -> None:
    """`quota top` reads the quotas of one connection until Ctrl-C."""
    address = ",".join(hand.servers.broker(number).address for number in (1, 2))
    with library.connect(address) as cluster:
        assert cluster.quotas.brokers() == {1, 2, 3}
        killed(hand.servers)
        assert cluster.quotas.brokers() == {1, 2}


class Mourning:
    """Broker 3 is dead."""

    def __init__(self, hand: OtherHand, cluster: WireMoves) -> None:
        self.cluster, self.dead, self.alive = cluster, THREE, BrokerId(2)
        self._hand = hand

    def returns(self) -> None:
        self._hand.start_broker(3)
        self.cluster.snapshot(())


class TestControllers(DeadBrokerContract):
    @pytest.fixture
    def stage(self, hand: OtherHand, servers: Sandbox) -> Iterator[DeadStage]:
        hand.write(FOLLOWER, "7")
        killed(servers)
        with (
            Wire(",".join(broker.address for broker in servers.brokers[:2]), {}) as wire,
            library.controllers_of(wire, None, None) as found,
        ):
            yield Mourning(hand, WireMoves(wire, controllers=lambda: found))


def test_other_brokers_answer_while_metadata_still_names_a_dead_one(hand: OtherHand, servers: Sandbox) -> None:
    servers.broker(3).process.kill()
    for _ in range(8):  # each command connects to a broker that it chooses at random
        ran = kquota("reassign-partitions", *at(servers), "--list")
        assert (ran.code, ran.err) == (0, "")


def test_throttle_clear_restores_a_dead_broker(hand: OtherHand, servers: Sandbox, state: tuple[str, str]) -> None:
    hand.topic({0: (1, 3)}, size=1)
    hand.write(LEADER, "123456789")
    held = kquota("throttle", "set", *at(servers), *state, "--throttle", "5MB/s", "--broker", "1,3")
    assert held.code == 0, held.err
    assert rates(hand) == ("5000000", "5000000")
    killed(servers)
    shown = kquota("throttle", "show", *at(servers), *state, "--sample", "0")
    assert (shown.code, "broker 3 did not answer, so its throttle rates are unknown" in shown.err) == (8, True), shown
    cleared = kquota("throttle", "clear", *at(servers), *state)
    assert cleared.code == 0, cleared.err
    active = f"controller 1 at 127.0.0.1:{servers.controller_port}"
    assert (
        f"broker 3 is dead: {active} accepted the change, so {LEADER_RATE} is 123456789 when the broker starts"
        in cleared.err
    )
    assert (
        f"broker 3 is dead: {active} accepted the change, so {FOLLOWER_RATE} is unset when the broker starts"
        in cleared.err
    )
    hand.start_broker(3)
    until(lambda: rates(hand) == ("123456789", None), "broker 3 has its previous rates")
    assert "nothing to restore" in kquota("throttle", "clear", *at(servers), *state).err


def test_verify_ends_the_run_of_a_dead_broker(
    hand: OtherHand, servers: Sandbox, state: tuple[str, str], tmp_path: Path
) -> None:
    topic = hand.topic({0: (1, 3)})
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [1, 2]}]}))
    of_plan = (*at(servers), *state, "--reassignment-json-file", str(plan))
    started = kquota("reassign-partitions", "--execute", *of_plan, "--throttle", "50MB/s", "--force")
    assert started.code == 0, started.err
    hand.arrived({TopicPartition(topic, 0): (1, 2)})
    assert rates(hand) == ("50000000", "50000000")
    killed(servers)
    wrong = kquota("move", "resume", *at(servers), *state, "--bootstrap-controller", "127.0.0.1:1")
    assert (wrong.code, "is not restored yet (could not be read, and " in wrong.err) == (8, True), wrong
    verified = kquota("reassign-partitions", "--verify", *of_plan)
    assert verified.code == 0, verified.err
    assert f"accepted the change, so {LEADER_RATE} is unset when the broker starts" in verified.err
    hand.start_broker(3)
    until(lambda: rates(hand) == (None, None), "broker 3 is not throttled")


@pytest.mark.parametrize("other", [3, 2], ids=["with replicas", "without replicas"])
@pytest.mark.parametrize("command", ["doctor --fix --yes", "clear --all --yes"])
def test_an_unknown_rate_is_removed(
    hand: OtherHand, servers: Sandbox, state: tuple[str, str], command: str, other: int
) -> None:
    hand.topic({0: (1, other)}, size=1)
    hand.write(LEADER, "1000")
    hand.write(FOLLOWER, "2000")
    killed(servers)
    looked = kquota("throttle", "doctor", *at(servers), *state)
    assert (looked.code, "no findings; unknown: the rates of broker 3" in looked.err) == (8, True), looked
    young = kquota("throttle", "doctor", *at(servers), *state, "--fix", "--yes", "--older-than", "1h")
    assert (young.code, "accepted" in young.err) == (8, False), young
    fixed = kquota("throttle", *command.split()[:1], *at(servers), *state, *command.split()[1:], "--output", "json")
    assert fixed.code == 0, fixed.err
    assert json.loads(fixed.out)["cleared_brokers"] == [3]
    hand.start_broker(3)
    until(lambda: rates(hand) == (None, None), "broker 3 is not throttled")
    assert kquota("throttle", "doctor", *at(servers), *state).code == 0


def test_configs_through_the_controllers_equals_kafkas_tool(
    hand: OtherHand, servers: Sandbox, config_commands: ConfigCommands
) -> None:
    kafka = config_commands("4.3.1")
    hand.write(FOLLOWER, "2000")
    killed(servers)
    for arguments in (
        ["--describe", "--entity-type", "brokers", "--entity-name", "1"],
        ["--describe", "--entity-type", "brokers", "--entity-default"],
        ["--alter", "--entity-type", "brokers", "--entity-name", "3", "--add-config", f"{LEADER_RATE}=7000000"],
        ["--alter", "--entity-type", "brokers", "--entity-name", "3", "--delete-config", FOLLOWER_RATE],
    ):
        theirs, ours = kafka(*controllers(servers), *arguments), kquota("configs", *controllers(servers), *arguments)
        assert (ours.code, ours.out.strip()) == (theirs.code, theirs.out.strip()) == (0, ours.out.strip()), ours.err
    for everything in ([], ["--all"]):
        unknown = kquota("configs", *controllers(servers), "--describe", "--broker", "3", *everything)
        assert (unknown.code, unknown.out) == (1, "")
        assert "the configs are unknown, because a controller shows only its own configs" in unknown.err
    drained = kquota("move", "plan", *at(servers), "--drain", "3")
    assert (drained.code, drained.out) == (0, ""), drained.err
    assert "broker 3 is dead and has no replicas: nothing is left to drain from it" in drained.err
    assert kquota("move", "plan", *at(servers), "--drain", "9").code == 1, "no such broker is registered"
    listed = kquota("reassign-partitions", *controllers(servers), "--list")
    assert (listed.code, listed.out) == (0, "No partition reassignments found.\n"), listed.err
    hand.start_broker(3)
    until(lambda: rates(hand) == ("7000000", None), "broker 3 has found both changes")


def test_without_a_controller_commands_end_soon(hand: OtherHand, servers: Sandbox, state: tuple[str, str]) -> None:
    """Only broker 2 is running."""
    topic = hand.topic({0: (2, 3)}, size=1)
    held = kquota("throttle", "set", *at(servers), *state, "--throttle", "5MB/s", "--broker", "2,3")
    assert held.code == 0, held.err
    killed(servers)
    servers.broker(1).process.kill()
    alone = ("--bootstrap-server", servers.broker(2).address)
    changed = ("--alter", "--broker", "3", "--delete-config", LEADER_RATE)
    code, lines = _timed("configs", *controllers(servers), *changed)
    assert (code, len(lines)) == (1, 1), lines
    for writes in (
        ("configs", *alone, "--alter", "--user", "alice", "--add-config", "producer_byte_rate=5MB/s"),
        ("configs", *alone, "--alter", "--topic", topic, "--add-config", "retention.ms=1000000"),
        ("topics", *alone, "--create", "--topic", "never-created"),
    ):
        code, lines = _timed(*writes)
        assert (code, "no active controller answered through the brokers (" in lines[-1]) == (1, True), lines
    code, lines = _timed("throttle", "clear", *alone, *state)
    assert code in (1, 8), lines
    code, lines = _timed("throttle", "doctor", *alone, *state)
    assert code in (1, 8), lines
    hand.start_broker(1)
    hand.start_broker(3)
    assert kquota("throttle", "clear", *at(servers), *state).code == 0
    until(lambda: rates(hand) == (None, None), "everything is restored")


def _timed(*arguments: str) -> tuple[int, list[str]]:
    began = time.monotonic()
    ran: Ran = kquota(*arguments)
    took = time.monotonic() - began
    assert took < LONGEST, f"{took:.1f} s: {ran.err}"
    return ran.code, ran.err.splitlines()
