"""Properties of --fix: it removes all leftovers and nothing that a run holds. Also tests the age of leftovers."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from kquota.reassign.run import Purpose
from kquota.settings.rates import StoredRate
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.terms import EVERY_REPLICA, FOLLOWER_RATE, LEADER_RATE, BrokerId, TopicPartition
from kquota.throttle.cluster_throttles import BrokerOrDefault, ClusterThrottles
from kquota.throttle.doctor import Sightings, Values, changes, findings, removable, seen
from tests.throttle.stage import BEGUN, FOLLOWER, LEADER, partition, rate, run, throttles

KEYS = (LEADER, FOLLOWER)
PARTITIONS = st.sampled_from(
    [partition(1, 2), partition(2, 3, isr=[2]), partition(3, 1, 2), partition(1, 2, 3, adding=[3]), partition(1)]
)
ENTRIES = st.lists(st.sampled_from([f"{n}:{b}" for n in range(4) for b in range(1, 5)]), max_size=5, unique=True)
TEXTS = ENTRIES.map(",".join) | st.just(EVERY_REPLICA)


@st.composite
def drawn_throttles(draw: st.DrawFn) -> ClusterThrottles:
    """Two topics and three brokers with any throttles, and perhaps an open run that holds some of them."""
    topics = {topic: draw(st.lists(PARTITIONS, min_size=1, max_size=3)) for topic in "ab"}
    lists = {(t, key): draw(TEXTS) for t in "ab" for key in KEYS if draw(st.booleans())}
    limits: dict[BrokerOrDefault, dict[str, StoredRate]] = {}
    for broker in (1, 2, 3):
        keys = draw(st.sets(st.sampled_from([LEADER_RATE, FOLLOWER_RATE])))
        limits[BrokerId(broker)] = {key: rate(draw(st.sampled_from(["1000", "2000"]))) for key in sorted(keys)}
    now = throttles(topics, lists, limits)
    held = {
        setting: [one for one in (entries(value) if setting.is_list else (value,)) if draw(st.booleans())]
        for setting, value in now.values.items()
        if draw(st.booleans())
    }
    if not held:
        return now
    purpose = draw(st.sampled_from(Purpose))
    targets = {TopicPartition("a", 0): [1, 3]} if purpose is Purpose.MOVE else {}
    return throttles(topics, lists, limits, runs=[run(held, targets, purpose=purpose)])


def applied(now: ClusterThrottles, gone: Values) -> ClusterThrottles:
    return now.after(changes(now, gone))


@given(drawn_throttles())
def test_no_removable_throttle_is_left_after_a_fix(now: ClusterThrottles) -> None:
    then = applied(now, removable(now))
    assert not [one for one in findings(then) if one.fixable]
    assert removable(then) == {}


@given(drawn_throttles())
def test_no_throttle_of_an_open_run_is_ever_changed(now: ClusterThrottles) -> None:
    then = applied(now, removable(now))
    for one in now.runs:
        for setting, taken in one.taken.items():
            left = then.values.get(setting)
            assert set(taken.ours) <= (set(entries(left)) if setting.is_list else {left})


@given(drawn_throttles())
def test_no_throttle_that_a_running_move_could_use_is_ever_changed(now: ClusterThrottles) -> None:
    then = applied(now, removable(now))
    for key in KEYS:
        listed = set(then.listed(key))
        assert {r for r in now.listed(key) if r[0] in now.snapshot.running} <= listed
    if now.snapshot.running:
        assert then.limits == now.limits


@given(drawn_throttles(), st.sets(st.sampled_from(["0:1", "1:2", "*", "1000"])))
def test_only_allowed_fixes_are_made(now: ClusterThrottles, young: set[str]) -> None:
    gone = removable(now, lambda _, value: value not in young)
    assert not young & {value for values in gone.values() for value in values}
    every = removable(now)
    assert all(set(values) <= set(every[setting]) for setting, values in gone.items())


@given(drawn_throttles())
def test_lists_are_removed_before_rates_and_each_value_once(now: ClusterThrottles) -> None:
    planned = changes(now, removable(now))
    kinds = [change.setting.is_list for change in planned]
    assert kinds == sorted(kinds, reverse=True)
    assert len({change.setting for change in planned}) == len(planned)
    assert all(change.before == now.values[change.setting] != change.after for change in planned)


ENTRY = Setting.of_topic("t", LEADER)
HOUR = 3600.0


def looks(*at: tuple[float, bool]) -> Sightings:
    """Checks at these times, each with or without the leftover."""
    told: Sightings | None = None
    for seconds, there in at:
        told = seen(told, {ENTRY: ("0:1",)} if there else {}, BEGUN + timedelta(seconds=seconds))
    assert told is not None
    return told


def test_a_leftover_ages_only_if_every_check_finds_it() -> None:
    assert not looks((0, True)).old(ENTRY, "0:1", HOUR)
    assert not looks((0, True), (3599, True)).old(ENTRY, "0:1", HOUR)
    assert looks((0, True), (1800, True), (3600, True)).old(ENTRY, "0:1", HOUR)
    assert not looks((0, True), (1800, False), (3600, True)).old(ENTRY, "0:1", HOUR)
    assert not looks((0, True), (7200, True)).old(ENTRY, "0:2", HOUR)


def test_a_clock_that_goes_back_ages_no_leftover() -> None:
    back = looks((0, True), (7200, True), (7100, True))
    assert not back.old(ENTRY, "0:1", 1)
    assert looks((0, True), (7200, True), (7100, True), (10700, True)).old(ENTRY, "0:1", HOUR)
