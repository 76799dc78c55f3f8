"""How a command chooses its cluster: options, variables and config.toml, and the errors before any connection."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kquota.cli.connection import Connection, Where, names_a_cluster, where
from kquota.cli.quota.metrics_source import MetricsSource
from kquota.errors import Invalid
from tests.canary import CANARY
from tests.cli.run import kquota

CONFIG = """
[clusters.prod]
bootstrap-server = "b1:9092,b2:9092"
command-config = "prod.properties"

[clusters.old]
zookeeper = "zk:2181/kafka"
zk-tls-config-file = "/etc/zk.properties"
zk-sasl-config-file = "~/jaas.conf"
"""


def environment(tmp_path: Path, text: str = CONFIG, **variables: str) -> dict[str, str]:
    folder = tmp_path / "kquota"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)
    return {"XDG_CONFIG_HOME": str(tmp_path), **variables}


MEANT: dict[str, tuple[Connection, dict[str, str], Where]] = {
    "an option": (Connection(bootstrap_server="b:1"), {}, Where(bootstrap="b:1", zookeeper=None)),
    "a variable": (Connection(), {"KQUOTA_ZOOKEEPER": "z:1"}, Where(bootstrap=None, zookeeper="z:1")),
    "both variables: brokers first": (
        Connection(),
        {"KQUOTA_BOOTSTRAP_SERVER": "b:1", "KQUOTA_ZOOKEEPER": "z:1"},
        Where(bootstrap="b:1", zookeeper=None),
    ),
    "an option before the other's variable": (
        Connection(zookeeper="z:1"),
        {"KQUOTA_BOOTSTRAP_SERVER": "b:1"},
        Where(bootstrap=None, zookeeper="z:1"),
    ),
    "the login from a variable": (
        Connection(bootstrap_server="b:1"),
        {"KQUOTA_COMMAND_CONFIG": "f", "KQUOTA_ZK_TLS_CONFIG_FILE": "g"},
        Where(bootstrap="b:1", zookeeper=None, command_config=Path("f")),
    ),
    "ZooKeeper's login from variables": (
        Connection(zookeeper="z:1"),
        {"KQUOTA_COMMAND_CONFIG": "f", "KQUOTA_ZK_TLS_CONFIG_FILE": "g", "KQUOTA_ZK_SASL_CONFIG_FILE": "h"},
        Where(
            bootstrap=None,
            zookeeper="z:1",
            command_config=Path("f"),
            zk_tls_config_file=Path("g"),
            zk_sasl_config_file=Path("h"),
        ),
    ),
    "ZooKeeper with the login for the brokers that keep the record": (
        Connection(zookeeper="z:1", command_config=Path("f")),
        {},
        Where(bootstrap=None, zookeeper="z:1", command_config=Path("f")),
    ),
    "the record from an option": (
        Connection(zookeeper="z:1", record="runs"),
        {"KQUOTA_RECORD": "others"},
        Where(bootstrap=None, zookeeper="z:1", record="runs"),
    ),
    "the record from a variable": (
        Connection(bootstrap_server="b:1"),
        {"KQUOTA_RECORD": "runs"},
        Where(bootstrap="b:1", zookeeper=None, record="runs"),
    ),
    "metrics from a variable": (
        Connection(bootstrap_server="b:1"),
        {"KQUOTA_METRICS": "http://b:7071"},
        Where(bootstrap="b:1", zookeeper=None, metrics="http://b:7071"),
    ),
    "an empty variable is none": (
        Connection(bootstrap_server="b:1"),
        {"KQUOTA_COMMAND_CONFIG": "", "KQUOTA_CLUSTER": ""},
        Where(bootstrap="b:1", zookeeper=None),
    ),
    "an option before KQUOTA_CLUSTER": (
        Connection(bootstrap_server="b:1"),
        {"KQUOTA_CLUSTER": "prod"},
        Where(bootstrap="b:1", zookeeper=None),
    ),
    "another cluster's ZooKeeper": (
        Connection(cluster="old"),
        {"KQUOTA_BOOTSTRAP_SERVER": "b:1", "KQUOTA_COMMAND_CONFIG": "f"},
        Where(
            bootstrap=None,
            zookeeper="zk:2181/kafka",
            zk_tls_config_file=Path("/etc/zk.properties"),
            zk_sasl_config_file=Path.home() / "jaas.conf",
            name="old",
        ),
    ),
}


@pytest.mark.parametrize(("options", "variables", "meant"), MEANT.values(), ids=MEANT)
def test_which_cluster(tmp_path: Path, options: Connection, variables: dict[str, str], meant: Where) -> None:
    assert where(options, environment(tmp_path, **variables)) == meant
    assert names_a_cluster(options, environment(tmp_path, **variables))


@pytest.mark.parametrize("by", ["option", "variable"])
def test_files_of_a_named_cluster_are_relative_to_config_toml(tmp_path: Path, by: str) -> None:
    variables = {"KQUOTA_COMMAND_CONFIG": "another"} | ({"KQUOTA_CLUSTER": "prod"} if by == "variable" else {})
    options = Connection(cluster="prod" if by == "option" else None)
    assert where(options, environment(tmp_path, **variables)) == Where(
        bootstrap="b1:9092,b2:9092",
        zookeeper=None,
        command_config=tmp_path / "kquota" / "prod.properties",
        name="prod",
    )


def test_a_named_cluster_includes_its_record_and_its_login(tmp_path: Path) -> None:
    text = '[clusters.old]\nzookeeper = "z:1"\ncommand-config = "b.properties"\nrecord = "runs"\n'
    found = where(Connection(cluster="old"), environment(tmp_path, text, KQUOTA_RECORD="others"))
    login = tmp_path / "kquota" / "b.properties"
    assert found == Where(bootstrap=None, zookeeper="z:1", command_config=login, record="runs", name="old")


def test_an_option_may_repeat_or_extend_a_named_cluster(tmp_path: Path) -> None:
    bare = '[clusters.prod]\nbootstrap-server = "b:1"\nconfirm = true\n'
    options = Connection(cluster="prod", bootstrap_server="b:1", command_config=Path("mine"))
    found = where(options, environment(tmp_path, bare))
    assert found == Where(bootstrap="b:1", zookeeper=None, command_config=Path("mine"), name="prod", confirm=True)


def test_metrics_of_a_named_cluster_and_options_that_replace_them(tmp_path: Path) -> None:
    text = '[clusters.prod]\nbootstrap-server = "b:1"\nprometheus = "http://p:9090"\n'
    found = where(Connection(cluster="prod"), environment(tmp_path, text, KQUOTA_METRICS="http://other"))
    assert found == Where(bootstrap="b:1", zookeeper=None, name="prod", prometheus="http://p:9090")
    assert MetricsSource().of(found) == MetricsSource(prometheus="http://p:9090")
    assert MetricsSource(metrics="http://b:7071").of(found) == MetricsSource(metrics="http://b:7071")


@pytest.mark.parametrize("given", [MetricsSource(), MetricsSource(metrics="http://b", prometheus="http://p")])
def test_no_source_of_metrics_and_two_are_refused(given: MetricsSource) -> None:
    with pytest.raises(Invalid, match="--metrics"):
        given.of(Where(bootstrap="b:1", zookeeper=None))


REFUSED: dict[str, tuple[Connection, dict[str, str], str]] = {
    "nothing": (Connection(), {}, "no cluster is given. Give --bootstrap-server HOST:PORT, --cluster NAME"),
    "an empty option": (Connection(bootstrap_server=""), {"KQUOTA_ZOOKEEPER": "z:1"}, "no cluster is given"),
    "two": (Connection(bootstrap_server="b:1", zookeeper="z:1"), {}, "not both"),
    "two by name": (
        Connection(cluster="prod", bootstrap_server="b:1"),
        {},
        "--cluster prod and --bootstrap-server both name a cluster",
    ),
    "a name and the other way": (Connection(cluster="prod", zookeeper="z:1"), {}, "--zookeeper both name a cluster"),
    "another login than the named cluster's": (
        Connection(cluster="prod", command_config=Path("x")),
        {},
        "--command-config contradicts config.toml",
    ),
    "two variables": (
        Connection(),
        {"KQUOTA_CLUSTER": "prod", "KQUOTA_BOOTSTRAP_SERVER": "b:1"},
        "KQUOTA_CLUSTER and KQUOTA_BOOTSTRAP_SERVER both name a cluster",
    ),
    "unknown": (Connection(cluster="prd"), {}, " has no table [clusters.prd]. The file defines "),
    "unknown, and what there is": (Connection(cluster="prd"), {}, ". The file defines old, prod"),
    "a record that no topic can be called": (
        Connection(bootstrap_server="b:1", record="a/b"),
        {},
        "--record 'a/b': ",
    ),
    "ZooKeeper's for brokers": (
        Connection(bootstrap_server="b:1", zk_tls_config_file=Path("f")),
        {},
        "--zk-tls-config-file needs --zookeeper",
    ),
    "ZooKeeper's for a named cluster's brokers": (
        Connection(cluster="prod", zk_sasl_config_file=Path("f")),
        {},
        "--zk-sasl-config-file needs --zookeeper",
    ),
}


@pytest.mark.parametrize(("options", "variables", "reason"), REFUSED.values(), ids=REFUSED)
def test_arguments_that_name_no_cluster_or_two_clusters(
    tmp_path: Path, options: Connection, variables: dict[str, str], reason: str
) -> None:
    with pytest.raises(Invalid, match=re.escape(reason)):
        where(options, environment(tmp_path, **variables))


WRONG_FILES = {
    "no TOML": ("[clusters", "is not TOML"),
    "another table": ("[prod]\n", "'prod' is not a valid key. Write each cluster as a table [clusters.NAME]"),
    "no table": ("clusters = 3\n", "'clusters' must be a table"),
    "no table either": ("clusters.prod = 3\n", "[clusters.prod] is not a table"),
    "an unknown key": (
        '[clusters.prod]\nbootstrap-servers = "b:1"\n',
        "'bootstrap-servers' is not a valid key. Valid keys: boot",
    ),
    "a password": (
        f'[clusters.prod]\nbootstrap-server = "b:1"\nsasl-password = "{CANARY}"\n',
        "'sasl-password': this file must not hold secrets. Put them into a login file ("
        "command-config, zk-tls-config-file, zk-sasl-config-file), and run chmod 600 on it",
    ),
    "a password of another cluster": (
        f'[clusters.prod]\nbootstrap-server = "b:1"\n[clusters.x]\nsasl.jaas.config = "{CANARY}"\n',
        "[clusters.x]: 'sasl' is not a valid key. Valid keys: ",
    ),
    "a number": (
        "[clusters.prod]\nbootstrap-server = 9092\n",
        "bootstrap-server must be a non-empty string in quotes",
    ),
    "an empty address": (
        '[clusters.prod]\nbootstrap-server = ""\n',
        "bootstrap-server must be a non-empty string in quotes",
    ),
    "no address": ('[clusters.prod]\ncommand-config = "f"\n', "needs either bootstrap-server or zookeeper"),
    "two addresses": ('[clusters.prod]\nbootstrap-server = "b:1"\nzookeeper = "z:1"\n', "needs either"),
    "a home of no user": (
        '[clusters.prod]\nbootstrap-server = "b:1"\ncommand-config = "~nosuchuser/f"\n',
        "[clusters.prod]: command-config: the home folder ~nosuchuser is unknown. Write an absolute path",
    ),
    "two sources of metrics": (
        '[clusters.prod]\nbootstrap-server = "b:1"\nmetrics = "http://b"\nprometheus = "http://p"\n',
        "metrics and prometheus are two sources",
    ),
    "a file of the other way": (
        '[clusters.prod]\nbootstrap-server = "b:1"\nzk-tls-config-file = "f"\n',
        "zk-tls-config-file is valid only with zookeeper",
    ),
}


@pytest.mark.parametrize(("text", "reason"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_invalid_config_toml(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=re.escape(reason)) as refused:
        where(Connection(cluster="prod"), environment(tmp_path, text))
    assert CANARY not in repr(refused.value)
    assert str(tmp_path) in str(refused.value)


def test_a_missing_config_toml_is_reported_with_its_path(tmp_path: Path) -> None:
    ran = kquota("log-dirs", "--describe", "--cluster", "prod", env={"XDG_CONFIG_HOME": str(tmp_path)})
    path = tmp_path / "kquota" / "config.toml"
    wanted = f"kquota: error: --cluster: {path} does not exist. Create it with a table [clusters.NAME]"
    assert (ran.code, ran.out, ran.err.startswith(wanted)) == (2, "", True)


@pytest.mark.parametrize("command", [["configs", "--describe", "--entity-type", "users"], ["quota", "export"]])
def test_the_command_connects_to_the_named_cluster(tmp_path: Path, command: list[str]) -> None:
    there = environment(tmp_path, '[clusters.prod]\nbootstrap-server = "127.0.0.1:1"\n')
    ran = kquota(*command, "--cluster", "prod", env=there)
    assert (ran.code, ran.out) == (1, "")
    assert "no Kafka broker accepts a connection at 127.0.0.1:1 (127.0.0.1:1: Connection refused)" in ran.err


ALONE: dict[str, tuple[Connection, dict[str, str], Where | str]] = {
    "before the brokers of a variable": (
        Connection(bootstrap_controller="c:1"),
        {"KQUOTA_BOOTSTRAP_SERVER": "b:1", "KQUOTA_COMMAND_CONFIG": "f"},
        Where(bootstrap=None, zookeeper=None, command_config=Path("f"), controllers="c:1"),
    ),
    "with brokers": (Connection(bootstrap_controller="c:1", bootstrap_server="b:1"), {}, "^both$"),
    "with a ZooKeeper": (
        Connection(bootstrap_controller="c:1", zookeeper="z:1"),
        {},
        "--bootstrap-controller cannot be combined with --zookeeper",
    ),
    "with a named cluster": (
        Connection(bootstrap_controller="c:1", cluster="prod"),
        {},
        "--bootstrap-controller cannot be combined with --cluster",
    ),
}


@pytest.mark.parametrize(("options", "variables", "meant"), ALONE.values(), ids=ALONE)
def test_controllers_in_place_of_the_brokers(
    tmp_path: Path, options: Connection, variables: dict[str, str], meant: Where | str
) -> None:
    if isinstance(meant, str):
        with pytest.raises(Invalid, match=meant):
            where(options, environment(tmp_path, **variables), alone="both")
    else:
        assert where(options, environment(tmp_path, **variables), alone="both") == meant


def test_controllers_in_addition_to_the_brokers(tmp_path: Path) -> None:
    both = Connection(bootstrap_server="b:1", bootstrap_controller="c:1")
    assert where(both, environment(tmp_path)) == Where(bootstrap="b:1", zookeeper=None, controllers="c:1")
    with pytest.raises(Invalid, match="--bootstrap-controller is for KRaft"):
        where(Connection(zookeeper="z:1", bootstrap_controller="c:1"), environment(tmp_path))


def test_variables_with_the_logins_of_brokers_and_zookeeper_apply_together(tmp_path: Path) -> None:
    both = Connection(bootstrap_server="b:1", zookeeper="z:1")
    variables = {"KQUOTA_COMMAND_CONFIG": "f", "KQUOTA_ZK_TLS_CONFIG_FILE": "g"}
    assert where(both, environment(tmp_path, **variables), both=True) == Where(
        bootstrap="b:1", zookeeper="z:1", command_config=Path("f"), zk_tls_config_file=Path("g")
    )
