"""The hidden command behind TAB: the names of real clusters that it caches, and that it never disturbs the user."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import sys
import time
from pathlib import Path

import pytest

from completions.generate import BROKER_CONFIGS, KEYS
from kquota.sandbox.cluster import Sandbox
from kquota.settings.resource import TOPICS
from kquota.stores.state.completion import FAILED_SECONDS, FRESH_SECONDS, CompletionFile
from tests.cli.run import Ran, kquota
from tests.completions.shells import must_be_there, offers
from tests.servers import WAYS

SLOW = {"KQUOTA_COMPLETE_SECONDS": "50"}
"""A machine that is busy with tests takes longer to answer than a person would wait."""


def _mine(tmp_path: Path, **variables: str) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), **variables}


def _kept(tmp_path: Path, **named: str) -> CompletionFile:
    order = ("bootstrap_server", "zookeeper", "cluster", "command_config", "zk_tls_config_file", "zk_sasl_config_file")
    return CompletionFile(tmp_path / "cache/kquota/completion", [named.get(name, "") for name in order])


def _good_for(tmp_path: Path) -> float:
    (file,) = (tmp_path / "cache/kquota/completion").iterdir()
    return int(file.read_text().splitlines()[1]) - time.time()


def _topic(servers: Sandbox, name: str) -> None:
    where = ("--bootstrap-server", servers.bootstrap, "--topic", name)
    made = kquota("topics", "--create", "--if-not-exists", *where, "--partitions", "1", "--replication-factor", "1")
    assert made.code == 0, made.err


@pytest.mark.parametrize("way", ["4.3.1 Admin API", "2.8.2 ZooKeeper"])
def test_topics_and_brokers_of_a_real_cluster(way: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The environment has the address, over brokers and over ZooKeeper. A shell then offers the names."""
    fixture, on_zookeeper = WAYS[way]
    servers: Sandbox = request.getfixturevalue(fixture)
    _topic(servers, "completed-1")
    address = {"KQUOTA_BOOTSTRAP_SERVER": servers.bootstrap}
    if on_zookeeper:
        address = {"KQUOTA_ZOOKEEPER": str(servers.zookeeper)}
    ran = kquota("complete", env=_mine(tmp_path, **SLOW, **address))
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert "topics completed-1" in lines
    assert lines[-3:] == ["brokers 1", "brokers 2", "brokers 3"]
    folder = tmp_path / "cache/kquota/completion"
    (file,) = folder.iterdir()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, file)] == [0o700, 0o600]
    assert FAILED_SECONDS < FRESH_SECONDS
    must_be_there("bash")
    (tmp_path / "work").mkdir()
    line = "kquota configs --topic completed-"
    no_kquota = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **_mine(tmp_path, **address)}
    assert offers("bash", [line], no_kquota, tmp_path / "work")[line] == ["completed-1"]


def test_a_tab_starts_kquota_and_offers_its_answer(kafka_431: Sandbox, tmp_path: Path) -> None:
    must_be_there("bash")
    _topic(kafka_431, "completed-1")
    (tmp_path / "work").mkdir()
    (tmp_path / "bin").mkdir()
    started = tmp_path / "bin/kquota"
    started.write_text(f'#!/bin/sh\nexec {sys.executable} -m kquota "$@"\n')
    started.chmod(0o755)
    ours = _mine(tmp_path, **SLOW, PATH=f"{started.parent}:{os.environ['PATH']}", HOME=str(tmp_path))
    line = f"kquota configs --bootstrap-server {kafka_431.bootstrap} --topic completed-"
    assert offers("bash", [line], ours, tmp_path / "work")[line] == ["completed-1"]


def test_the_keys_match_real_brokers(kafka_431: Sandbox) -> None:
    _topic(kafka_431, "completed-1")
    where = ("configs", "--describe", "--all", "--bootstrap-server", kafka_431.bootstrap, "--output", "json")
    told = [json.loads(kquota(*where, *of).out) for of in (("--topic", "completed-1"), ("--broker", "1"))]
    topic, broker = ({entry["key"] for entry in one["resources"][0]["configs"]} for one in told)
    assert topic == set(KEYS[TOPICS])
    assert set(BROKER_CONFIGS) <= broker


UNAVAILABLE = {
    "no server": ["--bootstrap-server", "127.0.0.1:1"],
    "a cluster that config.toml has not": ["--cluster", "nowhere"],
    "a file that is not there": ["--bootstrap-server", "127.0.0.1:1", "--command-config", "nowhere"],
    "no ZooKeeper": ["--zookeeper", "127.0.0.1:1"],
}


@pytest.mark.parametrize("arguments", UNAVAILABLE.values(), ids=UNAVAILABLE)
def test_a_failure_is_silent_and_cached(arguments: list[str], tmp_path: Path) -> None:
    assert kquota("complete", *arguments, env=_mine(tmp_path, **SLOW)) == Ran(1, "", "")
    assert 0 < _good_for(tmp_path) <= FAILED_SECONDS


def test_without_a_cluster_nothing_is_cached(tmp_path: Path) -> None:
    assert kquota("complete", env=_mine(tmp_path)) == Ran(1, "", "")
    assert not (tmp_path / "cache").exists()


def test_a_silent_server_is_abandoned_in_time_and_cached_names_are_offered(tmp_path: Path) -> None:
    """The system ends the process, whatever Python waits for. The next TAB does not start kquota again."""
    must_be_there("bash")
    (tmp_path / "work").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        _kept(tmp_path, bootstrap_server=address).keep(["topics old"], 0)
        ran = kquota("complete", "--bootstrap-server", address, env=_mine(tmp_path, KQUOTA_COMPLETE_SECONDS="0.2"))
    assert ran == Ran(-signal.SIGALRM, "", "")
    assert 0 < _good_for(tmp_path) <= FAILED_SECONDS
    line = f"kquota configs --bootstrap-server {address} --topic "
    no_kquota = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **_mine(tmp_path)}
    assert offers("bash", [line], no_kquota, tmp_path / "work")[line] == ["old"]


def test_an_unwritable_cache_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    assert kquota("complete", "--zookeeper", "127.0.0.1:1", env=_mine(tmp_path)) == Ran(1, "", "")


def test_the_cache_of_one_cluster_is_not_used_for_another(tmp_path: Path) -> None:
    """Two clusters whose files have the same name are not confused."""
    one, other = _kept(tmp_path, bootstrap_server="a:1"), _kept(tmp_path, bootstrap_server="a_1")
    one.keep(["topics of-one"], FRESH_SECONDS)
    assert (one.recall(), other.recall()) == (["topics of-one"], [])
    other.keep(["topics of-other"], FRESH_SECONDS)
    assert (one.recall(), other.recall()) == ([], ["topics of-other"])


DAMAGED = {"empty": b"", "one line": b"a:1\n", "zeros, as a power cut leaves": b"\0" * 80, "no UTF-8": b"\xff\n9\n"}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_cache_is_ignored(tmp_path: Path, data: bytes) -> None:
    kept = _kept(tmp_path, bootstrap_server="a:1")
    kept.keep(["topics a"], 60)
    (file,) = (tmp_path / "cache/kquota/completion").iterdir()
    file.write_bytes(data)
    assert kept.recall() == []
    kept.keep(["topics b"], 60)
    assert kept.recall() == ["topics b"]


def test_an_address_that_is_not_text_is_not_cached(tmp_path: Path) -> None:
    kept = _kept(tmp_path, bootstrap_server="\udcff:1")
    kept.keep(["topics a"], 60)
    assert kept.recall() == []
    assert list((tmp_path / "cache/kquota/completion").iterdir()) == []
