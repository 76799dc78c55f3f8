"""Every command that writes names the cluster, and asks before it writes if config.toml wants that."""

from __future__ import annotations

import io
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from kquota.cli import confirmation, main
from kquota.cli.commands import WORK
from kquota.cli.connection import Where
from kquota.cli.options import WritingOptions
from kquota.quota.entity import Entity
from kquota.terms import PRODUCER_BYTE_RATE
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import ELSEWHERE, plan, written
from tests.cli.run import Ran, kquota, kquota_here
from tests.servers import WAYS

READS = {
    "AdviseOptions",
    "CompleteOptions",
    "DiffOptions",
    "EstimateOptions",
    "ExplainOptions",
    "ExportOptions",
    "LogDirsOptions",
    "MoveStatusOptions",
    "PlanOptions",
    "ReportOptions",
    "ShowOptions",
    "StatusOptions",
    "TopOptions",
    "WatchOptions",
}
"""The options of commands that never write to a cluster."""
CONFIRM = '[clusters.prod]\nbootstrap-server = "127.0.0.1:1"\nconfirm = true\n'
WRITING: dict[str, str] = {
    "configs": "configs --alter --user a --add-config producer_byte_rate=10MB/s",
    "execute": "reassign-partitions --execute --unthrottled --reassignment-json-file PLAN",
    "verify": "reassign-partitions --verify --reassignment-json-file PLAN",
    "verify all runs": "reassign-partitions --verify --all-runs --quiet",
    "cancel": "reassign-partitions --cancel --reassignment-json-file PLAN",
    "create": "topics --create --topic t",
    "alter": "topics --alter --topic t --partitions 9",
    "delete": "topics --delete --topic t",
    "elect": "leader-election --election-type preferred --all-topic-partitions",
    "run": "move run PLAN --unthrottled",
    "adjust": "move adjust 5MB/s",
    "follow": "move adjust --deadline 2h",
    "pause": "move adjust --pause",
    "resume": "move resume",
    "abort": "move abort",
    "set": "throttle set --topic orders --throttle 5MB/s",
    "clear": "throttle clear",
    "clear all": "throttle clear --all",
    "doctor": "throttle doctor --fix",
    "apply": "quota apply QUOTAS",
    "probe": "quota probe --produce 1MB/s",
    "clean up": "quota probe --clean-up",
    "share": "record share",
    "unshare": "record unshare",
}
"""Each way to write."""
LOOKING: dict[str, str] = {
    "describe": "configs --describe --entity-type users",
    "dry run": "reassign-partitions --execute --unthrottled --reassignment-json-file PLAN --dry-run",
    "doctor": "throttle doctor",
    "doctor without --fix": "throttle doctor --fix --dry-run",
    "diff": "quota diff QUOTAS",
    "dry apply": "quota apply QUOTAS --dry-run",
    "status": "move status",
    "topics": "topics --list",
}
"""Commands that only look, with options of commands that can write."""


def words(command: str, folder: Path) -> list[str]:
    files = {"PLAN": plan(folder, ELSEWHERE), "QUOTAS": written(folder, "quotas.yaml", "version: 1\nusers: {a: {}}\n")}
    return [files.get(word, word) for word in command.split()]


def configured(folder: Path, text: str, patch: pytest.MonkeyPatch) -> None:
    (folder / "kquota").mkdir()
    written(folder / "kquota", "config.toml", text)
    patch.setenv("XDG_CONFIG_HOME", str(folder))


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InMemory:
    configured(tmp_path, CONFIRM, monkeypatch)
    made = InMemory(folder=tmp_path / "state")
    made.stand_in(monkeypatch)
    return made


def fields_of(options: type[Any]) -> set[str]:
    return {one.name for one in fields(options)}


def test_every_command_with_a_connection_declares_whether_it_writes() -> None:
    for name in main.COMMANDS:
        main.register(name)
    connected = {one for one in WORK if "connection" in fields_of(one)}
    assert {one.__name__ for one in connected if not issubclass(one, WritingOptions)} == READS
    assert {
        one.__name__ for one in connected if issubclass(one, WritingOptions) and "yes" not in fields_of(one)
    } == set()


@pytest.mark.parametrize("command", WRITING.values(), ids=WRITING)
def test_without_a_terminal_no_write_reaches_a_cluster_that_wants_confirmation(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(tmp_path, CONFIRM, monkeypatch)
    ran = kquota_here(*words(command, tmp_path), "--cluster", "prod")
    assert (ran.code, ran.out, ran.err.count("kquota: error: ")) == (2, "", 1), ran
    assert "--yes" in ran.err.splitlines()[-1]
    agreed = kquota_here(*words(command, tmp_path), "--cluster", "prod", "--yes")
    assert (agreed.code, "no Kafka broker accepts a connection at 127.0.0.1:1" in agreed.err) == (1, True), agreed


@pytest.mark.parametrize("command", LOOKING.values(), ids=LOOKING)
def test_looking_needs_no_confirmation_and_names_no_cluster(command: str, house: InMemory, tmp_path: Path) -> None:
    ran = kquota_here(*words(command, tmp_path), "--cluster", "prod")
    assert ran.code != 2, ran
    assert "target cluster" not in ran.whole_err


def test_a_command_that_has_ended_names_no_further_cluster(house: InMemory, capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise the next command in this process would be taken for one that writes."""
    assert kquota_here(*ALTER, "--cluster", "prod", "--yes").code == 0
    confirmation.names(Where(bootstrap="b1:9092", zookeeper=None), "other")
    assert capsys.readouterr() == ("", "")


def typed(patch: pytest.MonkeyPatch, answer: str, *arguments: str) -> Ran:
    """Run a command with a terminal on which `answer` is typed."""
    patch.setattr(confirmation, "has_terminal", lambda: True)
    patch.setattr(sys, "stdin", io.StringIO(answer))
    return kquota_here(*arguments, "--cluster", "prod")


ALTER = ("configs", "--alter", "--user", "a", "--add-config", "producer_byte_rate=10MB/s")
UNITS = "kquota: user 'a': producer_byte_rate = 10000000 bytes per second (10 MB/s)\n"
ASKED = f"{UNITS}kquota: target cluster: prod (cluster)\nkquota: cluster prod (cluster): write to it? [y/N] "


def test_a_confirmed_write_is_made_and_a_declined_one_is_not(house: InMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    declined = typed(monkeypatch, "n\n", *ALTER)
    assert declined.whole_err == f"{ASKED}kquota: error: not confirmed. Nothing was written\n"
    assert (declined.code, house.quotas.everything()) == (1, {})
    confirmed = typed(monkeypatch, "y\n", *ALTER)
    assert (confirmed.code, confirmed.whole_err.startswith(ASKED)) == (0, True), confirmed
    assert house.quotas.everything() == {Entity(user="a"): {PRODUCER_BYTE_RATE: 1e7}}
    assert typed(monkeypatch, "", *ALTER, "--yes").code == 0


def test_a_command_that_shows_its_change_asks_once(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "version: 1\nusers: {a: {request_percentage: 5}}\n"
    ran = typed(monkeypatch, "y\n", "quota", "apply", written(tmp_path, "quotas.yaml", text))
    assert (ran.code, ran.whole_err.count("[y/N]")) == (0, 1), ran
    assert ran.whole_err.index("+ user 'a'") < ran.whole_err.index("kquota: cluster prod (cluster): apply this change?")


def test_the_hash_of_a_change_agrees_to_it(house: InMemory, tmp_path: Path) -> None:
    text = "version: 1\nusers: {a: {request_percentage: 5}}\n"
    document = written(tmp_path, "quotas.yaml", text)
    shown = kquota_here("quota", "diff", document, "--cluster", "prod")
    change = shown.out.splitlines()[-1].removeprefix("change: ")
    ran = kquota_here("quota", "apply", document, "--cluster", "prod", "--change", change)
    assert (ran.code, ran.whole_err.splitlines()[0]) == (0, "kquota: target cluster: prod (cluster)"), ran


def test_quiet_says_nothing_about_the_cluster_and_cannot_ask(house: InMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("reassign-partitions", "--verify", "--all-runs", "--quiet")
    refused = typed(monkeypatch, "y\n", *command)
    assert (refused.code, "confirmation does not work with --quiet (" in refused.err) == (2, True), refused
    agreed = kquota_here(*command, "--cluster", "prod", "--yes")
    assert (agreed.code, agreed.out, agreed.whole_err) == (0, "", "")


@pytest.mark.parametrize("value", ['"true"', "1"])
def test_confirm_is_true_or_false(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configured(tmp_path, CONFIRM.replace("true", value), monkeypatch)
    ran = kquota_here("quota", "export", "--cluster", "prod")
    assert (ran.code, "[clusters.prod]: confirm must be true or false, without quotes" in ran.err) == (2, True)


@pytest.mark.parametrize("way", WAYS)
def test_the_id_and_the_name_of_a_real_cluster(way: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Over the brokers and over ZooKeeper, for a quota, a topic's config and a throttle."""
    fixture, on_zookeeper = WAYS[way]
    servers = request.getfixturevalue(fixture)
    key, address = ("zookeeper", servers.zookeeper) if on_zookeeper else ("bootstrap-server", servers.bootstrap)
    (tmp_path / "kquota").mkdir()
    written(tmp_path / "kquota", "config.toml", f'[clusters.prod]\n{key} = "{address}"\nconfirm = true\n')
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    cluster_id = AdminClient({"bootstrap.servers": servers.bootstrap}).list_topics(timeout=30).cluster_id
    for command in (
        ("configs", "--alter", "--ip", "10.9.8.1", "--delete-config", "connection_creation_rate"),
        ("throttle", "clear"),
        ("reassign-partitions", "--verify", "--all-runs"),
    ):
        ran = kquota(*command, "--cluster", "prod", "--yes", env=environment)
        assert (ran.code, ran.whole_err.count("target cluster")) == (0, 1), ran
        assert ran.whole_err.startswith(f"kquota: target cluster: prod ({cluster_id})\n"), ran
        named = kquota(*command, f"--{key}", address, env=environment)
        assert named.whole_err.startswith(f"kquota: target cluster: {cluster_id}\n"), named
