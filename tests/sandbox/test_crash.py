"""Killed sandboxes: no process keeps running, no other process is touched, and the next start works."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota.cli.contract import worded
from kquota.errors import Refused
from kquota.sandbox import cluster as sandbox
from kquota.sandbox import places, processes, readiness, servers
from kquota.sandbox.cluster import Sandbox
from kquota.sandbox.processes import Process
from kquota.sandbox.servers import SandboxBroker
from kquota.terms import BrokerId
from tests.cli.run import kquota, started
from tests.sandbox.watch import runs
from tests.waiting import until


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A sandbox's name in a separate state folder. Its servers are stopped afterwards."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield "crash"
    sandbox.down("crash")


@pytest.mark.kafka
def test_down_cleans_up_after_a_killed_up(name: str) -> None:
    folder = places.directory(name)
    with started("sandbox", "up", name, "--kafka", "2.8.2", "--brokers", "1") as up:
        until(lambda: Process(name="broker-1", directory=folder).pid is not None)
        up.send_signal(signal.SIGSTOP)  # so that it has not ended before the next command runs
        meanwhile = kquota("sandbox", "down", name)
        assert (meanwhile.code, meanwhile.out) == (75, "")
        assert f"another kquota is starting or stopping sandbox {name}" in meanwhile.err
        up.kill()
    left = {process.name: process.pid for process in processes.in_folder(folder)}
    assert [name for name, pid in left.items() if runs(pid)] == ["broker-1", "zookeeper"]
    assert kquota("sandbox", "status", name).code == 1
    assert kquota("sandbox", "up", name, "--zookeeper-only").code == 1
    assert kquota("sandbox", "down", name).code == 0
    until(lambda: not any(map(runs, left.values())))
    assert not folder.exists()
    assert kquota("sandbox", "up", name, "--zookeeper-only").code == 0


@pytest.mark.kafka
def test_interrupted_up_stops_what_it_started(name: str) -> None:
    """A broker takes seconds to start, so that `up` has not ended before the signal."""
    folder = places.directory(name)
    with started("sandbox", "up", name, "--kafka", "2.8.2", "--brokers", "1") as up:
        until(lambda: Process(name="zookeeper", directory=folder).pid is not None)
        up.send_signal(signal.SIGINT)
        assert up.wait(timeout=120) == 130
    assert [process for process in processes.in_folder(folder) if process.pid is not None] == []
    assert not folder.exists()


@pytest.mark.kafka
def test_killed_servers_are_reported_and_the_others_stopped(name: str) -> None:
    cluster = sandbox.up(name=name, kafka="2.8.2", brokers=1)
    pids = [process.pid for process in cluster.processes]
    assert all(map(runs, pids))
    cluster.broker(1).process.kill()
    status = kquota("sandbox", "status", name)
    assert status.code == 1
    assert "not running" in status.out
    assert "broker-1 rack-1" in status.out
    assert " dead " in status.out
    env = kquota("sandbox", "env", name)
    assert (env.code, env.out) == (1, "")
    assert env.err == (
        f"kquota: sandbox {name} is not ready, but some of its servers are running (zookeeper). "
        f"Restart it with: kquota sandbox down {name} && kquota sandbox up {name}\n"
    )
    assert kquota("sandbox", "down", name).code == 0
    until(lambda: not any(map(runs, pids)))
    start = f"kquota sandbox up {name}"
    assert kquota("sandbox", "env", name).err == f"kquota: sandbox {name} is not running. Start it with: {start}\n"


@pytest.mark.kafka
def test_a_server_that_fails_to_start_is_reported_with_reason_and_log(name: str) -> None:
    up = kquota("sandbox", "up", name, "--kafka", "2.8.2", "--brokers", "2", "--property", "num.io.threads=many")
    folder = places.directory(name)
    assert (up.code, up.out) == (1, "")
    reason = "ConfigException: Invalid value many for configuration num.io.threads"
    assert "died while starting: " in up.err
    assert reason in up.err
    log = Path(up.err.rstrip().rpartition("Read its log: ")[2])
    assert reason in log.read_text()
    assert [process for process in processes.in_folder(folder) if process.pid is not None] == []


@pytest.mark.kafka
def test_errors_of_kafkas_format_tool_are_reported(name: str) -> None:
    up = kquota("sandbox", "up", name, "--brokers", "1", "--property", "num.io.threads=many")
    assert (up.code, up.out) == (1, "")
    assert "Invalid value many for configuration num.io.threads" in up.err


@pytest.fixture
def sleeping(tmp_path: Path) -> Iterator[list[SandboxBroker]]:
    """Brokers 4 and 5, whose processes run but never answer."""
    found = [
        SandboxBroker(id=BrokerId(number), port=port, directory=tmp_path)
        for number, port in zip((4, 5), servers.free_ports(2), strict=True)
    ]
    for broker in found:
        broker.process.start(["sh", "-c", "echo still loading; sleep 60; :", broker.process.mark])
    yield found
    for broker in found:
        broker.process.kill()


def test_a_broker_that_does_not_answer_in_time_is_named(
    sleeping: list[SandboxBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "_PATIENCE", 0.0)
    with pytest.raises(Refused, match=r"^broker-5 was not ready after 0 s: still loading. Read its log: .*broker-5"):
        readiness.brokers(sleeping, sleeping[1:])


@pytest.mark.kafka
def test_a_broker_that_is_not_registered_in_time_is_named(
    kafka_431: Sandbox, sleeping: list[SandboxBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other brokers answer, but do not see it."""
    monkeypatch.setattr(readiness, "_PATIENCE", 3.0)
    with pytest.raises(Refused, match=r"^broker-4 was not ready after 3 s: still loading"):
        readiness.brokers([*kafka_431.brokers, sleeping[0]], kafka_431.brokers)


@pytest.mark.zookeeper
def test_servers_end_with_the_process_that_owns_them(name: str) -> None:
    code = (
        f"from kquota.sandbox import cluster; import os\ncluster.up(name={name!r}, kafka=None, owner_pid=os.getpid())"
    )
    owner = subprocess.Popen([sys.executable, "-c", f"{code}\nprint('up', flush=True)\ninput()"], stdin=-1, stdout=-1)
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"up\n"
    found = sandbox.find(name)
    assert found is not None
    pids = [process.pid for process in found.processes]
    assert all(map(runs, pids))
    owner.kill()
    owner.communicate()
    until(lambda: not any(map(runs, pids)) and not found.directory.exists())


@pytest.mark.zookeeper
def test_a_pid_reused_by_another_process_is_left_alone(name: str) -> None:
    cluster = sandbox.up(name=name, kafka=None)
    keeper = cluster.keeper
    assert keeper is not None
    keeper.kill()
    innocent = subprocess.Popen(["sleep", "600"])
    (cluster.directory / "zookeeper.pid").write_text(f"{innocent.pid}\n")
    assert keeper.pid is None
    assert sandbox.down(name)
    assert innocent.poll() is None
    innocent.kill()
    innocent.wait()


PID_FILES = {"empty": "", "not a number": "x\n", "negative": "-1\n", "ours": f"{os.getpid()}\n", "init": "1\n"}


@pytest.mark.parametrize("text", PID_FILES.values(), ids=PID_FILES.keys())
def test_an_invalid_pid_file_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "broker-1.pid").write_text(text)
    assert Process(name="broker-1", directory=tmp_path).pid is None


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"brokers": 3}', "{"])
def test_a_broken_file_is_refused_and_down_removes_it(name: str, text: str) -> None:
    folder = places.directory(name)
    folder.mkdir(parents=True)
    (folder / "cluster.json").write_text(text)
    with pytest.raises(Refused) as raised:
        sandbox.find(name)
    assert re.search(
        r"is not a valid sandbox file .*\. Remove the sandbox with: kquota sandbox down crash", worded(raised.value)
    )
    assert sandbox.down(name)
    assert sandbox.find(name) is None


def test_a_folder_that_cannot_be_removed_is_reported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    places.directory(name).mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        patch.setattr(time, "sleep", lambda _: None)
        with pytest.raises(Refused, match="crash could not be removed, but its servers are stopped"):
            sandbox.up(name=name, kafka=None)


def test_without_free_ports_no_folder_is_created(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_PORTS", range(20_000, 20_001))
    monkeypatch.setattr(servers, "_EACH", 1)
    with pytest.raises(Refused, match="the sandbox needs 1 free port"):
        sandbox.up(name=name, kafka=None)
    assert not places.directory(name).exists()


def test_a_killed_broker_restarts_on_its_port(cluster: Sandbox) -> None:
    before = cluster.broker(3).pid
    cluster.broker(3).process.kill()
    assert not cluster.running
    cluster.start_broker(3)
    assert cluster.running
    assert cluster.broker(3).pid not in (None, before)
