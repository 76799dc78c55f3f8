"""The sandbox on real servers: it starts, it is broken on purpose, and it always stops."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kquota.sandbox import cluster as sandbox
from kquota.sandbox import servers
from kquota.sandbox.cluster import Sandbox
from tests.cli.run import kquota


def test_every_server_runs_and_kafkas_own_tool_sees_three_brokers(cluster: Sandbox) -> None:
    assert cluster.running
    tool = sandbox.kafka_tool(
        cluster,
        "kafka.admin.ConfigCommand",
        "--bootstrap-server",
        cluster.bootstrap,
        "--describe",
        "--entity-type",
        "brokers",
    )
    answer = subprocess.run(tool, capture_output=True, text=True, check=True)
    assert [f"broker {n} are" in answer.stdout for n in (1, 2, 3)] == [True] * 3, answer.stdout


def test_brokers_still_apply_changes_after_one_that_starts_a_second_log_cleaner(cluster: Sandbox) -> None:
    """`configs` succeeds only if the cluster shows the change."""
    alter = ("configs", "--bootstrap-server", cluster.bootstrap, "--alter", "--broker-defaults")
    try:
        for size in (1_000_001, 1_000_002, 1_000_003):
            ran = kquota(*alter, "--add-config", f"message.max.bytes={size}")
            assert (ran.code, ran.err) == (0, "")
    finally:
        assert kquota(*alter, "--delete-config", "message.max.bytes").code == 0


def test_zookeeper_alone_needs_no_kafka(zookeeper: Sandbox) -> None:
    assert (zookeeper.running, zookeeper.kafka, zookeeper.bootstrap) == (True, None, "")


CHOOSES = "from kquota.sandbox import servers; print(*servers.free_ports(40), flush=True); input()"


def test_concurrent_sandboxes_choose_different_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both process ids start the search at the same port, and no port is open yet. An ended process keeps no port."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", CHOOSES], stdin=pipe, stdout=pipe, text=True) as other:
        monkeypatch.setattr(os, "getpid", lambda: other.pid)
        assert other.stdout is not None
        theirs = [int(port) for port in other.stdout.readline().split()]
        ours = servers.free_ports(40)
        assert (len({*ours, *theirs}), len(theirs)) == (80, 40)
        other.communicate("\n")
    assert set(theirs) & set(servers.free_ports(40))


@pytest.mark.kafka
def test_folder_names_may_contain_characters_special_to_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / r"a b=ü\u0041#"))
    try:
        cluster = sandbox.up(name="odd", kafka="2.8.2", brokers=1)
        assert (cluster.broker(1).log_dirs[0] / "meta.properties").exists()
    finally:
        sandbox.down("odd")
