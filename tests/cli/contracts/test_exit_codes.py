"""The same mistake has the same exit code in every command: 1 if the cluster refuses it, 2 for wrong input."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from kquota import library
from kquota.cli import world
from kquota.cli.connection import Connection
from kquota.cli.pacing import setter
from kquota.cli.throttle.set import run as set_run
from kquota.cli.throttle.set.command import SetOptions
from kquota.errors import Unreachable
from kquota.measure import ByteRate
from kquota.settings.resource import Setting
from kquota.stores.state.process import me
from kquota.terms import LEADER_RATE, LONGEST_TEXT, TopicPartition
from kquota.throttle import wanted
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, ELSEWHERE, ONE, TWO, plan, written
from tests.cli.run import kquota_here
from tests.reassign.dirs_fake import MemoryDirs
from tests.reassign.fake import Ticks

pytestmark = pytest.mark.unit

PLAN = "--reassignment-json-file"
FAR = f"{PLAN} far.json"
"""A plan with a broker that does not exist."""
LOST = f"{PLAN} lost.json"
"""A plan with a topic that does not exist."""
HIGH = f"{PLAN} high.json"
"""A plan with a partition that does not exist."""
GOOD = f"{PLAN} plan.json"
EACH = {
    "reassign-partitions": f"--verify {GOOD}",
    "move status": "",
    "move resume": "",
    "move abort": "--yes",
    "move plan": "--drain 1",
    "move estimate": f"{GOOD} --throttle 5MB/s",
    "throttle show": "",
    "throttle set": "--topic orders --throttle 1MB/s",
    "throttle clear": "",
    "throttle doctor": "",
    "configs": "--describe --user a",
    "log-dirs": "--describe",
    "topics": "--list",
    "quota export": "",
    "quota diff": "quotas.yaml",
    "quota apply": "--yes quotas.yaml",
    "quota explain": "--user a",
    "quota probe": "--clean-up",
    "record share": "",
    "record status": "",
    "record unshare": "--yes",
}
"""Every command that needs a cluster, with the other options that it needs."""


def of_rate(rate: str) -> tuple[str, ...]:
    return (
        f"reassign-partitions {BROKER} --execute {GOOD} --throttle={rate}",
        f"move estimate {BROKER} {GOOD} --throttle={rate}",
        f"throttle set {BROKER} --topic orders --throttle={rate}",
        f"configs {BROKER} --alter --user a --add-config producer_byte_rate={rate}",
        f"configs {BROKER} --alter --broker 1 --add-config leader.replication.throttled.rate={rate}",
        f"quota simulate --load={rate} --producer-byte-rate 1MB/s",
        f"quota simulate --load=1MB/s --producer-byte-rate={rate}",
        f"quota probe {BROKER} --produce={rate}",
    )


def of_time(time: str) -> tuple[str, ...]:
    return (
        f"move estimate {BROKER} {GOOD} --deadline={time}",
        f"throttle doctor {BROKER} --fix --yes --older-than={time}",
        f"topics {BROKER} --create --topic x --timeout={time}",
        *(f"reassign-partitions {BROKER} --{action} {GOOD} --timeout={time}" for action in ("execute", "verify")),
    )


def of_file(name: str) -> tuple[str, ...]:
    return (
        *(f"reassign-partitions {BROKER} --{action} {PLAN} {name}" for action in ("execute", "verify", "cancel")),
        f"reassign-partitions {BROKER} --generate --topics-to-move-json-file {name} --broker-list 1,2",
        f"move estimate {BROKER} {PLAN} {name} --throttle 5MB/s",
        f"move resume {BROKER} {PLAN} {name}",
        f"move abort {BROKER} {PLAN} {name}",
        f"throttle set {BROKER} --throttle 1MB/s {PLAN} {name}",
        f"move plan {BROKER} --drain 1 --history {name}",
        f"quota diff {BROKER} {name}",
        f"quota apply {BROKER} --yes {name}",
        f"configs {BROKER} --alter --user a --add-config-file {name}",
        f"quota simulate --from-file {name} --controller-mutation-rate 1",
        f"topics {BROKER} --create --from-file {name}",
        f"log-dirs {BROKER} --compact {name}",
    )


MISTAKES: dict[str, tuple[int, tuple[str, ...]]] = {
    "an unknown broker": (
        1,
        (
            f"reassign-partitions {BROKER} --execute {FAR}",
            f"reassign-partitions {BROKER} --generate --topics-to-move-json-file topics.json --broker-list 1,9",
            f"move estimate {BROKER} {FAR} --throttle 5MB/s",
            *(f"move plan {BROKER} {goal}" for goal in ("--drain 9", "--add 9", "--brokers 1,2,9 --balance")),
            f"throttle set {BROKER} --throttle 5MB/s --broker 9",
            f"throttle set {BROKER} --throttle 5MB/s --recovering 9",
            f"throttle show {BROKER} --broker 9",
            f"configs {BROKER} --alter --broker 9 --add-config leader.replication.throttled.rate=1",
            f"log-dirs {BROKER} --describe --broker-list 9",
            f"quota probe {BROKER} --produce 1MB/s --broker-list 9 --seconds 1",
        ),
    ),
    "an unknown topic": (
        1,
        (
            f"reassign-partitions {BROKER} --execute {LOST}",
            f"reassign-partitions {BROKER} --generate --topics-to-move-json-file lost-topics.json --broker-list 1,2",
            f"move estimate {BROKER} {LOST} --throttle 5MB/s",
            f"move plan {BROKER} --drain 1 --topics lost",
            f"throttle set {BROKER} --throttle 5MB/s --topic lost",
            f"throttle show {BROKER} --topic lost",
            f"configs {BROKER} --alter --topic lost --add-config retention.ms=1",
            f"topics {BROKER} --describe --topic lost",
            f"topics {BROKER} --alter --topic lost --partitions 3",
            f"topics {BROKER} --delete --topic lost",
        ),
    ),
    "an unknown partition": (
        1,
        (f"reassign-partitions {BROKER} --execute {HIGH}", f"move estimate {BROKER} {HIGH} --throttle 5MB/s"),
    ),
    "an unknown run": (
        1,
        (
            *(f"move {verb} {BROKER} {run}" for verb in ("resume", "abort") for run in ("--run x", GOOD)),
            *(f"throttle set {BROKER} --throttle 1MB/s {run}" for run in ("--run x", GOOD)),
            f"throttle clear {BROKER} --run x",
        ),
    ),
    "a file that is not what it should be": (2, of_file("bad.json")),
    "a file that is not there": (2, of_file("none.json")),
    "a folder in place of a file": (2, of_file("folder")),
    **{f"a rate that is {rate}": (2, of_rate(rate)) for rate in ("5XB", "0", "-5", "fast")},
    **{f"a time that is {time}": (2, of_time(time)) for time in ("5x", "soon", "-5s")},
    "half a millisecond, which Kafka's tool refuses": (
        2,
        tuple(
            f"reassign-partitions {BROKER} --{action} {GOOD} --timeout=1.5"
            for action in ("execute", "verify", "cancel")
        ),
    ),
    "no cluster": (2, tuple(f"{command} {more}" for command, more in EACH.items())),
    "an unknown cluster": (2, tuple(f"{command} --cluster nope {more}" for command, more in EACH.items())),
    "an option of another cluster": (
        2,
        tuple(f"{command} --cluster prod --bootstrap-server x:1 {more}" for command, more in EACH.items()),
    ),
    "an unknown option": (2, tuple(f"{command} {BROKER} --nope {more}" for command, more in EACH.items())),
}


@pytest.mark.parametrize(("code", "commands"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_has_one_exit_code(
    code: int, commands: tuple[str, ...], house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`house` provides a cluster in memory. A command that mirrors Kafka and finds nothing exits with 0, because this
    is not a mistake.
    """
    _files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    wrong = {}
    for command in commands:
        ran = kquota_here(*shlex.split(command))
        if ran.code != code or ran.out:
            wrong[command] = ran
    assert not wrong


OF_REASON = (
    f"reassign-partitions {BROKER} --execute {GOOD} --throttle 5MB/s",
    f"move run {BROKER} plan.json --throttle 5MB/s --yes",
    f"move adjust {BROKER} 5MB/s",
    f"throttle set {BROKER} --topic orders --throttle 5MB/s",
)


@pytest.mark.parametrize("command", ["move resume", "move abort --yes", "throttle clear"])
@pytest.mark.parametrize(("hidden", "code"), [(False, 0), (True, 8)])
def test_nothing_to_restore_is_unknown_if_runs_may_be_hidden(
    command: str, hidden: bool, code: int, house: InMemory
) -> None:
    """A runbook repeats these commands until they exit with 0."""
    house.hidden = hidden
    assert kquota_here(*command.split(), *BROKER.split()).code == code


@pytest.mark.parametrize(("selects", "code"), [(False, 8), (True, 0)])
@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (f"reassign-partitions --execute {GOOD} --force", "move resume"),
        (f"reassign-partitions --execute {GOOD} --force", "move abort --yes"),
        ("throttle set --topic orders", "throttle clear"),
    ],
)
def test_the_end_of_every_run_is_unknown_if_a_recorded_run_cannot_be_read(
    begin: str, end: str, selects: bool, code: int, house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A selected run does not depend on the others."""
    _files(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert kquota_here(*begin.split(), "--throttle", "5MB/s", *BROKER.split()).code == 0
    [run] = house._runs().unfinished()
    if end == "move resume":
        for name in run.plan.targets:
            house.cluster.finish(name)
    house.unreadable = {"20260301T123000Z-ba9876543210": "it has format 9"}
    ran = kquota_here(*end.split(), *BROKER.split(), *(("--run", run.id) if selects else ()))
    assert (ran.code, house.cluster.configs) == (code, {}), ran.err
    assert "recorded run 20260301T123000Z-ba9876543210 in this host cannot be read (it has format 9)" in ran.err


def test_clear_all_is_not_done_while_another_move_runs(house: InMemory, tmp_path: Path) -> None:
    rate = Setting.of_broker(ONE, LEADER_RATE)
    house.cluster.configs[rate] = "7"
    moving = TopicPartition("payments", 0)
    house.cluster.submit({moving: (TWO, ONE)})
    file = plan(tmp_path, {("orders", 0): [1, 2]})
    command = (*f"reassign-partitions {BROKER} --verify --clear-all --yes {PLAN}".split(), file)
    early = kquota_here(*command)
    assert (early.code, house.cluster.configs) == (8, {rate: "7"})
    assert "--clear-all had no effect, because moves are running" in early.err
    house.cluster.finish(moving)
    assert (kquota_here(*command).code, house.cluster.configs) == (0, {})


def test_a_dry_run_of_cancel_reports_unknown_log_dirs(house: InMemory, tmp_path: Path) -> None:
    """The cancellation itself also exits with 8."""
    house.dirs = MemoryDirs(log_dirs={})
    file = plan(tmp_path, {("orders", 0): [1, 2]}, {("orders", 0): ["/b", "any"]})
    command = (*f"reassign-partitions {BROKER} --cancel --timeout 0 {PLAN}".split(), file)
    found = {more: kquota_here(*command, more) for more in ("--dry-run", "--yes")}
    assert {more: ran.code for more, ran in found.items()} == {"--dry-run": 8, "--yes": 8}


UNREADABLE = {
    "too long": (
        "x" * (LONGEST_TEXT + 1),
        "--reason: the text is too long (1,001 characters). Give at most 1,000",
    ),
    "not UTF-8": (os.fsdecode(b"f\xfcr CHG-7"), "--reason: character 2 is not valid UTF-8. Set the terminal to UTF-8"),
}


@pytest.mark.parametrize("command", OF_REASON)
@pytest.mark.parametrize(("reason", "why"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_reason_that_cannot_be_read_again_is_not_recorded(
    command: str, reason: str, why: str, house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _files(tmp_path)
    monkeypatch.chdir(tmp_path)
    ran = kquota_here(*command.split(), "--reason", reason)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert house.cluster.writes == 0
    assert not list(house.folder.rglob("*.json*"))


@pytest.mark.parametrize(("length", "kept"), [(LONGEST_TEXT, LONGEST_TEXT), (LONGEST_TEXT + 9, LONGEST_TEXT)])
def test_a_reason_with_the_measured_cause_is_cut(length: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[SetOptions] = []
    monkeypatch.setattr(set_run, "run", asked.append)
    setting = setter.RateSetter(connection=Connection(), state_dir=None, reason=None, force=True)
    assert setting.set(wanted.new("t", ByteRate(1), Ticks().now(), me()), ByteRate(2), "x" * length)
    assert [len(one.reason or "") for one in asked] == [kept]


def _files(folder: Path) -> None:
    def move(name: str, topic: str, partition: int, replicas: list[int]) -> None:
        entry = {"topic": topic, "partition": partition, "replicas": replicas}
        written(folder, name, json.dumps({"version": 1, "partitions": [entry]}))

    plan(folder, ELSEWHERE)
    move("far.json", "orders", 0, [1, 9])
    move("lost.json", "lost", 0, [1, 3])
    move("high.json", "orders", 99, [1, 3])
    for name, topic in {"topics.json": "orders", "lost-topics.json": "lost"}.items():
        written(folder, name, json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    written(folder, "bad.json", "{")
    written(folder, "quotas.yaml", "version: 1\n")
    (folder / "folder").mkdir()
    (folder / "kquota").mkdir()
    written(folder / "kquota", "config.toml", '[clusters.prod]\nbootstrap-server = "b1:9092"\n')


@pytest.mark.parametrize("command", EACH)
def test_a_cluster_that_cannot_be_reached_is_1(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object, **__: object) -> None:
        raise Unreachable("no broker at b1:9092")

    _files(tmp_path)
    monkeypatch.chdir(tmp_path)
    for port in ("wire", "topics", "configs", "quotas"):
        monkeypatch.setattr(world, port, nobody)
    monkeypatch.setattr(library, "wire", nobody)
    monkeypatch.setattr(library, "connect", nobody)
    ran = kquota_here(*command.split(), *BROKER.split(), *shlex.split(EACH[command]))
    assert (ran.code, ran.out) == (1, ""), ran.err
