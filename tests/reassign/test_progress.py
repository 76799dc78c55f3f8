"""The progress of a plan, in the words of Kafka 4.3.1's tool (goldens taken from the tool itself)."""

from __future__ import annotations

import pytest

from kquota.reassign import words
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.progress import Progress, statuses, verdict
from kquota.terms import BrokerId, TopicPartition


def b(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


A0, B9, B10, Z0 = (TopicPartition(*name) for name in (("a", 0), ("b", 9), ("b", 10), ("z", 0)))
PLAN = Plan(targets={Z0: b(1, 2), B10: b(1, 3), B9: b(1, 2), A0: b(1, 2)})
NOW = {
    A0: PartitionReplicas(replicas=b(1, 2, 3), removing=b(3), adding=b(2)),
    B9: PartitionReplicas(replicas=b(1, 2)),
    B10: PartitionReplicas(replicas=b(1, 2)),
}
KAFKAS = """\
Status of partition reassignment:
Reassignment of partition a-0 is still in progress.
Reassignment of partition b-9 is completed.
There is no active reassignment of partition b-10, but replica set is 1,2 rather than 1,3.
There is no active reassignment of partition z-0, but replica set is  rather than 1,2."""


def test_the_words_are_kafkas() -> None:
    assert words.status_lines(statuses(PLAN, NOW, {A0})) == KAFKAS


D, P, E = Progress.DONE, Progress.IN_PROGRESS, Progress.ELSEWHERE
VERDICTS = {"done": ([D, D], D), "any in progress": ([D, E, P], P), "any elsewhere": ([E, D], E), "nothing": ([], D)}


@pytest.mark.parametrize(("each", "whole"), VERDICTS.values(), ids=VERDICTS)
def test_verdict(each: list[Progress], whole: Progress) -> None:
    assert verdict(each) is whole


def test_a_move_listed_as_running_is_in_progress_whatever_its_replicas_say() -> None:
    found = statuses(Plan(targets={B9: b(1, 2)}), NOW, {B9})
    assert [one.progress for one in found] == [P]


SENTENCES = {
    "one broker": (words.clearing_brokers(b(1)), "Clearing broker-level throttles on broker 1"),
    "brokers": (words.clearing_brokers(b(10, 2)), "Clearing broker-level throttles on brokers 2,10"),
    "one topic": (words.clearing_topics(["t"]), "Clearing topic-level throttles on topic t"),
    "topics": (words.clearing_topics({"t", "s"}), "Clearing topic-level throttles on topics s,t"),
    "one start": (words.started([A0]), "Successfully started partition reassignment for a-0"),
    "starts": (words.started([B10, B9]), "Successfully started partition reassignments for b-9,b-10"),
}


@pytest.mark.parametrize(("said", "expected"), SENTENCES.values(), ids=SENTENCES)
def test_sentences(said: str, expected: str) -> None:
    assert said == expected


def test_the_plan_back_is_printed_like_kafka() -> None:
    assert words.current_assignment(Plan(targets={A0: b(2)})) == (
        "Current partition replica assignment\n\n"
        '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[2],"log_dirs":["any"]}]}\n\n'
        "Save this to use as the --reassignment-json-file option during rollback"
    )
