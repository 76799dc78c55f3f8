"""`kquota topics` against Kafka's own tool, and under a real controller mutation quota (KIP-599)."""

from __future__ import annotations

import json
import re
import signal
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from kquota.cli.topics.listing import matching
from kquota.errors import Invalid
from kquota.measure import counted
from kquota.mutation.topic import Topic
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from tests.cli.kafka_tools import Tools
from tests.cli.reassign_command import ReassignCommands, already_throttled
from tests.cli.run import Ran, kquota, kquota_here, started
from tests.cli.test_reassign_partitions import LASTING
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

TOOL = "org.apache.kafka.tools.TopicCommand"
RATE = 5
LOW = 1
"""49 overdrawn mutations stay overdrawn for 49 s, which is longer than a busy machine needs for the next commands."""


@dataclass
class Desk:
    """kquota with its own client-id, so that no other client uses its bucket. All its topics have one prefix."""

    cluster: Sandbox
    folder: Path
    client: str

    @property
    def at(self) -> tuple[str, ...]:
        config = self.folder / "client.properties"
        config.write_text(f"client.id={self.client}\n")
        return ("--bootstrap-server", self.cluster.bootstrap, "--command-config", str(config))

    def run(self, *words: str) -> Ran:
        return kquota("topics", *self.at, *words)

    def names(self) -> list[str]:
        return self.run("--list", "--topic", f"{self.client}.*").out.split()

    def limited(self, key: str = "controller_mutation_rate", value: float = RATE) -> None:
        """A client with a fresh bucket, by default one of 55 mutations."""
        with Wire(self.cluster.bootstrap, {}) as wire:
            quotas, entity = WireQuotas(wire), Entity(client_id=self.client)
            quotas.alter([QuotaChange(entity=entity, add={key: value})])
            until(lambda: quotas.everything().get(entity) == {key: value}, "the quota is seen")

    def list_of(self, count: int, partitions: int) -> str:
        path = self.folder / "topics.txt"
        path.write_text("# ours\n" + "".join(f"{self.client}-{n:02d} {partitions} 1\n" for n in range(count)))
        return str(path)


@pytest.fixture
def desk(kafka_431: Sandbox, tmp_path: Path) -> Iterator[Desk]:
    found = Desk(kafka_431, tmp_path, f"t{uuid.uuid4().hex[:8]}")
    yield found
    found.client, prefix = f"{found.client}-end", found.client  # a client without a quota
    found.run("--delete", "--if-exists", "--topic", f"{prefix}.*")


def sorted_configs(text: str) -> str:
    """A broker reports configs in no particular order."""
    return re.sub(r"Configs: (\S*)", lambda m: "Configs: " + ",".join(sorted(m[1].split(","))), text)


def test_the_words_are_kafkas(desk: Desk, kafka_tools: Tools) -> None:
    at = ("--bootstrap-server", desk.cluster.bootstrap)
    tool, one = kafka_tools("4.3.1"), f"{desk.client}-a"

    def both(*words: str) -> None:
        ours, theirs = desk.run(*words), tool(TOOL, *at, *words)
        # The harness cannot distinguish 0 from 1 for an exit inside one JVM.
        assert (ours.code, sorted_configs(ours.out)) == (0, sorted_configs(theirs.out)), (words, theirs.err)

    configs = ("--config", "retention.ms=9", "--config", "compression.type = gzip ")
    made = desk.run("--create", "--topic", one, "--replica-assignment", "1:2,2:3", *configs)
    assert (made.code, made.out, made.err) == (0, f"Created topic {one}.\n", "")
    # Topics of other tests may appear and disappear between the two commands.
    both("--list", "--topic", f"{desk.client}.*")
    both("--describe", "--topic", f"{desk.client}.*")
    both("--list", "--topic", f"{desk.client}-none, {one}")
    both("--describe", "--topic", f"'{desk.client}\\-a'")
    both("--describe", "-topic", one, "--topics-with-overrides")
    both("--describe", "--topic", one, "--under-replicated-partitions")
    both("--create", "--topic", one, "--if-not-exists")
    assert desk.run("--alter", "--topic", one, "--partitions", "3").code == 0
    both("--describe", "--topic", one)
    both("--delete", "--topic", f"{desk.client}-none", "--if-exists")
    tried = desk.run("--delete", "--topic", f"{desk.client}.*", "--dry-run")
    assert tried.out == f"Would delete topic {one}: 3 mutations\n1 topic, 3 mutations; unchanged: 0\n"
    again = desk.run("--create", "--topic", one)
    assert (again.code, again.out, again.err) == (
        1,
        "",
        f"kquota: error: Topic '{one}' already exists. Nothing was sent. To skip existing topics, give "
        "--if-not-exists\n",
    )
    fewer = desk.run("--alter", "--topic", one, "--partitions", "2")
    assert (fewer.code, fewer.err) == (
        1,
        f"kquota: error: topic {one} has 3 partitions, and Kafka cannot reduce them to 2. Nothing was sent. "
        "Give at least 3\n",
    )
    assert desk.run("--delete", "--topic", one).code == 0
    until(lambda: desk.names() == [], "the topic is deleted")


def test_the_words_are_kafkas_while_a_topic_moves(
    desk: Desk, kafka_tools: Tools, reassign_commands: ReassignCommands
) -> None:
    """A replica that is being added does not count as out of sync. The other partition has too few replicas."""
    servers, tool, plan = desk.cluster, kafka_tools("4.3.1"), desk.folder / "plan.json"
    at, moving, still = ("--bootstrap-server", servers.bootstrap), f"{desk.client}-a", f"{desk.client}-b"
    other = OtherHand(servers)
    other.topic({0: (1, 2), 1: (2, 1)}, size=3 * LASTING, name=moving)
    low = ("--replica-assignment", "1:2", "--config", "min.insync.replicas=3")
    assert desk.run("--create", "--topic", still, *low).code == 0
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": moving, "partition": 0, "replicas": [3, 2]}]}))
    submit = reassign_commands("4.3.1")
    already_throttled(other, "1000", {moving: ("0:1,0:2", "0:3")})
    submitted = submit(*at, "--execute", "--throttle", "1000", "--reassignment-json-file", str(plan))
    assert submitted.code == 0, submitted
    only = ("--describe", "--topic", f"{desk.client}.*")
    shown = {}
    for reports in (
        (),
        ("under-replicated",),
        ("unavailable",),
        ("at-min-isr",),
        ("under-min-isr",),
        ("under-replicated", "under-min-isr"),
    ):
        words = (*only, *(f"--{report}-partitions" for report in reports))
        ours, theirs = desk.run(*words), tool(TOOL, *at, *words)
        # Kafka's tool prints topics in no particular order.
        both = [sorted(sorted_configs(text).splitlines()) for text in (ours.out, theirs.out)]
        assert (ours.code, both[0]) == (0, both[1]), (words, ours.err, theirs.err)
        shown[reports] = ours.out
    assert "Adding Replicas: 3\tRemoving Replicas: 1" in shown[()]
    assert shown["under-replicated",] == shown["unavailable",] == shown["at-min-isr",] == ""
    assert shown["under-min-isr",] == shown["under-replicated", "under-min-isr"] != ""
    (document,) = json.loads(desk.run("--describe", "--topic", moving, "--output", "json").out)["topics"]
    first = document["partitions"][0]
    assert (document["replication_factor"], first["adding"], first["removing"]) == (2, [3], [1])
    by_id, same = ("--describe", "--topic-id", document["id"]), ("--describe", "--topic", moving)
    assert desk.run(*by_id).out == desk.run(*same).out
    nobody = desk.run("--describe", "--topic-id", "A" * 22)
    assert (nobody.code, nobody.out, "does not exist as expected" in nobody.err) == (1, "", True)
    assert desk.run("--describe", "--topic-id", "A" * 22, "--if-exists") == Ran(0, "", "")
    submit(*at, "--cancel", "--reassignment-json-file", str(plan))
    other.close()


def test_a_wait_for_a_throttling_broker_is_reported(desk: Desk) -> None:
    desk.limited("request_percentage", 0.0001)
    errs: list[str] = []

    def told() -> bool:
        """Return the answer of a broker that has the quota. Another broker than the one that showed the quota may
        answer.
        """
        ran = desk.run("--list", "--topic", "no-such-topic")
        assert ran.code == 0
        errs.append(ran.err)
        return ran.err != ""

    until(told, "the quota is in force")
    # Tries again after 10 s if the machine is busy.
    assert re.fullmatch(r"(kquota: Kafka throttles this client: waiting \S+ m?s \(KIP-219\)\n)+", errs[-1])


def test_validation_creates_nothing(desk: Desk) -> None:
    """The factor 4 is one more than the number of brokers, which only the brokers know."""
    words = ("--create", "--topic", f"{desk.client}-a", "--partitions", "3", "--validate-only")
    valid = desk.run(*words)
    assert (valid.code, valid.out, valid.err) == (0, f"Would create topic {desk.client}-a: 3 mutations\n", "")
    wrong = desk.run(*words, "--replication-factor", "4", "--output", "json")
    assert results(wrong) == (1, {f"{desk.client}-a": "failed"})
    assert "InvalidReplicationFactor (38)" in wrong.err
    assert desk.names() == []


def test_a_topic_with_one_number_in_the_file_and_another_on_the_command_line_does_not_grow(desk: Desk) -> None:
    assert desk.run("--create", "--from-file", desk.list_of(1, 1)).code == 0
    grown = desk.run("--alter", "--topic", f"{desk.client}.*", "--partitions", "2", "--from-file", desk.list_of(1, 3))
    assert f"topic {desk.client}-00 is listed twice, with 2 and 3 partitions. Nothing was sent" in grown.err
    same = desk.run("--alter", "--topic", f"{desk.client}.*", "--partitions", "3", "--from-file", desk.list_of(1, 3))
    assert (grown.code, same.code) == (1, 0)


def test_rejected_topics_are_retried_until_all_exist(desk: Desk) -> None:
    """7 topics of 20 partitions at rate 5: 140 - 55 - 20 mutations take 13 s."""
    desk.limited()
    made = desk.run("--create", "--from-file", desk.list_of(7, 20))
    assert made.code == 0, made.err
    assert made.out.splitlines() == [f"Created topic {desk.client}-{n:02d}." for n in range(7)]
    assert re.match(r"kquota: waiting \S+ s for the controller mutation quota. Done: \d of 7 topics\n", made.err)
    assert len(desk.names()) == 7


def test_without_retries_the_command_exits_75_with_the_time_to_wait(desk: Desk) -> None:
    """For create, grow and delete. The first topic takes 60 mutations out of a bucket that holds 11."""
    desk.limited(value=LOW)
    out = ("--no-retry-quota-violated", "--output", "json")
    made = desk.run("--create", "--from-file", desk.list_of(3, 60), *out)
    assert results(made) == (
        75,
        {f"{desk.client}-00": "done", f"{desk.client}-01": "rejected", f"{desk.client}-02": "rejected"},
    )
    assert 0 < throttle(made) <= 49_000
    assert "the controller mutation quota rejects 2 of 3 topics (" in made.err
    grown = desk.run("--alter", "--topic", f"{desk.client}-00", "--partitions", "61", *out)
    gone = desk.run("--delete", "--topic", f"{desk.client}-00", *out)
    for ran, before in ((grown, made), (gone, grown)):
        assert results(ran) == (75, {f"{desk.client}-00": "rejected"})
        assert 0 < throttle(ran) < throttle(before)
    assert desk.names() == [f"{desk.client}-00"]


def results(ran: Ran) -> tuple[int, dict[str, str]]:
    return ran.code, {one["topic"]: one["result"] for one in json.loads(ran.out)["topics"]}


def throttle(ran: Ran) -> int:
    """The milliseconds after which rejected mutations may be sent again."""
    return max(one["throttle_time_ms"] or 0 for one in json.loads(ran.out)["topics"])


STOPS = {"Ctrl-C": (signal.SIGINT, 130), "SIGTERM": (signal.SIGTERM, 143)}


@pytest.mark.parametrize(("number", "code"), STOPS.values(), ids=STOPS)
def test_an_interrupted_command_reports_which_topics_exist(desk: Desk, number: signal.Signals, code: int) -> None:
    desk.limited(value=LOW)
    process = started("topics", *desk.at, "--create", "--from-file", desk.list_of(5, 60), "--timeout", "5m")
    assert process.stderr is not None
    assert "target cluster" in process.stderr.readline()
    assert "waiting" in process.stderr.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code
    exists = desk.names()
    assert exists
    assert out == "".join(f"Created topic {name}.\n" for name in exists)
    assert f"kquota: {counted(len(exists), 'topic')} done: {', '.join(exists)}\n" in err
    assert f"kquota: {counted(5 - len(exists), 'topic')} not sent: " in err


NOWHERE = ("--bootstrap-server", "127.0.0.1:1")
WRONG = {
    "no action": ((), "Command must include exactly one action: --list, --describe, --create, --alter, --delete"),
    "two actions": (("--list", "--create"), "Command must include exactly one action"),
    "no topic": (("--create",), 'Missing required argument "[topic]"'),
    "a name": (("--create", "--topic", "a/b"), "--topic 'a/b' is not a valid topic name"),
    "no partitions": (("--create", "--topic", "a", "--partitions", "0"), "--partitions 0: write a number from 1"),
    "no number": (("--alter", "--topic", "a"), 'Missing required argument "[partitions]"'),
    "an assignment": (("--create", "--topic", "a", "--replica-assignment", "1:1"), "may not contain duplicate entries"),
    "uneven": (("--create", "--topic", "a", "--replica-assignment", "1:2,3"), "has different replication factor"),
    "a broker beyond its id": (
        ("--create", "--topic", "a", "--replica-assignment", "1:2147483648"),
        "--replica-assignment '1:2147483648': write broker ids, for example 1:2,2:3",
    ),
    "more digits than int() takes": (
        ("--create", "--topic", "a", "--replica-assignment", "9" * 5_000),
        "write broker ids, for example 1:2,2:3",
    ),
    "a config of bytes": (("--create", "--topic", "a", "--config", "x=\udcff"), "--config 'x': not valid UTF-8"),
    "a config": (("--create", "--topic", "a", "--config", "x"), "--config 'x': not a valid config. Write KEY=VALUE"),
    "another action's": (("--list", "--partitions", "3"), 'can\'t be used with action "[list]"'),
    "ZooKeeper": (("--list", "--zookeeper", "z:2181"), "bypass the controller mutation quota (KIP-599)"),
    "no time": (("--delete", "--topic", "a", "--timeout", "soon"), "--timeout 'soon' is not a positive number"),
    "two dry runs": (("--create", "--topic", "a", "--dry-run", "--validate-only"), "Give only one of them"),
    "a deletion": (("--delete", "--topic", "a", "--validate-only"), 'can\'t be used with action "[delete]"'),
    "no file": (
        ("--create", "--from-file", "/no/such"),
        "directory. Give a file of topics (--from-file)",
    ),
    "an id and a name": (("--describe", "--topic", "a", "--topic-id", "b"), 'can\'t be used with option "[topic]"'),
    "no topic that may be missing": (("--describe", "--if-exists"), "--topic or --topic-id is required to describe a"),
    "one dash": (("-create", "-topic=a/b"), "--topic 'a/b' is not a valid topic name"),
    "one dash, and twice": (("--create", "-topic", "a", "-partitions=1", "--partitions", "2"), "multiple arguments"),
    "a report of topics": (
        ("--describe", "--topics-with-overrides", "--at-min-isr-partitions"),
        '"[at-min-isr-partitions]" can\'t be used with option "[topics-with-overrides]"',
    ),
    "twice": (("--create", "--topic", "a", "--partitions", "1", "--partitions", "2"), "multiple arguments"),
}


EXCLUDED = {
    "list": (("--list",), 0, ""),
    "describe": (("--describe",), 1, "kquota: error: Topic '__consumer_offsets' does not exist as expected\n"),
    "describe, if it exists": (("--describe", "--if-exists"), 0, ""),
}


@pytest.mark.parametrize(("words", "code", "err"), EXCLUDED.values(), ids=EXCLUDED)
def test_an_excluded_internal_topic_counts_as_missing(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, err: str
) -> None:
    """As in Kafka's tool."""
    found = [Topic(name="__consumer_offsets", id=None, internal=True, partitions=())]
    topics = SimpleNamespace(topics=lambda names, detailed: found, must_show=lambda names: None)
    cluster = SimpleNamespace(topics=topics, configs=SimpleNamespace(describe=lambda asked: {}))
    monkeypatch.setattr("kquota.cli.world.topics", lambda at: nullcontext(cluster))
    ran = kquota_here("topics", *NOWHERE, *words, "--topic", "__consumer_offsets", "--exclude-internal")
    assert ran == Ran(code, "", err)


PATTERNS = {
    "an open group": "a(",
    "a repetition beyond re": "a{99999999999}",
    "a repetition beyond int()": f"a{{{'9' * 5_000}}}",
    "groups in groups": "(" * 5_000 + ")" * 5_000,
}


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_invalid_regular_expressions(pattern: str) -> None:
    with pytest.raises(Invalid, match=r"^--topic '.*: not a valid regular expression: "):
        matching([], [pattern])


@pytest.mark.parametrize(("words", "complaint"), WRONG.values(), ids=WRONG)
def test_wrong_usage_prints_one_line_and_exits_2_before_any_request(words: tuple[str, ...], complaint: str) -> None:
    ran = kquota("topics", *NOWHERE, *words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert complaint in ran.err


def test_an_invalid_line_of_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("a 1 1\n\nb many\n")
    ran = kquota("topics", *NOWHERE, "--create", "--from-file", str(tmp_path / "t"))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(
        "t line 3: 'b many': not a valid topic line. Write NAME [PARTITIONS [REPLICATION-FACTOR]], for example orders "
        "12 3\n"
    )


def test_without_partitions_a_file_cannot_grow_topics(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("a\n")
    ran = kquota("topics", *NOWHERE, "--alter", "--from-file", str(tmp_path / "t"))
    assert (ran.code, "the number of partitions is missing" in ran.err) == (2, True)


def test_a_topic_that_a_file_lists_with_two_numbers_does_not_grow(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("orders 12\nclicks 3\norders 24\n")
    ran = kquota("topics", *NOWHERE, "--alter", "--from-file", str(tmp_path / "t"))
    wanted = (
        "kquota: error: topic orders is listed twice, with 12 and 24 partitions. Nothing was sent. "
        "List the topic once\n"
    )
    assert (ran.code, ran.out, ran.err) == (1, "", wanted)
