"""kill -9 of the real process at its n-th step, on real brokers: one more command restores every value.

The oracle is that of `tests/reassign/test_kill.py`, which dies at every step of every wave on the fake.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest
from kazoo.client import KazooClient

from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, BrokerId, TopicPartition
from tests.cli.dying import Death, Doom, run
from tests.cli.run import Ran
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

SLOW, FAST = "20000", "50MB/s"
SIZE = 8_000_000
"""Bytes of a partition that needs more than a minute at SLOW: a fetch takes 1 MB, and the next one waits for 11 s."""

Places = Mapping[TopicPartition, Sequence[int]]


@dataclass(slots=True)
class Stage:
    """Two topics that move back and forth, an operator's throttles, and a kquota that may die."""

    hand: OtherHand
    where: tuple[str, ...]
    folder: Path
    here: Places
    there: Places
    prior: Mapping[Setting, str]

    @property
    def through_zookeeper(self) -> bool:
        return self.where[0] == "--zookeeper"

    @property
    def topics(self) -> list[str]:
        return sorted({name.topic for name in self.here})

    def kquota(self, *arguments: str, doom: Doom | None = None) -> Ran:
        return run(*arguments, *self.where, "--state-dir", str(self.folder / "state"), folder=self.folder, doom=doom)

    def act(self, *action: str, doom: Doom | None = None) -> Ran:
        return self.kquota("reassign-partitions", *action, "--reassignment-json-file", self.plan(), doom=doom)

    def start(self, rate: str, doom: Doom | None = None) -> Ran:
        # The test needs a rate at which nothing moves, so it is not measured again for each kill.
        while True:
            ran = self.act("--execute", "--throttle", rate, "--force", doom=doom)
            if "another run with this id began within the same second" not in ran.err:
                return ran

    def plan(self) -> str:
        entries = [{"topic": n.topic, "partition": n.partition, "replicas": list(r)} for n, r in self.there.items()]
        path = self.folder / "plan.json"
        path.write_text(json.dumps({"version": 1, "partitions": entries}))
        return str(path)

    def are(self, places: Places) -> bool:
        return all(self.hand.replicas(name) == list(replicas) for name, replicas in places.items())

    def standing(self) -> dict[Setting, str]:
        found = self.hand.rates()
        for topic in self.topics:
            found |= self.hand.lists(topic)
        return found

    def state(self) -> str | None:
        """Return the state of the open run, as `move status` reports it."""
        told = json.loads(self.kquota("move", "status", "--output", "json").out)["runs"]
        assert len(told) <= 1
        return str(told[0]["state"]) if told else None

    def hurry(self) -> None:
        """Let the current move and its run finish."""
        assert self.start(FAST).code == 0
        self.hand.arrived(self.there)
        assert self.act("--verify").code == 0

    def resume(self) -> None:
        """Continue the run in its direction, forwards or back. If no run had begun, nothing was changed."""
        state = self.state()
        resumed = self.kquota("move", "resume")
        assert resumed.code in (0, 8), resumed.err
        if state == "aborting":
            self.back()
        elif resumed.code == 8:
            self.hurry()

    def abort(self) -> None:
        """Revert the run.

        Over ZooKeeper a move cannot be reverted while it runs: it finishes first, and is then copied back.
        """
        state = self.state()
        aborted = self.kquota("move", "abort")
        if aborted.code == 1:
            assert self.through_zookeeper
            assert "Kafka cannot cancel a running move over ZooKeeper (KIP-455)" in aborted.err
            assert self.start(FAST).code == 0
            self.hand.arrived(self.there)
            aborted = self.kquota("move", "abort")
        assert aborted.code in (0, 8), aborted.err
        if state is not None:
            assert ", being undone:\n" in aborted.out
            self.back()

    def back(self) -> None:
        self.hand.arrived(self.here)
        assert self.kquota("move", "abort").code == 0

    def must_be_as_before(self, why: str) -> None:
        """Check the oracle of FAULTS: the operator's throttles, replicas at either end, no open run, no leftovers."""
        until(lambda: self.standing() == self.prior, f"{why}: the throttles are the operator's")
        assert self.are(self.here) or self.are(self.there), why
        status = self.kquota("move", "status")
        assert (status.code, status.err.startswith("kquota: no run is open\n")) == (0, True), why
        if self.through_zookeeper:
            client = KazooClient(hosts=self.hand.servers.zookeeper)
            client.start()
            try:
                # Only some ended runs stay, so that a host that was offline learns that they ended.
                there = client.get_children("/kquota") if client.exists("/kquota") else []
                assert {*there} <= {"runs", "parts"}, why
                names = client.get_children("/kquota/runs") if "runs" in there else []
                sheets = [json.loads(client.get(f"/kquota/runs/{name}")[0]) for name in names]
                assert all(sheet["run"]["finished"] for sheet in sheets), why
            finally:
                client.stop()
                client.close()

    def turn(self) -> None:
        """Let the next move start from the current replicas."""
        if self.are(self.there):
            self.here, self.there = self.there, self.here


@pytest.fixture
def stage(hand: OtherHand, connection: tuple[str, str], tmp_path: Path) -> Stage:
    t, u = hand.topic({0: (1, 2), 1: (2, 1)}, size=SIZE), hand.topic({0: (3, 2)}, size=SIZE)
    t0, t1, u0 = TopicPartition(t, 0), TopicPartition(t, 1), TopicPartition(u, 0)
    prior = {
        Setting.of_topic(t, LEADER_REPLICAS): "0:1,9:9",  # an entry that the move needs, and an entry of another tool
        Setting.of_topic(u, FOLLOWER_REPLICAS): "",
        Setting.of_broker(BrokerId(1), LEADER_RATE): SLOW,  # equal to kquota's
        Setting.of_broker(BrokerId(2), FOLLOWER_RATE): "123456789",
    }
    for setting, value in prior.items():
        hand.write(setting, value)
    return Stage(
        hand, connection, tmp_path, {t0: (1, 2), t1: (2, 1), u0: (3, 2)}, {t0: (1, 3), t1: (2, 3), u0: (3, 1)}, prior
    )


def slowly(stage: Stage) -> None:
    assert stage.start(SLOW).code == 0


def to_its_end(stage: Stage) -> None:
    assert stage.start(FAST).code == 0
    stage.hand.arrived(stage.there)


Before: TypeAlias = Callable[[Stage], None]
Command: TypeAlias = Callable[[Stage, Doom], Ran]

COMMANDS: Mapping[str, tuple[Before, Command]] = {
    "execute": (lambda stage: None, lambda stage, doom: stage.start(SLOW, doom)),
    "verify": (to_its_end, lambda stage, doom: stage.act("--verify", doom=doom)),
    "cancel": (slowly, lambda stage, doom: stage.act("--cancel", doom=doom)),
    "abort": (slowly, lambda stage, doom: stage.kquota("move", "abort", doom=doom)),
    "abort at the end": (to_its_end, lambda stage, doom: stage.kquota("move", "abort", doom=doom)),
}

EACH = range(1, 100)
"""Every step of a command, until it survives."""

KILLED: Sequence[tuple[str, str, Sequence[int]]] = [
    ("4.3.1 Admin API", "execute", EACH),
    ("4.3.1 Admin API", "verify", range(1, 100, 3)),
    ("4.3.1 Admin API", "cancel", (2, 4, 6, 20)),  # it checks often whether the replicas have settled
    ("4.3.1 Admin API", "abort", range(4, 100, 4)),
    ("3.9.1 ZooKeeper", "execute", range(4, 100, 4)),
    ("3.9.1 ZooKeeper", "verify", (5, 10, 21, 15, 20)),  # 21: between the ends in the journal and in ZooKeeper
    ("3.9.1 ZooKeeper", "abort at the end", (8, 16)),
    ("3.9.1 Admin API", "execute", range(5, 100, 5)),
]


@pytest.mark.parametrize(("way", "name", "steps"), KILLED)
def test_killed_at_each_step(stage: Stage, name: str, steps: Sequence[int]) -> None:
    before, command = COMMANDS[name]
    ends, kills = itertools.cycle((Stage.resume, Stage.abort)), 0
    for n, death in zip(steps, itertools.cycle(Death), strict=False):
        why = f"{name} killed {death.value} {n}"
        before(stage)
        ran = command(stage, Doom(n=n, death=death))
        kills += ran.code == -9
        next(ends)(stage)
        stage.must_be_as_before(why)
        stage.turn()
        if ran.code != -9:
            break
    assert kills >= 2
