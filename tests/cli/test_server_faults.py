"""A server is killed or stopped in each phase of a throttled move, and kquota is killed with it: another host ends the
run, and nothing is left.

By default each victim and signal meets one or two phases. `KQUOTA_FAULTS=all` runs all pairs.
"""

from __future__ import annotations

import enum
import itertools
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from kquota import java
from kquota.sandbox import cluster as sandbox
from kquota.sandbox import jars, readiness, servers
from kquota.sandbox.cluster import Sandbox
from kquota.settings.resource import Setting
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.moves import WireMoves
from kquota.terms import FOLLOWER_REPLICAS, LEADER_RATE, BrokerId, TopicPartition
from tests.cli.dying import Death, Doom, Mortal
from tests.cli.hosts import BROKERS, ZOOKEEPER, Host, Team, forget, znodes
from tests.cli.run import Ran, kquota, started
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

SOURCE, DESTINATION, OTHER = BrokerId(1), BrokerId(3), BrokerId(2)
COUNT, SIZE, RATE = 4, 300_000, "300KB/s"
QUICK = {
    "4.3.1": {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "1000"},
    "3.9.1": {"zookeeper.session.timeout.ms": "6000"},
}
DOWN, STOPPED, LONGEST = 2.0, 8.0, 240.0
"""Seconds that a killed server is down, that a stopped one does not answer, and that no recovery needs."""
STEP: Final = 6
"""The step of `--verify` of a done move at which it has begun to restore."""


class Phase(enum.Enum):
    """The steps that the killed kquota had completed. Over ZooKeeper alone there are no waves, because `move run` needs
    brokers.
    """

    RECORDED = "recorded"
    SUBMITTED = "submitted"
    WAVES = "waves"
    ARRIVED = "arrived"


class Kind(enum.Enum):
    """The release, the connection of each host, and whether the hosts share a topic. Without one they share znodes."""

    KRAFT = ("4.3.1", (BROKERS, BROKERS), True)
    ZNODES = ("3.9.1", (ZOOKEEPER, ZOOKEEPER), False)
    BOTH = ("3.9.1", (BROKERS, ZOOKEEPER), True)

    @property
    def release(self) -> str:
        return self.value[0]

    @property
    def options(self) -> tuple[str, str]:
        return self.value[1]

    @property
    def victims(self) -> tuple[str, ...]:
        """On KRaft the source is the only controller."""
        return ("source", "destination", *(() if self is Kind.KRAFT else ("controller", "ZooKeeper")))

    @property
    def phases(self) -> tuple[Phase, ...]:
        return tuple(phase for phase in Phase if self.options[0] == BROKERS or phase is not Phase.WAVES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    kind: Kind
    victim: str
    signal: signal.Signals
    phase: Phase

    def __str__(self) -> str:
        return f"{self.kind.name} {self.victim} {self.signal.name} {self.phase.value}"


def cases() -> Iterator[Case]:
    for kind in Kind:
        faults = itertools.product(kind.victims, (signal.SIGKILL, signal.SIGSTOP))
        for number, (victim, sent) in enumerate(faults):
            first = number + (2 if kind is Kind.BOTH else 0)
            met = {first, first + 2} if kind is Kind.KRAFT else {first}
            few = [kind.phases[n % len(kind.phases)] for n in sorted(met)]
            for phase in kind.phases if os.environ.get("KQUOTA_FAULTS") == "all" else few:
                yield Case(kind=kind, victim=victim, signal=sent, phase=phase)


CASES: Final = tuple(cases())


@pytest.fixture(scope="module")
def running() -> Iterator[Callable[[str], Sandbox]]:
    found: dict[str, Sandbox] = {}

    def up(release: str) -> Sandbox:
        if release not in found:
            name = f"faults-{release.partition('.')[0]}"
            found[release] = sandbox.up(name=name, kafka=release, properties=QUICK[release], owner_pid=os.getpid())
        return found[release]

    yield up
    for one in found.values():
        sandbox.down(one.name)


@pytest.fixture
def team(case: Case, running: Callable[[str], Sandbox], tmp_path: Path) -> Iterator[Team]:
    hand = OtherHand(running(case.kind.release))
    record = f"runs-{uuid.uuid4().hex[:8]}" if case.kind.value[2] else None
    made = Team(hand=hand, folder=tmp_path, option=case.kind.options[0], record=record)
    if record is not None:
        shared = made.host(0).shared("share")
        assert shared.code == 0, shared.err
    yield made
    forget(hand, record)
    hand.close()


def stopped(process: Mortal) -> Mortal:
    until(lambda: process.stopped, "kquota reaches its step")
    return process


def begun(case: Case, host: Host, plan: str, topic: str) -> Callable[[], None]:
    """Bring the move to the phase with a kquota of this host. The result kills this kquota."""
    hand = host.hand
    throttled = ("--throttle", RATE, "--force")

    def doomed(death: Death) -> Mortal:
        doom = Doom(n=1, death=death, signal=signal.SIGSTOP, submitting=True)
        return stopped(host.doomed(doom, "--execute", plan, *throttled))

    if case.phase is Phase.WAVES:
        waves = started("move", "run", plan, *host.where, *throttled, "--batch", "1")
        until(lambda: any(copying(hand, topic)), "the first wave is under way")

        def killed() -> None:
            waves.kill()
            waves.communicate()

        return killed
    if case.phase is Phase.ARRIVED:
        ran = host.act("--execute", plan, *throttled)
        assert ran.code == 0, ran.err
        hand.arrived(targets(topic))
        doom = Doom(n=STEP, death=Death.AFTER, signal=signal.SIGSTOP)
        process = stopped(host.doomed(doom, "--verify", plan))
    else:
        process = doomed(Death.BEFORE if case.phase is Phase.RECORDED else Death.AFTER)

    def kill_process() -> None:
        os.kill(process.pid, signal.SIGKILL)
        process.end()

    return kill_process


def copying(hand: OtherHand, topic: str) -> list[bool]:
    """For each partition, whether it is moving or has moved."""
    return [DESTINATION in hand.replicas(TopicPartition(topic, number)) for number in range(COUNT)]


def targets(topic: str) -> dict[TopicPartition, list[int]]:
    return {TopicPartition(topic, number): [DESTINATION, OTHER] for number in range(COUNT)}


def struck(case: Case, hand: OtherHand) -> Callable[[], None]:
    """Send the signal to the victim. The result lets the victim work again."""
    cluster = hand.servers
    if case.victim == "ZooKeeper":
        assert cluster.keeper
        process, broker = cluster.keeper, 0
    else:
        broker = {"source": SOURCE, "destination": DESTINATION}.get(case.victim) or controller(hand)
        process = cluster.broker(broker).process
    if case.signal is signal.SIGSTOP:
        process.signal(signal.SIGSTOP)
    else:
        process.kill()

    def again() -> None:
        time.sleep(STOPPED if case.signal is signal.SIGSTOP else DOWN)
        if case.signal is signal.SIGSTOP:
            process.signal(signal.SIGCONT)
            return
        if broker:
            cluster.start_broker(broker)
            return
        assert cluster.zookeeper_port
        process.start(servers.zookeeper_command(java.find().executable, jars.pyspark_jars(), process))
        readiness.zookeeper(process, cluster.zookeeper_port)

    return again


def controller(hand: OtherHand) -> int:
    return int(hand.admin.describe_cluster().result(30).controller.id)


def healthy(hand: OtherHand) -> None:
    """Every broker is in the metadata of every other one, and a controller works. Clients connect again."""
    cluster = hand.servers

    def complete() -> bool:
        seen = []
        for broker in cluster.brokers:
            with Wire(broker.address, {}) as wire:
                wire.metadata([])
                seen.append(len(wire.brokers()))
        return seen == [len(cluster.brokers)] * len(cluster.brokers)

    until(complete, "every broker sees all brokers")
    if cluster.zookeeper:
        with znodes(hand) as client:
            until(lambda: client.exists("/controller") is not None, "a controller is elected")
    hand.admin = OtherHand(cluster).admin
    until(lambda: controller(hand) >= 0, "the brokers know the controller")


def resumed(host: Host, first: Ran) -> list[Ran]:
    """Repeat `move resume` until it reports that nothing is left."""
    every, deadline = [first], time.monotonic() + LONGEST
    while every[-1].code != 0:
        assert time.monotonic() < deadline, every[-3:]
        time.sleep(0.5)
        every.append(host.move("resume"))
    return every


@pytest.mark.parametrize("case", CASES, ids=str)
def test_another_host_ends_the_run(case: Case, team: Team) -> None:
    hand, first = team.hand, team.host(0).over(case.kind.options[0])
    second = team.host(1).over(case.kind.options[1])
    topic = hand.topic(dict.fromkeys(range(COUNT), (SOURCE, OTHER)), size=SIZE)
    foreign = {
        Setting.of_broker(SOURCE, LEADER_RATE): "123456789",
        Setting.of_topic(topic, FOLLOWER_REPLICAS): "0:2",
    }
    for setting, value in foreign.items():
        hand.write(setting, value)
    kill = begun(case, first, team.plan(targets(topic)), topic)
    heal = struck(case, hand)
    kill()
    meanwhile = started("move", "resume", *second.where)
    heal()
    out, err = meanwhile.communicate(timeout=LONGEST)
    healthy(hand)
    every = resumed(second, Ran(meanwhile.returncode, out, err))
    with Wire(hand.servers.bootstrap, {}) as wire:
        until(lambda: not WireMoves(wire).snapshot([]).running, "nothing moves")
    assert not any("Traceback" in ran.err for ran in every), every
    hand.arrived(targets(topic))
    # A broker on ZooKeeper shows a config some time after it is written there.
    team.become(foreign, topic)
    for host in (first, second):
        shown = kquota("move", "status", *host.where)
        assert (shown.code, "no run is open" in shown.err) == (0, True), (shown, every)
