"""`kquota quota probe` for operators and scripts, and a real client under real quotas."""

from __future__ import annotations

import json
import re
import signal
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kquota import connect
from kquota.cli.formats import WRITE, document, text
from kquota.cli.options import Output
from kquota.cli.quota.probe.answer import Probed, probed
from kquota.cli.quota.probe.limit import answer as limit_answer
from kquota.errors import Invalid, Unreachable
from kquota.mutation.topic import Creation, Deletion
from kquota.probe import Limit, Operation, Result, Step, find_limit, probe, scratch
from kquota.probe.load import KEYS, Kind, Load
from kquota.probe.verdict import Reading, ThrottleCounts
from kquota.quota.capacity import Capacity, broker
from kquota.quota.entity import Entity
from kquota.quota.explain import explain
from kquota.quota.limits import QuotaChange
from kquota.quota.precedence import Client
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.stores.admin.topics import WireTopics
from kquota.terms import BrokerId
from tests.cli.run import Ran, kquota, python, started
from tests.cli.test_explain import TOLD, golden
from tests.logins import plain
from tests.secured import Secured
from tests.waiting import until

QUOTAS = {
    KEYS[Kind.PRODUCE]: 1e6,
    KEYS[Kind.CONSUME]: 2e6,
    KEYS[Kind.REQUESTS]: 50.0,
    KEYS[Kind.CREATE_TOPICS]: 5.0,
}
LEADERS = {0: BrokerId(1), 1: BrokerId(2)}


def probed_of(kind: Kind, rate: float, got: list[tuple[float, int]], *, limited: bool = True) -> Probed:
    """A load of `kind`, and for each broker (the controller) the measured rate and how often it throttled."""
    quotas = {Entity(user="alice"): QUOTAS} if limited else {}
    brokers = tuple(broker(one, TOLD | {"quota.producer.default": None}) for one in LEADERS.values())
    explained = explain(quotas, Capacity(brokers=brokers), client=Client(user="alice", client_id="billing"))
    limit = QUOTAS[KEYS[kind]] if limited else None
    topic = "kquota-probe-20261121T230300Z-0badcafe"
    asked = Load(kind=kind, topic=topic, leaders=LEADERS, rate=rate, limit=limit, warm=22.0, seconds=22.0)
    readings = tuple(
        Reading(
            broker=None if kind is Kind.CREATE_TOPICS else BrokerId(number),
            amount=rate * 22,
            seconds=22.0,
            throttles=ThrottleCounts(count=waits, longest_ms=waits * 3, total_ms=waits * 40),
        )
        for number, (rate, waits) in enumerate(got, 1)
    )
    return probed(asked, explained, readings)


SHOWN = {
    "as-explained": probed_of(Kind.PRODUCE, 1e7, [(1.01e6, 391), (0.96e6, 388)]),
    "one-broker-less": probed_of(Kind.PRODUCE, 1e7, [(1.01e6, 391), (0.4e6, 388)]),
    "not-reached": probed_of(Kind.CONSUME, 5e5, [(5e5, 0), (5e5, 0)]),
    "not-enough": probed_of(Kind.PRODUCE, 5e5, [(5e5, 0), (4.9e5, 0)]),
    "unlimited": probed_of(Kind.CONSUME, 5e6, [(5e6, 0), (4.9e6, 0)], limited=False),
    "something-else": probed_of(Kind.PRODUCE, 1e8, [(4e7, 0), (3e7, 0)], limited=False),
    "requests": probed_of(Kind.REQUESTS, 2, [(1540, 811), (88.25, 700)]),
    "requests-unlimited": probed_of(Kind.REQUESTS, 1, [(6540, 0), (5000, 0)], limited=False),
    "create-topics": probed_of(Kind.CREATE_TOPICS, 15, [(5.02, 21)]),
}


@pytest.mark.parametrize(("name", "found"), SHOWN.items(), ids=SHOWN)
def test_the_text_of_a_probe(name: str, found: Probed) -> None:
    assert max(map(len, text(found).splitlines())) <= 80
    golden(f"probe-{name}", Ran(found.code, text(found), ""), "")


def test_the_document() -> None:
    found = probed_of(Kind.PRODUCE, 1e7, [(1.01e6, 391), (0.4e6, 0)])
    golden("probe-json", Ran(found.code, document(found), ""), "")


STEPS = [
    Step(operation=operation, size=size, rate=rate, reached=rate * kept, latency=0.05 * size, lag=0.031)
    for size, rate, kept in ((1, 5, 1), (1, 10, 1), (10, 5, 1), (10, 10, 0.4))
    for operation in Operation
]
ALL = Limit(steps=tuple(STEPS), tenants=10, overcommit=2.0)
LIMITS = {
    "limit": (ALL, Output.text),
    "limit-nothing-gave-way": (Limit(steps=tuple(STEPS[:6]), tenants=1, overcommit=1.0), Output.text),
    "limit-nothing-holds": (Limit(steps=tuple(STEPS[9:]), tenants=1, overcommit=1.0), Output.text),
    "limit-one-tenant": (Limit(steps=tuple(STEPS), tenants=1, overcommit=2.0), Output.text),
    "limit-json": (ALL, Output.json),
}


@pytest.mark.parametrize(("name", "case"), LIMITS.items(), ids=LIMITS)
def test_the_text_about_a_limit(name: str, case: tuple[Limit, Output]) -> None:
    found, output = case
    answer = limit_answer(found)
    text = WRITE[output](answer)
    # A command stays on one line, so that it can be copied.
    assert all(len(line) <= 80 or line.startswith("  kquota ") for line in text.splitlines())
    golden(f"probe-{name}", Ran(answer.code, text, ""), "")


WRONG = {
    "no load": ((), "give exactly one of --produce RATE, "),
    "two loads": (("--consume", "--requests"), "(given: --consume and --requests)"),
    "a load to find a limit with": (("--find-limit", "--produce", "1MB/s"), "(given: --produce and --find-limit)"),
    "no rate": (("--produce", "fast"), "--produce 'fast' is not a positive number"),
    "brokers of a controller": (
        ("--find-limit", "--broker-list", "1"),
        "--broker-list has no effect with --find-limit",
    ),
    "bytes of topics": (("--create-topics", "--most-bytes", "1GB"), "--most-bytes has no effect with --create-topics"),
    "partitions of a load": (
        ("--consume", "--most-partitions", "99"),
        "--most-partitions has no effect with --consume",
    ),
    "whose rest": (("--clean-up", "--user", "alice"), "--user has no effect with --clean-up"),
    "tenants of a load": (
        ("--consume", "--tenants", "3"),
        "--tenants and --overcommit have an effect only with --find-limit",
    ),
    "no partitions": (("--find-limit", "--most-partitions", "9"), "9 is not in the range 10<=x<=10000"),
    "no factor": (("--find-limit", "--overcommit", "inf"), "'--overcommit': inf is not a finite number"),
    "no user": (("--consume", "--user", ""), "--user ANONYMOUS"),
    "another user": (("--consume", "--user", "bob"), "--user bob: the login determines the user of a client"),
    "no client-id": (("--consume", "--client-id", ""), "always sends a client-id"),
    "brokers": (
        ("--consume", "--broker-list", "1,b"),
        "--broker-list '1,b': not a list of broker ids. Write broker ids",
    ),
    "a size": (("--consume", "--most-bytes", "much"), "--most-bytes 'much'"),
    "an undefined time": (("--consume", "--seconds", "nan"), "'--seconds': nan is not a finite number"),
    "no time": (("--consume", "--seconds", "0"), "--seconds 0: must be at least 1 (seconds)"),
    "ZooKeeper": (("--consume", "--zookeeper", "z:1"), "No such option"),
}


@pytest.mark.parametrize(("words", "complaint"), WRONG.values(), ids=WRONG)
def test_wrong_usage_prints_one_line_and_exits_2_before_any_request(words: tuple[str, ...], complaint: str) -> None:
    ran = kquota("quota", "probe", "--bootstrap-server", "127.0.0.1:1", *words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert complaint in ran.err


PLAIN = """security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";
"""
BEARER = """security.protocol=SASL_PLAINTEXT
sasl.mechanism=OAUTHBEARER
sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
sasl.oauthbearer.token.endpoint.url=file:///no/token
"""
LOGINS = {
    "another than its login": (
        PLAIN,
        ("--user", "bob"),
        "this login is alice. Give the login of bob with",
    ),
    "one whose file says too little": (
        "security.protocol=SASL_PLAINTEXT\n",
        (),
        "kquota: error: --client-config: ",
    ),
    "one that only brokers know": (BEARER, (), "--user is missing: with this login, only the brokers know"),
}


@pytest.mark.parametrize(("login", "words", "complaint"), LOGINS.values(), ids=LOGINS)
def test_the_login_determines_the_user_of_the_client(
    tmp_path: Path, login: str, words: tuple[str, ...], complaint: str
) -> None:
    config = tmp_path / "client.properties"
    config.write_text(login)
    config.chmod(0o600)
    at = ("--bootstrap-server", "127.0.0.1:1", "--client-config", str(config))
    ran = kquota("quota", "probe", *at, "--consume", *words)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err


@pytest.fixture
def at(kafka_431: Sandbox) -> tuple[str, str]:
    return "--bootstrap-server", kafka_431.bootstrap


def probes(cluster: Sandbox) -> list[str]:
    with Wire(cluster.bootstrap, {}) as wire:
        return [topic.name for topic in WireTopics(wire).topics(None) if topic.name.startswith(scratch.PREFIX)]


LIMITED = {
    "--produce": (("9MB/s",), KEYS[Kind.PRODUCE], 1e6),
    "--consume": ((), KEYS[Kind.CONSUME], 5e5),
    "--requests": ((), KEYS[Kind.REQUESTS], 2.0),
    "--create-topics": ((), KEYS[Kind.CREATE_TOPICS], 5.0),
}


TRIES, OFF = 3, 8
"""Repeats a wrong measurement: a machine that pauses for 2 s affects one attempt, a wrong quota affects all."""


def test_a_real_client_is_within_10_percent_of_explain(kafka_431: Sandbox, at: tuple[str, str]) -> None:
    """All four at once, each with its own client-id: two windows of 11 s each, and then 20 s that count.

    A program runs in parallel, as `kquota.probe.probe` shows it.
    """
    mark = uuid.uuid4().hex[:6]
    clients = {option: Entity(client_id=f"{option[2:]}-{mark}") for option in LIMITED}
    changes = [QuotaChange(entity=clients[option], add={key: limit}) for option, (_, key, limit) in LIMITED.items()]
    program = Entity(client_id=f"program-{mark}")
    changes.append(QuotaChange(entity=program, add={KEYS[Kind.PRODUCE]: 3e5}))
    with Wire(kafka_431.bootstrap, {}) as wire:
        quotas = WireQuotas(wire)
        quotas.alter(changes)
        until(lambda: all(change.entity in quotas.everything() for change in changes), "the quotas are seen")
    ended: dict[str, tuple[str, str, int]] = {}
    result: Result | None = None
    for _ in range(TRIES):
        running = {
            option: started(
                *("quota", "probe", *at, option, *words, "--user", "ANONYMOUS", "--seconds", "20", "--output", "json"),
                *("--client-id", str(clients[option].client_id)),
            )
            for option, (words, _, _) in LIMITED.items()
            if option not in ended or ended[option][2] == OFF
        }
        if result is None or not result.as_explained:
            with connect(kafka_431.bootstrap) as connected:
                result = probe(connected, Kind.PRODUCE, rate=2e6, client_id=str(program.client_id), seconds=20)
        ended |= {option: (*one.communicate(timeout=240), one.returncode) for option, one in running.items()}
    assert result is not None
    assert (result.as_explained, result.limit, result.expected) == (True, 3e5, 3e5)
    assert [one.broker for one in result.readings] == [1, 2, 3]
    for one in result.readings:
        assert one.rate == pytest.approx(3e5, rel=0.1)
        assert one.throttles.count > 0
    for option, (_, key, limit) in LIMITED.items():
        out, err, code = ended[option]
        told = json.loads(out)
        assert code == 0, [(one["rate"], one["verdict"]) for one in told["readings"]] + [err]
        assert (told["version"], told["as_explained"], told["quota"]["key"]) == (1, True, key)
        assert [one["broker"] for one in told["readings"]] == ([None] if option == "--create-topics" else [1, 2, 3])
        for one in told["readings"]:
            assert one["throttled"]["count"] > 0
            assert one["seconds"] >= (22 if option in ("--produce", "--consume") else 18)
            assert option == "--requests" or one["rate"] == pytest.approx(limit, rel=0.1)
    assert probes(kafka_431) == []
    with Wire(kafka_431.bootstrap, {}) as wire:
        WireQuotas(wire).alter([QuotaChange(entity=change.entity, delete=tuple(change.add)) for change in changes])


PROGRAM = """
import signal, sys
from kquota import connect
from kquota.probe import Kind, probe
signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
with connect(sys.argv[1]) as cluster:
    probe(cluster, Kind.PRODUCE, rate=1e5)
    print("the probe was not interrupted")
"""


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_the_scratch_topic_is_deleted_however_the_probe_ends(
    kafka_431: Sandbox, at: tuple[str, str], how: signal.Signals, code: int
) -> None:
    """The command, and in parallel a program that SIGTERM ends by SystemExit, because of its own handler."""
    process = started("quota", "probe", *at, "--produce", "100kB/s")
    program = python(PROGRAM, kafka_431.bootstrap)
    until(lambda: len(probes(kafka_431)) == 2, "their topics exist")
    process.send_signal(how)
    program.send_signal(how)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (code, "")
    assert "kquota: removing the topics of the probe\n" in err
    out, err = program.communicate(timeout=120)
    assert (program.returncode, out) == (-signal.SIGINT if how is signal.SIGINT else code, "")
    until(lambda: probes(kafka_431) == [], "their topics are deleted")


def test_only_expired_topics_of_killed_probes_are_removed(kafka_431: Sandbox, at: tuple[str, str]) -> None:
    now = datetime.now(UTC)
    old, foreign = (scratch.name(now - timedelta(hours=1), 60, uuid.uuid4().hex[:8]) for _ in range(2))
    running = scratch.name(now, 60, uuid.uuid4().hex[:8])
    with Wire(kafka_431.bootstrap, {}) as wire:
        made = {old: scratch.configs(old), foreign: {"min.compaction.lag.ms": "7"}, running: scratch.configs(running)}
        topics = WireTopics(wire)
        topics.send([Creation(topic=t, partitions=1, configs=configs) for t, configs in made.items()], 30)
        until(lambda: sorted(probes(kafka_431)) == sorted(made), "the topics exist")
        dry = kquota("quota", "probe", *at, "--clean-up", "--dry-run")
        assert (dry.code, dry.out) == (8, f"Would remove topic {old}.\n")
        told = json.loads(kquota("quota", "probe", *at, "--clean-up", "--dry-run", "--output", "json").out)
        assert told == {"version": 1, "dry_run": True, "topics": [old]}
        assert sorted(probes(kafka_431)) == sorted(made)
        ran = kquota("quota", "probe", *at, "--clean-up")
        assert (ran.code, ran.out) == (8, "")
        assert f"removed 1 topic of older probes: {old}\n" in ran.err
        assert f"topic {foreign}: kept, because it has the name of a probe" in ran.err
        assert f"topic {running}: kept, because its probe may run until" in ran.err
        until(
            lambda: sorted(probes(kafka_431)) == sorted({foreign, running}),
            "the old topic is deleted, the others are not",
        )
        topics.send([Deletion(topic=topic, partitions=1) for topic in (foreign, running)], 30)
    until(lambda: probes(kafka_431) == [], "all topics are deleted")
    assert kquota("quota", "probe", *at, "--clean-up") == Ran(0, "", "")


def test_a_probe_leaves_a_real_controller_unchanged(kafka_431: Sandbox, at: tuple[str, str]) -> None:
    bounds = ("--seconds", "1", "--most-partitions", "10", "--tenants", "2", "--output", "json")
    planned = kquota("quota", "probe", *at, "--find-limit", *bounds, "--dry-run")
    assert (planned.code, planned.err, json.loads(planned.out)) == (
        0,
        "",
        {
            "version": 1,
            "dry_run": True,
            "seconds": 4,
            "partitions": 10,
            "replication_factor": 3,
            "steps": [{"partitions_per_topic": 1, "rate": 5, "topics": 5}],
        },
    )
    ran = kquota("quota", "probe", *at, "--find-limit", *bounds)
    assert "for about 4 s, with at most 10 partitions at a time and replication factor 3" in ran.err
    told = json.loads(ran.out)
    assert [(one["operation"], one["rate"]) for one in told["steps"]] == [(one.value, 5) for one in Operation]
    assert all(one["latency_p95"] > 0 and one["visibility_lag"] >= 0 for one in told["steps"])
    # The controller of a busy machine may fall behind.
    keeps_up = all(one["holds"] for one in told["steps"])
    suggested = told["suggested"], told["suggested_per_tenant"]
    assert (ran.code, suggested) == ((0, (4, 2)) if keeps_up else (8, (None, None))), ran.err
    heard: list[Step] = []
    with connect(kafka_431.bootstrap) as cluster:
        with pytest.raises(Invalid, match="most_partitions 10001: must be from 10 to 10,000"):
            find_limit(cluster, most_partitions=10_001)
        limit = find_limit(cluster, tenants=2, overcommit=4, seconds=1, most_partitions=10, on_step=heard.append)
    keeps_up = all(step.why_not is None for step in limit.steps)
    assert (limit.suggested, limit.suggested_per_tenant) == ((4, 8) if keeps_up else (None, None))
    assert [step.operation for step in limit.steps] == list(Operation)
    assert heard == list(limit.steps)
    assert probes(kafka_431) == []


def test_an_error_of_the_clients_login_names_the_clients_file(secured: Secured) -> None:
    """The operator's login is valid, and the client connects to the same port without a login."""
    ours = secured.config("looks.properties", {"security.protocol": "SASL_PLAINTEXT", **plain("bob")})
    theirs = secured.config("probed.properties", {"security.protocol": "PLAINTEXT"})
    complaint = "security.protocol (PLAINTEXT) in --client-config"
    where = ("--bootstrap-server", secured.at["BARELOGIN"], "--command-config", str(ours))
    ran = kquota("quota", "probe", *where, "--create-topics", "--client-config", str(theirs))
    assert (ran.code, ran.out) == (1, "")
    assert complaint in ran.err
    complaint = "security.protocol (PLAINTEXT) in client_config"
    with connect(secured.at["BARELOGIN"], ours) as cluster, pytest.raises(Unreachable, match=re.escape(complaint)):
        find_limit(cluster, client_config=theirs)
