"""Every command that a message suggests is complete: pasted into a shell, it does not end as wrong usage."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from kquota import cli
from kquota.cli import confirmation, suggestion, world
from kquota.cli.connection import OPTIONS
from kquota.cli.contract import COMMANDS, worded
from kquota.cli.move.estimate import job
from kquota.cli.move.estimate.report import commands as report
from kquota.cli.suggestion import suggested
from kquota.cli.throttle.doctor.answer import DO
from kquota.cli.watching.wording import MoveNamed, shown
from kquota.errors import ExamineZnode, NextStep, Refused, StepFor, Unreachable
from kquota.measure import ByteRate
from kquota.settings.resource import Setting
from kquota.terms import LEADER_RATE, LEADER_REPLICAS, BrokerId
from kquota.throttle.cluster_throttles import Finding, Remedy
from kquota.watch.symptom import NotBegun, NotSubmitted
from man.command import every, root
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import ELSEWHERE, plan
from tests.cli.run import kquota_here
from tests.source import nodes, strings
from tests.watch.stage import name as partition
from tests.watch.test_diagnosis import CASES

pytestmark = pytest.mark.unit

CLI = Path(cli.__file__).parent
COMPOSED = ("throttle/doctor/answer.py", "watching/wording.py")
"""These modules compose commands from parts. The tests below collect each command from the answers."""
SAMPLES = {
    "topics[0]": "orders",
    "plan_argument(plan)": "plan.json",
    "kept": " --preserve-throttles",
    "found.run.id": "20260301T123000Z-6a6b28d658e6",
    "found.id": "20260301T123000Z-6a6b28d658e6",
    "run.id": "20260301T123000Z-6a6b28d658e6",
    "other.id": "20260301T123000Z-6a6b28d658e6",
    "run": "20260301T123000Z-6a6b28d658e6",
    "run.run": "20260301T123000Z-6a6b28d658e6",
    "keys": LEADER_RATE,
    "quota": "controller_mutation_rate=1",
    "self.run": "20260301T123000Z-6a6b28d658e6",
    "rate": "5MB/s",
    "plan": "PLAN",
    "shlex.quote(file)": "PLAN",
    "file": "FILE.yaml",
    "limit": " --max-in-flight 5GB",
    "more": " --prune",
    "skip": " --if-exists",
    "rest": "--topic orders --partition 0",
    "entity": "--user alice --client billing",
    "resource.name": "1",
    "shlex.quote(str(folders[0]))": "DIR",
    "named": " --topic orders --topic payments",
}
"""The parts of commands that are not literal, with the values that a test puts in their place."""
PLACEHOLDERS = {
    "HOST:PORT": "b1:9092",
    "URL": "http://localhost:1/metrics",
    "RATE": "5MB/s",
    "ID": "1",
    "RUN": "1",
    "KEY": LEADER_RATE,
    "P:B,…": "0:1",
}
"""The values that a suggested command leaves to the operator. Folders and files are those of the test."""
AT = {
    "nothing": {},
    "brokers": {"bootstrap_server": "b1:9092", "command_config": "a file", "record": "runs", "state_dir": "a folder"},
    "ZooKeeper": {"zookeeper": "zk1:2181/kafka", "zk_sasl_config_file": "jaas.conf", "command_config": "a file"},
}
ONLY_BROKERS = {
    "--replica-alter-log-dirs-throttle": "`move plan` suggests it, and has no --zookeeper",
    "--cancel": "Kafka cannot cancel a move over ZooKeeper, so only `--cancel` over brokers suggests it again",
    "--additional": "Kafka cannot start additional moves through ZooKeeper, so `throttle set` suggests it over brokers",
    **dict.fromkeys(
        ("--group", "--client-metrics", "--broker-logger"),
        "ZooKeeper does not have these resources, so no write of them fails there",
    ),
}
"""Options of commands that are suggested only on a connection to brokers, and why."""
PLAIN = {
    "move/estimate/report/commands.py": "the report has its own options; a test below collects its commands",
    "move/estimate/report/page.py": "names what wrote the page",
    "move/report/run.py": "names what wrote the page",
    "options.py": "help, of an option",
    "quota/answer.py": "a comment of a file names what reads it",
    "sandbox/run.py": "complete without a cluster",
}
"""The modules of cli that write a command by themselves, and why. Help is not among them: its examples are run."""


def test_only_one_place_words_a_command() -> None:
    paths = "|".join(one.context.command_path for one in every(root()) if one.context.command_path != "kquota")
    named = re.compile(rf"(?<![\w.])(?:{paths})(?![\w-])")
    names = {
        path.relative_to(CLI).as_posix()
        for path in CLI.rglob("*.py")
        if path.name not in ("command.py", "main.py")
        for string in strings(path)
        if named.search(string)
    }
    assert names == set(PLAIN)


def _text(node: ast.expr) -> str:
    """Return the argument of `suggested` as text. Raises KeyError for a part that has no sample."""
    match node:
        case ast.Constant():
            return str(node.value)
        case ast.JoinedStr():
            return "".join(map(_text, node.values))
        case ast.FormattedValue():
            return SAMPLES[ast.unparse(node.value)]
    raise TypeError(ast.unparse(node))


def literal() -> Iterator[str]:
    """Return the arguments of the calls of `suggested`."""
    for path in sorted(CLI.rglob("*.py")):
        if path.relative_to(CLI).as_posix() in (*COMPOSED, "contract.py", "suggestion.py"):
            continue
        for node in nodes(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "suggested":
                yield suggested(_text(node.args[0]))


def steps() -> Iterator[str]:
    for step, command in COMMANDS.items():
        if not command.startswith("sandbox "):  # complete without a cluster, and not in backticks
            yield worded(Refused(StepFor(step, "1") if "{}" in command else step))


def remedies() -> Iterator[str]:
    """Return the remedies that `throttle doctor` prints."""
    for remedy in Remedy:
        yield DO[remedy](
            Finding(
                rule="rule",
                where="here",
                what="is so",
                effect="harms",
                remedy=remedy,
                keys=(LEADER_REPLICAS if remedy is Remedy.CORRECT_LIST else LEADER_RATE,),
                brokers=(BrokerId(1), BrokerId(2)),
                topic="orders",
            )
        )


def symptoms() -> Iterator[str]:
    """Return the remedies that `move watch` prints for a run, for a plan, and for a move with neither."""
    named = [MoveNamed(run=run, plan=plan) for run, plan in (("1", None), (None, "FILE"), (None, None))]
    for _, symptom in CASES.values():
        yield from (shown(symptom, move).do for move in named)
    yield from (shown(NotSubmitted(run=run, partitions=1, first=partition(0)), named[0]).do for run in ("1", None))


def collected() -> list[str]:
    """Return every command, without its backticks."""
    texts = [*literal(), *steps(), *remedies(), *symptoms()]
    assert all("kquota" not in re.sub(r"`kquota [^`]+`", "", text) for text in texts)
    found = [command for text in texts for command in re.findall(r"`kquota ([^`]+)`", text)]
    reported = report.commands(("--bootstrap-server", "HOST:PORT"), "PLAN", ByteRate(1_000_000))
    return list(dict.fromkeys([*found, *(" ".join(words).removeprefix("kquota ") for _, words in reported)]))


def filled(command: str, folder: Path) -> list[str]:
    """Return the command with a value in place of each placeholder, as an operator runs it."""
    (folder / "quotas.yaml").write_text("version: 1\nowns: [a]\n")
    file = str(folder / "plan.json")
    values = {**PLACEHOLDERS, "FILE.yaml": str(folder / "quotas.yaml"), "DIR": str(folder), "PLAN": file, "FILE": file}
    for name in sorted(values, key=len, reverse=True):
        command = re.sub(rf"(?<![\w.:]){re.escape(name)}(?![\w.])", values[name], command)
    return shlex.split(command)


@contextmanager
def _unreachable(*_: object) -> Iterator[NoReturn]:
    raise Unreachable("the cluster does not answer")
    yield


def _unanswered(*_: object) -> NoReturn:
    raise Unreachable("the cluster does not answer")


@pytest.mark.parametrize("at", AT.values(), ids=AT)
def test_a_suggested_command_runs_as_it_is_pasted(
    at: dict[str, str], house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(world, "record", _unreachable)
    monkeypatch.setattr(job, "starting", _unreachable)
    # In this house, no move ends by itself, so `move run` would wait forever.
    monkeypatch.setattr("kquota.cli.move.run.run._started", _unanswered)
    monkeypatch.setattr(confirmation, "must_have_terminal", lambda *_: None)
    monkeypatch.setattr(confirmation, "must_agree", lambda _: None)
    plan(tmp_path, ELSEWHERE)
    with monkeypatch.context() as patch:
        patch.setattr(suggestion, "_kept_options", at)
        found = collected()
    assert len(found) > 30
    wrong = {}
    for command in found:
        if "zookeeper" in at and any(option in command for option in ONLY_BROKERS):
            continue
        ran = kquota_here(*filled(command, tmp_path))
        if ran.code == 2:
            wrong[command] = ran.err
    assert not wrong


def test_each_command_is_given_the_options_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestion, "_kept_options", {**dict.fromkeys(OPTIONS, "x"), "state_dir": "x"})
    for command in every(root()):
        path = command.context.command_path.removeprefix("kquota ")
        if command.subcommands or path == "kquota":
            continue
        given = {word for word in suggested(path).strip("`").split() if word.startswith("--")}
        known = {f"--{name.replace('_', '-')}" for name in (*OPTIONS, "state_dir")}
        # In these commands, controllers take the place of the brokers, so they are not added to them.
        left_out = {"--bootstrap-controller"} if path in ("configs", "reassign-partitions") else set()
        if not path.startswith("record"):  # only `record` takes brokers and a ZooKeeper together
            left_out |= {one for one in known if one.startswith(("--zookeeper", "--zk-"))}
        assert given == (known & command.options()) - left_out, path


def test_a_cluster_that_the_environment_names_is_not_named_again() -> None:
    assert suggested("move resume", {"KQUOTA_CLUSTER": "prod"}) == "`kquota move resume`"
    assert suggested("move resume", {"KQUOTA_ZOOKEEPER": "zk1:2181"}) == "`kquota move resume`"
    assert suggested("log-dirs --describe", {"KQUOTA_ZOOKEEPER": "zk1:2181"}) == (
        "`kquota log-dirs --bootstrap-server HOST:PORT --describe`"
    )


def test_a_command_that_has_ended_gives_no_options_to_suggested_commands(house: InMemory) -> None:
    refused = kquota_here("move", "watch", "--bootstrap-server", "b1:9092", "--run", "nobody")
    assert "`kquota move status --bootstrap-server b1:9092`" in refused.err
    assert suggested("move resume", {}) == "`kquota move resume --bootstrap-server HOST:PORT`"


@pytest.mark.parametrize("command", ["throttle clear", "throttle clear --all --yes", "throttle doctor --fix --yes"])
def test_the_reason_of_a_pending_setting_has_a_command(house: InMemory, command: str) -> None:
    """Over ZooKeeper, the fence of a transaction can find that the topic of the record was deleted."""
    deleted = Refused("topic runs: it was deleted. ", NextStep.SHARE_RECORD, " creates a new one")
    at = ("--bootstrap-server", "b1:9092")
    rate = Setting.of_broker(BrokerId(1), LEADER_RATE)
    if command == "throttle clear":
        kquota_here(
            "throttle", "set", *at, "--topic", "orders", "--broker", "1", "--throttle", "5MB/s", "--sample", "0"
        )
    else:
        house.cluster.configs[rate] = "5000000"
    house.cluster.broken = {rate: deleted}
    for form in ("text", "json"):
        ran = kquota_here(*command.split(), *at, "--output", form)
        shown = ran.err if form == "text" else ran.out
        assert ran.code == 8
        assert "it was deleted. `kquota record share --bootstrap-server b1:9092` creates a new one" in shown


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ({"zookeeper": "zk1:2181,zk2:2181/kafka"}, "`zookeeper-shell.sh zk1:2181,zk2:2181/kafka get /controller`. "),
        (
            {},
            "`zookeeper-shell.sh HOST:PORT get /controller` (replace HOST:PORT with the address of ZooKeeper and its ",
        ),
    ],
)
def test_a_command_of_zookeeper_has_the_chroot(
    given: dict[str, str], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggestion, "_kept_options", given)
    idle = NotBegun(partitions=1, first=partition(0), seconds=14.0)
    assert shown(idle, MoveNamed(run=None, plan=None)).do.startswith(f"Find the controller with {command}")
    examined = command.replace("/controller", "'/config/a b'").rstrip(". ")
    assert worded(Refused("damaged. ", ExamineZnode("/config/a b"))).startswith(f"damaged. Examine it with {examined}")


@pytest.mark.parametrize(
    ("command", "replacing"),
    [
        ("move abort --run RUN", " (replace RUN with the id of a run)"),
        (
            "configs --alter --add-config KEY=RATE --broker 1",
            " (replace KEY with the rate to change and RATE with a throttle)",
        ),
        ("topics --describe --topic ORDER-ID", ""),
        ("topics --describe --topic RATE.v1", ""),
    ],
)
def test_a_placeholder_is_explained(command: str, replacing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestion, "_kept_options", {"bootstrap_server": "b1:9092"})
    assert suggested(command).partition("`")[2].partition("`")[2] == replacing


def test_values_are_quoted_for_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestion, "_kept_options", {"cluster": "our own"})
    assert suggested("record unshare --record runs") == "`kquota record unshare --cluster 'our own' --record runs`"
    ending = worded(Refused(StepFor(NextStep.END_THROTTLE, "a run")))
    assert ending == "`kquota throttle clear --cluster 'our own' --run 'a run'`"


PROMPTS = {"confirmation.py", "quota/run.py", "record/run.py", "throttle/clear/run.py", "throttle/doctor/run.py"}
"""The modules of cli that ask before they write, and wait for the answer."""


def test_no_message_is_a_question() -> None:
    """An operator cannot answer a message, so each message states the problem and the next step."""
    question = re.compile(r"(?:[a-z]|^\w)\?(?:\s|$)")
    asking = {
        path.relative_to(CLI.parent).as_posix()
        for path in CLI.parent.rglob("*.py")
        for string in strings(path)
        if question.search(string)
    }
    assert asking == {f"cli/{path}" for path in PROMPTS}
