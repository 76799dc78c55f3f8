"""A throttle without a move: set, adjusted, watched and restored value by value, on a cluster in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kquota.errors import Busy, Incomplete, KquotaError, Refused, Unreachable
from kquota.measure import ByteRate
from kquota.reassign.port import MovePorts
from kquota.reassign.run import PAUSED_RATE, Purpose, at_rate
from kquota.reassign.throttle_writes import Restoration, WantedValues
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.stores.record.runs import RecordedRuns
from kquota.stores.record.shared import Unshared
from kquota.terms import FOLLOWER_RATE, LEADER_RATE, BrokerId, TopicPartition
from kquota.throttle import set_and_clear, wanted
from tests.reassign.fake import MemoryCluster, Ticks
from tests.reassign.records import alone
from tests.throttle.stage import FOLLOWER, LEADER, partition
from tests.watch.fake import CopyingCluster

ONE, TWO, THREE = map(BrokerId, (1, 2, 3))
RATE = ByteRate(1000)
LEADERS, FOLLOWERS = Setting.of_topic("t", LEADER), Setting.of_topic("t", FOLLOWER)
SENT, RECEIVED = Setting.of_broker(ONE, LEADER_RATE), Setting.of_broker(ONE, FOLLOWER_RATE)
TITLE = "a test"


class Dead(BaseException):
    """The process has died."""


class Desk:
    """One cluster and one state folder. Time advances only in a sleep."""

    def __init__(self, folder: Path) -> None:
        self.cluster = MemoryCluster(alive={ONE, TWO, THREE})
        self.cluster.partitions = {
            TopicPartition("t", 0): partition(1, 2),
            TopicPartition("t", 1): partition(2, 3, isr=[2]),
            TopicPartition("t", 2): partition(1, 3, isr=[1]),
            TopicPartition("u", 0): partition(3, 1),
        }
        self.runs = alone(folder)
        self.clock = Ticks()

    @property
    def ports(self) -> MovePorts:
        return MovePorts(cluster=self.cluster, runs=self.runs, clock=self.clock)

    def bring(self, wanted: WantedValues, title: str = TITLE) -> set_and_clear.HeldThrottle:
        self.clock.sleep(1)
        return set_and_clear.bring(self.ports, title, wanted, RATE)

    def die_of(self, setting: Setting, wanted: WantedValues) -> None:
        """Let the process die after it writes this setting and before it reads it back."""
        self.clock.sleep(1)
        change = self.cluster.change

        def dead(changes: Sequence[Change]) -> Mapping[Setting, KquotaError]:
            errors = change(changes)
            if setting in [change.setting for change in changes]:
                raise Dead
            return errors

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.cluster, "change", dead)
            set_and_clear.bring(self.ports, TITLE, wanted, RATE)

    def clear(self) -> Restoration:
        return set_and_clear.restore(self.ports, self.runs.unfinished())

    def recover(self, broker: BrokerId = THREE) -> set_and_clear.BrokerRecovery:
        self.clock.sleep(1)
        return set_and_clear.recover(self.ports, broker, RATE)

    def would_recover(self, broker: BrokerId = THREE) -> set_and_clear.BrokerRecovery:
        return set_and_clear.would_recover(self.ports, broker, RATE)

    def rejoin(self, name: TopicPartition) -> None:
        now = self.cluster.partitions[name]
        self.cluster.partitions[name] = replace(now, isr=now.replicas)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


WHOLE = wanted.whole_topics(["t"], [ONE], RATE)


def test_the_settings_of_a_whole_topic() -> None:
    assert WHOLE == {LEADERS: ("*",), FOLLOWERS: ("*",), SENT: ("1000",), RECEIVED: ("1000",)}
    assert wanted.whole_topics(["t"], [ONE], RATE, ["leader"]) == {LEADERS: ("*",), SENT: ("1000",)}
    assert wanted.whole_topics(["t"], [ONE], None) == {LEADERS: ("*",), FOLLOWERS: ("*",)}


PRIOR: dict[str, dict[Setting, str]] = {
    "unset": {},
    "empty": {LEADERS: ""},
    "others' entries": {LEADERS: "7:7,0:1", FOLLOWERS: "0:2"},
    "others' rates": {SENT: "5000", RECEIVED: "1"},
    "* already": {LEADERS: "*"},
    "all of it already": {LEADERS: "*", FOLLOWERS: "*", SENT: "1000", RECEIVED: "1000"},
}


@pytest.mark.parametrize("prior", PRIOR.values(), ids=PRIOR)
def test_prior_values_are_restored_one_by_one(desk: Desk, prior: dict[Setting, str]) -> None:
    desk.cluster.configs = dict(prior)
    desk.bring(WHOLE)
    assert desk.cluster.configs == {setting: values[0] for setting, values in WHOLE.items()}
    assert desk.clear().pending == {}
    assert desk.cluster.configs == prior
    assert desk.runs.unfinished() == ()


def test_setting_twice_writes_nothing_the_second_time(desk: Desk) -> None:
    first = desk.bring(WHOLE)
    writes, steps = desk.cluster.writes, first.run and desk.runs.every()[0].stamp
    second = desk.bring(WHOLE)
    assert (desk.cluster.writes, second.changes) == (writes, ())
    assert first.run is not None
    assert second.run is not None
    assert (second.run.id, desk.runs.every()[0].stamp) == (first.run.id, steps)
    assert first.run.purpose is Purpose.THROTTLE


def test_throttles_of_other_tools_do_not_create_a_run(desk: Desk) -> None:
    desk.cluster.configs = {setting: values[0] for setting, values in WHOLE.items()}
    assert desk.bring(WHOLE).run is None
    assert desk.runs.unfinished() == ()


def test_two_throttles_end_in_any_order(desk: Desk) -> None:
    desk.bring(WHOLE)
    desk.bring(wanted.whole_topics(["t", "u"], [ONE, TWO], RATE), "another")
    first, second = desk.runs.unfinished()
    for run in (first, second):
        set_and_clear.restore(desk.ports, [run])
    assert desk.cluster.configs == {}


def test_another_rate_for_an_open_run(desk: Desk) -> None:
    desk.cluster.configs = {SENT: "5000"}
    run = desk.bring(WHOLE).run
    assert run is not None
    for _ in range(2):
        (run,) = desk.runs.unfinished()
        set_and_clear.adjust(desk.ports, run, at_rate(run, ByteRate(7)))
    assert desk.cluster.configs == {LEADERS: "*", FOLLOWERS: "*", SENT: "7", RECEIVED: "7"}
    desk.clear()
    assert desk.cluster.configs == {SENT: "5000"}


@pytest.mark.parametrize("again", [False, True], ids=["once", "again when it is back"])
def test_the_rates_of_a_dead_broker_stay_and_the_others_change(desk: Desk, again: bool) -> None:
    """The restored value is right in both cases."""
    run = desk.bring(wanted.whole_topics(["t"], [ONE, TWO], RATE)).run
    assert run is not None
    desk.cluster.alive = {ONE, THREE}
    held = set_and_clear.adjust(desk.ports, run, at_rate(run, ByteRate(7)))
    sent_by_two = Setting.of_broker(TWO, LEADER_RATE)
    assert held.dead == (TWO,)
    assert (desk.cluster.configs[SENT], desk.cluster.configs[sent_by_two]) == ("7", str(RATE))
    desk.cluster.alive = {ONE, TWO, THREE}
    if again:
        (run,) = desk.runs.unfinished()
        held = set_and_clear.adjust(desk.ports, run, at_rate(run, ByteRate(7)))
        assert held.dead == ()
        assert desk.cluster.configs[sent_by_two] == "7"
    desk.clear()
    assert desk.cluster.configs == {}


def test_without_a_permission_nothing_is_set_and_nothing_is_recorded(desk: Desk) -> None:
    desk.cluster.forbidden = {RECEIVED}
    with pytest.raises(Refused, match="Nothing was written"):
        desk.bring(WHOLE)
    assert (desk.cluster.writes, desk.runs.every()) == (0, ())


def test_without_a_permission_another_rate_is_not_recorded(desk: Desk) -> None:
    run = desk.bring(WHOLE).run
    assert run is not None
    before = desk.runs.every()
    desk.cluster.forbidden = {RECEIVED}
    with pytest.raises(Refused, match="Nothing was written"):
        set_and_clear.adjust(desk.ports, run, at_rate(run, ByteRate(7)))
    with pytest.raises(Refused, match="Nothing was written"):
        set_and_clear.prepare_adjusted(desk.cluster, at_rate(run, ByteRate(7)))
    assert desk.runs.every() == before


def test_no_rate_changes_if_every_broker_of_the_run_is_dead(desk: Desk) -> None:
    run = desk.bring(WHOLE).run
    assert run is not None
    desk.cluster.alive = {THREE}
    with pytest.raises(Unreachable, match="could not be read"):
        set_and_clear.adjust(desk.ports, run, at_rate(run, ByteRate(7)))
    assert [one.rate for one in desk.runs.unfinished()] == [RATE]


@given(
    prior=st.sampled_from([{}, {SENT: "5000"}, {RECEIVED: "5000"}]),
    steps=st.lists(
        st.one_of(
            st.booleans(),
            st.integers(2, 9).map(ByteRate),
            st.tuples(st.sampled_from([SENT, RECEIVED]), st.integers(2, 9).map(ByteRate)),
        ),
        max_size=6,
    ),
)
def test_a_pause_leaves_leader_rates_and_continues_with_the_last_rates(
    tmp_path_factory: pytest.TempPathFactory,
    prior: dict[Setting, str],
    steps: list[bool | ByteRate | tuple[Setting, ByteRate]],
) -> None:
    """True is a pause, False its end, a number another rate, which also ends a pause, and a pair one rate of a broker.

    The end restores all of it.
    """
    desk = Desk(tmp_path_factory.mktemp("desk"))
    desk.cluster.configs = dict(prior)
    desk.bring(WHOLE)
    rates, paused = dict.fromkeys((SENT, RECEIVED), RATE), False
    for step in steps:
        (run,) = desk.runs.unfinished()
        if isinstance(step, bool):
            paused, after = step, replace(run, paused=step)
        elif isinstance(step, tuple):
            rates[step[0]], after = step[1], at_rate(run, step[1], [step[0]])
        else:
            rates, paused, after = dict.fromkeys(rates, step), False, at_rate(run, step)
        set_and_clear.adjust(desk.ports, run, after)
        (run,) = desk.runs.unfinished()
        assert run.paused == paused
        assert desk.cluster.configs[SENT] == str(rates[SENT])
        assert desk.cluster.configs[RECEIVED] == str(PAUSED_RATE if paused else rates[RECEIVED])
    desk.clear()
    assert desk.cluster.configs == prior


def test_a_run_without_rates_cannot_be_adjusted(desk: Desk) -> None:
    run = desk.bring(wanted.whole_topics(["t"], [], None)).run
    assert run is not None
    with pytest.raises(Refused, match="holds no rate"):
        set_and_clear.adjust(desk.ports, run, at_rate(run, RATE))


def test_a_failed_write_reverts_the_others(desk: Desk) -> None:
    desk.cluster.broken = {RECEIVED: Refused("no")}
    with pytest.raises(Refused, match="kquota restored everything that it had written"):
        desk.bring(WHOLE)
    assert (desk.cluster.configs, desk.runs.unfinished()) == ({}, ())


def test_a_value_set_before_a_failed_write_is_restored(desk: Desk) -> None:
    """The conflict records the other tool's value, and the revert starts from it."""
    desk.cluster.configs = {LEADERS: "9:9"}
    desk.cluster.meanwhile = [(LEADERS, "9:9,8:8")]
    desk.cluster.broken = {RECEIVED: Refused("no")}
    with pytest.raises(Refused, match="kquota restored everything that it had written"):
        desk.bring(WHOLE)
    assert (desk.cluster.configs, desk.runs.unfinished()) == ({LEADERS: "9:9,8:8"}, ())


def test_a_cluster_that_is_lost_during_the_undo_leaves_the_run_open(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: Collection[Setting]) -> Mapping[Setting, str | None]:
        raise Unreachable("no broker answers")

    def written(changes: Sequence[Change]) -> Mapping[Setting, KquotaError]:
        monkeypatch.setattr(desk.cluster, "values", lost)
        raise Unreachable("the connection was lost")

    monkeypatch.setattr(desk.cluster, "change", written)
    with pytest.raises(Incomplete, match=r"the connection was lost\. These settings may still be set: .* stays open"):
        desk.bring(WHOLE)
    assert len(desk.runs.unfinished()) == 1


def test_a_dead_broker_is_pending_until_it_returns(desk: Desk) -> None:
    desk.bring(WHOLE)
    desk.cluster.alive.remove(ONE)
    assert set(desk.clear().pending) == {SENT, RECEIVED}
    assert len(desk.runs.unfinished()) == 1
    desk.cluster.alive.add(ONE)
    assert desk.clear().pending == {}
    assert desk.cluster.configs == {}


def test_the_controllers_restore_a_dead_broker(desk: Desk) -> None:
    desk.cluster.controllers = True
    desk.bring(WHOLE)
    desk.cluster.alive.remove(ONE)
    foreseen = set_and_clear.would_restore(desk.ports, desk.runs.unfinished())
    assert set(foreseen.pending) == {SENT, RECEIVED}, "a dry run does not ask the controllers"
    assert desk.clear().pending == {}
    assert (desk.cluster.configs, desk.runs.unfinished()) == ({}, ())


def test_a_list_that_no_broker_can_describe_is_pending_and_the_controllers_do_not_get_it(desk: Desk) -> None:
    desk.cluster.controllers = True
    desk.bring(WHOLE)
    desk.cluster.alive.remove(ONE)
    desk.cluster.undescribed.add("t")
    pending = {setting: str(why) for setting, why in desk.clear().pending.items()}
    assert pending == dict.fromkeys([LEADERS, FOLLOWERS], "could not be read")
    assert desk.cluster.configs == {LEADERS: "*", FOLLOWERS: "*"}, "the rates of the dead broker are restored"
    desk.cluster.undescribed.clear()
    assert (desk.clear().pending, desk.cluster.configs, desk.runs.unfinished()) == ({}, {}, ())


def test_a_run_that_another_kquota_has_ended_is_not_restored_again(desk: Desk) -> None:
    desk.bring(WHOLE)
    ended = desk.runs.unfinished()
    set_and_clear.restore(desk.ports, ended)
    desk.cluster.configs[SENT] = "1000"
    assert set_and_clear.would_restore(desk.ports, ended) == Restoration()
    assert set_and_clear.restore(desk.ports, ended) == Restoration()
    assert desk.cluster.configs == {SENT: "1000"}


def net(changes: Iterable[Change]) -> dict[Setting, tuple[str | None, str | None]]:
    """Return the value of each changed setting before the first change and after the last one."""
    found: dict[Setting, tuple[str | None, str | None]] = {}
    for change in changes:
        found[change.setting] = found.get(change.setting, (change.before,))[0], change.after
    return {setting: values for setting, values in found.items() if values[0] != values[1]}


@given(
    prior=st.dictionaries(st.sampled_from([SENT, RECEIVED]), st.sampled_from(["77", "1000"])),
    between=st.dictionaries(st.sampled_from([SENT, RECEIVED, LEADERS]), st.sampled_from(["78", "1000", None])),
    topic=st.sampled_from("tu"),
    ending=st.sampled_from([[0], [1], [0, 1], [1, 0]]),
    dead=st.booleans(),
)
@example(prior={SENT: "77"}, between={}, topic="u", ending=[0, 1], dead=False)
def test_a_dry_run_foresees_the_net_effect_of_a_restore(
    tmp_path_factory: pytest.TempPathFactory,
    prior: dict[Setting, str],
    between: dict[Setting, str | None],
    topic: str,
    ending: list[int],
    dead: bool,
) -> None:
    """Two runs share the rates of broker 1. The last of them restores these rates."""
    desk = Desk(tmp_path_factory.mktemp("desk"))
    desk.cluster.configs = dict(prior)
    desk.bring(WHOLE)
    for setting, value in between.items():
        desk.cluster.write(setting, "9:9" if value and setting is LEADERS else value)
    desk.bring(wanted.whole_topics([topic], [ONE, TWO], RATE), "another")
    if dead:
        desk.cluster.alive.remove(TWO)
    every = desk.runs.unfinished()
    runs = [every[n] for n in ending if n < len(every)]
    before = dict(desk.cluster.configs)
    foreseen = set_and_clear.would_restore(desk.ports, runs)
    assert (desk.cluster.configs, desk.runs.unfinished()) == (before, every)
    done = set_and_clear.restore(desk.ports, runs)
    assert (net(foreseen.restored), foreseen.pending.keys()) == (net(done.restored), done.pending.keys())


class Meanwhile(MemoryCluster):
    """A cluster that calls a function before the n-th read of values from now on."""

    due: int = 0
    what: Callable[[], None]

    def before_read(self, n: int, what: Callable[[], None]) -> None:
        self.due, self.what = n, what

    def values(self, settings: Collection[Setting]) -> Mapping[Setting, str | None]:
        self.due -= 1
        if self.due == 0:
            self.what()
        return super().values(settings)


@pytest.fixture
def busy_desk(desk: Desk) -> Desk:
    desk.cluster = Meanwhile(alive=desk.cluster.alive, partitions=desk.cluster.partitions)
    return desk


@pytest.mark.parametrize("n", [1, 2, 4], ids=["before it looks", "before lists", "before rates"])
def test_a_value_that_another_tool_sets_during_the_run_is_restored(busy_desk: Desk, n: int) -> None:
    cluster = busy_desk.cluster
    assert isinstance(cluster, Meanwhile)
    cluster.configs = {LEADERS: "9:9", SENT: "77"}

    def somebody() -> None:
        cluster.write(SENT, "78")
        cluster.write(FOLLOWERS, "8:8")

    cluster.before_read(n, somebody)
    busy_desk.bring(WHOLE)
    busy_desk.clear()
    assert cluster.configs == {LEADERS: "9:9", FOLLOWERS: "8:8", SENT: "78"}


def test_a_lost_connection_and_a_lagging_broker_do_not_hide_a_throttle(busy_desk: Desk) -> None:
    """A read does not show the write yet: a missing value does not prove that the write was lost."""
    cluster = busy_desk.cluster
    assert isinstance(cluster, Meanwhile)
    cluster.configs, cluster.lag = {SENT: "77"}, 3

    def lost() -> None:
        raise Unreachable("no answer")

    for n in range(2, 12):
        cluster.before_read(n, lost)
        try:
            busy_desk.bring(WHOLE)
        except KquotaError:
            cluster.before_read(0, lost)
        if not busy_desk.runs.unfinished():
            assert cluster.configs == {SENT: "77"}, f"read {n}"
        busy_desk.clear()
        assert cluster.configs == {SENT: "77"}, f"read {n}"


@pytest.mark.parametrize("seen", [LEADERS, SENT], ids=["a list", "a rate"])
@pytest.mark.parametrize("prior", [{}, {LEADERS: "9:9", SENT: "77"}], ids=["nothing set", "others' values"])
def test_clear_with_stale_reads_restores_everything(desk: Desk, seen: Setting, prior: dict[Setting, str]) -> None:
    """The kquota that set it died before it read it back, and the broker still shows the previous value."""
    desk.cluster.configs = dict(prior)
    other = wanted.whole_topics(["t"], [ONE], ByteRate(2000)) if seen is SENT else {LEADERS: ("0:1",), SENT: ("5",)}
    desk.bring(other, "another")
    desk.cluster.lag = 3
    with pytest.raises(Dead):
        desk.die_of(seen, {LEADERS: ("*",), SENT: ("1000",)})
    first, second = desk.runs.unfinished()
    for run in (second, first):
        set_and_clear.restore(desk.ports, [run])
    assert desk.cluster.configs == prior


def test_a_list_deleted_between_two_throttles_stays_deleted(desk: Desk) -> None:
    desk.cluster.configs = {LEADERS: "9:9"}
    desk.bring(WHOLE)
    desk.cluster.write(LEADERS, None)
    desk.bring({LEADERS: ("*",)}, "another")
    first, second = desk.runs.unfinished()
    for run in (second, first):
        set_and_clear.restore(desk.ports, [run])
    assert desk.cluster.configs == {}


class TakenOver(RecordedRuns):
    """Recorded runs whose lock another kquota takes over before the first write to the cluster."""

    refused = 0

    def must_hold(self) -> None:
        self.refused += 1
        raise Busy("another kquota has taken over")


def test_a_previous_owner_reverts_nothing_after_a_takeover(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run and its throttles now belong to the other one.

    This one reports that, and not that everything was reverted.
    """
    runs = TakenOver(desk.runs._files, Unshared("it is a test"))
    change = desk.cluster.change

    def refused(changes: Sequence[Change]) -> Mapping[Setting, KquotaError]:
        runs.must_hold()
        return change(changes)

    monkeypatch.setattr(desk.cluster, "change", refused)
    desk.runs = runs
    with pytest.raises(Busy, match="has taken over"):
        desk.bring(WHOLE)
    assert runs.refused == 1
    assert [run.finished for run in runs.every()] == [None]


@pytest.mark.parametrize("last", [0, 1], ids=["the first ends last", "the second ends last"])
def test_a_rate_set_between_two_throttles_is_restored(desk: Desk, last: int) -> None:
    """Both set the same rate. Only the second one has found the value that another tool set over the first one's."""
    desk.cluster.configs = {SENT: "77"}
    desk.bring(WHOLE)
    desk.cluster.write(SENT, "78")
    desk.bring(wanted.whole_topics(["u"], [ONE], RATE), "another")
    runs = desk.runs.unfinished()
    for run in (runs[1 - last], runs[last]):
        set_and_clear.restore(desk.ports, [run])
    assert desk.cluster.configs == {SENT: "78"}


BEHIND = {
    LEADERS: "1:2,2:1",
    FOLLOWERS: "1:3,2:3",
    Setting.of_broker(ONE, LEADER_RATE): "1000",
    Setting.of_broker(TWO, LEADER_RATE): "1000",
    Setting.of_broker(THREE, FOLLOWER_RATE): "1000",
}


def test_a_returning_broker_is_not_done_while_a_recorded_run_cannot_be_read(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecordedRuns, "unreadable", ("20260301T123000Z-6a6b28d658e6",))
    writes = desk.cluster.writes
    with pytest.raises(Refused, match="run 20260301T123000Z-6a6b28d658e6 cannot be read, and may hold this throttle"):
        desk.recover()
    with pytest.raises(Refused, match="cannot be read, and may hold this throttle"):
        desk.would_recover()
    assert desk.cluster.writes == writes


def test_a_returning_broker_is_listed_exactly_and_released_as_it_rejoins(desk: Desk) -> None:
    desk.cluster.configs = {LEADERS: "0:1"}
    first = desk.recover()
    assert desk.cluster.configs == BEHIND | {LEADERS: "0:1,1:2,2:1"}
    assert first.behind == (TopicPartition("t", 1), TopicPartition("t", 2))
    writes = desk.cluster.writes
    assert desk.recover().changes == ()
    assert desk.cluster.writes == writes

    desk.rejoin(TopicPartition("t", 1))
    second = desk.recover()
    assert second.behind == (TopicPartition("t", 2),)
    assert desk.cluster.configs == BEHIND | {LEADERS: "0:1,2:1", FOLLOWERS: "2:3"}

    desk.rejoin(TopicPartition("t", 2))
    third = desk.recover()
    assert third.done
    assert (desk.cluster.configs, desk.runs.unfinished()) == ({LEADERS: "0:1"}, ())
    assert desk.recover().done


def test_a_recovery_without_a_permission_restores_nothing_because_it_says_that_nothing_was_written(desk: Desk) -> None:
    """One replica has caught up, and a replica of another topic, whose lists this user may not write, falls behind."""
    desk.recover()
    desk.rejoin(TopicPartition("t", 1))
    desk.cluster.partitions[TopicPartition("u", 0)] = partition(1, 3, isr=[1])
    desk.cluster.forbidden = {Setting.of_topic("u", FOLLOWER)}
    before = dict(desk.cluster.configs), desk.runs.every()
    with pytest.raises(Refused, match="Nothing was written"):
        desk.recover()
    assert (desk.cluster.configs, desk.runs.every()) == before
    desk.cluster.forbidden.clear()
    assert [str(change.setting) for change in desk.recover().restoration.restored] == [str(FOLLOWERS), str(LEADERS)]


def test_a_dry_run_of_a_recovery_shows_what_the_recovery_writes(desk: Desk) -> None:
    """At the start, after one replica has caught up while another one falls behind, after the last one, and after the
    end."""
    desk.cluster.configs = {LEADERS: "0:1"}
    one, two, other = TopicPartition("t", 1), TopicPartition("t", 2), TopicPartition("u", 0)
    for rejoining in ([], [one], [two, other], []):
        for name in rejoining:
            desk.rejoin(name)
        if rejoining == [one]:
            desk.cluster.partitions[other] = partition(1, 3, isr=[1])
        writes, would = desk.cluster.writes, desk.would_recover()
        assert desk.cluster.writes == writes
        did = desk.recover()
        shown = would.behind, would.changes, would.restoration.restored
        assert shown == (did.behind, did.changes, did.restoration.restored)
    assert desk.cluster.configs == {LEADERS: "0:1"}


def test_a_dry_run_of_a_recovery_leaves_out_a_broker_that_does_not_answer(desk: Desk) -> None:
    cluster = desk.cluster
    desk.cluster = CopyingCluster(alive=cluster.alive, partitions=cluster.partitions, unreadable={"2"})
    would, did = desk.would_recover(), desk.recover()
    assert (would.changes, would.unlimited) == (did.changes, did.unlimited)
    assert did.unlimited == (TWO,)


def test_a_dead_broker_gets_its_rate_when_it_returns(desk: Desk) -> None:
    desk.cluster.alive.remove(THREE)
    assert desk.recover().unlimited == (THREE,)
    assert Setting.of_broker(THREE, FOLLOWER_RATE) not in desk.cluster.configs
    desk.cluster.alive.add(THREE)
    assert desk.recover().unlimited == ()
    assert desk.cluster.configs == BEHIND


def test_an_interrupted_recovery_is_cleared_like_any_throttle(desk: Desk) -> None:
    desk.recover()
    desk.clear()
    assert (desk.cluster.configs, desk.runs.unfinished()) == ({}, ())


def test_a_broker_that_falls_behind_again_is_listed_again(desk: Desk) -> None:
    desk.recover()
    desk.rejoin(TopicPartition("t", 1))
    desk.recover()
    now = desk.cluster.partitions[TopicPartition("t", 1)]
    desk.cluster.partitions[TopicPartition("t", 1)] = replace(now, isr=(TWO,))
    desk.recover()
    assert {s: set(v.split(",")) for s, v in desk.cluster.configs.items()} == {
        s: set(v.split(",")) for s, v in BEHIND.items()
    }
    desk.clear()
    assert desk.cluster.configs == {}


def test_a_watched_recovery_keeps_the_rate_of_another_kquota(desk: Desk) -> None:
    going = desk.recover().run
    set_and_clear.recover(desk.ports, THREE, ByteRate(5_000))
    seen = set_and_clear.recover(desk.ports, THREE, RATE, going)
    assert (seen.changes, seen.run and seen.run.rate) == ((), 5_000)
    assert desk.cluster.configs[Setting.of_broker(THREE, FOLLOWER_RATE)] == "5000"


def test_a_watched_recovery_is_not_restarted_after_another_kquota_ended_it(desk: Desk) -> None:
    going = desk.recover().run
    desk.clear()
    with pytest.raises(Refused, match=r"another kquota restored this throttle \(still out of sync: 2 replicas\)"):
        set_and_clear.recover(desk.ports, THREE, RATE, going)
    assert (desk.cluster.configs, desk.runs.unfinished()) == ({}, ())
    for name in (TopicPartition("t", 1), TopicPartition("t", 2)):
        desk.rejoin(name)
    assert set_and_clear.recover(desk.ports, THREE, RATE, going).done


def test_a_recovery_is_not_done_while_a_value_is_pending(desk: Desk) -> None:
    desk.recover()
    for name in (TopicPartition("t", 1), TopicPartition("t", 2)):
        desk.rejoin(name)
    desk.cluster.broken = {FOLLOWERS: Refused("not allowed")}
    found = desk.recover()
    assert (found.behind, set(found.restoration.pending), found.done) == ((), {FOLLOWERS}, False)


def test_a_copy_of_a_running_move_is_not_a_recovery(desk: Desk) -> None:
    desk.cluster.partitions = {TopicPartition("t", 0): partition(1, 2, 3, adding=[3])}
    assert desk.recover() == set_and_clear.BrokerRecovery(run=None, behind=())


def test_a_rate_for_a_dead_broker_is_refused_before_any_write(desk: Desk) -> None:
    desk.cluster.alive.remove(ONE)
    with pytest.raises(Unreachable):
        desk.bring(WHOLE)
    assert (desk.cluster.writes, desk.runs.unfinished()) == (0, ())
