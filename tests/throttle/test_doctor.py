"""The rules of doctor: what each finds, and what it ignores."""

from __future__ import annotations

import pytest

from kquota.cli.throttle.doctor.answer import DO, examination
from kquota.cli.throttle.show.run import Selection
from kquota.reassign.run import Purpose
from kquota.settings.resource import Setting
from kquota.terms import DEFAULT, EVERY_REPLICA, FOLLOWER_RATE, LEADER_RATE, BrokerId, TopicPartition
from kquota.throttle.cluster_throttles import ClusterThrottles, Remedy
from kquota.throttle.doctor import findings
from kquota.throttle.doctor_rates import removable_unread
from tests.throttle.stage import FOLLOWER, LEADER, on, partition, rate, run, throttles

ONE = BrokerId(1)
T0 = TopicPartition("t", 0)
AT_REST = {"t": [partition(1, 2)]}
MOVING = {"t": [partition(1, 2, 3, adding=[3])]}
BOTH_LISTS = {("t", LEADER): "0:1,0:2", ("t", FOLLOWER): "0:3"}
RATES = on(1, "1000") | on(2, "1000") | on(3, "1000")
LEADERS, FOLLOWERS = Setting.of_topic("t", LEADER), Setting.of_topic("t", FOLLOWER)
HELD = {
    LEADERS: ["0:1", "0:2"],
    FOLLOWERS: ["0:3"],
    **{Setting.of_broker(BrokerId(b), key): ["1000"] for b in (1, 2, 3) for key in (LEADER_RATE, FOLLOWER_RATE)},
}
STATIC = "STATIC_BROKER_CONFIG"
OF_ALL = "DYNAMIC_DEFAULT_BROKER_CONFIG"

Expected = list[tuple[str, str, bool]]
CASES: dict[str, tuple[ClusterThrottles, Expected]] = {
    "nothing stands": (throttles(AT_REST), []),
    "a foreign move under way": (throttles(MOVING, BOTH_LISTS, RATES), []),
    "our move under way": (throttles(MOVING, BOTH_LISTS, RATES, runs=[run(HELD, {T0: [1, 3]})]), []),
    "a throttle that was set and is on record": (
        throttles(
            AT_REST,
            {("t", LEADER): "*"},
            on(1, "1"),
            runs=[
                run(
                    {LEADERS: ["*"], **{Setting.of_broker(ONE, k): ["1"] for k in (LEADER_RATE, FOLLOWER_RATE)}},
                    purpose=Purpose.THROTTLE,
                )
            ],
        ),
        [],
    ),
    "our move has ended": (
        throttles(AT_REST, BOTH_LISTS, RATES, runs=[run(HELD, {T0: [1, 2]})]),
        [("run-ended", "run 20260301T123000Z-0123456789ab", False)],
    ),
    "rates without lists": (throttles(AT_REST, limits=on(2, "1000")), [("rates-without-lists", "broker 2", True)]),
    "rates while something moves elsewhere": (
        throttles({"t": [partition(1, 2, adding=[2])]}, limits=on(3, "1000")),
        [("rates-without-lists", "broker 3", False)],
    ),
    "rates of a broker that takes part in a move": (throttles(MOVING, limits=on(3, "1000")), []),
    "lists without rates, and nothing moves": (
        throttles(AT_REST, {("t", LEADER): "0:1"}),
        [
            ("lists-without-rates", "topic t leader.replication.throttled.replicas", False),
            ("list-without-move", "topic t leader.replication.throttled.replicas", True),
        ],
    ),
    "lists without rates, and it moves": (
        throttles(MOVING, BOTH_LISTS, on(1, "1000") | on(2, "1000")),
        [("lists-without-rates", "topic t follower.replication.throttled.replicas", False)],
    ),
    "a rate on the default of all is a rate from 3.9": (
        throttles(MOVING, BOTH_LISTS, {DEFAULT: {k: rate("1", OF_ALL) for k in (LEADER_RATE, FOLLOWER_RATE)}}),
        [],
    ),
    "a rate on the default of all without a list, which no tool sets for a move": (
        throttles(AT_REST, limits={DEFAULT: {k: rate("1", OF_ALL) for k in (LEADER_RATE, FOLLOWER_RATE)}}),
        [],
    ),
    "an entry of a partition that does not exist": (
        throttles(MOVING, BOTH_LISTS | {("t", LEADER): "0:1,9:1"}, RATES),
        [("stale-entry", "topic t leader.replication.throttled.replicas", True)],
    ),
    "an entry of a topic that does not exist": (
        throttles(MOVING, BOTH_LISTS | {("gone", LEADER): "0:1"}, RATES),
        [("stale-entry", "topic gone leader.replication.throttled.replicas", True)],
    ),
    "an entry of a broker that holds no such replica": (
        throttles(MOVING, {("t", FOLLOWER): "0:3,0:4"}, RATES),
        [("stale-entry", "topic t follower.replication.throttled.replicas", True)],
    ),
    "a follower in sync that is still listed": (
        throttles(AT_REST, {("t", FOLLOWER): "0:2"}, RATES),
        [
            ("rates-without-lists", "broker 1", True),
            ("rates-without-lists", "broker 3", True),
            ("caught-up-replica", "topic t follower.replication.throttled.replicas", True),
        ],
    ),
    "a follower that is behind, without a move": (
        throttles({"t": [partition(1, 2, isr=[1])]}, {("t", FOLLOWER): "0:2"}, on(2, "1000")),
        [("list-without-move", "topic t follower.replication.throttled.replicas", True)],
    ),
    "everything without a move": (
        throttles({"t": [partition(1, 2)]}, {("t", LEADER): "*"}, RATES),
        [
            ("rates-without-lists", "broker 3", True),
            ("wildcard-without-move", "topic t leader.replication.throttled.replicas", True),
        ],
    ),
    "everything while one partition moves": (throttles(MOVING, {("t", LEADER): "*"}, RATES), []),
    "a list on a broker": (
        throttles(AT_REST, misplaced={ONE: (LEADER,), DEFAULT: (LEADER, FOLLOWER)}),
        [("list-on-broker", "broker 1", False), ("list-on-broker", "default broker", False)],
    ),
    "rates that differ between brokers": (
        throttles(MOVING, BOTH_LISTS, RATES | {BrokerId(3): {LEADER_RATE: rate("2000"), FOLLOWER_RATE: rate("1000")}}),
        [
            ("rates-differ-between-brokers", "brokers 1,2,3", False),
            ("rates-differ-between-sides", "broker 3", False),
        ],
    ),
    "a side without a rate": (
        throttles(MOVING, limits={ONE: {LEADER_RATE: rate("1000")}}),
        [("rates-differ-between-sides", "broker 1", False)],
    ),
    "one side set by a run, the other by an operator": (
        throttles(
            MOVING,
            {},
            {ONE: {LEADER_RATE: rate("1000"), FOLLOWER_RATE: rate("7")}},
            runs=[run({Setting.of_broker(ONE, LEADER_RATE): ["1000"]}, {T0: [1, 3]})],
        ),
        [],
    ),
    "a rate on the default of all before 3.9": (
        throttles(AT_REST, limits={DEFAULT: {LEADER_RATE: rate("1", OF_ALL, in_force=False)}}, release=(3, 8)),
        [("rate-not-in-force", "default broker", False)],
    ),
    "a rate in server.properties": (
        throttles(AT_REST, limits={ONE: {FOLLOWER_RATE: rate("1", STATIC, in_force=False)}}),
        [("rate-not-in-force", "broker 1", False)],
    ),
    "a leading comma": (
        throttles(MOVING, BOTH_LISTS | {("t", LEADER): ",0:1"}, RATES),
        [("list-malformed", "topic t leader.replication.throttled.replicas", False)],
    ),
    "an entry twice": (
        throttles(MOVING, BOTH_LISTS | {("t", LEADER): "0:1,0:1"}, RATES),
        [("list-malformed", "topic t leader.replication.throttled.replicas", False)],
    ),
    "an entry in KIP-73's draft form": (
        throttles(MOVING, BOTH_LISTS | {("t", LEADER): "0-1"}, RATES),
        [("list-malformed", "topic t leader.replication.throttled.replicas", False)],
    ),
    "an entry with more digits than a number can have": (
        throttles(MOVING, BOTH_LISTS | {("t", LEADER): "1" * 5000 + ":1"}, RATES),
        [("list-malformed", "topic t leader.replication.throttled.replicas", False)],
    ),
    "an entry with a partition that none can be": (
        throttles(MOVING, BOTH_LISTS | {("t", LEADER): "9999999999:1"}, RATES),
        [("list-malformed", "topic t leader.replication.throttled.replicas", False)],
    ),
    "an empty list": (
        throttles(AT_REST, {("t", LEADER): ""}),
        [("list-empty", "topic t leader.replication.throttled.replicas", True)],
    ),
    "an empty list of a topic whose list a run holds": (
        throttles(MOVING, {("t", LEADER): ""}, runs=[run({LEADERS: ["0:1"]}, {T0: [1, 3]})]),
        [],
    ),
}


@pytest.mark.parametrize(("now", "expected"), CASES.values(), ids=CASES)
def test_findings(now: ClusterThrottles, expected: Expected) -> None:
    assert [(one.rule, one.where, one.fixable) for one in findings(now)] == expected


LENGTHS = {"short": (29_490, []), "nearly full": (29_491, ["list-nearly-full"]), "full": (32_768, ["list-too-long"])}


@pytest.mark.parametrize(("length", "rules"), LENGTHS.values(), ids=LENGTHS)
def test_a_list_near_the_maximum_length_of_a_broker(length: int, rules: list[str]) -> None:
    moving = {"t": [partition(1, 2, 3, adding=[3]) for _ in range(10_000)]}
    count, more = divmod(length + 1, 7)
    text = "0" * more + ",".join(f"{number:04}:1" for number in range(count))
    found = findings(throttles(moving, {("t", LEADER): text}, RATES))
    assert len(text) == length
    assert [one.rule for one in found if one.rule.startswith("list-")] == rules


def test_every_finding_states_its_effect_and_the_next_step() -> None:
    for now, _ in CASES.values():
        for one in findings(now):
            assert all((one.what, one.effect, DO[one.remedy](one))), one
            assert "\n" not in one.what + one.effect + DO[one.remedy](one)


def test_a_run_that_restored_its_throttle_between_two_waves_holds_none() -> None:
    (found,) = findings(throttles(AT_REST, runs=[run({setting: [] for setting in HELD}, {T0: [1, 2]})]))
    assert found.effect == "no throttle is left to restore"


def test_a_run_whose_moves_were_never_submitted_should_be_resumed() -> None:
    from dataclasses import replace

    waiting = replace(run(HELD, {T0: [1, 3]}), handed_over=frozenset())
    (found,) = findings(throttles(AT_REST, BOTH_LISTS, RATES, runs=[waiting]))
    assert found.rule == "run-ended"
    assert found.what == "1 of its 1 partition is not submitted yet"
    assert found.effect == "its throttle is still set on 1 topic and 3 brokers"
    assert found.remedy is Remedy.RESUME_RUN


@pytest.mark.parametrize("gone", ["recreated", "deleted", "moved by another client"])
def test_a_run_whose_waiting_partitions_can_never_be_submitted_should_be_ended(gone: str) -> None:
    from dataclasses import replace

    target = [1, 2] if gone == "moved by another client" else [1, 3]
    waiting = replace(run(HELD, {T0: target}), handed_over=frozenset(), topic_ids={"t": "old"})
    now = throttles({} if gone == "deleted" else AT_REST, topic_ids={"t": "new" if gone == "recreated" else "old"})
    (found,) = findings(replace(now, runs=(waiting,)))
    assert found.what == "all of its moves have ended, but the run is still open"
    assert found.remedy is Remedy.END_RUN


def test_a_finding_about_several_entries_is_in_the_plural() -> None:
    found = findings(throttles(AT_REST, {("t", LEADER): "9:1,9:2"}, RATES))
    assert [(one.what, one.effect) for one in found if one.rule == "stale-entry"] == [
        ("9:1,9:2: no such replicas", "take up space, and throttle the replicas if they are created later")
    ]


@pytest.mark.parametrize(
    ("text", "what", "disables"),
    [
        ("0:1,0:1,0:2", "lists an entry twice", False),
        ("0:1,,0:1", "has an empty entry and lists an entry twice", True),
        ("0:1,,0:2", "has an empty entry", True),
    ],
)
def test_only_empty_and_invalid_entries_disable_a_throttle(text: str, what: str, disables: bool) -> None:
    (found,) = findings(throttles(MOVING, BOTH_LISTS | {("t", LEADER): text}, RATES))
    assert (found.what, "disables the throttle" in found.effect) == (what, disables)
    assert disables or found.effect == "the second entry takes up space, and has no other effect"


def test_a_wildcard_lists_every_replica() -> None:
    now = throttles(AT_REST, {("t", LEADER): EVERY_REPLICA})
    assert list(now.listed(LEADER)) == [(T0, 1), (T0, 2)]


ON_THREE = {"t": [partition(1, 3, isr=[1])]}
THREES = Setting.of_broker(BrokerId(3), LEADER_RATE)
DEAD: dict[str, tuple[ClusterThrottles, list[int]]] = {
    "nothing needs its rates": (throttles(ON_THREE, alive=[1, 2]), [3]),
    "it is alive": (throttles(ON_THREE), []),
    "a list names it": (throttles(ON_THREE, {("t", LEADER): "0:3"}, alive=[1, 2]), []),
    "a list names another": (throttles(ON_THREE, {("t", LEADER): "0:1"}, alive=[1, 2]), [3]),
    "it takes part in a move": (throttles(MOVING, alive=[1, 2]), []),
    "a run holds a rate of it": (throttles(ON_THREE, runs=[run({THREES: ["1000"]})], alive=[1, 2]), []),
    "a run has restored its rates": (throttles(ON_THREE, runs=[run({THREES: []})], alive=[1, 2]), [3]),
}


@pytest.mark.parametrize(("what", "removable"), DEAD.values(), ids=DEAD)
def test_unknown_rates_are_removed_only_if_nothing_needs_them(what: ClusterThrottles, removable: list[int]) -> None:
    assert list(removable_unread(what)) == removable


def test_a_broker_with_unknown_rates_is_never_a_clean_result() -> None:
    clean, unknown = (examination(throttles(ON_THREE, alive=alive), None) for alive in ([1, 2, 3], [1, 2]))
    assert (clean.code, clean.closing_notes) == (0, ("no findings",))
    assert (unknown.code, unknown.closing_notes) == (8, ("no findings; unknown: the rates of broker 3",))
    assert unknown.unread_brokers == (3,)


def test_topics_with_unknown_lists_are_never_a_clean_result() -> None:
    unknown = examination(throttles(AT_REST, unread_topics=["u"]), None)
    assert (unknown.code, unknown.unread_topics) == (8, ("u",))
    assert unknown.closing_notes == ("no findings; unknown: the lists of 1 topic",)


def test_no_unknown_rate_is_removed_while_a_list_is_unknown() -> None:
    assert removable_unread(throttles(ON_THREE, alive=[1, 2], unread_topics=["t"])) == ()


@pytest.mark.parametrize(("hidden", "rules"), [((), ["rates-without-lists"]), (("secret",), [])])
def test_a_rate_may_be_in_use_while_a_topic_is_hidden(hidden: tuple[str, ...], rules: list[str]) -> None:
    """A list of the hidden topic may name replicas of any broker."""
    found = findings(throttles(AT_REST, limits=on(2, "1000"), hidden_topics=hidden))
    assert [one.rule for one in found] == rules
    assert removable_unread(throttles(ON_THREE, alive=[1, 2], hidden_topics=hidden)) == (() if hidden else (3,))


def test_a_run_of_a_hidden_topic_has_an_unknown_state() -> None:
    ended = run({}, {TopicPartition("secret", 0): [1, 2]})
    assert [one.rule for one in findings(throttles({}, runs=[ended]))] == ["run-ended"]
    assert findings(throttles({}, runs=[ended], hidden_topics=["secret"])) == ()


def test_show_with_a_hidden_topic_is_exit_code_8() -> None:
    answer = Selection(throttles=throttles({}, hidden_topics=["secret"]), flow=None).answer()
    assert (answer.code, answer.unread_topics) == (8, ("secret",))
    assert list(answer.text()) == ["nothing that could be read is throttled"]
    assert "Kafka hides 1 topic from this user (secret)" in answer.notes[0]


def test_topics_that_kafka_hides_are_never_a_clean_result() -> None:
    hidden = examination(throttles(AT_REST, hidden_topics=["a", "b", "c", "d"]), None)
    assert (hidden.code, hidden.hidden_topics) == (8, ("a", "b", "c", "d"))
    assert hidden.closing_notes == ("no findings; unknown: the lists of 4 hidden topics",)
    assert hidden.notes == (
        "warning: Kafka hides 4 topics from this user (a, b, c and 1 more), so their throttled replica lists are "
        "unknown. This user needs Describe and DescribeConfigs on every topic",
    )


@pytest.mark.parametrize(("brokers", "code"), [((), 8), ((3,), 8), ((1, 3), 8), ((1,), 0)])
def test_show_with_unknown_rates_is_exit_code_8(brokers: tuple[int, ...], code: int) -> None:
    answer = Selection(
        throttles=throttles(ON_THREE, alive=[1, 2]), flow=None, brokers=tuple(map(BrokerId, brokers))
    ).answer()
    assert answer.code == code
    assert ("nothing that could be read" in "\n".join(answer.text())) == (code == 8)


@pytest.mark.parametrize(("topics", "code"), [((), 8), (("u",), 8), (("t",), 0)])
def test_show_with_unknown_lists_is_exit_code_8(topics: tuple[str, ...], code: int) -> None:
    answer = Selection(throttles=throttles(ON_THREE, unread_topics=["u"]), flow=None, topics=topics).answer()
    assert (answer.code, answer.unread_topics) == (code, ("u",))
    assert ("nothing that could be read" in "\n".join(answer.text())) == (code == 8)
    assert answer.notes == (
        "warning: topic u: the brokers cannot describe its configs, so its throttled replica lists are unknown. Show "
        "the error with `kquota configs --bootstrap-server HOST:PORT --describe --topic u`",
    )
