"""Wrong usage of `reassign-partitions`: kquota rejects what Kafka's tool rejects, before any connection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kquota.sandbox.cluster import Sandbox
from tests.cli.reassign_command import ReassignCommands
from tests.cli.run import Ran, kquota_here

NOWHERE = "127.0.0.1:1"
PLAN = ["--reassignment-json-file", "PLAN"]
TOPICS = ["--topics-to-move-json-file", "TOPICS"]
FILES = {
    "PLAN": {"version": 1, "partitions": [{"topic": "no-such-topic", "partition": 0, "replicas": [1, 2]}]},
    "TOPICS": {"version": 1, "topics": [{"topic": "no-such-topic"}]},
    "TWICE": {"version": 1, "topics": [{"topic": "a"}, {"topic": "b"}, {"topic": "a"}]},
    "VERSION 2": {"version": 2, "topics": [{"topic": "a"}]},
    "NO NAME": {"version": 1, "topics": [{"name": "a"}]},
    "A LIST": [],
}
GENERATE = ["--generate", *TOPICS, "--broker-list"]
ACTION = "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list"
MISSING = 'Missing required argument "[{}]"'.format
NOT_WITH = 'Option "[{}]" can\'t be used with action "[{}]"'.format

NEEDED = {"generate": [*TOPICS, "--broker-list", "1"], "execute": PLAN, "verify": PLAN, "cancel": PLAN, "list": []}
FLAGS = ("disable-rack-aware", "additional", "preserve-throttles", "disallow-replication-factor-change")
NOT_TAKEN = {
    "generate": "reassignment-json-file throttle replica-alter-log-dirs-throttle timeout additional preserve-throttles "
    "disallow-replication-factor-change",
    "execute": "topics-to-move-json-file broker-list disable-rack-aware preserve-throttles",
    "verify": "topics-to-move-json-file broker-list disable-rack-aware throttle replica-alter-log-dirs-throttle "
    "additional disallow-replication-factor-change",
    "cancel": "topics-to-move-json-file broker-list disable-rack-aware throttle replica-alter-log-dirs-throttle "
    "additional disallow-replication-factor-change",
    "list": "reassignment-json-file topics-to-move-json-file broker-list disable-rack-aware throttle "
    "replica-alter-log-dirs-throttle timeout additional preserve-throttles disallow-replication-factor-change",
}

# The arguments, and the error text of both tools ("" where kquota's text differs).
BOTH = {
    "no action": (PLAN, ACTION),
    "two actions": (["--execute", "--verify", *PLAN], ACTION),
    "three actions": (["--list", "--cancel", "--generate", *PLAN], ACTION),
    "execute what?": (["--execute"], MISSING("reassignment-json-file")),
    "verify what?": (["--verify"], MISSING("reassignment-json-file")),
    "cancel what?": (["--cancel"], MISSING("reassignment-json-file")),
    "generate of what?": (["--generate", "--broker-list", "1"], MISSING("topics-to-move-json-file")),
    "generate where?": (["--generate", *TOPICS], MISSING("broker-list")),
    "generate what and where?": (["--generate"], MISSING("topics-to-move-json-file")),
    **{
        f"{option} with {action}": (
            [f"--{action}", *NEEDED[action], f"--{option}", *([] if option in FLAGS else ["5"])],
            NOT_WITH(option, action),
        )
        for action, options in NOT_TAKEN.items()
        for option in options.split()
    },
    "a controller as well": (
        ["--list", "--bootstrap-controller", NOWHERE],
        "Please don't specify both --bootstrap-server and --bootstrap-controller",
    ),
    "an unknown option": (["--list", "--quiet"], ""),
    "an option without its value": (["--execute", *PLAN, "--throttle"], "requires an argument"),
    "a throttle twice": (
        ["--execute", *PLAN, "--throttle", "1000000", "--throttle", "2000000"],
        "Found multiple arguments for option throttle, but you asked for only one",
    ),
    "a plan twice": (
        ["--execute", *PLAN, *PLAN],
        "Found multiple arguments for option reassignment-json-file, but you asked for only one",
    ),
    "a throttle that is not a number": (["--execute", *PLAN, "--throttle", "fast"], ""),
    "half a byte": (["--execute", *PLAN, "--throttle", "1.5"], ""),
    "a throttle beyond 2^63": (["--execute", *PLAN, "--throttle", "9223372036854775808"], ""),
    "half a byte between log dirs": (["--execute", *PLAN, "--replica-alter-log-dirs-throttle", "1.5"], ""),
    "a timeout that is not a number": (["--execute", *PLAN, "--timeout", "soon"], ""),
    "half a millisecond": (["--execute", *PLAN, "--timeout", "1.5"], ""),
    "no such plan": (["--execute", "--reassignment-json-file", "/nowhere/plan.json"], ""),
    "no such topics": (["--generate", "--topics-to-move-json-file", "/nowhere/t.json", "--broker-list", "1"], ""),
    "a broker that is not a number": ([*GENERATE, "1,x"], ""),
    "a hole in the list": ([*GENERATE, "1,,2"], ""),
    "an empty list": ([*GENERATE, ""], ""),
    "a broker beyond 2^31": ([*GENERATE, "2147483648"], ""),
    "a broker twice": ([*GENERATE, "1,2,2,3"], "Broker list contains duplicate entries: [2]"),
    "two brokers twice": ([*GENERATE, "2,1,1,2"], "Broker list contains duplicate entries: [1, 2]"),
    "a topic twice": (
        ["--generate", "--topics-to-move-json-file", "TWICE", "--broker-list", "1"],
        "List of topics to reassign contains duplicate entries: [a]",
    ),
    "topics of another version": (
        ["--generate", "--topics-to-move-json-file", "VERSION 2", "--broker-list", "1"],
        "Not supported version field value 2",
    ),
    "a topic without its name": (["--generate", "--topics-to-move-json-file", "NO NAME", "--broker-list", "1"], ""),
    "topics in no object": (["--generate", "--topics-to-move-json-file", "A LIST", "--broker-list", "1"], ""),
}

# Arguments that Kafka's tool of 2.8 rejects only with --zookeeper, in different words.
ON_ZOOKEEPER = {
    **{name: BOTH[name] for name in ("no action", "two actions", "execute what?", "generate where?")},
    **{name: BOTH[name] for name in ("preserve-throttles with execute", "a throttle twice")},
    "cancel": (["--cancel", *PLAN], NOT_WITH("zookeeper", "cancel")),
    "additional": (
        ["--execute", *PLAN, "--additional"],
        'You must specify --bootstrap-server when using "[additional]"',
    ),
    "timeout": (["--execute", *PLAN, "--timeout", "5"], 'You must specify --bootstrap-server when using "[timeout]"'),
    "a throttle between log dirs": (
        ["--execute", *PLAN, "--replica-alter-log-dirs-throttle", "5000000"],
        'You must specify --bootstrap-server when using "[replica-alter-log-dirs-throttle]"',
    ),
}

OURS_ALONE = {
    "a forgotten option": (["--list", "now"], "unexpected argument 'now'"),
    "an option as a value": (
        ["--execute", "--reassignment-json-file", "--throttle", "5MB/s"],
        "but --throttle is an option",
    ),
    "an end of options": (["--list", "--"], "unexpected argument"),
    "a throttle of 0, under which nothing ever moves": (["--execute", *PLAN, "--throttle", "0"], "at least 1 byte per"),
    "a throttle below 0": (["--execute", *PLAN, "--throttle", "-5"], "--throttle '-5' is not a positive number"),
    "log dirs, too": (
        ["--execute", *PLAN, "--replica-alter-log-dirs-throttle", "0"],
        "--replica-alter-log-dirs-throttle '0': a rate must be at least 1 byte",
    ),
    "a throttle of no unit we know": (["--execute", *PLAN, "--throttle", "5MBps"], "unknown unit 'MBps'"),
    "both names of a throttle": (
        ["--execute", *PLAN, "--throttle", "5MB/s", "--replication-quota", "5MB/s"],
        "Give one of them",
    ),
    "KIP-73's name with verify": (
        ["--verify", *PLAN, "--replication-quota", "5MB/s"],
        NOT_WITH("replication-quota", "verify") + ": it works with --execute",
    ),
    "a timeout of no end": (["--execute", *PLAN, "--timeout", "9" * 5000], "--timeout"),
    "a broker of no end": ([*GENERATE, "9" * 5000], "Write broker ids joined by commas"),
    "a timeout below 0": (
        ["--execute", *PLAN, "--timeout", "-1"],
        "--timeout '-1': not a valid time. Give whole milliseconds, or a time with a unit",
    ),
    "a seed for execute": (["--execute", *PLAN, "--seed", "5"], NOT_WITH("seed", "execute")),
    "a seed below 0": ([*GENERATE, "1", "--seed", "-5"], "-5 is not in the range x>=0"),
    "force with verify": (
        ["--verify", *PLAN, "--force"],
        NOT_WITH("force", "verify") + ": it works with --execute and --cancel",
    ),
    "a dry run of verify": (["--verify", *PLAN, "--dry-run"], NOT_WITH("dry-run", "verify")),
    "a dry run of list": (["--list", "--dry-run"], NOT_WITH("dry-run", "list")),
    "a state folder for list": (["--list", "--state-dir", "s"], NOT_WITH("state-dir", "list")),
    "whole topics with cancel": (
        ["--cancel", *PLAN, "--throttle-whole-topics"],
        NOT_WITH("throttle-whole-topics", "cancel"),
    ),
    "clear all with cancel": (["--cancel", *PLAN, "--clear-all"], NOT_WITH("clear-all", "cancel")),
    "clear all and nothing": (["--verify", *PLAN, "--clear-all", "--preserve-throttles"], "Give only one of them"),
    "a table of a plan": ([*GENERATE, "1", "--output", "tsv"], "--output tsv works with --list"),
    "a negative broker": ([*GENERATE, "-1"], "Write broker ids joined by commas"),
}

# Arguments that both accept: first Kafka's, then those that only kquota accepts.
RIGHT = {
    "list": (["--list"], []),
    "list as a table": (["--list"], ["--output", "tsv"]),
    "generate": ([*GENERATE, "1,2"], ["--seed", "0"]),
    "generate without racks": ([*GENERATE, "2,1", "--disable-rack-aware"], ["--output", "json"]),
    "execute": (["--execute", *PLAN], []),
    "execute with all": (
        [
            *("--execute", *PLAN, "--throttle", "5000000", "--replica-alter-log-dirs-throttle", "5000000"),
            *("--timeout", "5000", "--additional", "--disallow-replication-factor-change"),
        ],
        ["--force", "--throttle-whole-topics", "--dry-run", "--state-dir", "STATE", "--output", "json"],
    ),
    "execute without a throttle, in Kafka's words": (["--execute", *PLAN, "--throttle", "-1"], []),
    "execute by KIP-73's name": (["--execute", *PLAN], ["--replication-quota", "5MB/s"]),
    "verify": (["--verify", *PLAN, "--preserve-throttles"], ["--output", "json"]),
    "verify as Kafka does": (["--verify", *PLAN], ["--clear-all", "--state-dir", "STATE"]),
    "cancel": (["--cancel", *PLAN, "--preserve-throttles", "--timeout", "0"], ["--force", "--dry-run"]),
}
ALSO_ON_ZOOKEEPER = ("list", "generate", "generate without racks", "execute", "verify")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the tables name."""
    found = tmp_path_factory.mktemp("usage")
    for name, document in FILES.items():
        (found / name).write_text(json.dumps(document))
    return found


def ours(folder: Path, arguments: list[str], connection: str = "--bootstrap-server") -> Ran:
    """kquota with an address where no server listens: after a connection attempt the code would be 1."""
    return kquota_here("reassign-partitions", connection, NOWHERE, *written(folder, arguments))


def written(folder: Path, arguments: list[str]) -> list[str]:
    return [str(folder / argument) if argument in (*FILES, "STATE") else argument for argument in arguments]


def refused(ran: Ran) -> str:
    assert (ran.code, ran.out) == (2, ""), ran
    assert ran.err.count("error:") == 1
    return ran.err.splitlines()[-1].removeprefix("kquota: error: ")


@pytest.mark.parametrize(("arguments", "words"), BOTH.values(), ids=BOTH)
def test_both_tools_refuse(
    kafka_431: Sandbox, reassign_commands: ReassignCommands, folder: Path, arguments: list[str], words: str
) -> None:
    theirs = reassign_commands("4.3.1")("--bootstrap-server", kafka_431.bootstrap, *written(folder, arguments))
    assert theirs.code == 1, theirs
    assert words in theirs.out + theirs.err
    assert words in refused(ours(folder, arguments))


@pytest.mark.parametrize("name", ON_ZOOKEEPER)
def test_both_tools_refuse_over_zookeeper(
    kafka_282: Sandbox, reassign_commands: ReassignCommands, folder: Path, name: str
) -> None:
    arguments, words = ON_ZOOKEEPER[name]
    theirs = reassign_commands("2.8.2")("--zookeeper", str(kafka_282.zookeeper), *written(folder, arguments))
    assert theirs.code == 1, theirs
    assert words in theirs.out + theirs.err
    assert words in refused(ours(folder, arguments, "--zookeeper"))


@pytest.mark.parametrize(("arguments", "words"), OURS_ALONE.values(), ids=OURS_ALONE)
def test_only_kquota_refuses(folder: Path, arguments: list[str], words: str) -> None:
    assert words in refused(ours(folder, arguments))


@pytest.mark.parametrize(("arguments", "more"), RIGHT.values(), ids=RIGHT)
def test_both_tools_accept(
    kafka_431: Sandbox, reassign_commands: ReassignCommands, folder: Path, arguments: list[str], more: list[str]
) -> None:
    """An answer from a cluster, or about its absence, and not a usage text, shows that the arguments are accepted."""
    theirs = reassign_commands("4.3.1")("--bootstrap-server", kafka_431.bootstrap, *written(folder, arguments))
    assert "Description" not in theirs.err
    assert "joptsimple" not in theirs.out + theirs.err
    for connection in ("--bootstrap-server", "--zookeeper") if arguments in on_zookeeper() else ("--bootstrap-server",):
        ran = ours(folder, [*arguments, *more], connection)
        assert (ran.code, ran.out) == (1, ""), ran
        assert f"{NOWHERE}: Connection refused" in ran.err


@pytest.mark.parametrize("action", ["generate", "execute", "verify", "cancel"])
def test_only_list_works_over_controllers(folder: Path, action: str) -> None:
    """Kafka's tool also cancels moves over the controllers (4.3.1)."""
    words = "only brokers report in-sync replicas" if action == "cancel" else NOT_WITH("bootstrap-controller", action)
    arguments = [f"--{action}", *NEEDED[action]]
    assert words in refused(ours(folder, arguments, "--bootstrap-controller"))


def on_zookeeper() -> list[list[str]]:
    return [RIGHT[name][0] for name in ALSO_ON_ZOOKEEPER]


@pytest.mark.parametrize("option", ["--throttle", "--replica-alter-log-dirs-throttle"])
def test_a_doubtful_rate_is_named_at_once(folder: Path, option: str) -> None:
    """A rate is echoed when it is clear that it limits something: see the recorded sessions of moves."""
    assert "sets no throttle, as in Kafka's tools" in ours(folder, ["--execute", *PLAN, option, "-1"]).err
    assert "write 10000kB/s or 10000MB/s" in ours(folder, ["--execute", *PLAN, option, "10000"]).err
