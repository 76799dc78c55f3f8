"""Properties of setting and restoring: no throttle of another tool is lost, and none of kquota stays."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Refused
from kquota.reassign.restoring import assumed_values, passed_on, restored_value, take
from kquota.reassign.run import Taken
from kquota.settings.change import Change, needed
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries, merge, without
from kquota.terms import LEADER_RATE, LEADER_REPLICAS, LONGEST_VALUE, BrokerId
from tests.stores.record.hosts import RUN

LIST = Setting.of_topic("t", LEADER_REPLICAS)
RATE = Setting.of_broker(BrokerId(1), LEADER_RATE)

entry = st.builds(lambda p, b: f"{p}:{b}", st.integers(0, 3), st.integers(0, 3))
some = st.lists(entry, max_size=5, unique=True).map(tuple)
ours = st.lists(entry, min_size=1, max_size=5, unique=True).map(sorted).map(tuple)
# Lists that other clients set: unset, empty, `*`, a plain list, or a list with the extra commas and spaces that APPEND
# of 2.8 or a person leaves.
lists = st.none() | st.just("") | st.just("*") | some.map(",".join) | some.map(lambda e: "," + ", ".join(e))
rate_texts = st.none() | st.integers(1, 5).map(str)

MERGED = {
    "unset": (None, ("0:1", "0:2"), "0:1,0:2"),
    "empty": ("", ("0:1",), "0:1"),
    "others first, in their order": ("9:9,5:5", ("0:1",), "9:9,5:5,0:1"),
    "already there": ("0:2,0:1", ("0:1", "0:2"), "0:2,0:1"),
    "partly there": ("0:2", ("0:1", "0:2"), "0:2,0:1"),
    "a leading comma": (",9:9", ("0:1",), "9:9,0:1"),
    "everything": ("*", ("0:1",), "*"),
}


@pytest.mark.parametrize(("current", "added", "merged"), MERGED.values(), ids=MERGED)
def test_merge(current: str | None, added: tuple[str, ...], merged: str) -> None:
    assert merge(current, added) == merged


@given(lists, ours)
def test_a_merged_list_is_well_formed_and_complete(current: str | None, added: tuple[str, ...]) -> None:
    merged = merge(current, added)
    assert not merged.startswith(",")
    assert merged == "*" or merged.split(",") == list(dict.fromkeys((*entries(current), *added)))


def test_a_list_that_no_broker_can_hold_is_refused() -> None:
    longest = tuple(f"{n:04d}:1" for n in range(4681))
    assert len(merge(None, longest)) == LONGEST_VALUE - 1
    with pytest.raises(Refused, match=r"32,773 bytes long, but a broker stores at most 32,767\. Throttle fewer"):
        merge(None, (*longest, "9999:1"))


TAKEN_AWAY = {
    "unset before, nothing left": ("0:1", ("0:1",), None, None),
    "empty before, nothing left": ("0:1", ("0:1",), "", ""),
    "others left": ("9:9,0:1,8:8", ("0:1",), "9:9", "9:9,8:8"),
    "back to the letter": ("9:9,8:8,0:1", ("0:1",), "9:9, 8:8", "9:9, 8:8"),
    "gone already": (None, ("0:1",), "9:9", None),
    "others took theirs away": ("0:1", ("0:1",), "9:9", None),
}


def test_an_empty_list_of_a_dead_kquota_is_not_restored() -> None:
    """From 3.4 on entries are subtracted, which leaves "". Only afterwards the list is deleted."""
    mine = Taken(setting=LIST, prior=None, ours=("0:1",))
    again = take(LIST, "", ("0:2",), mine, ())
    assert again == Taken(setting=LIST, prior=None, ours=("0:1", "0:2"))
    assert restored_value(again, "0:2", ()) is None


@pytest.mark.parametrize(("current", "gone", "prior", "left"), TAKEN_AWAY.values(), ids=TAKEN_AWAY)
def test_without(current: str | None, gone: tuple[str, ...], prior: str | None, left: str | None) -> None:
    assert without(current, gone, prior) == left


# Changes by others to a list since a run set it, and the value that a second run must then restore.
CHANGED_SINCE = {
    "nothing": ("8:8, 9:9,0:1", "8:8, 9:9"),
    "removed the run's entries": ("0:1", None),
    "removed one of the run's entries": ("9:9,0:1", "9:9"),
    "added one": ("8:8,9:9,0:1,7:7", "8:8,9:9,7:7"),
}


@pytest.mark.parametrize(("now", "restored"), CHANGED_SINCE.values(), ids=CHANGED_SINCE)
def test_a_run_with_the_whole_list_restores_the_edits_of_others(now: str, restored: str | None) -> None:
    first = Taken(setting=LIST, prior="8:8, 9:9", ours=("0:1",))
    whole = take(LIST, now, ("*",), None, (first,))
    assert restored_value(whole, "*", ()) == restored


@pytest.mark.parametrize(("prior", "left"), [(None, "0:1,0:2"), ("", "0:1,0:2"), ("9:9", "9:9,0:1,0:2")])
def test_a_run_with_the_whole_list_leaves_the_entries_of_a_running_move(prior: str | None, left: str) -> None:
    move = take(LIST, prior, ("0:1", "0:2"), None, ())
    whole = take(LIST, ",".join((*entries(prior), "0:1", "0:2")), ("*",), None, (move,))
    between = restored_value(whole, "*", (move,))
    assert between == left
    assert restored_value(move, between, ()) == prior


def applied(setting: Setting, now: str | None, wanted: tuple[str, ...]) -> str | None:
    changes = needed({setting: wanted}, {setting: now})
    return changes[0].after if changes else now


@given(lists, ours)
def test_a_restored_list_equals_the_prior_value(prior: str | None, wanted: tuple[str, ...]) -> None:
    taken = take(LIST, prior, wanted, None, ())
    during = applied(LIST, prior, wanted)
    assert set(wanted) <= set(entries(during)) or during == "*"
    assert restored_value(taken, during, ()) == prior


@given(rate_texts, st.integers(1, 5).map(str))
def test_a_restored_rate_equals_the_prior_value(prior: str | None, rate: str) -> None:
    taken = take(RATE, prior, (rate,), None, ())
    assert applied(RATE, prior, (rate,)) == rate
    assert restored_value(taken, rate, ()) == prior


ASSUMED = {
    "the last rate of the run": ("77", ("5", "7"), "7"),
    "not a rate that equals the prior one": ("77", ("5", "77"), "5"),
    "only the prior rate": ("77", ("77",), "77"),
    "unset before": (None, ("5",), "5"),
}


@pytest.mark.parametrize(("prior", "ours", "assumed"), ASSUMED.values(), ids=ASSUMED)
def test_the_assumed_rate_of_a_dead_broker(prior: str | None, ours: tuple[str, ...], assumed: str | None) -> None:
    run = replace(RUN, taken={RATE: Taken(setting=RATE, prior=prior, ours=ours)})
    assert assumed_values(run) == {RATE: assumed}


@given(lists.filter(lambda text: text != "*"), ours, some, some)
def test_edits_of_others_survive(
    prior: str | None, wanted: tuple[str, ...], came: tuple[str, ...], went: tuple[str, ...]
) -> None:
    taken = take(LIST, prior, wanted, None, ())
    during = [e for e in entries(applied(LIST, prior, wanted)) if e not in went]
    during += [e for e in came if e not in during and e not in taken.ours]
    after = restored_value(taken, ",".join(during), ())
    assert [e for e in entries(after) if e not in taken.ours] == [e for e in during if e not in taken.ours] or set(
        entries(after)
    ) == set(entries(prior))
    assert not set(entries(after)) & set(taken.ours)
    assert after != "" or prior == "" or not taken.ours


@given(rate_texts, rate_texts)
def test_a_rate_that_another_tool_changed_stays(prior: str | None, theirs: str | None) -> None:
    taken = take(RATE, prior, ("1000",), None, ())
    assert restored_value(taken, theirs, ()) == theirs


@given(lists, ours)
def test_setting_again_changes_nothing(prior: str | None, wanted: tuple[str, ...]) -> None:
    first = take(LIST, prior, wanted, None, ())
    during = applied(LIST, prior, wanted)
    assert take(LIST, during, wanted, first, ()) == first
    assert needed({LIST: wanted}, {LIST: during}) == ()


def test_a_raised_rate_is_restored_to_the_first_value() -> None:
    first = take(RATE, "7", ("10",), None, ())
    second = take(RATE, "10", ("20",), first, ())
    assert second == Taken(setting=RATE, prior="7", ours=("10", "20"))


def test_a_rate_that_an_operator_set_during_the_run_is_the_new_prior() -> None:
    first = take(RATE, None, ("10",), None, ())
    assert take(RATE, "7", ("20",), first, ()).prior == "7"
    assert take(RATE, "", ("20",), first, ()).prior == "", "an empty value is a value, and not a missing list"


@pytest.mark.parametrize("older_first", [True, False], ids=["older ends first", "younger ends first"])
@given(prior=lists, mine=ours, theirs=ours)
def test_two_runs_on_one_list_restore_it_together(
    older_first: bool, prior: str | None, mine: tuple[str, ...], theirs: tuple[str, ...]
) -> None:
    older = take(LIST, prior, mine, None, ())
    now = applied(LIST, prior, mine)
    younger = take(LIST, now, theirs, None, (older,))
    now = applied(LIST, now, theirs)
    first, last, needed_by_last = (older, younger, theirs) if older_first else (younger, older, mine)
    between = restored_value(first, now, (last,))
    assert set(needed_by_last) <= set(entries(between)) or between == "*"
    assert restored_value(last, between, ()) == prior


@pytest.mark.parametrize("older_first", [True, False], ids=["older ends first", "younger ends first"])
@given(prior=rate_texts, mine=st.sampled_from("123456"), theirs=st.sampled_from("123456"))
def test_two_runs_on_one_rate_restore_it_together(older_first: bool, prior: str | None, mine: str, theirs: str) -> None:
    older = take(RATE, prior, (mine,), None, ())
    younger = take(RATE, mine, (theirs,), None, (older,))
    first, last = (older, younger) if older_first else (younger, older)
    between = restored_value(first, theirs, (last,))
    last = passed_on(first, theirs, last, (older, younger))
    assert restored_value(last, between, ()) == prior


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@given(prior=rate_texts, values=st.permutations(["10", "20", "30"]))
def test_runs_that_began_without_a_common_record_restore_a_rate_together(
    order: tuple[int, ...], prior: str | None, values: list[str]
) -> None:
    """Each of them recorded the rate of the one before as its prior rate. Then the record was shared."""
    runs = [take(RATE, before, (value,), None, ()) for before, value in zip((prior, *values), values, strict=False)]
    now: str | None = values[-1]
    for position, number in enumerate(order):
        later = order[position + 1 :]
        left = restored_value(runs[number], now, [runs[n] for n in later])
        before = list(runs)
        for n in later:
            runs[n] = passed_on(before[number], now, before[n], [before[m] for m in sorted((number, *later))])
        now = left
    assert now == prior


@pytest.mark.parametrize("twice", [False, True], ids=["restored once", "restored again after late writes"])
@pytest.mark.parametrize("older_first", [True, False], ids=["older ends first", "younger ends first"])
def test_the_younger_of_two_runs_without_a_common_record_sets_the_original_rate_again(
    older_first: bool, twice: bool
) -> None:
    older = take(RATE, "10", ("20",), None, ())
    younger = take(RATE, "20", ("10",), None, ())
    first, last = (older, younger) if older_first else (younger, older)
    for _ in range(2 if twice else 1):
        assert restored_value(first, "10", (last,)) == "10"
        last = passed_on(first, "10", last, (older, last) if older_first else (last, younger))
    assert restored_value(last, "10", ()) == "10"


@given(prior=rate_texts)
def test_a_run_that_began_without_a_common_record_sets_another_rate(prior: str | None) -> None:
    older = take(RATE, prior, ("10",), None, ())
    younger = take(RATE, "10", ("20",), None, ())
    assert take(RATE, "20", ("30",), older, (younger,)).prior == prior
    assert take(RATE, "20", ("30",), younger, (older,)).prior == prior


@given(prior=st.none() | some.map(",".join), mine=ours)
def test_a_whole_list_over_entries_of_a_run_without_a_common_record(prior: str | None, mine: tuple[str, ...]) -> None:
    older = take(LIST, prior, mine, None, ())
    younger = take(LIST, applied(LIST, prior, mine), ("*",), None, ())
    between = restored_value(older, "*", (younger,))
    after = restored_value(passed_on(older, "*", younger, (older, younger)), between, ())
    assert entries(after) == entries(prior)


SEEN = {
    "entries came": (LIST, None, "0:1", "9:9,0:1", True),
    "entries not yet": (LIST, None, "0:1", None, False),
    "entries went": (LIST, "9:9,0:1", "9:9", "9:9,8:8", True),
    "entries still there": (LIST, "9:9,0:1", "9:9", "9:9,0:1", False),
    "key went": (LIST, "0:1", None, None, True),
    "key only emptied": (LIST, "0:1", None, "", False),
    "everything": (LIST, None, "0:1", "*", True),
    "rate": (RATE, None, "10", "10", True),
    "another rate": (RATE, None, "10", "11", False),
    "rate went": (RATE, "10", None, None, True),
}


@pytest.mark.parametrize(("setting", "before", "after", "value", "seen"), SEEN.values(), ids=SEEN)
def test_a_visible_change_is_recognized(
    setting: Setting, before: str | None, after: str | None, value: str | None, seen: bool
) -> None:
    assert Change(setting=setting, before=before, after=after).seen_in(value) is seen
