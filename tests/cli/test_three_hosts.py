"""Three state folders as hosts of one team on real brokers: random, killed commands leave nothing behind.

The seed of a round determines its commands; the moment of a kill depends on the machine. `KQUOTA_ROUNDS` sets the
number of rounds, and `KQUOTA_SEED` runs one round.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.stores.state.checked_values import setting_of
from kquota.terms import FOLLOWER_REPLICAS, LEADER_REPLICAS, REPLICATION_RATES, BrokerId, TopicPartition
from tests.cli.run import Ran, kquota_here, started
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

ROUNDS = int(os.environ.get("KQUOTA_ROUNDS", "3"))
SEED = os.environ.get("KQUOTA_SEED")
SIZES = (10_000, 300_000, 3_000_000)
RATES = ("500kB/s", "2MB/s", "30MB/s")
KILLED_AFTER = (0.3, 3.0)
"""Seconds: from the first imports to the last write, on a fast or a busy machine."""
_CYCLES = 6
_EXITS = (0, 1, 2, 8, 75)
"""Expected exit codes: done, refused, no longer valid, not yet, another process holds the lock."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The connections of the commands, and whether the team shares a topic."""

    over: tuple[str, ...]
    shared: bool


KINDS = {
    "4.3.1, the topic": ("kafka_431", Kind(("brokers",), True)),
    "3.9.1, the znodes": ("kafka_391", Kind(("zookeeper",), False)),
    "3.9.1, the topic over both connections": ("kafka_391", Kind(("brokers", "zookeeper"), True)),
}


@dataclass
class Team:
    """Three hosts at one cluster, and the throttles that other tools have set there."""

    kind: Kind
    hand: OtherHand
    folder: Path
    topics: tuple[str, ...]
    rng: random.Random = field(default_factory=random.Random)
    met: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)
    plans: list[str] = field(default_factory=list)
    rates: dict[Setting, str] = field(default_factory=dict)
    lists: dict[Setting, str] = field(default_factory=dict)

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(topic, n) for topic in self.topics for n in (0, 1)]

    def words(self, host: int, command: Sequence[str], over: str | None = None) -> tuple[str, ...]:
        way = over or self.rng.choice(self.kind.over)
        servers = self.hand.servers
        assert way == "brokers" or servers.zookeeper
        where = (
            ("--zookeeper", str(servers.zookeeper)) if way == "zookeeper" else ("--bootstrap-server", servers.bootstrap)
        )
        return (*command, *where, "--state-dir", str(self.folder / f"host{host}"))

    def run(self, host: int, *command: str, over: str | None = None) -> Ran:
        ran = kquota_here(*self.words(host, command, over))
        self.trace.append(f"host{host} {' '.join(command)}: {ran.code} {ran.err.strip()[-300:]}")
        assert "Traceback" not in ran.err, ran.err
        assert ran.code in _EXITS, ran
        return ran

    def killed(self, host: int, *command: str) -> None:
        """Kill the command some time after its start, unless it has already ended."""
        process = started(*self.words(host, command))
        try:
            _, err = process.communicate(timeout=self.rng.uniform(*KILLED_AFTER))
            ended = f"{process.returncode} {err.strip()[-300:]}"
            assert "Traceback" not in err, err
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            ended = "killed"
        self.met[f"{' '.join(command[:2])} killed"] += ended == "killed"
        self.trace.append(f"host{host} {' '.join(command)}: {ended}")

    # The possible actions.

    def plan(self) -> str:
        names = self.rng.sample(self.partitions, self.rng.choice((1, 2, 3)))
        moves = [{"topic": n.topic, "partition": n.partition, "replicas": self.rng.sample((1, 2, 3), 2)} for n in names]
        path = self.folder / f"plan-{len(self.plans)}.json"
        path.write_text(json.dumps({"version": 1, "partitions": moves}))
        self.plans.append(str(path))
        return str(path)

    def command(self) -> tuple[str, ...]:
        rng, plan = self.rng, ("--reassignment-json-file", self.rng.choice(self.plans))
        throttle = ("--throttle", rng.choice(RATES))
        execute = ("reassign-partitions", "--execute", *plan, *throttle, "--force")
        return rng.choice(
            (
                execute,
                execute,
                (*execute, "--additional"),
                (*execute, "--additional"),
                ("reassign-partitions", "--verify", *plan),
                ("reassign-partitions", "--cancel", *plan),
                ("move", "resume"),
                ("move", "resume", "--take-over", "--yes"),
                ("move", "abort", *plan, "--yes"),
                ("move", "abort", *plan, "--yes", "--take-over"),
                ("throttle", "set", "--topic", rng.choice(self.topics), *throttle, "--sample", "0"),
                ("throttle", "set", *plan, *throttle),
                ("throttle", "clear"),
                ("throttle", "doctor", "--fix", "--yes", "--output", "json"),
            )
        )

    def step(self, first: bool = False) -> None:
        command, host = self.command(), self.rng.randrange(3)
        while first and "--execute" not in command:
            command = self.command()
        name = " ".join(command[:2])
        if self.rng.random() < 0.25:
            self.foreign()
        if "doctor" not in command and self.rng.random() < 0.45:
            self.killed(host, *command)
            return
        ran = self.run(host, *command)
        self.met[f"{name} {ran.code}"] += 1
        if "doctor" in command and ran.out:
            self._forget(json.loads(ran.out)["fixed"])

    def foreign(self) -> None:
        """Write a random value as another tool."""
        if self.rng.random() < 0.6:
            setting = Setting.of_broker(BrokerId(self.rng.choice((1, 2, 3))), self.rng.choice(REPLICATION_RATES))
            self.rates[setting] = f"77{self.rng.randrange(10**6, 10**7)}"
            self.hand.write(setting, self.rates[setting])
        else:
            key = self.rng.choice((LEADER_REPLICAS, FOLLOWER_REPLICAS))
            setting = Setting.of_topic(self.rng.choice(self.topics), key)
            self.lists[setting] = f"{self.rng.randrange(900, 1000)}:9"
            self.hand.write(setting, self.lists[setting])
        self.met["foreign"] += 1
        self.trace.append(f"foreign: {setting} = {self.hand.value(setting)}")

    def _forget(self, fixed: Sequence[dict[str, str | None]]) -> None:
        """Forget the leftovers of other tools that doctor has removed and reported."""
        for one in fixed:
            setting = setting_of(one)
            if not setting.is_list:
                self.rates.pop(setting, None)
            elif setting in self.lists and self.lists[setting] not in entries(one["to"]):
                self.lists.pop(setting)

    # The checks at the end.

    def settle(self) -> None:
        """Wait until no partition moves."""
        names = self.partitions
        until(lambda: all(len(self.hand.replicas(name)) == 2 for name in names), "every move has ended", 180)
        self.hand.arrived({name: self.hand.replicas(name) for name in names})

    def open_runs(self, host: int, over: str) -> list[str]:
        ran = self.run(host, "move", "status", "--output", "json", over=over)
        return [run["run"] for run in json.loads(ran.out)["runs"]]

    def clean_up(self) -> None:
        """Let each host verify, resume and clear until no run is open."""
        for _ in range(_CYCLES):
            for host in range(3):
                self.settle()
                self.run(host, "move", "resume")
                self.settle()
                self.run(host, "throttle", "clear")
                if not any(self.open_runs(one, over) for one in range(3) for over in self.kind.over):
                    return
                for plan in self.plans:
                    self.run(host, "reassign-partitions", "--verify", "--reassignment-json-file", plan)
        raise AssertionError("a run stays open")

    def standing(self) -> tuple[dict[Setting, str], dict[Setting, str]]:
        lists = {setting: value for topic in self.topics for setting, value in self.hand.lists(topic).items()}
        return self.hand.rates(), {setting: value for setting, value in lists.items() if value}

    def must_be_over(self) -> None:
        until(lambda: self.standing() == (self.rates, self.lists), f"{self.standing()} is {(self.rates, self.lists)}")
        places = [self.hand.replicas(name) for name in self.partitions]
        plan = self.rng.choice(self.plans)
        codes = []
        for host in range(3):
            assert self.run(host, "move", "resume").code == 0
            verify = ("reassign-partitions", "--verify", "--reassignment-json-file", plan)
            codes.append(self.run(host, *verify).code)
        assert codes in ([0] * 3, [1] * 3), f"the hosts do not agree on {plan}: {codes}"
        assert [self.hand.replicas(name) for name in self.partitions] == places, "nothing is executed again"
        assert self.standing() == (self.rates, self.lists)

    def round(self, seed: int) -> None:
        self.rng.seed(seed)
        self.trace.clear()
        self.plans.clear()
        for _ in range(3):
            self.plan()
        for n in range(self.rng.randint(4, 8)):
            self.step(first=n == 0)
        self.clean_up()
        self.must_be_over()


@pytest.fixture
def team(request: pytest.FixtureRequest, servers: str, kind: Kind, tmp_path: Path) -> Iterator[Team]:
    hand = OtherHand(request.getfixturevalue(servers))
    topics = tuple(hand.topic({0: (1, 2), 1: (2, 3)}, size=size) for size in random.Random(1).sample(SIZES, 2))
    found = Team(kind, hand, tmp_path, topics)
    both = ("--zookeeper", str(hand.servers.zookeeper)) if hand.servers.zookeeper else ()
    record = ("--bootstrap-server", hand.servers.bootstrap, *both, "--state-dir", str(tmp_path / "host0"))
    if kind.shared:
        assert (shared := kquota_here("record", "share", *record)).code == 0, shared
    yield found
    if kind.shared:
        kquota_here("record", "unshare", *record, "--yes")
    for topic in topics:
        for setting in hand.lists(topic):
            hand.write(setting, None)
    hand.close()


@pytest.mark.parametrize(("servers", "kind"), KINDS.values(), ids=KINDS)
def test_no_throttle_of_kquota_stays_set(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(ROUNDS) if SEED is None else [int(SEED)]:
        try:
            team.round(seed)
        except BaseException as error:
            trace = "\n".join(team.trace)
            raise AssertionError(f"KQUOTA_SEED={seed}: {type(error).__name__}: {error}\n{trace}") from error
    with capsys.disabled():
        print(f"\n{team.kind}: {ROUNDS} rounds: {dict(sorted(team.met.items()))}")
