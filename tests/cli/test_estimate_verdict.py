"""The verdict on a move: text, page and JSON agree, and apparent contradictions do not refuse it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kquota.cli.formats import document, text
from kquota.cli.move.estimate.answer import assumed
from kquota.cli.move.estimate.limits import limits, window
from kquota.cli.output import plain
from kquota.measure import ByteRate
from kquota.pace.work import Link
from kquota.spark.estimate import Unsized
from tests.cli.pages import MB, Case, shown, ticket

# Two partitions, each of which alone can catch up.
TWO = tuple(Link(leader=1, destination=d, copies=1, bytes=91 * MB, writes=5.0 * MB) for d in (3, 4))
MANY = tuple(Link(leader=n, destination=1000 + n, copies=1, bytes=MB, writes=1.0) for n in range(401))
REFUSED: dict[str, tuple[Case, str | None]] = {
    "nothing": (Case(), None),
    "never": (Case(throttle="5MB/s"), "the move can never finish: broker 1 has"),
    "never, because in-sync followers use the throttle": (
        Case(throttle="2MB/s"),
        "the move can never finish: broker 1 uses its whole throttle (2 MB/s) for follower traffic (3 MB/s), but "
        "producers write 3 MB/s to the copies that it sends; ",
    ),
    "never, by one byte per second": (
        Case(throttle="5999999"),
        "the move can never finish: broker 1 has 2.999999 MB/s left for the copies that it sends (5.999999 MB/s "
        "throttle minus 3 MB/s follower traffic), but producers write 3 MB/s to these copies; the move can finish with "
        "a throttle above 6 MB/s",
    ),
    "never, in waves": (
        Case(throttle="5MB/s", waves=2),
        "the move can never finish: in wave 1 (my-topic-0), broker 1 has",
    ),
    "no room": (Case(throttle="20MB/s", disk=50 * MB), "the copies do not fit: broker 3"),
    "late": (
        Case(deadline="20s"),
        "the deadline, 20 s, is missed: the expected time is 43 s. Give a --throttle of at least ",
    ),
    "sooner than a move starts and ends": (
        Case(throttle="50MB/s", deadline="200ms"),
        "the deadline, 0.2 s, is missed: the expected time is 2.44 s. The start and the end of the move alone take "
        "0.3 s with any throttle. Give a later --deadline",
    ),
    "sooner than waves start and end": (
        Case(throttle="50MB/s", deadline="500ms", waves=2),
        "the deadline, 0.5 s, is missed: the expected time is 4.89 s. The start and the end of the move alone take "
        "0.6 s with any throttle. Give a later --deadline",
    ),
    "late in waves, not at once": (
        Case(deadline="60s", waves=2),
        "the deadline, 60 s, is missed: the expected time is 87 s. Give a --throttle of at least ",
    ),
    "late even if nothing were written": (
        Case(writes=None, deadline="5s"),
        "the deadline, 5 s, is missed: the move takes at least 10 s. Give a higher --throttle or a later --deadline",
    ),
    "may be late": (Case(writes=None, deadline="20s"), None),
    "more than --max-impact": (
        Case(nic="50MB/s", impact="14%"),
        "the throttle is 8 MB/s, but it must be at most 7 MB/s (--max-impact, 14% of --nic). Give a lower --throttle",
    ),
    "more than --max-impact, by one byte per second": (
        Case(throttle="7000001", nic="50MB/s", impact="14%"),
        "the throttle is 7.000001 MB/s, but it must be at most 7 MB/s (--max-impact, 14% of --nic). Give a "
        "lower --throttle",
    ),
    "more than the network": (
        Case(throttle="2GB/s", nic="1GB/s"),
        "the throttle is 2 GB/s, but it must be below 998 MB/s (the bandwidth that clients leave = --nic 1 GB/s - "
        "highest write rate 3 MB/s / replication factor 2 (N - IN/R, KIP-73)). Give a lower --throttle",
    ),
    "no throttle does": (
        Case(nic="50MB/s", impact="10%"),
        "no throttle is within the limits: the throttle must be at most 5 MB/s",
    ),
    "IN of a broker that does not move": (Case(bytes_in=50.0 * MB), None),
}


@pytest.mark.parametrize(("case", "why"), REFUSED.values(), ids=REFUSED)
def test_text_page_and_json_refuse_the_same_moves(case: Case, why: str | None) -> None:
    answer = ticket(case).answer
    found, told, page = answer.verdict.refused, json.loads(document(answer)), shown(case)
    assert told["refused"] == found
    assert bool(page.commands) is (why is None)
    assert ("Do not start this move" in page.text[""] or "can never finish" in page.text[""]) is (why is not None)
    assert (found is None) is (why is None)
    if why is not None:
        assert (found or "").startswith(why)


def test_the_error_names_the_wave_that_never_ends() -> None:
    assert ticket(Case(throttle="5MB/s", waves=2)).answer.verdict.error == (
        "the move can never finish (throttle 5 MB/s), because wave 1 (my-topic-0) never ends. Give a "
        "--throttle above 6 MB/s"
    )


def test_a_throttle_below_in_can_still_finish() -> None:
    """KIP-73's term is the rate of the busiest broker in the cluster. The moving partitions receive less."""
    case = Case(bytes_in=50.0 * MB)
    answer = ticket(case).answer
    told, page = text(answer), shown(case)
    assert "Expected     about 43 s" in told
    assert "MoveTime     none" in told
    assert "never " not in told.split("Other throttles")[0].replace("never delayed", "")
    assert "NOT MET" not in told
    assert "not met, but the next line is the bound for the brokers of this move" in told
    assert "The move can finish" in page.text[""]
    assert "does not prevent the move" in page.text["Limits of the throttle"]
    assert json.loads(document(answer))["window"]["broken"] == []


def test_waves_that_finish_one_by_one_are_not_refused_for_their_sum() -> None:
    """Together the copies need 10 MB/s of broker 1; one after the other they need 5."""
    at_once, waves = Case(links=TWO, writes=0.0), Case(links=TWO, writes=0.0, each_link=True)
    assert (ticket(at_once).answer.verdict.refused or "").startswith("the move can never finish")
    answer = ticket(waves).answer
    assert (answer.verdict.refused, answer.pace.feasible) == (None, False)
    told, page, said = json.loads(document(answer)), shown(waves), text(answer)
    assert (told["feasible"], told["throttle_must_exceed"], told["bottleneck_wave"]) == (True, 5 * MB, 1)
    assert told["expected_seconds"] == told["waves_seconds"] > 0
    assert told["band"]["low_seconds"] < told["expected_seconds"] < told["band"]["high_seconds"]
    assert "the sum of 2 waves" in said
    assert "Bottleneck   in wave 1 (my-topic-0): broker 3, which receives 91 MB" in said
    assert "Can finish   yes\n" in said
    assert "The move can finish" in page.text[""]
    # All waves would start at once.
    assert (page.commands, "the whole plan at once can never finish" in page.text["Commands in order"]) == (
        [],
        True,
    )


def test_a_deadline_is_met_by_the_waves_together() -> None:
    answer = ticket(Case(throttle=None, deadline="60s", waves=3)).answer
    assert answer.verdict.judged.seconds is not None
    assert answer.verdict.judged.seconds <= 60
    assert (answer.verdict.late, answer.verdict.refused) == (False, None)
    assert "Deadline     60 s: met" in text(answer)
    assert json.loads(document(answer))["deadline"] == {"seconds": 60.0, "met": True}


def test_a_throttle_that_meets_the_deadline_is_not_below_the_minimum() -> None:
    """kquota searches the minimum throttle to a ten-thousandth."""
    asked, move = limits("8MB/s", "60s", None, None), ticket(Case()).answer.pace
    found = window(asked, move, ByteRate(8 * MB + 500), None, 2)
    assert found.broken(8 * MB) == ()
    late = window(replace(asked, deadline=20.0), move, ByteRate(9 * MB), None, 2)
    assert [bound.why for bound in late.broken(8 * MB)] == ["the deadline, 20 s"]


def test_with_too_many_links_to_simulate_the_time_is_a_lower_bound() -> None:
    case = Case(links=MANY, throttle="1MB/s", writes=0.0)
    assert "a lower bound: beyond 400 links" in text(ticket(case).answer)
    assert "a lower bound: beyond 400 links" in shown(case).text[""]
    assert "a lower bound: beyond" not in text(ticket(Case()).answer)


def test_the_document_lists_assumptions() -> None:
    answer = ticket(Case()).answer
    taken = replace(answer.measured, assumed=Unsized(partitions=7, named=("t-1", "t-2")), unseen=(9,))
    told = {"leaders": 0, "in_sync": 0, "sizes": 7, "sizes_named": ["t-1", "t-2"], "empty_brokers": [9]}
    assert plain(assumed(taken, live=False)) == told
    assert plain(assumed(taken, live=True)) == {**told, "empty_brokers": []}
