"""A plan is read strictly: each error names its position, and a valid plan is read back unchanged."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid
from kquota.reassign.plan import Plan, parse, run_id
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


EXAMPLE = 'Example: {"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}'
NAME = "is not a valid topic name: use 1 to 249 characters of a-z, A-Z, 0-9, '.', '_', '-', but not '.' or '..'"


def one(**fields: object) -> str:
    return json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]} | fields]})


def twice(key: str) -> str:
    return one().replace(f'"{key}"', f'"{key}": 0, "{key}"', 1)


GENERATED = (
    f"Current partition replica assignment\n\n{KAFKAS}\n\nProposed partition reassignment configuration\n\n{KAFKAS}\n"
)
EXECUTED = (
    f"Current partition replica assignment\n\n{KAFKAS}\n\n"
    "Save this to use as the --reassignment-json-file option during rollback\n"
    "Successfully started partition reassignments for a-0,b-9,b-10\n"
)
WARNED = f"SLF4J: Class path contains multiple SLF4J bindings.\n{KAFKAS}\n"

GENERATE = (
    'contains the whole output of generate. Keep only the line below "Proposed partition reassignment configuration", '
    'and save the line below "Current partition replica assignment" as the rollback plan'
)
EXECUTE = (
    'contains the whole output of execute. Keep only the line below "Current partition replica assignment", '
    "which is the rollback plan"
)

WRONG = {
    "empty": ("", f"is empty. {EXAMPLE}"),
    "blank": (" \n", f"is empty. {EXAMPLE}"),
    "malformed": ('{"version":1,\n "partitions":[}', f"line 2 column 16: is not JSON: Expecting value. {EXAMPLE}"),
    "truncated": (KAFKAS[:39], f"line 1 column 40: is not JSON: Expecting ',' delimiter. {EXAMPLE}"),
    "two documents": (
        f"{KAFKAS}\n{KAFKAS}",
        "line 2 column 1: there is more text after the end of the JSON. Keep only one document",
    ),
    "all that generate printed": (GENERATED, GENERATE),
    "... without its first line": (GENERATED.partition("\n")[2], GENERATE),
    "all that execute printed": (EXECUTED, EXECUTE),
    "a warning before it": (
        WARNED,
        "line 1 column 1: there is text before the JSON, which begins at line 2 column 1. Keep only the JSON",
    ),
    "prose": ("move t to 3", f"line 1 column 1: is not JSON: Expecting value. {EXAMPLE}"),
    "a file of topics": (
        '{"topics":[{"topic":"t"}],"version":1}',
        "contains topics, not partitions. Give this file to topics_to_move_json_file",
    ),
    "an entry alone": (
        '{"topic":"t","partition":0,"replicas":[1]}',
        "the document: a single entry must be in a list. Example: " + EXAMPLE.removeprefix("Example: "),
    ),
    "too deep": ("[" * 100_000, f"is nested too deeply. {EXAMPLE}"),
    "objects too deep": ('{"a":' * 100_000, f"is nested too deeply. {EXAMPLE}"),
    "nothing but lists": (
        "[" + "[]," * 400_000 + "[]]",
        f"it has too many values that are not valid entries. Keep only valid entries. {EXAMPLE}",
    ),
    "nothing but numbers": (
        "[" + "257," * 300_000 + "1]",
        f"it has too many values that are not valid entries. Keep only valid entries. {EXAMPLE}",
    ),
    "NaN": ('{"NaN":"NaN","version":\nNaN}', "line 2 column 1: NaN is not JSON. Write a whole number"),
    "-Infinity": ('{"version":-Infinity}', "line 1 column 12: -Infinity is not JSON. Write a whole number"),
    "a number without end": (
        "[" + "1" * 5000,
        "line 1 column 2: the number is too long for a broker or partition id. Correct the number",
    ),
    "a key twice": (
        '{"version":1,"version":1,"partitions":[]}',
        'the document: key "version" occurs twice in one object. Keep one of them',
    ),
    "a key twice in an entry": (
        twice("topic"),
        'partitions[0]: key "topic" occurs twice in one object. Keep one of them',
    ),
    "a list": ("[]", f"the document: must be an object, but is a list. {EXAMPLE}"),
    "null": ("null", f"the document: must be an object, but is null. {EXAMPLE}"),
    "version 2": ('{"version":2,"partitions":[]}', "Not supported version field value 2; kquota reads version 1"),
    "version text": ('{"version":"1","partitions":[]}', "version: must be a whole number, but is a string"),
    "version 1.0": ('{"version":1.0,"partitions":[]}', "version: must be a whole number, but is a fraction"),
    "version true": ('{"version":true,"partitions":[]}', "version: must be a whole number, but is true or false"),
    "version null": ('{"version":null,"partitions":[]}', "version: must be a whole number, but is null"),
    "version an entry": (
        '{"version":{"topic":"t","partition":0,"replicas":[1]}}',
        "version: must be a whole number, but is an object",
    ),
    "no partitions field": ('{"version":1}', f"the document: field 'partitions' is missing. {EXAMPLE}"),
    "no partitions": ('{"version":1,"partitions":[]}', "Partition reassignment list cannot be empty"),
    "partitions an object": ('{"version":1,"partitions":{}}', "partitions: must be a list, but is an object"),
    "partitions null": ('{"version":1,"partitions":null}', "partitions: must be a list, but is null"),
    "an entry a number": (
        '{"version":1,"partitions":[1]}',
        f"partitions[0]: must be an object, but is a number. {EXAMPLE}",
    ),
    "an entry a list": (
        '{"version":1,"partitions":[["t",0,[1]]]}',
        f"partitions[0]: must be an object, but is a list. {EXAMPLE}",
    ),
    "no topic": (
        '{"partitions":[{"partition":0,"replicas":[1]}]}',
        f"partitions[0]: field 'topic' is missing. {EXAMPLE}",
    ),
    "no partition": (
        '{"partitions":[{"topic":"t","replicas":[1]}]}',
        f"partitions[0]: field 'partition' is missing. {EXAMPLE}",
    ),
    "no replicas": (
        '{"partitions":[{"topic":"t","partition":0}]}',
        f"partitions[0]: field 'replicas' is missing. {EXAMPLE}",
    ),
    "topic a number": (one(topic=1), "partitions[0].topic: must be a string, but is a number"),
    "topic empty": (one(topic=""), f'partitions[0].topic: "" {NAME}'),
    "topic ..": (one(topic=".."), f'partitions[0].topic: ".." {NAME}'),
    "topic with a slash": (one(topic="../x"), f'partitions[0].topic: "../x" {NAME}'),
    "topic with a line end": (one(topic="t\n"), f'partitions[0].topic: "t\\n" {NAME}'),
    "topic with NUL": (one(topic="t\0"), f'partitions[0].topic: "t\\u0000" {NAME}'),
    "topic with ESC": (one(topic="\x1b[2J"), f'partitions[0].topic: "\\u001b[2J" {NAME}'),
    "topic from right to left": (one(topic="\u202et"), f'partitions[0].topic: "\\u202et" {NAME}'),
    "topic an emoji": (one(topic="😀"), f'partitions[0].topic: "\\ud83d\\ude00" {NAME}'),
    "topic with a lone surrogate": (one(topic="\ud800"), f'partitions[0].topic: "\\ud800" {NAME}'),
    "topic with other digits": (one(topic="t\u0663"), f'partitions[0].topic: "t\\u0663" {NAME}'),
    "topic too long": (one(topic="x" * 250), f'partitions[0].topic: "{"x" * 56}… {NAME}'),
    "partition negative": (one(partition=-1), "partitions[0].partition: must be from 0 to 2147483647, but is -1"),
    "partition too high": (
        one(partition=2**31),
        "partitions[0].partition: must be from 0 to 2147483647, but is 2147483648",
    ),
    "partition far too high": (
        one(partition=2**63),
        "partitions[0].partition: must be from 0 to 2147483647, but is 9223372036854775808",
    ),
    "partition a fraction": (one(partition=0.5), "partitions[0].partition: must be a whole number, but is a fraction"),
    "partition 1e400": (
        one(partition=7).replace("7", "1e400"),
        "partitions[0].partition: must be a whole number, but is a fraction",
    ),
    "partition true": (one(partition=True), "partitions[0].partition: must be a whole number, but is true or false"),
    "partition text": (one(partition="0"), "partitions[0].partition: must be a whole number, but is a string"),
    "replicas empty": (one(replicas=[]), "partitions[0].replicas: t-0: Partition replica list cannot be empty"),
    "replicas a number": (one(replicas=1), "partitions[0].replicas: must be a list, but is a number"),
    "a replica negative": (one(replicas=[1, -2]), "partitions[0].replicas[1]: must be from 0 to 2147483647, but is -2"),
    "a replica too high": (
        one(replicas=[2**31]),
        "partitions[0].replicas[0]: must be from 0 to 2147483647, but is 2147483648",
    ),
    "a replica null": (one(replicas=[None]), "partitions[0].replicas[0]: must be a whole number, but is null"),
    "a replica true": (
        one(replicas=[2, True]),
        "partitions[0].replicas[1]: must be a whole number, but is true or false",
    ),
    "a replica text": (one(replicas=["1"]), "partitions[0].replicas[0]: must be a whole number, but is a string"),
    "a replica a list": (one(replicas=[[1]]), "partitions[0].replicas[0]: must be a whole number, but is a list"),
    "a replica twice": (
        one(replicas=[1, 2, 1]),
        "partitions[0].replicas: Partition replica lists may not contain duplicate entries: "
        "t-0 contains multiple entries for 1",
    ),
    "log dirs too few": (
        one(log_dirs=[]),
        "partitions[0].log_dirs: Size of replicas list [1] is different from size of log dirs list [] "
        "for partition t-0",
    ),
    "far too many replicas for its log dirs": (
        one(replicas=list(range(1000)), log_dirs=["any"]),
        f"partitions[0].log_dirs: Size of replicas list {str(list(range(1000)))[:57]}… is different from size of log "
        "dirs list [any] for partition t-0",
    ),
    "log dirs null": (one(log_dirs=None), "partitions[0].log_dirs: must be a list, but is null"),
    "log dirs text": (one(log_dirs="any"), "partitions[0].log_dirs: must be a list, but is a string"),
    "a log dir": (
        one(log_dirs=["data/a"]),
        'partitions[0].log_dirs[0]: "data/a" is neither "any" nor an absolute path',
    ),
    "half of a pair of escapes": (
        one(log_dirs=["/\ud800"]),
        'partitions[0].log_dirs[0]: "/\\ud800" is neither "any" nor an absolute path',
    ),
    "a log dir null": (one(log_dirs=[None]), "partitions[0].log_dirs[0]: must be a string, but is null"),
    "a partition twice": (
        json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [n]} for n in (1, 2)]}),
        "partitions[1]: Partition reassignment contains duplicate topic partitions: t-0",
    ),
}


@pytest.mark.parametrize(("text", "complaint"), WRONG.values(), ids=WRONG)
def test_errors_name_their_position(text: str, complaint: str) -> None:
    with pytest.raises(Invalid) as raised:
        parse(text, "plan.json")
    assert str(raised.value) == f"plan.json: {complaint}"


def test_an_extra_comma_is_reported_with_its_position() -> None:
    """Python 3.13 names the comma, older ones the character after it."""
    with pytest.raises(Invalid, match=r"^plan\.json: line 1 column 23[01]: is not JSON: "):
        parse(KAFKAS.replace("]}]}", "]},]}"), "plan.json")


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_text_is_either_valid_or_raises_invalid(text: str) -> None:
    try:
        parse(text, "plan.json")
    except Invalid as error:
        assert str(error).startswith("plan.json: ")


@given(plans)
def test_a_plan_is_read_back_unchanged(plan: Plan) -> None:
    assert parse(plan.text(), "") == plan
    assert list(plan.targets) == sorted(plan.targets)


@given(plans)
def test_the_document_is_the_json_of_the_text(plan: Plan) -> None:
    moved = replace(plan, log_dirs={(name, to[0]): "/dätä" for name, to in plan.targets.items()})
    for each in (plan, moved, Plan(targets={})):
        assert each.document() == json.loads(each.text())


def test_the_text_matches_kafka() -> None:
    assert parse(KAFKAS, "").text() == KAFKAS


def test_version_and_log_dirs_are_optional_as_in_kafka() -> None:
    plan = parse('{"partitions":[{"topic":"t","partition":0,"replicas":[2,1],"x":1}]}', "")
    assert plan == Plan(targets={TopicPartition("t", 0): (BrokerId(2), BrokerId(1))})


def test_log_dirs_change_the_plan_but_not_its_run() -> None:
    plan = parse(KAFKAS.replace('[3,2],"log_dirs":["any","any"]', '[3,2],"log_dirs":["/a","any"]'), "")
    assert plan.log_dirs == {(TopicPartition("b", 9), BrokerId(3)): "/a"}
    assert plan != parse(KAFKAS, "")
    assert plan.targets == parse(KAFKAS, "").targets
    assert plan.text() == KAFKAS.replace('[3,2],"log_dirs":["any","any"]', '[3,2],"log_dirs":["/a","any"]')
    time = datetime(2026, 3, 1, tzinfo=UTC)
    assert run_id(plan, time) == run_id(parse(KAFKAS, ""), time)


@given(plans)
def test_the_order_of_a_file_does_not_change_the_run(plan: Plan) -> None:
    time = datetime(2026, 3, 1, tzinfo=UTC)
    turned = Plan(targets=dict(reversed(list(plan.targets.items()))))
    assert run_id(turned, time) == run_id(plan, time)


RIGHT = {
    "no version, an unknown field": '{"partitions":[{"topic":"t","partition":0,"replicas":[2,1],"x":1}]}',
    "-0": '{"version":1,"partitions":[{"topic":"t","partition":-0,"replicas":[2,1],"log_dirs":["any","any"]}]}',
    "fields in another order": '{"partitions":[{"replicas":[2,1],"partition":0,"topic":"t"}],"version":1}',
    "lines as Windows ends them": '{"partitions":\r\n[{"topic":"t","partition":0,\r\n"replicas":[2,1]}]}\r\n',
    "escapes": '{"partitions":[{"topic":"\\u0074","partition":0,"replicas":[2,1]}]}',
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_files_that_kafka_accepts_are_read(text: str) -> None:
    assert parse(text, "") == Plan(targets={TopicPartition("t", 0): (BrokerId(2), BrokerId(1))})


def test_the_longest_name() -> None:
    assert parse(one(topic="x" * 249), "").topics == ("x" * 249,)


@given(plans, st.booleans())
def test_an_ignored_field_is_reported_and_has_no_effect(plan: Plan, paths: bool) -> None:
    known = plan.text().replace('"any"', '"/a"') if paths else plan.text()
    warnings: list[str] = []
    read_ = parse(known.replace('"topic":', '"logDirs":["/x\\u001b"],"topic":'), "plan.json", warnings.append)
    assert (read_.targets, read_.log_dirs) == (parse(known, "").targets, parse(known, "").log_dirs)
    assert warnings == ['plan.json: kquota and Kafka ignore "logDirs". Check the spelling of each field']
