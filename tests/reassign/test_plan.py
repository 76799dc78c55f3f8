"""A plan is read strictly: whatever is wrong is named with its place, and a sound plan survives its own text."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid
from kquota.reassign.plan import Plan, parse, read, run_id
from kquota.terms import BrokerId, TopicPartition

names = st.from_regex(r"[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,20}", fullmatch=True)
ids = st.integers(0, 2**31 - 1)
replicas = st.lists(ids.map(BrokerId), min_size=1, max_size=4, unique=True).map(tuple)
plans = st.dictionaries(st.builds(TopicPartition, names, ids), replicas, min_size=1, max_size=8).map(
    lambda targets: Plan(targets=targets)
)
# As Kafka 4.3.1's formatAsReassignmentJson wrote it.
KAFKAS = (
    '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[2],"log_dirs":["any"]},'
    '{"topic":"b","partition":9,"replicas":[3,2],"log_dirs":["any","any"]},'
    '{"topic":"b","partition":10,"replicas":[1,2],"log_dirs":["any","any"]}]}'
)


def one(**fields: object) -> str:
    return json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]} | fields]})


WRONG = {
    "empty": ("", "is empty"),
    "blank": (" \n", "is empty"),
    "malformed": ('{"version":1,\n "partitions":[}', "line 2 column 16: is not JSON"),
    "two documents": (KAFKAS + "{}", "is not JSON"),
    "too deep": ("[" * 100_000, "nested too deeply"),
    "NaN": ('{"version":NaN}', "NaN is not JSON"),
    "a number without end": ("1" * 5000, "too long"),
    "a key twice": ('{"version":1,"version":1,"partitions":[]}', 'key "version" stands twice'),
    "a list": ("[]", "the document: must be an object, is a list"),
    "null": ("null", "must be an object, is null"),
    "version 2": ('{"version":2,"partitions":[]}', "Not supported version field value 2"),
    "version true": ('{"version":true,"partitions":[]}', "version: must be a whole number, is true or false"),
    "no partitions field": ('{"version":1}', "field 'partitions' is missing"),
    "no partitions": ('{"version":1,"partitions":[]}', "Partition reassignment list cannot be empty"),
    "partitions an object": ('{"version":1,"partitions":{}}', "partitions: must be a list"),
    "an entry a number": ('{"version":1,"partitions":[1]}', "partitions[0]: must be an object"),
    "no topic": ('{"version":1,"partitions":[{"partition":0,"replicas":[1]}]}', "field 'topic' is missing"),
    "no partition": ('{"version":1,"partitions":[{"topic":"t","replicas":[1]}]}', "field 'partition' is missing"),
    "no replicas": ('{"version":1,"partitions":[{"topic":"t","partition":0}]}', "field 'replicas' is missing"),
    "topic a number": (one(topic=1), "partitions[0].topic: must be a string"),
    "topic empty": (one(topic=""), "is not a topic's name"),
    "topic ..": (one(topic=".."), "is not a topic's name"),
    "topic with a slash": (one(topic="../x"), "is not a topic's name"),
    "topic with a lone surrogate": (one(topic="\ud800"), "is not a topic's name"),
    "topic too long": (one(topic="x" * 250), "is not a topic's name"),
    "partition negative": (one(partition=-1), "partitions[0].partition: must be from 0 to 2147483647, is -1"),
    "partition too high": (one(partition=2**31), "must be from 0 to 2147483647"),
    "partition a fraction": (one(partition=0.5), "must be a whole number, is a fraction"),
    "partition true": (one(partition=True), "must be a whole number, is true or false"),
    "partition text": (one(partition="0"), "must be a whole number, is a string"),
    "replicas empty": (one(replicas=[]), "Partition replica list cannot be empty"),
    "replicas a number": (one(replicas=1), "replicas: must be a list"),
    "a replica negative": (one(replicas=[1, -2]), "replicas[1]: must be from 0"),
    "a replica null": (one(replicas=[None]), "replicas[0]: must be a whole number, is null"),
    "a replica twice": (one(replicas=[1, 2, 1]), "t-0 contains multiple entries for 1"),
    "log dirs too few": (one(log_dirs=[]), "Size of replicas list [1] is different from size of log dirs list []"),
    "a log dir": (one(log_dirs=["data/a"]), 'neither "any" nor an absolute path'),
    "a partition twice": (
        json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [n]} for n in (1, 2)]}),
        "partitions[1]: Partition reassignment contains duplicate topic partitions: t-0",
    ),
}


@pytest.mark.parametrize(("text", "complaint"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(Invalid) as raised:
        parse(text, "plan.json")
    assert str(raised.value).startswith("plan.json: ")
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_no_text_does_worse_than_invalid(text: str) -> None:
    try:
        parse(text, "plan.json")
    except Invalid as error:
        assert str(error).startswith("plan.json: ")


@given(plans)
def test_a_plan_survives_its_own_text(plan: Plan) -> None:
    assert parse(plan.text(), "") == plan
    assert list(plan.targets) == sorted(plan.targets)


def test_the_text_is_kafkas() -> None:
    assert parse(KAFKAS, "").text() == KAFKAS


def test_version_and_log_dirs_may_be_left_out_as_for_kafka() -> None:
    plan = parse('{"partitions":[{"topic":"t","partition":0,"replicas":[2,1],"x":1}]}', "")
    assert plan == Plan(targets={TopicPartition("t", 0): (BrokerId(2), BrokerId(1))})


def test_log_dirs_are_kept_and_make_no_other_plan() -> None:
    plan = parse(KAFKAS.replace('[3,2],"log_dirs":["any","any"]', '[3,2],"log_dirs":["/a","any"]'), "")
    assert plan.log_dirs == {(TopicPartition("b", 9), BrokerId(3)): "/a"}
    assert plan == parse(KAFKAS, "")
    assert plan.text() == KAFKAS


@given(plans)
def test_the_order_of_a_file_makes_no_other_run(plan: Plan) -> None:
    time = datetime(2026, 3, 1, tzinfo=UTC)
    turned = Plan(targets=dict(reversed(list(plan.targets.items()))))
    assert run_id(turned, time) == run_id(plan, time)


ENCODED = {
    "utf-8": (KAFKAS.encode(), None),
    "utf-8 with a byte order mark": (KAFKAS.encode("utf-8-sig"), None),
    "utf-16": (KAFKAS.encode("utf-16"), "UTF-16"),
    "utf-16 without a mark": (KAFKAS.encode("utf-16-be"), "UTF-16"),
    "latin-1": (KAFKAS.replace('"a"', '\n"ä"').encode("latin-1"), "line 2: is not UTF-8"),
}


@pytest.mark.parametrize(("data", "complaint"), ENCODED.values(), ids=ENCODED)
def test_a_file_is_utf_8(tmp_path: Path, data: bytes, complaint: str | None) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(data)
    if complaint is None:
        assert read(path).text() == KAFKAS
        return
    with pytest.raises(Invalid, match=complaint):
        read(path)


@pytest.mark.parametrize("name", ["absent.json", "."], ids=["no file", "a folder"])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        read(tmp_path / name)
