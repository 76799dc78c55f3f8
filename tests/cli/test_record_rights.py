"""The permissions on the shared record's topic that docs/login.md lists: they are enough, and each one is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, OffsetSpec, ResourceType

from tests.cli.run import Ran, kquota
from tests.rights import CLUSTER, MOVED, TOPIC, Right, admin_of, as_carol, granted
from tests.secured import Secured
from tests.waiting import until

RECORD: Final = "__kquota_runs"
NEW: Final = "rights-new-record"
"""The topic that `record share` creates."""
MOVES: Final = (
    *(
        Right(CLUSTER, operation)
        for operation in (
            AclOperation.DESCRIBE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        )
    ),
    *(
        Right(TOPIC, operation)
        for operation in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
    ),
)
"""The permissions that a move needs in addition to the record."""


def on(topic: str, *operations: AclOperation) -> tuple[Right, ...]:
    """Permissions on a topic. Kafka lets Read, Write and Delete imply Describe."""
    return tuple(Right(TOPIC, operation, topic) for operation in operations)


READ, WRITE, CREATE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE
DESCRIBE, DESCRIBE_CONFIGS = AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A command, and the permissions on the record's topic that it needs in addition to `others`."""

    command: Sequence[str]
    rights: tuple[Right, ...]
    others: tuple[Right, ...] = ()


SET: Final = ("throttle", "set", "--topic", MOVED, "--throttle", "5MB/s", "--sample", "0")
PLAN: Final = {"version": 1, "partitions": [{"topic": MOVED, "partition": 0, "replicas": [1]}]}
EXECUTE: Final = ("reassign-partitions", "--execute", "--throttle", "5MB/s", "--reassignment-json-file", "PLAN")
TASKS: Final = {
    "see runs": Task(command=("move", "status"), rights=on(RECORD, READ), others=MOVES),
    "run moves": Task(command=EXECUTE, rights=on(RECORD, READ, WRITE), others=MOVES),
    "throttle topics": Task(command=SET, rights=on(RECORD, READ, WRITE, DESCRIBE_CONFIGS), others=MOVES),
    "judge the record": Task(command=("record", "status"), rights=on(RECORD, READ, DESCRIBE_CONFIGS)),
    "share": Task(command=("record", "share", "--record", NEW), rights=on(NEW, READ, WRITE, CREATE)),
    "unshare": Task(command=("record", "unshare", "--yes"), rights=on(RECORD, READ, WRITE, DELETE)),
}


@pytest.fixture(scope="module")
def admin(secured: Secured) -> AdminClient:
    return admin_of(secured)


@pytest.fixture
def record(secured: Secured, admin: AdminClient, tmp_path: Path) -> Iterator[Path]:
    """The topic of another host, on which carol has no permission, and a state folder for her.

    Everything is removed afterwards.
    """
    theirs = ["--bootstrap-server", secured.at["PLAINTEXT"], "--state-dir", str(tmp_path / "theirs")]
    shared = kquota("record", "share", *theirs)
    assert shared.code == 0, shared.err
    yield tmp_path / "mine"
    kquota("throttle", "clear", *theirs)
    there = {RECORD, NEW} & set(admin.list_topics(timeout=30).topics)
    for deleted in admin.delete_topics(sorted(there)).values() if there else ():
        deleted.result(timeout=30)
    until(lambda: not {RECORD, NEW} & set(admin.list_topics(timeout=30).topics), "the topics are deleted")


def standing(admin: AdminClient) -> tuple[list[str], int, list[tuple[str, str]]]:
    """Everything that kquota could have written to the cluster: topics, configs and records."""
    topics = sorted(admin.list_topics(timeout=30).topics)
    partition = TopicPartition(RECORD, 0)
    end = admin.list_offsets({partition: OffsetSpec.latest()})[partition].result(timeout=30).offset
    wanted = [ConfigResource(ResourceType.TOPIC, MOVED), ConfigResource(ResourceType.BROKER, "1")]
    answers = (answer.result(timeout=30) for answer in admin.describe_configs(wanted).values())
    throttles = [(key, entry.value) for told in answers for key, entry in told.items() if "throttled" in key]
    return topics, end, sorted(throttles)


def with_state(task: Task, folder: Path) -> list[str]:
    plan = folder.parent / "plan.json"
    plan.write_text(json.dumps(PLAN))
    return [*(str(plan) if word == "PLAN" else word for word in task.command), "--state-dir", str(folder)]


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_documented_permissions_are_enough(secured: Secured, admin: AdminClient, record: Path, task: Task) -> None:
    with granted(admin, (*task.others, *task.rights)):
        ran = as_carol(secured, with_state(task, record))
    assert ran.code == 0, ran.err
    assert "other hosts" not in ran.err


NEEDED: Final = "This user needs Read on the topic, and Write if the command writes to it"
LACKING: Final = {
    "READ to see runs": ("see runs", READ, 1, NEEDED),
    "READ to run moves": ("run moves", READ, 1, NEEDED),
    "WRITE to run moves": ("run moves", WRITE, 1, NEEDED),
    "READ to judge the record": ("judge the record", READ, 1, NEEDED),
    "CREATE to share": ("share", CREATE, 1, "AuthorizationFailed"),
    "READ to throttle topics": ("throttle topics", READ, 1, NEEDED),
    "WRITE to throttle topics": ("throttle topics", WRITE, 1, NEEDED),
    "READ to unshare": ("unshare", READ, 1, NEEDED),
    "WRITE to unshare": ("unshare", WRITE, 1, NEEDED),
}


@pytest.mark.parametrize(("name", "missing", "code", "words"), LACKING.values(), ids=LACKING)
def test_each_documented_permission_is_needed(
    secured: Secured, admin: AdminClient, record: Path, name: str, missing: AclOperation, code: int, words: str
) -> None:
    """Describe stays, so that the broker shows the topic. Only one permission is missing."""
    task = TASKS[name]
    before = standing(admin)
    left = [right for right in task.rights if right.operation != missing]
    shown = on(task.rights[0].topic, DESCRIBE)
    with granted(admin, (*task.others, *left, *shown)):
        ran = as_carol(secured, with_state(task, record))
    assert (ran.code, ran.out, ran.err.count("error: ")) == (code, "", 1), ran.err
    assert words in ran.err.splitlines()[-1]
    assert standing(admin) == before


@pytest.mark.parametrize("missing", [READ, WRITE], ids=lambda missing: missing.name)
def test_a_user_who_can_only_create_the_record_can_share_it_later(
    secured: Secured, admin: AdminClient, record: Path, missing: AclOperation
) -> None:
    """A permission to use a topic cannot be checked before the topic exists."""
    task = TASKS["share"]
    left = [right for right in task.rights if right.operation != missing]
    with granted(admin, (*left, *on(NEW, DESCRIBE))):
        ran = as_carol(secured, with_state(task, record))
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1), ran.err
    assert NEEDED in ran.err
    assert NEW in admin.list_topics(timeout=30).topics
    with granted(admin, on(NEW, READ, WRITE)):
        again = as_carol(secured, with_state(task, record))
    assert (again.code, again.out) == (0, f"topic {NEW} exists and can hold the record\n"), again.err


def test_without_the_delete_permission_the_record_stays(secured: Secured, admin: AdminClient, record: Path) -> None:
    """kquota only took and released the lock."""
    topics, _, throttles = standing(admin)
    with granted(admin, on(RECORD, READ, WRITE)):
        ran = as_carol(secured, with_state(TASKS["unshare"], record))
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1), ran.err
    assert "TopicAuthorizationFailed (29)" in ran.err
    now = standing(admin)
    assert (now[0], now[2]) == (topics, throttles)


def test_a_user_with_only_read_sees_the_runs_of_others(secured: Secured, admin: AdminClient, record: Path) -> None:
    theirs = ["--bootstrap-server", secured.at["PLAINTEXT"], "--state-dir", str(record.parent / "theirs")]
    assert kquota(*SET, *theirs).code == 0
    with granted(admin, (*MOVES, *on(RECORD, READ))):
        ran = as_carol(secured, with_state(TASKS["see runs"], record))
    assert ran.code == 0
    assert re.search(r"\d (run without a move holds a throttle|runs without a move hold throttles) \(", ran.err)


def test_without_describe_configs_the_throttles_of_topics_are_unknown(
    secured: Secured, admin: AdminClient, record: Path
) -> None:
    """The record's topic is like all other topics: its throttled replica lists are read as well."""
    task = TASKS["throttle topics"]
    topics, _, throttles = standing(admin)
    with granted(admin, (*task.others, *on(RECORD, READ, WRITE))):
        ran = as_carol(secured, with_state(task, record))
    assert (ran.code, ran.out) == (1, "")
    assert "error: reading topic __kquota_runs leader.replication.throttled.replicas: " in ran.err
    now = standing(admin)
    assert (now[0], now[2]) == (topics, throttles)


def test_without_describe_configs_the_settings_are_unknown_and_not_valid(
    secured: Secured, admin: AdminClient, record: Path
) -> None:
    with granted(admin, on(RECORD, READ)):
        ran = as_carol(secured, with_state(TASKS["judge the record"], record))
    assert (ran.code, ran.err) == (8, "")
    assert (
        "may lose or refuse records: its configs cannot be read; this user needs DescribeConfigs on the topic"
        in ran.out
    )


FORBIDDEN: Final = {
    "record status": ("record", "status"),
    "record share": ("record", "share"),
    "record unshare": ("record", "unshare", "--yes"),
    "throttle doctor --fix": ("throttle", "doctor", "--fix", "--yes"),
}


@pytest.mark.parametrize("command", FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_topic_that_a_user_may_not_see_is_never_reported_as_absent(
    secured: Secured, admin: AdminClient, record: Path, command: Sequence[str]
) -> None:
    """The broker answers with error 29 whether the topic exists or not."""
    before = standing(admin)
    with granted(admin, MOVES):
        ran = as_carol(secured, [*command, "--state-dir", str(record)])
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1), ran.err
    assert "TopicAuthorizationFailed (29)" in ran.err
    assert standing(admin) == before


def test_a_host_that_never_used_the_record_reports_that_one_may_exist(
    secured: Secured, admin: AdminClient, record: Path
) -> None:
    def alone(ran: Ran) -> bool:
        return "may have a shared record that this user cannot read: topic __kquota_runs: " in ran.err

    with granted(admin, MOVES):
        seen = as_carol(secured, with_state(TASKS["see runs"], record))
        begun = as_carol(secured, with_state(TASKS["throttle topics"], record))
        cleared = as_carol(secured, ["throttle", "clear", "--state-dir", str(record)])
    assert (seen.code, begun.code, cleared.code) == (8, 0, 0), (seen.err, begun.err, cleared.err)
    assert alone(seen)
    assert "note: other hosts do not see this run: " in begun.err
    assert alone(begun)


def test_a_host_that_has_used_the_record_does_not_write_without_it(
    secured: Secured, admin: AdminClient, record: Path
) -> None:
    clear = ["throttle", "clear", "--state-dir", str(record)]
    with granted(admin, (*MOVES, *TASKS["throttle topics"].rights)):
        assert as_carol(secured, with_state(TASKS["throttle topics"], record)).code == 0
        assert as_carol(secured, clear).code == 0
    before = standing(admin)
    with granted(admin, MOVES):
        ran = as_carol(secured, with_state(TASKS["throttle topics"], record))
    assert (ran.code, ran.out, ran.err.count("error: ")) == (1, "", 1), ran.err
    assert "This host has used the record in this topic, so kquota writes nothing without the record" in ran.err
    assert standing(admin) == before
