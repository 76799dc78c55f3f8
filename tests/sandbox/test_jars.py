"""Kafka's jars: a folder is complete or does not exist, and an existing one needs no network."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kquota.errors import Invalid, Refused
from kquota.sandbox import jars, places
from kquota.sandbox.cluster import Sandbox, silent
from tests.cli.run import kquota
from tests.waiting import until

NO_NETWORK = {"https_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}


@pytest.mark.parametrize("version", ["", "4.3", "4.3.2", "../4.3.1", "latest"])
def test_unknown_versions_are_refused_with_the_available_ones(version: str) -> None:
    with pytest.raises(Invalid, match=r"The sandbox supports 4\.3\.1, 3\.9\.1, 2\.8\.2"):
        jars.kafka(version, silent)


def test_without_a_network_one_line_is_printed_and_the_cache_stays_clean(tmp_path: Path) -> None:
    env = NO_NETWORK | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_STATE_HOME": str(tmp_path / "state")}
    up = kquota("sandbox", "up", env=env)
    assert (up.code, up.out) == (1, "")
    said, error = up.err.splitlines()
    assert said == "kquota: downloading Kafka 4.3.1 from Maven Central"
    assert "Kafka 4.3.1 could not be downloaded from Maven Central (" in error
    assert "Connection refused" in error
    assert error.endswith("or start a sandbox with --zookeeper-only, which downloads nothing")
    left = [path.name for path in (tmp_path / "cache" / "kquota" / "kafka").iterdir()]
    assert left == [".4.3.1.lock"]
    assert not (tmp_path / "state" / "kquota" / "sandbox" / "default").exists()


def test_folders_without_locks_name_the_variable_of_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(fcntl, "flock", flock)
    why = r": cannot be locked: No locks available\. Set {} to another folder"
    with pytest.raises(Refused, match="kafka" + why.format("XDG_CACHE_HOME")):
        jars.kafka("4.3.1", silent)
    with pytest.raises(Refused, match="sandbox" + why.format("XDG_STATE_HOME")), places.alone("default"):
        pytest.fail("locked")


def test_ctrl_c_while_ivy_starts_does_not_leave_it_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, started = subprocess.Popen, []

    def interrupted(command: list[str], **settings: Any) -> subprocess.Popen[bytes]:
        started.append(real(["sleep", "60"], **settings))
        signal.raise_signal(signal.SIGINT)
        return started[0]

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(jars, "_command", lambda partial: ["ivy"])
    monkeypatch.setattr(subprocess, "Popen", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            jars.kafka("4.3.1", silent)
        assert started[0].poll() == -signal.SIGKILL
    finally:
        started[0].kill()
        started[0].wait()


PROXIES = {
    "": (),
    " ": (),
    "http://proxy.example:3128": ("proxy.example", "3128"),
    "http://user:secret@proxy.example:3128/": ("proxy.example", "3128"),
    "proxy.example:3128": ("proxy.example", "3128"),
    "http://proxy.example": ("proxy.example", "80"),
    "proxy.example/": ("proxy.example", "80"),
    "https://proxy.example": ("proxy.example", "443"),
}


@pytest.mark.parametrize(("address", "expected"), PROXIES.items(), ids=PROXIES)
def test_ivy_uses_the_proxy_of_the_environment(
    address: str, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    monkeypatch.setenv("https_proxy", address)
    found = jars._proxy()
    assert tuple(option.partition("=")[2] for option in found) == expected


def test_the_second_start_needs_no_network(kafka_282: Sandbox, tmp_path: Path) -> None:
    env = NO_NETWORK | {"XDG_STATE_HOME": str(tmp_path)}
    up = kquota("sandbox", "up", "--kafka", "2.8.2", "--brokers", "1", env=env)
    assert kquota("sandbox", "down", env=env).code == 0
    assert up.code == 0, up.err
    assert "download" not in up.err


# It waits for the network, next to processes that work.
@pytest.mark.kafka
@pytest.mark.xdist_group("download")
@pytest.mark.skipif(os.environ.get("KQUOTA_OFFLINE") == "1", reason="KQUOTA_OFFLINE=1, and this downloads Kafka 2.8.2")
def test_a_download_that_is_killed_and_two_at_once_leave_a_whole_folder(tmp_path: Path) -> None:
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    code = "from kquota.sandbox import jars; jars.kafka('2.8.2', lambda what, share: None)"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=env) as killed:
        until((tmp_path / "kquota" / "kafka" / ".2.8.2.partial" / "cache").exists)
        killed.kill()
    two = [subprocess.Popen(command, env=env) for _ in range(2)]
    assert [process.wait(timeout=600) for process in two] == [0, 0]
    folder = tmp_path / "kquota" / "kafka"
    assert sorted(path.name for path in folder.iterdir()) == [".2.8.2.lock", "2.8.2"]
    whole = {path.name: path.stat().st_size for path in jars.kafka("2.8.2", silent).iterdir()}
    assert {path.name: path.stat().st_size for path in (folder / "2.8.2").iterdir()} == whole
    assert len(whole) == jars.release("2.8.2").jars
