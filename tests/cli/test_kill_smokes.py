"""kill -9 of each command in the middle of its writes, on real brokers: the next command completes or reverts them.

Each way to write to a cluster (`WRITING` in `tests/cli/test_target_cluster.py`) has a row here, or a kill in another
test that `make test` runs. `tests/cli/test_reassign_kill.py` kills the commands of a move at each of their steps.
"""

from __future__ import annotations

import gzip
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from kquota.mutation.topic import Creation
from kquota.probe import scratch
from kquota.sandbox import places, processes
from kquota.settings.resource import Setting
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.topics import WireTopics
from kquota.stores.record.memory import recall
from kquota.stores.state.runs import RunFiles
from kquota.terms import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    BrokerId,
    TopicPartition,
)
from tests.cli.dying import RENAMED, SUBMISSION, Death, Doom, run
from tests.cli.hosts import MARKER, znodes
from tests.cli.run import Ran, kquota, python
from tests.cli.test_target_cluster import WRITING
from tests.sandbox.watch import runs
from tests.stores.moves_stage import OtherHand
from tests.thorough import is_thorough
from tests.waiting import until

BROKERS, ZOOKEEPER = "4.3.1 Admin API", "3.9.1 ZooKeeper"
LISTS, RATES = "/config/topics", "/config/brokers"
SLOW, FAST = "20000", "50MB/s"
SMALL = 10_000
LASTING = 16_000_000
"""Bytes of a partition that needs almost three minutes at SLOW: a fetch takes 1 MB, and the next one waits for 11 s."""
WAITING: Final = """
import time
from kquota.sandbox import readiness
readiness.zookeeper = lambda *_: time.sleep(600)
from kquota.cli.main import main
main()
"""
"""kquota, for which a ZooKeeper is never ready, so that `sandbox up` does not end before it is killed."""
A_DAY_AGO: Final = 25 * 3600
RATE_OF_1: Final = Setting.of_broker(BrokerId(1), LEADER_RATE)


@dataclass(slots=True)
class Stage:
    """An operator at a cluster. The names of topics and users of a test begin with `name`.

    When the test ends, the throttles of the brokers and of `topic` must be those in `prior`.
    """

    hand: OtherHand
    at: str
    both: str
    folder: Path
    name: str
    topic: str = ""
    prior: dict[Setting, str] = field(default_factory=dict)

    def kquota(self, command: str, doom: Doom | None = None) -> Ran:
        words = command.format(
            at=self.at,
            both=self.both,
            folder=self.folder,
            name=self.name,
            state=f"--state-dir {self.folder}/state",
            topic=self.topic,
        )
        return run(*words.split(), folder=self.folder, doom=doom)

    def must(self, command: str) -> Ran:
        """Run a command until it exits with 0. Exit code 8 means that something is not done yet."""
        ran: list[Ran] = []

        def done() -> bool:
            ran.append(self.kquota(command))
            assert ran[-1].code in (0, 8), (command, ran[-1])
            return ran[-1].code == 0

        until(done, command)
        return ran[-1]

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text.replace("NAME", self.name))

    def plan(self, *entries: Mapping[str, object]) -> None:
        document = {"version": 1, "partitions": [{"topic": self.topic, **entry} for entry in entries]}
        self.write("plan.json", json.dumps(document))

    def throttled(self, prior: Mapping[Setting, str]) -> None:
        """Another tool's throttles, which a command must not change for good."""
        self.prior = dict(prior)
        for setting, value in prior.items():
            self.hand.write(setting, value)

    def topics(self, prefix: str) -> dict[str, int]:
        """Return the topics whose names begin with this prefix, with their numbers of partitions."""
        found = self.hand.admin.list_topics(timeout=60).topics.items()
        return {name: len(topic.partitions) for name, topic in found if name.startswith(prefix)}

    def standing(self) -> dict[Setting, str]:
        return self.hand.rates() | (self.hand.lists(self.topic) if self.topic else {})

    def leaders(self) -> list[int]:
        partitions = self.hand.admin.list_topics(self.topic, timeout=60).topics[self.topic].partitions
        return sorted(partition.leader for partition in partitions.values())

    def must_be_clean(self) -> None:
        """Check that no throttle, scratch topic, lock, open run or partial file is left."""
        until(lambda: self.standing() == self.prior, f"the throttles are {self.prior}")
        until(lambda: self.topics(scratch.PREFIX) == {}, "no scratch topic is left")
        assert list(self.folder.rglob("*.unfinished")) == []
        for folder in (self.folder / "state").glob("*/"):
            journals = RunFiles(folder.parent, folder.name).every().values()
            assert [kept.run.id for kept in journals if kept.run.finished is None] == []
        if self.hand.servers.zookeeper:
            with znodes(self.hand) as client:
                assert client.exists(MARKER) is None
                assert client.exists("/kquota/lock") is None
                assert client.exists("/admin/reassign_partitions") is None
                sheets = client.get_children("/kquota/runs") if client.exists("/kquota/runs") else []
                ended = [json.loads(client.get(f"/kquota/runs/{sheet}")[0])["run"]["finished"] for sheet in sheets]
                assert all(ended), sheets


@pytest.fixture
def stage(hand: OtherHand, way: str, tmp_path: Path) -> Iterator[Stage]:
    brokers, zookeeper = f"--bootstrap-server {hand.servers.bootstrap}", f"--zookeeper {hand.servers.zookeeper}"
    at, both = (zookeeper, f"{brokers} {zookeeper}") if way == ZOOKEEPER else (brokers, brokers)
    made = Stage(hand=hand, at=at, both=both, folder=tmp_path, name=f"kill-{uuid.uuid4().hex[:8]}")
    yield made
    for topic in made.topics(made.name):
        hand.delete(topic)


Before: TypeAlias = Callable[[Stage], None]
Seen: TypeAlias = Callable[[Stage], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoke:
    """A command that is killed, over each connection in `dies`.

    `before` prepares the cluster. `between` returns True for the state after the kill. `repair` are the next commands,
    by default the same command again. `after` then returns True. `undo` removes what the killed command had to write.
    """

    command: str
    dies: Mapping[str, Doom]
    before: Before
    between: Seen
    repair: Sequence[str] = ()
    after: Seen = lambda stage: True
    undo: Sequence[str] = ()


def kill(*writes: str, death: Death = Death.AFTER, first: Callable[[], None] | None = None) -> Doom:
    return Doom(n=1, death=death, writes=writes, first=first)


AMID_THE_RATES: Final = {BROKERS: kill(RATES, death=Death.TORN), ZOOKEEPER: kill(RATES, death=Death.BEFORE)}
"""Over brokers, only the first one has its new rate. In ZooKeeper, one transaction has the rates of all brokers."""


def nothing(stage: Stage) -> None:
    """The cluster needs no preparation."""


def listed(stage: Stage) -> None:
    """Two files of the same topics: with one partition, and with two."""
    for partitions in (1, 2):
        stage.write(f"{partitions}.txt", "".join(f"NAME-{n} {partitions} 1\n" for n in range(3)))


def created(stage: Stage) -> None:
    listed(stage)
    stage.must("topics --create --from-file {folder}/1.txt {at}")
    have(1, 1, 1)(stage)


def have(*partitions: int) -> Seen:
    """Return True if the three topics have these numbers of partitions. 0 means that the topic does not exist."""

    def seen(stage: Stage) -> bool:
        stage.hand.shown({f"{stage.name}-{n}": count for n, count in enumerate(partitions)})
        return True

    return seen


def reordered(stage: Stage) -> None:
    """Three partitions that are not led by their preferred leaders."""
    stage.topic = stage.hand.topic(dict.fromkeys(range(3), (1, 2)), SMALL)
    stage.plan(*({"partition": n, "replicas": [2, 1]} for n in range(3)))
    partitions = [{"topic": stage.topic, "partition": n} for n in range(3)]
    stage.write("elect.json", json.dumps({"partitions": partitions}))
    stage.must("reassign-partitions --execute --reassignment-json-file {folder}/plan.json {state} {at}")
    stage.must("reassign-partitions --verify --reassignment-json-file {folder}/plan.json {state} {at}")


def alone(stage: Stage) -> None:
    """One small topic."""
    stage.topic = stage.hand.topic({0: (1, 2)}, SMALL)


def limited(stage: Stage) -> bool:
    """The user has its quota."""
    return "request_percentage=5" in stage.kquota("configs --describe --user {name} {at}").out


def retained(stage: Stage) -> bool:
    """The topic has its config, and its brokers use it."""
    return stage.hand.value(Setting.of_topic(stage.topic, "retention.ms")) == "123456789"


def documented(stage: Stage) -> None:
    """A document with a quota and a throttle, which kquota writes after the quotas."""
    stage.prior = {RATE_OF_1: "123456789"}
    throttle = f"replication-throttles: {{brokers: {{1: {{{LEADER_RATE}: 123456789}}}}}}"
    stage.write("quotas.yaml", f"version: 1\nusers: {{NAME: {{request_percentage: 5}}}}\n{throttle}\n")


def expired() -> None:
    """The scratch topic of this probe may be removed at once."""
    pytest.MonkeyPatch().setattr(scratch, "MARGIN", -timedelta(hours=1))


def two_probes(stage: Stage) -> None:
    """Topics of two killed probes, which have expired."""
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    names = [scratch.name(an_hour_ago, 60, uuid.uuid4().hex[:8]) for _ in range(2)]
    creations = [Creation(topic=name, partitions=1, configs=scratch.configs(name)) for name in names]
    with Wire(stage.hand.servers.bootstrap, {}) as wire:
        WireTopics(wire).send(creations, 30)
    stage.hand.shown(dict.fromkeys(names, 1))


PROBE: Final = "quota probe --produce 100kB/s {at}"
SHARE, UNSHARE = (f"record {verb} --record {{name}} {{state}} {{both}}" for verb in ("share", "unshare --yes"))


def shared(stage: Stage) -> None:
    stage.must(SHARE)


def exists(stage: Stage) -> bool:
    return stage.name in stage.topics(stage.name)


def known(stage: Stage) -> str | None:
    """The topic of the record that this host knows."""
    (folder,) = (stage.folder / "state").iterdir()
    return recall(folder).topic


def sound(stage: Stage) -> bool:
    """The record can be used, no process holds its lock, and this host knows it."""
    found = json.loads(stage.must("record status --record {name} --output json {state} {both}").out)["record"]
    return (found["writer"], found["wrong"], known(stage)) == (None, [], stage.name)


def operated(stage: Stage) -> None:
    """A topic with the throttles of another tool."""
    alone(stage)
    stage.throttled({RATE_OF_1: "123456789", Setting.of_topic(stage.topic, LEADER_REPLICAS): "0:1,9:9"})


SET: Final = "throttle set --topic {topic} --throttle 5MB/s --sample 0 {state} {at}"


def taken(stage: Stage) -> None:
    operated(stage)
    stage.must(SET)


def differs(stage: Stage) -> bool:
    """Some throttles are those of another tool, and some are not."""
    now = stage.standing()
    return now != stage.prior and any(now.get(setting) == value for setting, value in stage.prior.items())


def left_over(stage: Stage) -> None:
    """Throttles that no run holds."""
    alone(stage)
    for broker in (1, 2, 3):
        stage.hand.write(Setting.of_broker(BrokerId(broker), FOLLOWER_RATE), "10000000")
    stage.hand.write(Setting.of_topic(stage.topic, FOLLOWER_REPLICAS), "0:2")


def half_removed(stage: Stage) -> bool:
    now = stage.standing()
    return bool(now) and stage.hand.lists(stage.topic) == {}


PLAN: Final = "--reassignment-json-file {folder}/plan.json {state} {at}"
VERIFY, CANCEL = (f"reassign-partitions --{action} {PLAN}" for action in ("verify", "cancel"))
RESUME, ABORT = (f"move {verb} {{state}} {{at}}" for verb in ("resume", "abort"))


def execute(rate: str) -> str:
    return f"reassign-partitions --execute --throttle {rate} --force {PLAN}"


def planned(stage: Stage) -> None:
    """The plan of a short move."""
    operated(stage)
    stage.plan({"partition": 0, "replicas": [1, 3]})


def arrived(stage: Stage) -> None:
    """A move that has ended, with its throttle."""
    planned(stage)
    stage.must(execute(FAST))
    stage.hand.arrived({TopicPartition(stage.topic, 0): (1, 3)})


def under_way(stage: Stage) -> None:
    """A move that does not end by itself."""
    planned(stage)
    stage.hand.fill(stage.topic, [0], LASTING)
    stage.must(execute(SLOW))


def not_submitted(stage: Stage) -> None:
    """The run of a killed `--execute`: the throttle is set, and the move is not submitted."""
    planned(stage)
    stage.kquota(execute(FAST), kill(SUBMISSION, death=Death.BEFORE))


def replicas(*wanted: int) -> Seen:
    return lambda stage: stage.hand.replicas(TopicPartition(stage.topic, 0)) == list(wanted)


def throttled(stage: Stage) -> bool:
    """Each broker has the throttle of the move, which is not submitted."""
    return list(stage.hand.rates().values()) == ["50000000"] * 6 and replicas(1, 2)(stage)


def half_set(stage: Stage) -> bool:
    """The topic is listed, and at most one broker has the new rate."""
    return "*" in stage.hand.lists(stage.topic).values() and list(stage.hand.rates().values()).count("5000000") <= 2


def half_adjusted(stage: Stage) -> bool:
    rates = list(stage.hand.rates().values())
    return SLOW in rates and rates.count("50000000") <= 2


def between_log_dirs(stage: Stage) -> None:
    """The plan of a move to the other log dir, and another tool's rate for such moves."""
    stage.topic = stage.hand.topic({0: (1,)}, SMALL)
    stage.hand.write(LOG_DIR_RATE_OF_1, "123456789")
    (there,) = (path for path in stage.hand.servers.broker(1).log_dirs if not (path / f"{stage.topic}-0").is_dir())
    stage.plan({"partition": 0, "replicas": [1], "log_dirs": [str(there)]})


def in_the_other_log_dir(stage: Stage) -> bool:
    (entry,) = json.loads((stage.folder / "plan.json").read_text())["partitions"]
    is_there = (Path(entry["log_dirs"][0]) / f"{stage.topic}-0").is_dir()
    return is_there and stage.hand.value(LOG_DIR_RATE_OF_1) == "123456789"


LOG_DIR_RATE_OF_1: Final = Setting.of_broker(BrokerId(1), LOG_DIR_RATE)
TO_A_LOG_DIR: Final = f"reassign-partitions --execute --replica-alter-log-dirs-throttle 50MB/s {PLAN}"

SMOKES: Final[Mapping[str, Smoke]] = {
    "configs, a user": Smoke(
        command="configs --alter --user {name} --add-config request_percentage=5 {at}",
        dies={BROKERS: kill("AlterClientQuotas"), ZOOKEEPER: kill("/config/users")},
        before=nothing,
        between=limited,
        after=limited,
        undo=("configs --alter --user {name} --delete-config request_percentage {at}",),
    ),
    "configs, a topic": Smoke(
        command="configs --alter --topic {topic} --add-config retention.ms=123456789 {at}",
        dies=dict.fromkeys((BROKERS, ZOOKEEPER), kill(LISTS)),
        before=alone,
        between=retained,
        after=retained,
    ),
    "apply": Smoke(
        command="quota apply --yes {folder}/quotas.yaml {at}",
        dies={BROKERS: kill("AlterClientQuotas"), ZOOKEEPER: kill("/config/users")},
        before=documented,
        between=lambda stage: limited(stage) and stage.standing() == {},
        after=limited,
        undo=("configs --alter --user {name} --delete-config request_percentage {at}",),
    ),
    "probe": Smoke(
        command=PROBE,
        dies={BROKERS: kill("CreateTopics", first=expired)},
        before=nothing,
        between=lambda stage: len(stage.topics(scratch.PREFIX)) == 1,
        repair=("quota probe --clean-up {at}",),
    ),
    "clean up": Smoke(
        command="quota probe --clean-up {at}",
        dies={BROKERS: kill("DeleteTopics")},
        before=two_probes,
        between=lambda stage: len(stage.topics(scratch.PREFIX)) == 1,
    ),
    "create": Smoke(
        command="topics --create --if-not-exists --from-file {folder}/1.txt {at}",
        dies={BROKERS: kill("CreateTopics")},
        before=listed,
        between=have(1, 0, 0),
        after=have(1, 1, 1),
    ),
    "alter": Smoke(
        command="topics --alter --from-file {folder}/2.txt {at}",
        dies={BROKERS: kill("CreatePartitions")},
        before=created,
        between=have(2, 1, 1),
        after=have(2, 2, 2),
    ),
    "delete": Smoke(
        command="topics --delete --if-exists --from-file {folder}/1.txt {at}",
        dies={BROKERS: kill("DeleteTopics")},
        before=created,
        between=have(0, 1, 1),
        after=have(0, 0, 0),
    ),
    "elect": Smoke(
        command="leader-election --election-type preferred --path-to-json-file {folder}/elect.json --batch 1 {at}",
        dies={BROKERS: kill("ElectLeaders")},
        before=reordered,
        between=lambda stage: stage.leaders() == [1, 1, 2],
        after=lambda stage: stage.leaders() == [2, 2, 2],
    ),
    "share": Smoke(
        command=SHARE,
        dies={BROKERS: kill("Produce"), ZOOKEEPER: kill(MARKER, death=Death.BEFORE)},
        before=nothing,
        between=lambda stage: exists(stage) and known(stage) is None,
        after=sound,
        undo=(UNSHARE,),
    ),
    "unshare": Smoke(
        command=UNSHARE,
        dies={BROKERS: kill("DeleteTopics"), ZOOKEEPER: kill(MARKER, death=Death.BEFORE)},
        before=shared,
        between=lambda stage: not exists(stage) and known(stage) == stage.name,
        after=lambda stage: known(stage) is None,
    ),
    "set": Smoke(
        command=SET, dies=AMID_THE_RATES, before=operated, between=half_set, repair=("throttle clear {state} {at}",)
    ),
    "clear": Smoke(command="throttle clear {state} {at}", dies=AMID_THE_RATES, before=taken, between=differs),
    "clear all": Smoke(
        command="throttle clear --all --yes {state} {at}",
        dies={BROKERS: AMID_THE_RATES[BROKERS]},
        before=left_over,
        between=half_removed,
    ),
    "doctor": Smoke(
        command="throttle doctor --fix --yes {state} {at}",
        dies=AMID_THE_RATES,
        before=left_over,
        between=half_removed,
    ),
    "execute": Smoke(
        command=execute(FAST),
        dies=dict.fromkeys((BROKERS, ZOOKEEPER), kill(SUBMISSION, death=Death.BEFORE)),
        before=planned,
        between=throttled,
        repair=(ABORT,),
        after=replicas(1, 2),
    ),
    "execute, to another log dir": Smoke(
        command=TO_A_LOG_DIR,
        dies={BROKERS: kill("AlterReplicaLogDirs", death=Death.BEFORE)},
        before=between_log_dirs,
        between=lambda stage: stage.hand.value(LOG_DIR_RATE_OF_1) == "50000000",
        repair=(TO_A_LOG_DIR, VERIFY),
        after=in_the_other_log_dir,
        undo=(f"configs --alter --broker 1 --delete-config {LOG_DIR_RATE} {{at}}",),
    ),
    "verify": Smoke(
        command=VERIFY,
        dies={BROKERS: AMID_THE_RATES[BROKERS]},
        before=arrived,
        between=differs,
        after=replicas(1, 3),
    ),
    "verify all runs": Smoke(
        command="reassign-partitions --verify --all-runs --quiet {state} {at}",
        dies={ZOOKEEPER: AMID_THE_RATES[ZOOKEEPER]},
        before=arrived,
        between=differs,
        after=replicas(1, 3),
    ),
    "cancel": Smoke(
        command=CANCEL,
        dies={BROKERS: kill(SUBMISSION)},
        before=under_way,
        between=lambda stage: stage.standing() != stage.prior,
        after=replicas(1, 2),
    ),
    "resume": Smoke(
        command=RESUME,
        dies=dict.fromkeys((BROKERS, ZOOKEEPER), kill(SUBMISSION)),
        before=not_submitted,
        between=replicas(1, 3),
        after=replicas(1, 3),
    ),
    "abort": Smoke(
        command=ABORT,
        dies=AMID_THE_RATES,
        before=not_submitted,
        between=differs,
        after=replicas(1, 2),
    ),
    "adjust": Smoke(
        command="move adjust 50MB/s {state} {at}",
        dies=AMID_THE_RATES,
        before=under_way,
        between=half_adjusted,
        repair=("move adjust 50MB/s {state} {at}", VERIFY),
        after=replicas(1, 3),
    ),
}
"""Each row begins with a name in WRITING."""
ELSEWHERE: Final = {
    "run": "tests/cli/test_move_run.py::test_a_move_in_waves_survives_kill_9_and_restores_each_value",
    "follow": "the writes of `adjust`, one after the other",
    "pause": "the writes of `adjust`",
}
"""The test of each other way to write, or the row that has the same writes."""


@pytest.mark.kafka
@pytest.mark.parametrize(("way", "name"), [(way, name) for name, smoke in SMOKES.items() for way in smoke.dies])
def test_the_next_command_completes_or_reverts_a_killed_one(stage: Stage, way: str, name: str) -> None:
    smoke = SMOKES[name]
    smoke.before(stage)
    died = stage.kquota(smoke.command, smoke.dies[way])
    assert died.code == -9, died
    until(lambda: smoke.between(stage), f"{name} was killed in the middle")
    for command in smoke.repair or (smoke.command,):
        stage.must(command)
    until(lambda: smoke.after(stage), f"{name} is complete, or reverted")
    for command in smoke.undo:
        stage.must(command)
    stage.must_be_clean()


@pytest.mark.kafka
@pytest.mark.parametrize("way", [BROKERS])
def test_a_later_snapshot_removes_the_partial_file_of_a_killed_one(stage: Stage) -> None:
    alone(stage)
    command, history = "log-dirs --snapshot {folder}/history {at}", stage.folder / "history"
    assert stage.kquota(command, kill(RENAMED, death=Death.BEFORE)).code == -9
    (partial,) = history.iterdir()
    assert partial.name.startswith(".")
    os.utime(partial, (time.time() - A_DAY_AGO,) * 2)
    ran = stage.must(command)
    assert list(history.iterdir()) == [Path(ran.out.strip())]
    assert gzip.decompress(Path(ran.out.strip()).read_bytes()).endswith(b"}\n")


@pytest.mark.zookeeper
def test_down_removes_a_sandbox_whose_start_was_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    server = processes.Process(name="zookeeper", directory=places.directory("smoke"))
    with python(WAITING, "sandbox", "up", "smoke", "--zookeeper-only") as up:
        until(lambda: server.pid is not None, "its ZooKeeper starts")
        pid = server.pid
        up.kill()
    try:
        assert up.returncode == -9
    finally:
        assert kquota("sandbox", "down", "smoke").code == 0
    until(lambda: not runs(pid), "its ZooKeeper has ended")
    assert not places.directory("smoke").exists()


def test_each_way_to_write_is_killed() -> None:
    assert {name.partition(",")[0] for name in SMOKES} | ELSEWHERE.keys() == WRITING.keys()
    assert not any(is_thorough(test) for test in ELSEWHERE.values())
