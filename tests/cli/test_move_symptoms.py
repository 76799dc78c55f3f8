"""Findings of `move watch` that tests/cli/test_move_watch.py does not cause: each really happens on real brokers."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kquota.sandbox import cluster as sandbox
from kquota.sandbox import servers as sandbox_servers
from kquota.sandbox.cluster import Sandbox
from kquota.settings.resource import Setting
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.moves import WireMoves
from kquota.terms import FOLLOWER_REPLICAS, LEADER_REPLICAS, LOG_DIR_RATE, TopicPartition
from tests.cli.run import Ran, kquota, started
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

SLOW = ("--throttle", "20000", "--force")
LARGE = 30_000_000
"""Bytes of a partition that needs five minutes under the slow throttle: 1 MB in each quota window of 11 s."""
PROPERTIES = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "1000",
    # A copy between log dirs takes 1 MB at once, and the next one when the bytes have left the window.
    "alter.log.dirs.replication.quota.window.size.seconds": "60",
}
INDEX = 10 * 2**20
"""Bytes of an empty index of a log, which a broker reserves."""


@pytest.fixture(scope="module")
def servers() -> Iterator[Sandbox]:
    name = f"symptoms-{os.getpid()}"
    yield sandbox.up(name=name, kafka="4.3.1", owner_pid=os.getpid(), properties=PROPERTIES)
    sandbox.down(name)


class Operator:
    """Starts moves and watches them, with a state folder of their own. At the end it undoes what is open."""

    def __init__(self, servers: Sandbox, folder: Path) -> None:
        self.servers, self.folder = servers, folder
        self.hand = OtherHand(servers)
        where = ("--bootstrap-server", servers.bootstrap)
        if servers.zookeeper is not None:
            where = ("--zookeeper", servers.zookeeper)
        self.at = (*where, "--state-dir", str(folder / "state"))

    def execute(
        self, targets: Mapping[TopicPartition, Sequence[int]], *options: str, log_dir: str | None = None
    ) -> str:
        plan = self.folder / "plan.json"
        entries = [
            {"topic": name.topic, "partition": name.partition, "replicas": list(replicas)}
            | ({} if log_dir is None else {"log_dirs": [log_dir] * len(replicas)})
            for name, replicas in targets.items()
        ]
        plan.write_text(json.dumps({"version": 1, "partitions": entries}))
        words = ("--execute", "--reassignment-json-file", str(plan), *options)
        ran = kquota("reassign-partitions", *self.at, *words)
        assert ran.code == 0, ran
        return str(plan)

    def found(self, plan: str, finding: str) -> dict[str, Any]:
        """Watch until this finding is reported, and return its values."""
        process = started("move", "watch", plan, *self.at, "--interval", "1s", "--output", "json")
        assert process.stdout is not None
        last = ""
        try:
            for last in process.stdout:
                reading = json.loads(last)
                for one in reading["findings"]:
                    if one["finding"] == finding:
                        return dict(one)
                assert not reading["ended"], f"the move ended without the finding {finding}"
        finally:
            process.terminate()
            process.communicate(timeout=120)
        raise AssertionError(f"the watch ended without the finding {finding}: {last}")

    def undo(self) -> None:
        until(lambda: kquota("move", "abort", *self.at, "--yes").code in (0, 1), "the run is undone")
        self.hand.close()


@pytest.fixture
def operator(servers: Sandbox, tmp_path: Path) -> Iterator[Operator]:
    found = Operator(servers, tmp_path)
    yield found
    found.undo()


def test_a_partition_without_a_leader(operator: Operator) -> None:
    name = TopicPartition(operator.hand.topic({0: (2,)}, size=LARGE), 0)
    plan = operator.execute({name: (3,)}, *SLOW)
    operator.servers.broker(2).process.kill()
    try:
        finding = operator.found(plan, "no leader")
    finally:
        operator.hand.start_broker(2)
    assert finding["values"]["replicas"] == [2]
    assert "Start one of these brokers" in finding["do"]


def test_a_slow_last_partition(operator: Operator) -> None:
    topic = operator.hand.topic({0: (1, 2), 1: (1, 2)}, size=10_000)
    operator.hand.fill(topic, [1], LARGE)
    plan = operator.execute({TopicPartition(topic, n): (1, 3) for n in (0, 1)}, *SLOW)
    finding = operator.found(plan, "last partition")
    assert finding["values"]["partition"] == {"topic": topic, "partition": 1}
    assert finding["values"]["destination"] == 3


def test_a_healthy_replica_caught_by_the_throttle(operator: Operator) -> None:
    """Another tool has listed partition 1. Its replica on broker 2 falls out of sync, and does not return (KIP-542)."""
    topic = operator.hand.topic({0: (1, 2), 1: (1, 2)}, size=LARGE)
    for key, value in ((LEADER_REPLICAS, "1:1,1:2"), (FOLLOWER_REPLICAS, "1:1,1:2")):
        operator.hand.write(Setting.of_topic(topic, key), value)
    plan = operator.execute({TopicPartition(topic, 0): (1, 3)}, *SLOW)
    operator.servers.broker(2).process.kill()
    try:
        until(lambda: in_sync(operator, TopicPartition(topic, 1)) == (1,), "broker 2 is out of sync")
        operator.hand.fill(topic, [1], LARGE)
    finally:
        operator.hand.start_broker(2)
    finding = operator.found(plan, "replica caught")
    assert (finding["values"]["partition"], finding["values"]["broker"]) == ({"topic": topic, "partition": 1}, 2)
    assert suggested_command(operator, finding, "--yes").code == 0
    until(lambda: in_sync(operator, TopicPartition(topic, 1)) == (1, 2), "broker 2 is in sync")


def suggested_command(operator: Operator, finding: Mapping[str, Any], *more: str) -> Ran:
    """Run the first command that the finding suggests."""
    command = re.search(r"`kquota ([^`]*)`", finding["do"])
    assert command is not None, finding
    return kquota(*shlex.split(command[1]), *more)


def verify(plan: str) -> tuple[str, ...]:
    return ("--verify", "--reassignment-json-file", plan)


def in_sync(operator: Operator, name: TopicPartition) -> tuple[int, ...]:
    with Wire(operator.servers.bootstrap, {}) as wire:
        return WireMoves(wire).snapshot([name.topic]).partitions[name].isr


def test_a_copy_between_log_dirs_that_does_not_grow(operator: Operator) -> None:
    name = TopicPartition(operator.hand.topic({0: (1,)}, size=LARGE), 0)
    first, second = map(str, operator.servers.broker(1).log_dirs)
    at = first if (Path(second) / f"{name.topic}-0").exists() else second
    plan = operator.execute({name: (1,)}, "--replica-alter-log-dirs-throttle", "1", "--force", log_dir=at)
    finding = operator.found(plan, "log dir idle")
    assert (finding["values"]["broker"], finding["values"]["log_dir"], finding["values"]["rate"]) == (1, at, 1)
    assert f"{LOG_DIR_RATE}=1" in finding["what"]
    assert suggested_command(operator, finding).code == 0
    until(lambda: kquota("reassign-partitions", *operator.at, *verify(plan)).code == 0, "the copy is in its log dir")


@contextmanager
def files_cannot_grow(operator: Operator, broker: int, size: int) -> Iterator[None]:
    """Writes of this broker beyond this size of a file fail, as on a full disk. The broker then restarts."""
    pid = operator.servers.broker(broker).pid
    assert pid is not None
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        operator.hand.restart_broker(broker)


def test_a_destination_that_cannot_create_the_log(operator: Operator) -> None:
    """The controller has accepted the move, but the broker has no room for the index of a log (10 MB)."""
    name = TopicPartition(operator.hand.topic({0: (1, 2)}, size=LARGE), 0)
    with files_cannot_grow(operator, 3, INDEX // 2):
        plan = operator.execute({name: (1, 3)}, "--throttle", "5MB/s", "--force")
        finding = operator.found(plan, "not started")
    assert (finding["values"]["broker"], finding["values"]["copies"]) == (3, 1)


def test_a_disk_that_accepts_no_more_bytes(operator: Operator) -> None:
    """The broker takes the log dir offline after the failed write."""
    name = TopicPartition(operator.hand.topic({0: (1, 2)}, size=2 * INDEX), 0)
    with files_cannot_grow(operator, 3, INDEX + 1_000_000):
        plan = operator.execute({name: (1, 3)}, "--throttle", "5MB/s", "--force")
        finding = operator.found(plan, "disk full")
    assert finding["values"]["broker"] == 3
    assert finding["values"]["log_dir"] in map(str, operator.servers.broker(3).log_dirs)
    assert finding["values"]["error"]


@pytest.fixture
def on_zookeeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    """Brokers whose sessions survive a pause, so that no other broker becomes the controller."""
    name, timeout = f"idle-{os.getpid()}", "120000"
    properties = {"zookeeper.session.timeout.ms": timeout}
    files = sandbox_servers.zookeeper_files
    longest = {"maxSessionTimeout": timeout}
    monkeypatch.setattr(sandbox_servers, "zookeeper_files", lambda port, at, more: files(port, at, {**more, **longest}))
    servers = sandbox.up(name=name, kafka="3.9.1", owner_pid=os.getpid(), properties=properties)
    found = Operator(servers, tmp_path)
    yield found
    found.undo()
    sandbox.down(name)


def test_a_controller_that_does_not_begin_a_move(on_zookeeper: Operator) -> None:
    operator = on_zookeeper
    controller = operator.hand.controller()
    source, destination = sorted({1, 2, 3} - {controller})
    name = TopicPartition(operator.hand.topic({0: (source,)}), 0)
    pid = operator.servers.broker(controller).pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        plan = operator.execute({name: (destination,)}, "--throttle", "5MB/s")
        finding = operator.found(plan, "controller idle")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (finding["values"]["partitions"], finding["values"]["first"]["topic"]) == (1, name.topic)
    assert "get /controller" in finding["do"]
    operator.hand.arrived({name: (destination,)})
    until(lambda: kquota("reassign-partitions", *operator.at, *verify(plan)).code == 0, "the throttle is restored")
