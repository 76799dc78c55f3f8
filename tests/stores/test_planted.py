"""Znodes and records that Kafka or kquota did not write: each is reported, and never hides the others."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kquota.cli.contract import worded
from kquota.errors import Refused
from kquota.quota.entity import EVERY, Entity, Filter
from kquota.reassign.plan import Plan
from kquota.reassign.run import Run, Stamp
from kquota.settings.resource import TOPICS, Resource, Setting
from kquota.stores.record import sheet
from kquota.stores.record.choose import MARKER, marker
from kquota.stores.record.sheet import Unreadable
from kquota.stores.record.znodes import ZnodeRecord
from kquota.stores.state import run_fields
from kquota.stores.zookeeper.moves import ZooKeeperMoves
from kquota.stores.zookeeper.quotas import ZooKeeperQuotas
from kquota.stores.zookeeper.topics import SUBMITTED, cluster_id, endpoints
from kquota.stores.zookeeper.znode import Delete, Node, emptied
from kquota.terms import LEADER_RATE, LEADER_REPLICAS, BrokerId, TopicPartition
from tests.stores.planted import planted

DEEP = b"[" * 100_000
ONE, GOOD = BrokerId(1), TopicPartition("good", 0)
CLUSTER: Mapping[str, object] = {
    "/brokers/ids/1": {"endpoints": ["PLAINTEXT://h:9092"], "rack": "a", "version": 5},
    "/brokers/topics/good": {"version": 1, "partitions": {"0": [1]}, "topic_id": "RXWn764lRD27K2w3HJofHQ"},
    "/brokers/topics/good/partitions/0/state": {"leader": 1, "isr": [1]},
}
TOPIC, STATE, BROKER = "/brokers/topics/t", "/brokers/topics/t/partitions/0/state", "/brokers/ids/2"
WHOLE = {TOPIC: {"version": 1, "partitions": {"0": [1]}}}

LEFT_OUT: dict[str, Mapping[str, object]] = {
    "a topic of deep JSON": {TOPIC: DEEP},
    "a topic that is not JSON": {TOPIC: b"\xff\xfe"},
    "a topic that is a list": {TOPIC: []},
    "partitions null": {TOPIC: {"partitions": None}},
    "partitions a list": {TOPIC: {"partitions": [1]}},
    "a partition abc": {TOPIC: {"partitions": {"abc": [1]}}},
    "a partition with a leading zero": {TOPIC: {"partitions": {"00": [1]}}},
    "a partition beyond 32 bits": {TOPIC: {"partitions": {"2147483648": [1]}}},
    "replicas null": {TOPIC: {"partitions": {"0": None}}},
    "replicas text": {TOPIC: {"partitions": {"0": "12"}}},
    "replicas of text": {TOPIC: {"partitions": {"0": ["1"]}}},
    "replicas of true": {TOPIC: {"partitions": {"0": [True]}}},
    "replicas below zero": {TOPIC: {"partitions": {"0": [-1]}}},
    "replicas NaN": {TOPIC: b'{"partitions":{"0":[NaN]}}'},
    "a number of 5,000 digits": {TOPIC: b'{"partitions":{"0":[' + b"9" * 5_000 + b"]}}"},
    "adding replicas a list": {TOPIC: {"partitions": {"0": [1]}, "adding_replicas": [1]}},
    "a topic id that is a list": {TOPIC: {"partitions": {"0": [1]}, "topic_id": [1]}},
    "a name that no topic has": {"/brokers/topics/a b": WHOLE[TOPIC]},
    "a broker abc": {"/brokers/ids/abc": {}},
    "a broker below zero": {"/brokers/ids/-5": {}},
    "a broker in other digits": {"/brokers/ids/\u0663": {}},
}
"""Znodes that a snapshot leaves out, with one warning that names them."""

UNKNOWN: dict[str, object] = {
    "leader text": {"leader": "x", "isr": [1]},
    "leader null": {"leader": None, "isr": [1]},
    "in-sync replicas null": {"leader": 1, "isr": None},
    "in-sync replicas of text": {"leader": 1, "isr": ["a"]},
    "deep JSON": DEEP,
    "not JSON": b"junk",
}


def seen(tree: Mapping[str, object]) -> tuple[ZooKeeperMoves, list[str]]:
    said: list[str] = []
    return ZooKeeperMoves(planted({**CLUSTER, **tree}), lambda problem: said.append(worded(problem))), said


@pytest.mark.parametrize("tree", LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_a_bad_znode_is_left_out_of_a_snapshot_with_one_warning(tree: Mapping[str, object]) -> None:
    cluster, said = seen(tree)
    for _ in range(3):  # a command that waits reads the znodes many times
        found = cluster.snapshot(None)
        assert (list(found.partitions), dict(found.racks)) == ([GOOD], {ONE: "a"})
    assert len(said) == 1
    assert next(iter(tree)).rpartition("/")[0] in said[0]


@pytest.mark.parametrize("data", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_a_leader_that_cannot_be_read_is_unknown(data: object) -> None:
    cluster, said = seen({**WHOLE, STATE: data})
    found = cluster.snapshot(None).partitions
    assert found[GOOD].leader == ONE
    assert (found[TopicPartition("t", 0)].leader, found[TopicPartition("t", 0)].isr) == (None, ())
    assert [STATE in line and "Examine it with `zookeeper-shell.sh" in line for line in said] == [True]


@pytest.mark.parametrize("data", [b"junk", DEEP, {"rack": [1]}], ids=["not JSON", "deep JSON", "a list as rack"])
def test_a_broker_is_alive_while_its_znode_exists(data: object) -> None:
    cluster, said = seen({BROKER: data})
    assert cluster.snapshot(None).racks == {ONE: "a", BrokerId(2): None}
    assert [BROKER in line for line in said] == [True]


SUBMISSIONS: dict[str, object] = {
    "[{}]": {"version": 1, "partitions": [{}]},
    "a list": [{}],
    "partitions null": {"partitions": None},
    "an entry null": {"partitions": [None]},
    "a list as topic": {"partitions": [{"topic": ["t"], "partition": 0, "replicas": [1]}]},
    "a partition in text": {"partitions": [{"topic": "t", "partition": "0", "replicas": [2]}]},
    "replicas of text": {"partitions": [{"topic": "t", "partition": 0, "replicas": ["x"]}]},
    "no replicas": {"partitions": [{"topic": "t", "partition": 0}]},
    "deep JSON": DEEP,
    "not JSON": b"junk",
}


@pytest.mark.parametrize("data", SUBMISSIONS.values(), ids=SUBMISSIONS.keys())
def test_moves_are_unknown_if_kafka_did_not_write_the_submission(data: object) -> None:
    with pytest.raises(Refused) as refused:
        seen({**WHOLE, SUBMITTED: data})[0].snapshot(None)
    assert re.search(rf"ZooKeeper: {SUBMITTED} .*Examine it with `zookeeper-shell\.sh .*chroot", worded(refused.value))


CONFIGS: dict[str, object] = {
    "a list as throttled list": {"version": 1, "config": {LEADER_REPLICAS: ["0:1"]}},
    "a number": {"version": 1, "config": {LEADER_REPLICAS: 5}},
    "a list as config": {"version": 1, "config": []},
    "half of a pair of escapes": rb'{"version":1,"config":{"leader.replication.throttled.replicas":"\ud800"}}',
    "deep JSON": DEEP,
}


@pytest.mark.parametrize("data", CONFIGS.values(), ids=CONFIGS.keys())
def test_a_config_of_wrong_types_is_refused_alone_and_left_out_among_others(data: object) -> None:
    cluster, said = seen(
        {**WHOLE, "/config/topics/t": data, "/config/topics/good": {"version": 1, "config": {LEADER_REPLICAS: "0:1"}}}
    )
    resources = [Resource(kind=TOPICS, name=name) for name in ("t", "good")]
    found = cluster.describe(resources)
    assert [entry.value for entry in found[resources[1]]] == ["0:1"]
    assert not found.get(resources[0], ())
    assert len(said) == 1
    with pytest.raises(Refused) as refused:
        cluster.values([Setting.of_topic("t", LEADER_REPLICAS)])
    assert re.search(r"/config/topics/t.*Examine it with `zookeeper-shell\.sh .*chroot\)$", worded(refused.value))


BROKER_DEFAULT = "/config/brokers/<default>"


def min_insync(value: object) -> object:
    return {"version": 1, "config": {"min.insync.replicas": value}}


@pytest.mark.parametrize("value", ["x", "", "-1", "1_0", "\u0663", 2], ids=repr)
def test_min_insync_replicas_must_be_a_number_in_a_string(value: object) -> None:
    cluster, _ = seen({"/config/topics/t": min_insync(value)})
    with pytest.raises(Refused, match=r"/config/topics/t: min\.insync\.replicas must be a string with a whole number"):
        cluster.minimum_in_sync(["t"])


@pytest.mark.parametrize(
    ("of_topic", "of_brokers", "of_broker", "least"),
    [
        (None, None, None, 1),
        (None, "2", None, 2),
        ("1", "2", None, 1),
        ("3", "2", None, 3),
        ("3", None, None, 3),
        (None, None, "3", 3),
        (None, "3", "2", 2),
        ("1", None, "3", 1),
    ],
    ids=[
        "unset",
        "the default of the brokers",
        "a lower one of the topic",
        "both",
        "of the topic",
        "of the broker",
        "a lower one of the broker",
        "a lower one of the topic than of the broker",
    ],
)
def test_min_insync_replicas_of_a_topic_or_of_brokers(
    of_topic: str | None, of_brokers: str | None, of_broker: str | None, least: int
) -> None:
    """Broker 9 is dead, so it leads no partition."""
    values = {
        "/config/topics/t": of_topic,
        BROKER_DEFAULT: of_brokers,
        "/config/brokers/1": of_broker,
        "/config/brokers/9": "7",
    }
    cluster, _ = seen({path: min_insync(value) for path, value in values.items() if value is not None})
    assert cluster.minimum_in_sync(["t"]) == {"t": least}


def test_min_insync_replicas_of_all_brokers_must_be_a_number_in_a_string() -> None:
    cluster, _ = seen({BROKER_DEFAULT: min_insync("x"), "/config/topics/good": min_insync("2")})
    assert cluster.minimum_in_sync(["good"]) == {"good": 2}
    with pytest.raises(Refused, match=f"{BROKER_DEFAULT}: min.insync.replicas must be a string with a whole number"):
        cluster.minimum_in_sync(["t", "good"])


@pytest.mark.parametrize("data", [b"junk", DEEP, {"endpoints": 5}, {"endpoints": [None]}], ids=str)
def test_the_address_of_one_broker_is_enough(data: object) -> None:
    assert endpoints(planted({**CLUSTER, BROKER: data})) == "h:9092"
    with pytest.raises(Refused, match="no live broker"):
        endpoints(planted({BROKER: data}))


@pytest.mark.parametrize("data", [b"junk", DEEP, [], {"id": 5}, {}], ids=str)
def test_the_cluster_id_must_be_text(data: object) -> None:
    with pytest.raises(Refused, match="/cluster/id"):
        cluster_id(planted({"/cluster/id": data}))


@pytest.mark.parametrize("data", [b"junk", DEEP, [], {"version": 1, "topic": "a b", "topic_id": "x"}], ids=str)
def test_the_marker_must_name_a_topic(data: object) -> None:
    with pytest.raises(Refused, match="does not name a valid record of runs"):
        marker(planted({MARKER: data}))


QUOTA = {"version": 1, "config": {"producer_byte_rate": "1024"}}
NAMES = ["a%zz", "a%2", "%C3%28", "a+b", "a~b", "a%2fb", "%41", "%2E", "a*b", "a=b"]


@pytest.mark.parametrize("node", NAMES)
def test_a_name_that_kafka_does_not_write_is_left_out_because_a_change_would_write_another_znode(node: str) -> None:
    for kind, wanted in (
        ("users", Filter(user=EVERY)),
        ("clients", Filter(client_id=EVERY)),
        ("ips", Filter(ip=EVERY)),
    ):
        said: list[str] = []
        quota = {"version": 1, "config": {"producer_byte_rate": "1024", "connection_creation_rate": "5"}}
        tree = {**CLUSTER, f"/config/{kind}/{node}": quota, f"/config/{kind}/alice": quota}
        quotas = ZooKeeperQuotas(planted(tree), said.append)
        assert [[name for _, name in entity.parts()] for entity in quotas.describe(wanted)] == [["alice"]]
        assert len(said) == 1 and f"under /config/{kind}: " in said[0]


VALUES: dict[str, object] = {
    "a list": [1],
    "a number": 5,
    "true": True,
    "null": None,
    "no number": "5 MB",
    "digits of Python": "1_000",
    "digits of another script": "\u0663",
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_a_quota_must_be_a_number_in_a_string(value: object) -> None:
    said: list[str] = []
    bad = {"version": 1, "config": {"producer_byte_rate": value, "consumer_byte_rate": "7"}}
    quotas = ZooKeeperQuotas(planted({"/config/users/b": bad, "/config/users/a": QUOTA}), said.append)
    assert quotas.everything() == {
        Entity(user="a"): {"producer_byte_rate": 1024.0},
        Entity(user="b"): {"consumer_byte_rate": 7.0},
    }
    assert len(said) == 1 and "producer_byte_rate" in said[0]


def test_a_config_of_a_number_with_400_digits_is_left_out() -> None:
    said: list[str] = []
    huge = b'{"version":1,"config":{"producer_byte_rate":1' + b"0" * 400 + b"}}"
    assert ZooKeeperQuotas(planted({"/config/users/b": huge}), said.append).everything() == {}
    assert len(said) == 1


@pytest.mark.parametrize("data", [b"junk", DEEP, {"version": "5"}, {"version": True}, {}, []], ids=str)
def test_the_release_is_unknown_if_a_broker_does_not_report_it(data: object) -> None:
    assert ZooKeeperQuotas(planted({**CLUSTER, BROKER: data}), pytest.fail).release() is None


# Empty znodes of quotas.

EMPTIED: dict[str, tuple[dict[str, tuple[object, int]], dict[str, dict[str, str]], list[str]]] = {
    "the last quota of a client id": ({"clients/c": (QUOTA, 0)}, {"clients/c": {}}, ["clients/c"]),
    "one of two keys": ({"clients/c": (QUOTA, 0)}, {"clients/c": {"producer_byte_rate": "1"}}, []),
    "a user with clients": ({"users/u": (QUOTA, 1)}, {"users/u": {}}, []),
    "the last client of an empty user": (
        {"users/u": (b"", 1), "users/u/clients": (b"", 1), "users/u/clients/c": (QUOTA, 0)},
        {"users/u/clients/c": {}},
        ["users/u/clients/c", "users/u/clients", "users/u"],
    ),
    "the last client of a user with a quota or a password": (
        {"users/u": (QUOTA, 1), "users/u/clients": (b"", 1), "users/u/clients/c": (QUOTA, 0)},
        {"users/u/clients/c": {}},
        ["users/u/clients/c", "users/u/clients"],
    ),
    "one of two clients": (
        {"users/u": (b"", 1), "users/u/clients": (b"", 2), "users/u/clients/c": (QUOTA, 0)},
        {"users/u/clients/c": {}},
        ["users/u/clients/c"],
    ),
    "both clients and the user at once": (
        {
            "users/u": (QUOTA, 1),
            "users/u/clients": (b"", 2),
            "users/u/clients/c": (QUOTA, 0),
            "users/u/clients/d": (QUOTA, 0),
        },
        {"users/u": {}, "users/u/clients/c": {}, "users/u/clients/d": {}},
        ["users/u/clients/c", "users/u/clients/d", "users/u/clients", "users/u"],
    ),
    "one client in place of another": (
        {"users/u": (b"", 1), "users/u/clients": (b"", 1), "users/u/clients/c": (QUOTA, 0)},
        {"users/u/clients/c": {}, "users/u/clients/d": {"producer_byte_rate": "1"}},
        ["users/u/clients/c"],
    ),
    "a user that Kafka did not write": (
        {"users/u": (b"junk", 1), "users/u/clients": (b"", 1), "users/u/clients/c": (QUOTA, 0)},
        {"users/u/clients/c": {}},
        ["users/u/clients/c", "users/u/clients"],
    ),
    "the last config of a topic": ({"topics/t": (QUOTA, 0)}, {"topics/t": {}}, []),
}


@pytest.mark.parametrize(("there", "changed", "gone"), EMPTIED.values(), ids=EMPTIED.keys())
def test_removing_the_last_quota_deletes_the_znodes_that_brokers_delete(
    there: dict[str, tuple[object, int]], changed: dict[str, dict[str, str]], gone: list[str]
) -> None:
    found: dict[str, Node | None] = {"/config/users/u/clients/d": None}
    for path, (data, children) in there.items():
        text = data if isinstance(data, bytes) else json.dumps(data).encode()
        found[f"/config/{path}"] = Node(data=text, version=3, children=children)
    assert emptied(changed, found) == [Delete(path=f"/config/{path}", version=3) for path in gone]


# Records.

RUN = Run(
    id="20260301T123000Z-0123456789ab",
    begun=datetime(2026, 3, 1, 12, 30, tzinfo=UTC),
    plan=Plan(targets={GOOD: (ONE,)}),
    rollback=Plan(targets={GOOD: (BrokerId(2),)}),
    rate=None,
    taken={},
)
FIELDS = run_fields.written(RUN)
ENCODED = sheet.encode(replace(RUN, stamp=Stamp(version=1)), "c").sheet
SHEET = json.loads(ENCODED)


def with_run(**fields: object) -> dict[str, object]:
    return {**SHEET, "run": {**SHEET["run"], **fields}}


def taking(kind: str, name: str, key: str) -> dict[str, object]:
    return with_run(taken=[{"kind": kind, "name": name, "key": key, "prior": "7", "ours": ["5"]}])


PLANTED: dict[str, object] = {
    "not JSON": b"\xff",
    "deep JSON": DEEP,
    "a list": [],
    "an older format": {**SHEET, "format": 1},
    "a newer format": {**SHEET, "format": 3},
    "another cluster": {**SHEET, "cluster": "d"},
    "another run": with_run(id="other"),
    "an id with a slash": with_run(id="../x"),
    "no fields": {**SHEET, "run": {}},
    "fields in a list": {**SHEET, "run": [1]},
    "a version below 1": {**SHEET, "v": 0},
    "a version of 1,000 digits": {**SHEET, "v": 10**1000},
    "a begin in the year 1": with_run(begun="0001-01-01T00:00:00+23:59"),
    "a begin without a zone": with_run(begun="2026-03-01T12:30:00"),
    "a plan in text": with_run(plan="x"),
    "a plan of lists": with_run(plan={"partitions": [[]]}),
    "partitions null": with_run(plan={"partitions": None}),
    "replicas of text": with_run(plan={"partitions": [{"topic": "t", "partition": 0, "replicas": ["1"]}]}),
    "a topic that no broker accepts": with_run(topic_ids={"a b": "RXWn764lRD27K2w3HJofHQ"}),
    "retention.ms to restore": taking("topic", "t", "retention.ms"),
    "a rate of a topic": taking("topic", "t", LEADER_RATE),
    "a list of a broker": taking("broker", "1", LEADER_REPLICAS),
    "a password to restore": taking("broker", "1", "ssl.keystore.password"),
    "a user to restore": taking("user", "alice", "producer_byte_rate"),
    "all brokers to restore": taking("broker", "<default>", LEADER_RATE),
    "a number as prior value": with_run(
        taken=[{"kind": "broker", "name": "1", "key": LEADER_RATE, "prior": 7, "ours": ["5"]}]
    ),
    "a hash that is a path": with_run(plan={"part": "../../x"}),
    "a hash that is a list": with_run(plan={"part": ["a"]}),
    "a part that is missing": with_run(plan={"part": "0" * 32}),
    "too large": b'{"format":2,"x":"' + b"x" * sheet.LARGEST_SHEET + b'"}',
}


@pytest.mark.parametrize("data", PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_record_is_named_and_hides_no_other(data: object) -> None:
    record = ZnodeRecord(
        planted({"/kquota/runs/planted": data, f"/kquota/runs/{RUN.id}": ENCODED, "/kquota/runs/a b": ENCODED}), "c"
    )
    for whole in (False, True):
        assert list(record.runs(whole=whole)) == [RUN.id]
        assert record.unreadable.keys() == {"planted", "a b"}
        assert all(len(why) < 300 for why in record.unreadable.values())


def bomb(size: int) -> bytes:
    return gzip.compress(b"[" + b"[]," * (size // 3) + b"[]]", mtime=0)


PARTS = {
    "a bomb": bomb(30_000_000),
    "nothing but lists": bomb(1_200_000),
    "not gzip": b"x" * 100,
    "half": gzip.compress(b'{"partitions":[]}')[:-9],
    "not JSON": gzip.compress(b"x"),
    "deep JSON": gzip.compress(b"[" * 100_000 + b"]" * 100_000),
    "empty": b"",
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_a_planted_part_is_refused_without_expanding_all_of_it(part: bytes) -> None:
    try:
        digest = hashlib.sha256(gzip.decompress(part)).hexdigest()[:32]
    except (OSError, EOFError):
        digest = "0" * 32
    document = json.dumps(with_run(plan={"part": digest})).encode()
    with pytest.raises(Unreadable):
        sheet.decode(document, RUN.id, "c", {digest: part}.get)
