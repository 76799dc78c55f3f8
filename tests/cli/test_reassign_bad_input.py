"""Input that cannot work ends with one line, the right exit code, and no write."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota.sandbox.cluster import Sandbox
from kquota.terms import TopicPartition
from tests.cli.run import kquota, kquota_here, run
from tests.stores.moves_stage import OtherHand

NOWHERE = ("--bootstrap-server", "127.0.0.1:1")
ENTRY = {"topic": "t", "partition": 0, "replicas": [1, 2]}
GOOD = json.dumps({"version": 1, "partitions": [ENTRY]})
TWICE = json.dumps({"version": 1, "partitions": [ENTRY, ENTRY]})

WRONG = {
    "no action": (GOOD, [], "exactly one action: --generate, --execute, --verify, --cancel, --list"),
    "two actions": (GOOD, ["--execute", "--verify"], "exactly one action: --generate, --execute, --verify, "),
    "throttle with verify": (GOOD, ["--verify", "--throttle", "1MB/s"], 'Option "[throttle]" can\'t be used'),
    "additional with verify": (GOOD, ["--verify", "--additional"], 'Option "[additional]" can\'t be used'),
    "preserve with execute": (GOOD, ["--execute", "--preserve-throttles"], 'Option "[preserve-throttles]"'),
    "a rate of 0": (GOOD, ["--execute", "--throttle", "0"], "--throttle '0': a rate must be at least 1 byte"),
    "an unknown unit": (GOOD, ["--execute", "--throttle", "10MBps"], "--throttle '10MBps': unknown unit 'MBps'"),
    "a negative rate": (GOOD, ["--execute", "--throttle=-5"], "--throttle '-5' is not a positive number"),
    "not a number": (GOOD, ["--execute", "--throttle", "NaN"], "--throttle 'NaN' is not a positive number"),
    "infinity": (GOOD, ["--execute", "--throttle", "inf"], "--throttle 'inf' is not a positive number"),
    "the alias, too": (GOOD, ["--execute", "--replication-quota", "0"], "--replication-quota '0': a rate must be"),
    "both names": (GOOD, ["--execute", "--throttle", "1MB", "--replication-quota", "1MB"], "Give one of them"),
    "both connections": (GOOD, ["--execute", "--zookeeper", "127.0.0.1:1"], "--bootstrap-server or --zookeeper"),
    "an empty file": ("", ["--execute"], "is empty"),
    "malformed": ('{"version":1,', ["--execute"], "line 1 column 14: is not JSON"),
    "no version of Kafka's": (GOOD.replace("1,", "2,", 1), ["--execute"], "Not supported version field value 2"),
    "a partition twice": (TWICE, ["--execute"], "partitions[1]: Partition reassignment contains duplicate"),
    "a replica twice": (GOOD.replace("[1, 2]", "[1, 1]"), ["--verify"], "t-0 contains multiple entries for 1"),
}


@pytest.mark.parametrize(("text", "arguments", "complaint"), WRONG.values(), ids=WRONG)
def test_invalid_input_is_refused_before_any_connection(
    tmp_path: Path, text: str, arguments: list[str], complaint: str
) -> None:
    """No server listens at this address, so a connection attempt would have another error and another exit code."""
    plan, state = tmp_path / "plan.json", tmp_path / "state"
    plan.write_text(text)
    more = ("--reassignment-json-file", str(plan), "--state-dir", str(state))
    ran = kquota("reassign-partitions", *NOWHERE, *more, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err
    assert ran.err.count("error:") == 1
    assert not state.exists()


def test_a_missing_or_unreadable_plan() -> None:
    ran = kquota("reassign-partitions", *NOWHERE, "--execute")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == 'kquota: error: Missing required argument "[reassignment-json-file]"\n'


HOSTILE = {
    "ESC": "\x1b[2J",
    "NUL": "t\0",
    "a line end": "t\nkquota: all is well",
    "from right to left": "\u202et",
    "an emoji": "\U0001f600",
    "a lone surrogate": "\ud800",
    "C1": "\x9b2J",
    "a path": "../../etc",
}


@pytest.mark.parametrize("where", ["topic", "log_dirs", "an unread field"])
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_names_in_a_plan_are_escaped_on_the_terminal(tmp_path: Path, name: str, where: str) -> None:
    entry = {"topic": ENTRY | {"topic": name}, "log_dirs": ENTRY | {"log_dirs": [name, "any"]}}.get(where, {name: 1})
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"partitions": [entry], name: 1}))
    ran = kquota_here("reassign-partitions", *NOWHERE, "--reassignment-json-file", str(plan), "--verify")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert ran.err.removesuffix("\n").isprintable()
    assert ran.err.isascii()


def test_an_ignored_field_is_reported_on_one_line(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"partitions": [ENTRY | {"logDirs": ["/a", "/b"], "\x1b": 1}]}))
    ran = kquota("reassign-partitions", *NOWHERE, "--reassignment-json-file", str(plan), "--verify")
    assert (ran.code, ran.out) == (1, "")
    first, _, rest = ran.err.partition("\n")
    assert (
        first
        == f'kquota: warning: {plan}: kquota and Kafka ignore "\\u001b", "logDirs". Check the spelling of each field'
    )
    assert "127.0.0.1:1" in rest


TOLD = {
    "a sound plan": (GOOD, 1, "127.0.0.1:1"),
    "a wrong one": ("{", 2, "{name}: line 1 column 2: is not JSON"),
    "nothing": ("", 2, "{name}: is empty. Give a reassignment JSON file"),
}


@pytest.mark.parametrize(("text", "code", "complaint"), TOLD.values(), ids=TOLD)
@pytest.mark.parametrize("name", ["-", "/dev/stdin", "<(cat)"])
def test_a_plan_from_a_pipe(name: str, text: str, code: int, complaint: str) -> None:
    """No server was reached. The plan itself was read and is valid."""
    command = [sys.executable, "-m", "kquota", "reassign-partitions", *NOWHERE, "--verify", "--reassignment-json-file"]
    ran = run(["bash", "-c", f"{shlex.join(command)} {name}"], stdin=text)
    assert (ran.code, ran.out) == (code, "")
    assert complaint.format(name={"-": "stdin", "<(cat)": "/dev/fd/63"}.get(name, name)) in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("where", [NOWHERE, ("--zookeeper", "127.0.0.1:1")], ids=["brokers", "ZooKeeper"])
@pytest.mark.parametrize("action", ["--execute", "--verify"])
def test_unreachable_servers(tmp_path: Path, where: tuple[str, str], action: str) -> None:
    plan, state = tmp_path / "plan.json", tmp_path / "state"
    plan.write_text(GOOD)
    more = ("--reassignment-json-file", str(plan), "--state-dir", str(state), action)
    ran = kquota("reassign-partitions", *where, *more)
    assert (ran.code, ran.out) == (1, "")
    assert "127.0.0.1:1" in ran.err
    assert ran.err.count("\n") == 1
    assert not state.exists()


@pytest.mark.kafka
class TestOnBrokers:
    @pytest.fixture(params=["4.3.1 Admin API", "2.8.2 ZooKeeper"])
    def servers(self, request: pytest.FixtureRequest) -> tuple[Sandbox, tuple[str, str]]:
        if request.param.startswith("4"):
            found: Sandbox = request.getfixturevalue("kafka_431")
            return found, ("--bootstrap-server", found.bootstrap)
        found = request.getfixturevalue("kafka_282")
        return found, ("--zookeeper", str(found.zookeeper))

    @pytest.fixture
    def hand(self, servers: tuple[Sandbox, tuple[str, str]]) -> Iterator[OtherHand]:
        found = OtherHand(servers[0])
        yield found
        found.close()

    def test_topics_and_brokers_that_do_not_exist(
        self, servers: tuple[Sandbox, tuple[str, str]], hand: OtherHand, tmp_path: Path
    ) -> None:
        topic = hand.topic({0: (1, 2)}, size=10_000)
        cases = {
            "Topic nowhere not found.": ("nowhere", 0, [1, 3]),
            f"Unable to find partition: {topic}-7": (topic, 7, [1, 3]),
            "Unknown broker id 9": (topic, 0, [1, 9]),
        }
        state = tmp_path / "state"
        for complaint, (name, number, replicas) in cases.items():
            good = {"topic": topic, "partition": 0, "replicas": [1, 3]}
            bad = {"topic": name, "partition": number, "replicas": replicas}
            plan = tmp_path / "plan.json"
            plan.write_text(
                json.dumps({"version": 1, "partitions": [bad] if name == topic and not number else [good, bad]})
            )
            more = ("--reassignment-json-file", str(plan), "--state-dir", str(state))
            ran = kquota("reassign-partitions", *servers[1], *more, "--execute", "--throttle", "1MB/s")
            assert (ran.code, ran.out) == (1, "")
            assert f"kquota: error: {complaint}" in ran.err
            assert ran.err.count("error:") == 1
            assert hand.rates() == hand.lists(topic) == {}
            assert hand.replicas(TopicPartition(topic, 0)) == [1, 2]
            assert not list(state.rglob("*.journal"))


@pytest.mark.kafka
def test_a_replica_in_another_log_dir(kafka_431: Sandbox, tmp_path: Path) -> None:
    hand = OtherHand(kafka_431)
    try:
        topic = hand.topic({0: (1,)}, size=10_000)
        plan = tmp_path / "plan.json"
        entry = {"topic": topic, "partition": 0, "replicas": [1, 2], "log_dirs": ["/elsewhere", "any"]}
        plan.write_text(json.dumps({"version": 1, "partitions": [entry]}))
        more = ("--reassignment-json-file", str(plan), "--state-dir", str(tmp_path / "state"))
        where = ("--bootstrap-server", kafka_431.bootstrap)
        ran = kquota("reassign-partitions", *where, *more, "--execute", "--throttle", "1MB/s")
        assert (ran.code, ran.out) == (1, "")
        assert f"{topic}-0" in ran.err and "/elsewhere" in ran.err, ran.err
        assert hand.rates() == hand.lists(topic) == {}
    finally:
        hand.close()
